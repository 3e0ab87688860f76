"""The baton on bounded channels: termination detection and flow control together (FLIP-15, parts III and II).

`baton` has the operators, with channels that always have room; the channels and the feedback edge of `cyclic` have the
buffers. A step that sends or takes an item happens in both: it waits for a buffer, and frees one. END and batons travel as
barriers do. An operator has room for `hold` records.

Each part alone makes progress: the baton on channels with room, and the loop without a baton whose feedback edge spills or
has a buffer for every record.
"""

from __future__ import annotations

from typing import ClassVar

from streamproof import STRONG, WEAK, Model, Parts, action, choose, each, require, terminal
from streamproof_models.baton.machine import Baton
from streamproof_models.cyclic.feedback import FeedbackEdge
from streamproof_models.cyclic.parts import Channel


class BatonChannels(Model):
    """Termination of a dataflow by passing a baton through bounded channels."""

    name = "baton_channels"
    baton: ClassVar[Baton]
    """Operators, and the order of what is in each channel."""
    channel: ClassVar[dict[str, Channel]]
    """The buffers of each channel except feedback."""
    back: ClassVar[dict[str, FeedbackEdge]]
    """The buffers of each feedback edge, and its disk."""

    topology: str = "loop"
    """The job graph: a name of the catalogue, or a graph as text."""
    work: int = 3
    """Maximum number of records that exist at a time."""
    buffers: int = 1
    """Capacity of each channel, in items; a feedback edge holds as many in memory."""
    hold: int = 1
    """Maximum number of records that an operator holds at a time."""
    spilling: bool = True
    """Whether feedback edges have a disk."""

    limits = {"work": (0, None), "buffers": (1, None), "hold": (1, None)}
    sizes = {
        "small": {},
        "medium": {"topology": "nested-small", "work": 6},
        "large": {"topology": "nested-small", "work": 10},
    }
    instance_bounds = ("work",)
    baton_variant: ClassVar[str | None] = None
    """The rules of the baton."""
    channel_variant: ClassVar[str | None] = None
    """The rules of the channels."""
    back_variant: ClassVar[str | None] = None
    """The rules of the feedback edges."""

    def setup(self):
        """Operators and channels by name."""
        baton = self.make_baton()
        self.channels, self.sources = baton.channels, baton.sources
        self.others, self.heads = baton.others, baton.heads
        self.from_sources, self.from_operators = baton.from_sources, baton.from_operators
        self.batons = baton.batons
        self.feedback = [c for c in baton.channels if baton.routes.links[c].feedback]
        self.forward = [c for c in baton.channels if c not in self.feedback]
        self.most = self.work + baton.most_batons

    def make_baton(self) -> Baton:
        """The operators."""
        return Baton.build(self.baton_variant, topology=self.topology, work=self.work)

    def parts(self):
        """The operators and their channels. What changes both is a rule below."""
        rules = ("produce", "emit", "finish", "receive", "end_source", "terminate", "start_attempts", "receive_baton")
        return Parts(
            baton=self.make_baton(),
            channel=each(self.forward, lambda c: Channel.build(self.channel_variant, buffers=self.buffers)),
            back=each(self.feedback, lambda c: self.feedback_edge()),
        ).block(*[f"baton.{rule}" for rule in rules], "channel.put", "channel.take", "back.put", "back.take")

    def feedback_edge(self) -> FeedbackEdge:
        """A feedback edge."""
        return FeedbackEdge.build(self.back_variant, buffers=self.buffers, most=self.most + 1, spilling=self.spilling)

    # --- buffers

    def put(self, s, c, kind):
        """An item needs a buffer, or the disk of a feedback edge."""
        if c in self.feedback:
            self.back[c].put(s.back[c], kind, 0)
        else:
            self.channel[c].put(s.channel[c], kind, 0)

    def take(self, s, c, kind):
        """An item frees its buffer."""
        if c in self.feedback:
            self.back[c].take(s.back[c], kind, 0)
        else:
            self.channel[c].take(s.channel[c], kind, 0)

    def lengths(self, s):
        """Number of items in each channel."""
        return {c: len(s.baton.channel[c]) for c in self.channels}

    def occupy(self, s, before, taken=()):
        """What a step of an operator has taken frees buffers; the END or baton that it has sent needs them."""
        for c in self.channels:
            if c in taken:
                self.take(s, c, "BARRIER")
            if len(s.baton.channel[c]) + int(c in taken) > before[c]:
                self.put(s, c, "BARRIER")

    # --- records

    @action(c="from_sources")
    def produce(self, s, c):
        """A source sends a record."""
        self.baton.produce(s.baton, c)
        self.put(s, c, "RECORD")

    @action(c="from_operators", fairness=WEAK)
    def emit(self, s, c):
        """An operator sends a record on for one that it holds."""
        self.baton.emit(s.baton, c)
        self.put(s, c, "RECORD")

    @action(c="channels", fairness=STRONG)
    def receive(self, s, c):
        """An operator that has room receives a record, and decides whether it is used up, or held until it is sent on."""
        o = self.baton.target[c]
        runs = s.baton.phase[o] != "TERMINATED"
        require(not runs or s.baton.held[o] < self.hold)
        self.baton.receive(s.baton, c)
        self.take(s, c, "RECORD")
        if runs:
            used_up = True
            if o in self.baton.source.values():
                used_up = choose([False, True])
            if used_up:
                self.baton.finish(s.baton, o)

    # --- END and batons

    @action(o="sources", fairness=WEAK)
    def end_source(self, s, o):
        """A source that has ended sends END."""
        before = self.lengths(s)
        self.baton.end_source(s.baton, o)
        self.occupy(s, before)

    @action(o="others", fairness=WEAK)
    def terminate(self, s, o):
        """An operator that is not a head terminates, and sends END."""
        before = self.lengths(s)
        self.baton.terminate(s.baton, o)
        self.occupy(s, before, self.baton.routes.inputs[o])

    @action(o="heads", fairness=WEAK)
    def start_attempts(self, s, o):
        """A head starts the first attempt of its scope."""
        before = self.lengths(s)
        self.baton.start_attempts(s.baton, o)
        self.occupy(s, before, self.baton.routes.inputs[o])

    @action(c="channels", baton=lambda m, c: m.batons[c], fairness=STRONG)
    def receive_baton(self, s, c, baton):
        """An operator receives a baton, and sends on what follows from it."""
        before = self.lengths(s)
        self.baton.receive_baton(s.baton, c, baton)
        self.occupy(s, before, (c,))

    @terminal
    def done(self, s):
        """Every subtask has terminated."""
        return self.baton.done(s.baton)


