"""The head of a loop as logs show it: the entry of `cyclic` with its feedback edge, without the operators behind it.

The rules of the feedback edge and of the policies are those of `cyclic`. This is the machine that follows logs.

A head has several channels on each side, holds several records, and reads END and batons, which are the barriers of
`cyclic`; a baton waits behind the same baton for the other channels that carry it. A record is under way before it reaches
the feedback edge.
"""

from __future__ import annotations

import json

from streamproof import Array, Bool, Enum, Model, Queue, Range, Record, Set, State, action, require
from streamproof_models.cyclic.feedback import FeedbackEdge
from streamproof_models.cyclic.machine import POLICIES
from streamproof_models.cyclic.rules import EntryRules

ANY = "any"
"""The policy that leaves the choice open."""
RECORD, END = "record", "end"


class LoopHead(EntryRules, Model):
    """The entry of a loop, with several channels on each side. Channels are numbered, those of the forward input first."""

    name = "loop_head"
    check_deadlock = False
    """Nothing has to happen."""
    sizes = {"small": {}, "medium": {"holds": 2, "most": 3}}

    forward: int = 1
    """Number of forward channels."""
    feedback: int = 1
    """Number of feedback channels."""
    buffers: int = 1
    """Capacity of each feedback channel in memory, in items."""
    holds: int = 1
    """Maximum number of records that the entry holds; 0: not known."""
    most: int = 2
    """Maximum number of items that wait on a channel."""
    spilling: bool = True
    """Whether feedback channels have a disk."""
    policy: str = "fair"
    """The input that the entry reads first, one of POLICIES; or any."""
    batons: str = '{"BARRIER": [[0, 1]]}'
    """Each baton with the sets of channels that carry it to the entry, as JSON."""
    instance_bounds = ("most",)
    limits = {"forward": (1, None), "feedback": (1, None), "buffers": (1, None), "holds": (0, None), "most": (1, None)}

    # --- rules that variants change

    edge_variant = ""
    """The variant of the feedback edge; empty: none."""
    arrives_written = True
    """A record arrives on a feedback channel only if it is under way."""
    obeys_policy = True
    """The entry reads the input that the policy says."""
    waits_for_baton = True
    """A baton is not read while the same one, of the same channel, waits for other channels."""
    joins_channels = True
    """A baton is complete when all channels that carry it have brought it."""
    waits_for_place = True
    """The entry takes a record only if it has a place for it."""
    drops_late = True
    """When the loop has ended, records are dropped."""

    def setup(self):
        """The kinds of items, and the channels on which a baton is awaited together."""
        if self.policy not in (ANY, *POLICIES):
            raise ValueError(f"{self.policy!r} is none of {', '.join((ANY, *POLICIES))}")
        self.sides = json.loads(self.batons)
        self.words = tuple(self.sides)
        self.kinds = (RECORD, END, *self.words)
        self.control = self.kinds[1:]
        self.back = range(self.forward, self.forward + self.feedback)
        self.all = range(self.forward + self.feedback)
        self.together = {(c, word): (c,) for c in self.all for word in self.words}
        self.together |= {(c, word): tuple(side) for word in self.words for side in self.sides[word] for c in side}
        self.places = self.holds or self.most * len(self.all)
        memory = self.buffers if self.spilling else self.most
        settings = {"buffers": memory, "most": self.most, "rounds": 0, "spilling": self.spilling}
        self.edge = FeedbackEdge.build(self.edge_variant or None, **settings)

    def state(self):
        """Empty. One record more can be held than there are places, so that the bound is a property."""
        number = Range(0, self.most)
        item = Record(kind=Enum(*self.kinds), rounds=Range(0, 0), number=number)
        disk = Queue(item, capacity=self.most)
        edge = Record(memory=Queue(item, capacity=self.edge.buffers + 1), disk=disk, written=number, due=number)
        return State(
            input=Array(self.forward, Queue(Enum(*self.kinds), capacity=self.most)),
            back=Array(self.back, edge),
            written=Array(self.back, number),  # records that are under way
            held=Range(0, self.places + 1),
            last_read=Enum("FEEDBACK", "FORWARD"),
            arrived=Array(self.all, Set(Enum(*self.words))),  # batons that wait for other channels
            over=Bool(),
        )

    # --- what arrives

    @action(c="forward")
    def offer(self, s, c):
        """A record arrives on a forward channel."""
        require(len(s.input[c]) < self.most)
        s.input[c].push(RECORD)

    @action(c="forward", kind="control")
    def trigger(self, s, c, kind):
        """END or a baton arrives on a forward channel."""
        require(len(s.input[c]) < self.most)
        s.input[c].push(kind)

    @action(c="back")
    def send_on(self, s, c):
        """An operator writes a record for a feedback channel, on which it is under way."""
        require(s.written[c] < self.most)
        s.written[c] += 1

    @action(c="back", kind="kinds")
    def send_back(self, s, c, kind):
        """An item arrives on a feedback channel: in memory, or on disk."""
        if kind == RECORD:
            if self.arrives_written:
                require(s.written[c] > 0)
            s.written[c] = max(0, s.written[c] - 1)
        self.edge.put(s.back[c], kind, 0)

    @action(c="back")
    def read_back(self, s, c):
        """The oldest item on disk moves to memory."""
        self.edge.read_back(s.back[c])

    # --- what the entry takes

    @action(c="forward", kind="kinds")
    def read_forward(self, s, c, kind):
        """The entry takes an item from a forward channel."""
        require(len(s.input[c]) > 0 and s.input[c].head == kind)
        if self.policy != ANY and self.obeys_policy:
            require(self.may_read_forward(s, kind))
        s.input[c].pop()
        self.read(s, c, kind)
        s.last_read = "FORWARD"

    @action(c="back", kind="kinds")
    def read_feedback(self, s, c, kind):
        """The entry takes an item from a feedback channel."""
        if self.policy != ANY and self.obeys_policy:
            require(self.may_read_feedback(s, kind))
        self.edge.take(s.back[c], kind, 0)
        self.read(s, c, kind)
        s.last_read = "FEEDBACK"

    def read(self, s, c, kind):
        """What the entry has taken: a record is held, a baton is awaited on the other channels that carry it."""
        if kind == RECORD:
            if not s.over or not self.drops_late:
                require(s.held < self.places or not self.waits_for_place)
                s.held = min(s.held + 1, self.places + 1)
        elif kind in self.sides:
            require(not self.is_behind_itself(s, c, kind) or not self.waits_for_baton)
            s.arrived[c].add(kind)
            if not self.joins_channels or all(kind in s.arrived[d] for d in self.together[c, kind]):
                for d in self.together[c, kind]:
                    s.arrived[d].discard(kind)

    @action
    def send(self, s):
        """The entry has sent what it makes of a record."""
        require(s.held > 0)
        s.held -= 1

    @action
    def leave(self, s):
        """The entry makes nothing of a record."""
        require(s.held > 0)
        s.held -= 1

    @action
    def complete(self, s):
        """The loop has ended: the entry drops what still comes."""
        require(not s.over)
        s.over = True

    # --- the choice of the entry

    def feedback_waits(self, s, kind):
        """Whether a feedback channel has an item that can be taken instead of one of this kind."""
        return any(self.can_take_instead(s, c, kind) for c in self.back)

    def forward_waits(self, s, kind):
        """Whether a forward channel has one."""
        return any(self.can_take_instead(s, c, kind) for c in range(self.forward))

    def is_utilised(self, s):
        """Whether as many items wait on a feedback channel as it has buffers."""
        return any(self.edge.waiting(s.back[c]) >= self.buffers for c in self.back)

    def last_read(self, s):
        """The input that the entry has read last."""
        return s.last_read

    def can_take_instead(self, s, c, kind):
        """Whether the first item of a channel can be taken instead of one of this kind."""
        if c < self.forward:
            return len(s.input[c]) > 0 and self.can_take(s, c, s.input[c].head, kind)
        return len(s.back[c].memory) > 0 and self.can_take(s, c, s.back[c].memory.head.kind, kind)

    def can_take(self, s, c, kind, instead):
        """Whether an item of a channel can be taken: a baton may have to wait, and a record needs a place, which there is if
        a record is taken instead."""
        place = instead == RECORD or (self.holds > 0 and s.held < self.holds)
        return place if kind == RECORD else not self.is_behind_itself(s, c, kind)

    def is_behind_itself(self, s, c, kind):
        """Whether the same baton, of the same channel, waits for others, and the loop goes on."""
        return not s.over and any(kind == word and word in s.arrived[c] for word in self.words)
