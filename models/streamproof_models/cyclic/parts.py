"""Parts of a loop: the source and bounded channels, each with an arbitrary environment; `cyclic` composes them."""

from __future__ import annotations

from streamproof import Enum, Model, Queue, Range, Record, State, action, invariant, require

KINDS = ("RECORD", "BARRIER")


def all_rounds(m):
    """The numbers of rounds that a record may have left."""
    return range(m.rounds + 1)


class Source(Model):
    """Offers records while fewer than `records` exist, and barriers while fewer than `barriers` do.

    `unborn` and `untriggered` are declared with one more than there can be, so that conservation is a property. They
    grow again when an operator lets a record leave or completes a barrier.
    """

    name = "source"

    records: int = 3
    """Maximum number of records that exist at a time."""
    barriers: int = 1
    """Maximum number of barriers that exist at a time."""

    limits = {"records": (1, None), "barriers": (0, None)}

    def state(self):
        """No record and no barrier exists."""
        return State(
            unborn=Range(0, self.records + 1, init=self.records),
            untriggered=Range(0, self.barriers + 1, init=self.barriers),
        )

    @action
    def offer(self, s):
        """A record is created."""
        require(s.unborn > 0)
        s.unborn -= 1

    @action
    def trigger(self, s):
        """A checkpoint begins: its barrier is created."""
        require(s.untriggered > 0)
        s.untriggered -= 1


class Channel(Model):
    """A channel with finite buffers, first in, first out."""

    name = "channel"

    buffers: int = 2
    """Capacity in items."""
    rounds: int = 0
    """Maximum number of rounds of a record; 0: no limit."""

    limits = {"buffers": (1, None), "rounds": (0, None)}

    def state(self):
        """Empty. It is declared with one place more than its capacity, so that the bound is a property."""
        item = Record(kind=Enum(*KINDS), rounds=Range(0, self.rounds))
        return State(items=Queue(item, capacity=self.buffers + 1))

    def room(self, s):
        """Whether a buffer is free."""
        return len(s.items) < self.buffers

    @action(kind=KINDS, rounds=all_rounds)
    def put(self, s, kind, rounds):
        """An item is written, when there is room."""
        require(self.room(s))
        s.items.push({"kind": kind, "rounds": rounds})

    @action(kind=KINDS, rounds=all_rounds)
    def take(self, s, kind, rounds):
        """The first item is read."""
        require(len(s.items) > 0)
        require(s.items.head.kind == kind and s.items.head.rounds == rounds)
        s.items.pop()

    @invariant
    def within_capacity(self, s):
        """No channel holds more than it has buffers."""
        return len(s.items) <= self.buffers


class OneTooMany(Channel, variant="one-too-many"):
    """A writer tests whether more than all buffers are in use, instead of whether one is free."""

    def room(self, s):
        """Also when all buffers are in use."""
        return len(s.items) <= self.buffers
