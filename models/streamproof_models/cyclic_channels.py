"""Parts of a loop: bounded channels, operators that amplify records, and a feedback edge with a disk.

Each is a separate machine with an arbitrary environment; `cyclic` composes them.
"""

from __future__ import annotations

from streamproof import (
    NONE,
    WEAK,
    Bool,
    Enum,
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

KINDS = ("RECORD", "BARRIER")


class Channel(Model):
    """A channel with finite buffers, first in, first out."""

    name = "channel"

    buffers: int = 2
    """Capacity in items."""
    rounds: int = 0
    """Maximum number of rounds of a record."""

    def state(self):
        """Empty. It is declared with one place more than its capacity, so that the bound is a property."""
        item = Record(kind=Enum(*KINDS), rounds=Range(0, self.rounds))
        return State(items=Queue(item, capacity=self.buffers + 1))

    def room(self, s):
        """Whether a buffer is free."""
        return len(s.items) < self.buffers

    @action(kind=KINDS, rounds=lambda self: range(self.rounds + 1))
    def put(self, s, kind, rounds):
        """Something is written, when there is room."""
        require(self.room(s))
        s.items.push({"kind": kind, "rounds": rounds})

    @action
    def take(self, s):
        """What was written first is read."""
        require(len(s.items) > 0)
        s.items.pop()

    @invariant
    def within_capacity(self, s):
        """No channel holds more than it has buffers."""
        return len(s.items) <= self.buffers


class OneTooMany(Channel, variant="one-too-many"):
    """Wrong test: more than all buffers are in use, instead of a buffer is free."""

    def room(self, s):
        """Compares wrongly."""
        return len(s.items) <= self.buffers


class Operator(Model):
    """An operator that turns a record into some others, or into none."""

    name = "operator"

    amplification: int = 2
    """Maximum number of records created from one."""
    rounds: int = 0
    """Maximum number of rounds of a record; 0: no limit."""
    closing: bool = False
    """Whether it writes to the feedback edge, which uses one of a record's rounds."""

    def state(self):
        """Idle."""
        return State(
            task=Enum("IDLE", "SEND", "LEAVE", "BARRIER"),
            copies=Range(0, self.amplification),
            left=Range(0, self.rounds),
        )

    @action(kind=KINDS, rounds=lambda self: range(self.rounds + 1))
    def read(self, s, kind, rounds):
        """An idle operator takes an item, and chooses the results of a record."""
        require(s.task == "IDLE")
        if kind == "BARRIER":
            s.task = "BARRIER"
        else:
            copies = choose(range(self.amplification + 1))
            if copies == 0:
                s.task = "LEAVE"
            else:
                if self.rounds and self.closing:
                    require(rounds > 0)
                s.task = "SEND"
                s.copies = copies
                s.left = rounds

    def kind(self, s):
        """The next item that it writes."""
        return "BARRIER" if s.task == "BARRIER" else "RECORD"

    def rounds_left(self, s):
        """The remaining rounds of that item."""
        return s.left - 1 if self.rounds and self.closing and s.task == "SEND" else s.left

    @action
    def send(self, s):
        """One item is written."""
        require(s.task in ("SEND", "BARRIER"))
        if s.copies > 0:
            s.copies -= 1
        if s.copies == 0:
            s.task = "IDLE"
            s.left = 0

    @action
    def drop(self, s):
        """What is not written leaves."""
        require(s.task in ("LEAVE", "BARRIER"))
        s.task = "IDLE"


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
    """Maximum number of rounds of a record."""
    spilling: bool = True
    """Whether there is a disk."""

    def setup(self):
        """Enough numbers to distinguish all items."""
        self.numbers = self.most + 1

    def state(self):
        """Empty."""
        number = Range(0, self.numbers - 1)
        item = Record(kind=Enum(*KINDS), rounds=Range(0, self.rounds), number=number)
        return State(
            memory=Queue(item, capacity=self.buffers + 1),
            disk=Queue(item, capacity=self.most if self.spilling else 0),
            written=number,
            due=number,
        )

    def room(self, s):
        """Whether a buffer is free."""
        return len(s.memory) < self.buffers

    def waiting(self, s):
        """Number of items waiting to be read."""
        return len(s.memory) + len(s.disk)

    def repeated(self, s):
        """Number of items read back a second time."""
        return 0

    @action(kind=KINDS, rounds=lambda self: range(self.rounds + 1))
    def put(self, s, kind, rounds):
        """An item goes to memory if there is room and no older one is on disk, or else to disk."""
        require(self.waiting(s) < self.most)
        item = {"kind": kind, "rounds": rounds, "number": s.written}
        s.written = (s.written + 1) % self.numbers
        if not self.spilling:
            require(self.room(s))
            s.memory.push(item)
        elif self.into_memory(s, kind):
            s.memory.push(item)
        else:
            self.spill(s, item)

    def into_memory(self, s, kind):
        """Whether the next item goes to memory."""
        return self.room(s) and len(s.disk) == 0

    def spill(self, s, item):
        """An item goes to disk."""
        s.disk.push(item)

    @action(fairness=WEAK)
    def read_back(self, s):
        """The oldest item on disk goes to a buffer that has become free."""
        require(self.spilling)
        if self.spilling:
            require(len(s.disk) > 0)
            require(self.room(s))
            self.fetch(s)

    def fetch(self, s):
        """An item moves from disk to memory."""
        s.memory.push(s.disk.head)
        s.disk.pop()

    @action
    def take(self, s):
        """What is first in memory is read."""
        require(len(s.memory) > 0)
        s.memory.pop()
        s.due = (s.due + 1) % self.numbers
        if self.waiting(s) == 0:
            s.due = 0
            s.written = 0

    @invariant
    def in_order(self, s):
        """What waits, in memory and behind it on disk, is what was written and not read, in that order."""
        in_memory = len(s.memory)
        memory = all(item.number == (s.due + at) % self.numbers for at, item in enumerate(s.memory))
        disk = all(item.number == (s.due + in_memory + at) % self.numbers for at, item in enumerate(s.disk))
        return memory and disk and (s.due + in_memory + len(s.disk)) % self.numbers == s.written

    @invariant
    def within_capacity(self, s):
        """No more is in memory than there are buffers."""
        return len(s.memory) <= self.buffers


class OneTooManyBack(FeedbackEdge, variant="one-too-many"):
    """Wrong test: more than all buffers are in use, instead of a buffer is free."""

    def room(self, s):
        """Compares wrongly."""
        return len(s.memory) <= self.buffers


class Dropped(FeedbackEdge, variant="dropped"):
    """What finds no buffer is dropped, so that nobody has to wait."""

    def spill(self, s, item):
        """Into the void."""


class Overtaken(FeedbackEdge, variant="overtaken"):
    """A new item takes a buffer that is free even while older ones are on disk."""

    def into_memory(self, s, kind):
        """Whoever comes first."""
        return self.room(s)


class BarrierInMemory(FeedbackEdge, variant="barrier-in-memory"):
    """A barrier is handed over in memory if there is room, whatever is on disk."""

    def into_memory(self, s, kind):
        """Records wait for those on disk, barriers do not."""
        return super().into_memory(s, kind) or (kind == "BARRIER" and self.room(s))


class NewestFirst(FeedbackEdge, variant="newest-first"):
    """The disk is a stack: what was written last is read back first."""

    def fetch(self, s):
        """The last item moves to memory."""
        count = len(s.disk)
        s.memory.push(s.disk[count - 1])
        for at in range(self.most):
            if at < count:
                kind, rounds, number = s.disk.head.kind, s.disk.head.rounds, s.disk.head.number
                s.disk.pop()
                if at < count - 1:
                    s.disk.push({"kind": kind, "rounds": rounds, "number": number})


class ReadTwice(FeedbackEdge, variant="read-twice"):
    """The reader of the disk fails once, after delivering an item without recording it, and repeats the same item."""

    def state(self):
        """Also: whether it has failed."""
        return State(**dict(super().state().items()), failed=Bool())

    def repeated(self, s):
        """One, once it has failed."""
        return 1 if s.failed else 0

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
    """Nobody has to read back what is on disk."""

    @action(fairness=NONE)
    def read_back(self, s):
        """Perhaps."""
        super().read_back(s)
