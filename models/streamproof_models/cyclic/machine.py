"""Flow control in a loop: operators in a ring, finite buffers, and a feedback edge that may spill to disk.

Records enter at the first operator, the *entry*, which also reads the feedback edge; the last operator writes to it. A
checkpoint barrier enters among the records, and is complete when the entry reads it from the feedback edge.

The `policy` decides which input the entry reads if both have items:

* ``feedback-first``: always the feedback edge;
* ``feedback-first-in-memory``: another interpretation, in which only items in memory count, not those on disk;
* ``feedback-first-when-utilised``: the feedback edge while all its buffers are in use, else as ``fair``;
* ``forward-first-until-utilised``: another interpretation of these words, else as ``forward-first``;
* ``fair``: alternately;
* ``forward-first``: always the forward input.

A ``bounded`` feedback edge has its buffers only; a ``spilling`` one writes items without a buffer to disk, and reads
them back in order (FLIP-15, part II).

Not modelled: time, contents of records, several operators that read one channel. The source never ends, but at most
`records` exist at a time: a quantity that grows with `records` is unbounded.
"""

from __future__ import annotations

from typing import ClassVar

from streamproof import STRONG, WEAK, Model, Parts, Range, State, action, each, require
from streamproof_models.cyclic.feedback import FeedbackEdge
from streamproof_models.cyclic.operators import Entry, Operator
from streamproof_models.cyclic.parts import KINDS, Channel, Source
from streamproof_models.cyclic.rules import EntryRules

FEEDBACK = ("bounded", "spilling")
POLICIES = (
    "feedback-first",
    "feedback-first-in-memory",
    "feedback-first-when-utilised",
    "forward-first-until-utilised",
    "fair",
    "forward-first",
)


