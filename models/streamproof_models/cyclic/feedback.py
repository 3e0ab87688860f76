"""The feedback edge of a loop, with and without a disk, and mistakes in spilling and reading back."""

from __future__ import annotations

from streamproof import (
    WEAK,
    Bool,
    Enum,
    Fairness,
    Model,
    Queue,
    Range,
    Record,
    State,
    action,
    choose,
    invariant,
    require,
)
from streamproof_models.cyclic.parts import KINDS, all_rounds


class FeedbackEdge(Model):
    """The feedback edge: buffers, and a disk for items without a buffer, which is read back in order.

    Items are numbered as they are written, so that their order is observable; numbers restart when it is empty.
    """

    name = "feedback_edge"

    buffers: int = 2
    """Capacity in memory, in items."""
    most: int = 4
    """Maximum number of items."""
    rounds: int = 0
    """Maximum number of rounds of a record; 0: no limit."""
    spilling: bool = True
    """Whether there is a disk."""

    limits = {"buffers": (1, None), "most": (1, None), "rounds": (0, None)}

    def setup(self):
        """Enough numbers to distinguish all items, and the items that are on disk at the start."""
        self.numbers = self.most + 1
        self.left = []

    def state(self):
        """Empty; an item has a number of its own."""
        number = Range(0, self.numbers - 1, init=len(self.left))
        item = Record(kind=Enum(*KINDS), rounds=Range(0, self.rounds), number=number)
        return State(
            memory=Queue(item, capacity=self.buffers + 1),
            disk=Queue(item, capacity=self.most if self.spilling else 0, init=self.left),
            written=number,
            due=Range(0, self.numbers - 1),
        )

    def room(self, s):
        """Whether a buffer is free."""
        return len(s.memory) < self.buffers

    def waiting(self, s):
        """Number of items waiting to be read."""
        return len(s.memory) + len(s.disk)

    @action(kind=KINDS, rounds=all_rounds)
    def put(self, s, kind, rounds):
        """An item is written: to memory if there is room and no older one is on disk, or else to disk."""
        require(self.waiting(s) < self.most)
        item = {"kind": kind, "rounds": rounds, "number": s.written}
        s.written = (s.written + 1) % self.numbers
        if self.to_memory(s, kind):
            s.memory.push(item)
        else:
            require(self.spilling)
            self.spill(s, item)

    def to_memory(self, s, kind):
        """Whether the next item goes to memory."""
        return self.room(s) and len(s.disk) == 0

    def spill(self, s, item):
        """An item goes to disk."""
        s.disk.push(item)

    @action(fairness=WEAK)
    def read_back(self, s):
        """The oldest item on disk goes to a buffer that has become free."""
        require(len(s.disk) > 0)
        require(self.room(s))
        self.fetch(s)

    def fetch(self, s):
        """An item moves from disk to memory."""
        s.memory.push(s.disk.head)
        s.disk.pop()

    @action(kind=KINDS, rounds=all_rounds)
    def take(self, s, kind, rounds):
        """The first item in memory is read."""
        require(len(s.memory) > 0)
        require(s.memory.head.kind == kind and s.memory.head.rounds == rounds)
        s.memory.pop()
        s.due = (s.due + 1) % self.numbers
        if self.waiting(s) == 0:
            s.due = 0
            s.written = 0

    @invariant
    def in_order(self, s):
        """What waits, in memory and behind it on disk, is what was written and not read, in that order."""
        first_on_disk = s.due + len(s.memory)
        memory = all(item.number == (s.due + at) % self.numbers for at, item in enumerate(s.memory))
        disk = all(item.number == (first_on_disk + at) % self.numbers for at, item in enumerate(s.disk))
        return memory and disk and (s.due + self.waiting(s)) % self.numbers == s.written

    @invariant
    def within_capacity(self, s):
        """No more is in memory than there are buffers."""
        return len(s.memory) <= self.buffers


class FullMemory(FeedbackEdge, variant="one-too-many"):
    """A writer tests whether more than all buffers are in use, instead of whether one is free."""

    def room(self, s):
        """Also when all buffers are in use."""
        return len(s.memory) <= self.buffers


class Dropped(FeedbackEdge, variant="dropped"):
    """An item without a free buffer is dropped."""

    def spill(self, s, item):
        """Nothing is written."""


class Overtaken(FeedbackEdge, variant="overtaken"):
    """A new item takes a free buffer although older items are on disk."""

    def to_memory(self, s, kind):
        """Whenever a buffer is free."""
        return self.room(s)


class BarrierInMemory(FeedbackEdge, variant="barrier-in-memory"):
    """A barrier takes a free buffer although older items are on disk."""

    def to_memory(self, s, kind):
        """A record waits for those on disk, a barrier does not."""
        return self.room(s) and (len(s.disk) == 0 or kind == "BARRIER")


class NewestFirst(FeedbackEdge, variant="newest-first"):
    """The disk is a stack: what was written last is read back first."""

    def fetch(self, s):
        """The last item moves to memory."""
        s.memory.push(s.disk[-1])
        s.disk.pop(-1)


class ReadTwice(FeedbackEdge, variant="read-twice"):
    """The reader of the disk fails once, after delivering an item without recording it, and repeats the same item."""

    def state(self):
        """Also: whether it has failed."""
        return State(**dict(super().state().items()), failed=Bool())

    def fetch(self, s):
        """The item is in memory; whether it is gone from disk depends."""
        fails = choose([False, True])
        if fails:
            require(not s.failed)
            s.failed = True
            s.memory.push(s.disk.head)
        else:
            super().fetch(s)


class Forgotten(FeedbackEdge, variant="forgotten"):
    """Items on disk need not be read back."""

    @action(fairness=Fairness.NONE)
    def read_back(self, s):
        """The same, without a fairness constraint."""
        super().read_back(s)


class LeftOver(FeedbackEdge, variant="left-over"):
    """The file on disk is that of an earlier attempt, with one record."""

    def setup(self):
        """Its number is the first."""
        super().setup()
        self.left = [{"kind": "RECORD", "rounds": self.rounds, "number": 0}]
