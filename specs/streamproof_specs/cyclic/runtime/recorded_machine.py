"""The machine of a recorded loop head: the entry of `streamproof_models.cyclic`, its feedback edge, and its input policy.

Its rules are the model's. A head has several channels on each side, holds several records, and reads END and batons as
barriers; a baton waits behind the same baton for the other channels that carry it.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from streamproof import Array, Bool, Enum, Model, Queue, Range, Record, Set, State, System, action, require
from streamproof.conformance import compile_model
from streamproof_models.cyclic.feedback import FeedbackEdge
from streamproof_models.cyclic.machine import preferred

ANY = "any"
"""The policy that leaves the choice open."""
RECORD, END = "record", "end"
ROOM = 64
"""Smallest bound on the items of a channel: most heads of a kind have one machine."""


class RecordedCyclic(Model):
    """The entry of a loop, with several channels on each side. Channels are numbered, those of the forward input first."""

    name = "cyclic"

    forward: int = 1
    """Number of forward channels."""
    feedback: int = 1
    """Number of feedback channels."""
    buffers: int = 2
    """Capacity of each feedback channel in memory, in items."""
    holds: int = 8
    """Maximum number of records that the entry holds; 0: the log does not say when it is reached."""
    most: int = ROOM
    """Maximum number of items of a channel."""
    spilling: bool = True
    """Whether feedback channels have a disk."""
    policy: str = ANY
    """The input that the entry reads first, one of the model's; or any."""
    batons: str = "{}"
    """Each baton with the sets of channels that carry it to the entry, as JSON."""

    def setup(self):
        """The kinds of items, and the channels on which a baton is awaited together."""
        self.sides = json.loads(self.batons)
        self.words = tuple(self.sides)
        self.kinds = (RECORD, END, *self.words)
        self.control = self.kinds[1:]
        self.back = range(self.forward, self.forward + self.feedback)
        self.all = range(self.forward + self.feedback)
        self.together = {(c, word): (c,) for c in self.all for word in self.words}
        self.together |= {(c, word): tuple(side) for word in self.words for side in self.sides[word] for c in side}
        memory = self.buffers if self.spilling else self.most
        self.edge = FeedbackEdge(buffers=memory, most=self.most, rounds=0, spilling=self.spilling)

    def state(self):
        """Empty."""
        number = Range(0, self.most)
        item = Record(kind=Enum(*self.kinds), rounds=Range(0, 0), number=number)
        disk = Queue(item, capacity=self.most)
        edge = Record(memory=Queue(item, capacity=self.edge.buffers + 1), disk=disk, written=number, due=number)
        return State(
            input=Array(self.forward, Queue(Enum(*self.kinds), capacity=self.most)),
            back=Array(self.back, edge),
            written=Array(self.back, number),
            taken=Array(self.back, number),
            held=Range(0, self.holds or self.most * len(self.all)),
            last_read=Enum("FEEDBACK", "FORWARD"),
            arrived=Array(self.all, Set(Enum(*self.words))),
            over=Bool(),
        )

    @action(c="forward")
    def offer(self, s, c):
        """A record arrives on a forward channel."""
        s.input[c].push(RECORD)

    @action(c="forward", kind="control")
    def trigger(self, s, c, kind):
        """END or a baton arrives on a forward channel."""
        s.input[c].push(kind)

    @action(c="back")
    def send_on(self, s, c):
        """An operator writes a record for a feedback channel, on which it is under way."""
        s.written[c] += 1

    @action(c="back", kind="kinds")
    def send_back(self, s, c, kind):
        """An item arrives on a feedback channel: in memory, or on disk."""
        if kind == RECORD:
            require(s.written[c] > 0)
            s.written[c] -= 1
        self.edge.put(s.back[c], kind, 0)

    @action(c="back")
    def read_back(self, s, c):
        """The oldest item on disk moves to memory."""
        self.edge.read_back(s.back[c])

    @action(c="forward", kind="kinds")
    def read_forward(self, s, c, kind):
        """The entry takes an item from a forward channel."""
        require(len(s.input[c]) > 0 and s.input[c].head == kind)
        if self.policy != ANY:
            require(not self.waits(s, self.back, kind) or not self.prefers_feedback(s))
        s.input[c].pop()
        self.read(s, c, kind)
        s.last_read = "FORWARD"

    @action(c="back", kind="kinds")
    def read_feedback(self, s, c, kind):
        """The entry takes an item from a feedback channel."""
        if self.policy != ANY:
            require(not self.waits(s, range(self.forward), kind) or self.prefers_feedback(s))
        self.edge.take(s.back[c], kind, 0)
        s.taken[c] += 1
        self.read(s, c, kind)
        s.last_read = "FEEDBACK"

    def read(self, s, c, kind):
        """What the entry has taken: a record is held, a baton is awaited on the other channels that carry it."""
        if kind == RECORD:
            if not s.over:
                if self.holds:
                    require(s.held < self.holds)
                s.held += 1
        elif kind in self.sides:
            s.arrived[c].add(kind)
            if all(kind in s.arrived[d] for d in self.together[c, kind]):
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

    def prefers_feedback(self, s):
        """Whether the policy reads feedback first."""
        utilised = any(self.edge.waiting(s.back[c]) >= self.buffers for c in self.back)
        return preferred(self.policy, utilised, s.last_read == "FORWARD")

    def waits(self, s, channels, instead):
        """Whether one of these channels has an item that can be taken instead of one of another kind."""
        return any(self.is_ready(s, c, instead) for c in channels)

    def is_ready(self, s, c, instead):
        """Whether the first item of a channel can be taken instead of one of another kind."""
        if c < self.forward:
            return len(s.input[c]) > 0 and self.can_take(s, c, s.input[c].head, instead)
        return len(s.back[c].memory) > 0 and self.can_take(s, c, s.back[c].memory.head.kind, instead)

    def can_take(self, s, c, kind, instead):
        """Whether an item of this kind can be taken: a baton waits behind the same one for other channels, and a record for
        a place, which there is if a record is taken instead."""
        blocked = any(kind == word and word in s.arrived[c] for word in self.words)
        place = instead == RECORD or (self.holds > 0 and s.held < self.holds)
        return place if kind == RECORD else s.over or not blocked


@lru_cache(maxsize=256)
def machine(**settings: Any) -> System:
    """The machine of a head."""
    return compile_model(RecordedCyclic(**settings), without_properties=True)