class WeakBatonChannels(BatonChannels, variant="weak"):
    """An operator that finds room only now and then, others being quicker, need not be served eventually."""

    @action(c="channels", fairness=WEAK)
    def receive(self, s, c):
        """As in the machine."""
        super().receive(s, c)

    @action(c="channels", baton=lambda m, c: m.batons[c], fairness=WEAK)
    def receive_baton(self, s, c, baton):
        """As in the machine."""
        super().receive_baton(s, c, baton)


class BoundedFeedback(BatonChannels, variant="bounded"):
    """Feedback edges have buffers like every other channel, and no disk."""

    spilling: bool = False


class BoundedWithoutEnd(BoundedFeedback, variant="bounded-without-end", without="end_source"):
    """The same while the sources have not ended: flow control alone, no baton is under way."""


class DroppedWithoutBuffer(BatonChannels, variant="dropped"):
    """The feedback edge drops an item without a free buffer."""

    back_variant = "dropped"


class OneTooManyBuffers(BatonChannels, variant="one-too-many"):
    """A writer tests whether more than all buffers are in use, instead of whether one is free."""

    channel_variant = "one-too-many"
    back_variant = "one-too-many"


class UncheckedRecords(BatonChannels, variant="no-dirty-check"):
    """A head does not ask whether it has received a record since it sent the baton."""

    baton_variant = "no-dirty-check"