class Cyclic(EntryRules, Model):
    """Flow control in a loop of operators with a feedback edge."""

    name = "cyclic"

    operators: int = 2
    """Number of operators in the loop; the first is the entry."""
    buffers: int = 2
    """Capacity of each channel, in items; the feedback edge holds as many in memory."""
    amplification: int = 2
    """Maximum number of records that an operator sends on for one that it takes."""
    records: int = 3
    """Maximum number of records that exist at a time."""
    barriers: int = 1
    """Maximum number of concurrent checkpoint barriers."""
    rounds: int = 0
    """Maximum number of times that a record, including its ancestors, takes the feedback edge; 0: no limit."""
    feedback: str = "spilling"
    """bounded or spilling."""
    policy: str = "fair"
    """The input that the entry reads first, one of POLICIES."""
    strong: bool = False
    """Whether the entry is strongly fair to each input, or weakly."""
    watch: int = 0
    """Maximum value of counters of waits and logged records; 0: do not count."""

    source: ClassVar[Source]
    channel: ClassVar[tuple[Channel, ...]]
    """The channel in front of each operator; the first is the forward input."""
    operator: ClassVar[tuple[Operator, ...]]
    back: ClassVar[FeedbackEdge]
    instance_bounds = ("records", "barriers")
    limits = {
        "operators": (1, None),
        "buffers": (1, None),
        "amplification": (1, None),
        "records": (1, None),
        "barriers": (0, None),
        "rounds": (0, None),
        "watch": (0, None),
    }
    sizes = {
        "small": {},
        "medium": {"operators": 3, "records": 7},
        "large": {"operators": 3, "records": 9, "barriers": 2},
    }

    def setup(self):
        """Derived parameters."""
        for word, known in ((self.feedback, FEEDBACK), (self.policy, POLICIES)):
            if word not in known:
                raise ValueError(f"{word!r} is none of {', '.join(known)}")
        self.inner = range(1, self.operators)
        self.most = self.records + self.barriers
        self.spilling = self.feedback == "spilling"

    @property
    def entry(self):
        """The treatment of the forward input by the policy, as a value of `cyclic_counts`."""
        return "not-waiting" if self.policy == "feedback-first" else "not-full" if "utilised" in self.policy else "any"

    def repeated(self, s):
        """Number of items that were read back twice."""
        return 0

    def parts(self):
        """The source, the operators, the channel before each, and the feedback edge, which the last operator writes to."""
        fairness = STRONG if self.strong else WEAK
        ring = (
            Parts(
                source=Source(records=self.records, barriers=self.barriers),
                channel=each(self.operators, lambda i: Channel(buffers=self.buffers, rounds=self.rounds)),
                operator=each(self.operators, self.operator_at),
                back=self.feedback_edge(),
            )
            .share("unborn", "source.unborn", "operator.unborn")
            .share("untriggered", "source.untriggered", "operator[0].untriggered")
            .together("offer", "source.offer", f"channel[0].put('RECORD', {self.rounds})")
            .together("trigger", "source.trigger", "channel[0].put('BARRIER', 0)")
        )
        for edge, take in (("forward", "channel[0].take(kind, rounds)"), ("feedback", "back.take(kind, rounds)")):
            read = f"operator[0].read_{edge}(kind, rounds)"
            ring = ring.together(f"read_{edge}", f"prefer_{edge}(kind)", take, read, fairness=fairness)
        for i in self.inner:
            send = f"operator[{i - 1}].send(kind, rounds)"
            ring = ring.together(f"read_{i}", f"channel[{i}].take(kind, rounds)", f"operator[{i}].read(kind, rounds)")
            ring = ring.together(f"send_to_{i}", send, f"channel[{i}].put(kind, rounds)")
        last = f"operator[{self.operators - 1}].send(kind, rounds)"
        return ring.together("send_back", last, "back.put(kind, rounds)").block("channel[0].put", "operator[0].read")

    def operator_at(self, i):
        """Operator `i` of the ring."""
        settings = {"amplification": self.amplification, "records": self.records, "rounds": self.rounds}
        closing = i == self.operators - 1
        return (
            Entry(**settings, closing=closing, barriers=self.barriers)
            if i == 0
            else Operator(**settings, closing=closing)
        )

    def feedback_edge(self, variant=None, most=None):
        """The feedback edge, or one of its variants."""
        settings = {"buffers": self.buffers, "rounds": self.rounds, "spilling": self.spilling}
        return FeedbackEdge.build(variant, most=self.most if most is None else most, **settings)

    # --- the choice of the entry

    def state(self):
        """Counters for measures, which `watch` bounds."""
        count = Range(0, self.watch)
        return State(forward_wait=count, feedback_wait=count, logged=count)

    @action(kind=KINDS)
    def prefer_forward(self, s, kind):
        """The entry may read its forward input."""
        require(self.may_read_forward(s, kind))
        s.forward_wait = 0
        if self.back.waiting(s.back) > 0:
            s.feedback_wait = min(s.feedback_wait + 1, self.watch)
        if kind == "BARRIER":
            s.logged = 0

    @action(kind=KINDS)
    def prefer_feedback(self, s, kind):
        """The entry may read the feedback edge."""
        require(self.may_read_feedback(s, kind))
        s.feedback_wait = 0
        if len(s.channel[0].items) > 0:
            s.forward_wait = min(s.forward_wait + 1, self.watch)
        if kind == "BARRIER":
            s.logged = 0
        elif self.watch and self.checkpointing(s):
            s.logged = min(s.logged + 1, self.watch)

    def feedback_waits(self, s, kind):
        """Whether the feedback edge has an item visible to the entry."""
        if self.policy == "feedback-first-in-memory":
            return len(s.back.memory) > 0
        return self.back.waiting(s.back) > 0

    def forward_waits(self, s, kind):
        """Whether the forward input has an item."""
        return len(s.channel[0].items) != 0

    def is_utilised(self, s):
        """Whether as many items wait on the feedback edge as it has buffers."""
        return self.back.waiting(s.back) >= self.buffers

    def last_read(self, s):
        """The input that the entry has read last."""
        return s.operator[0].last_read

    def checkpointing(self, s):
        """Whether a barrier is in the loop, so that records from the feedback edge are logged."""
        queues = [s.channel[i].items for i in self.inner] + [s.back.memory, s.back.disk]
        return any(operator.task == "BARRIER" for operator in s.operator) or any(
            item.kind == "BARRIER" for queue in queues for item in queue
        )
