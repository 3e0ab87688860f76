"""Flow control in a loop: operators in a ring, finite buffers, and a feedback edge that may spill to disk.

Records enter at the first operator, which also reads what comes back on the feedback edge: the *entry*. An operator takes one
record, lets it leave the loop or sends up to `amplification` records on to the next operator, and takes nothing else before
they are all written; writing waits for room. The last operator writes to the feedback edge. A checkpoint barrier comes in
among the records, goes around once, and has done its work when the entry reads it from the feedback edge.

Which input the entry reads when both have something is the `policy`:

* ``feedback-first``: the feedback edge, always;
* ``feedback-first-when-utilised``: the feedback edge while as many of its items wait as count as utilised, else as ``fair``;
* ``forward-first-until-utilised``: another reading of the same words, else as ``forward-first``;
* ``fair``: in turns;
* ``forward-first``: the forward input, always.

A ``bounded`` feedback edge has its buffers and nothing else; a ``spilling`` one writes what finds no buffer to disk, and
reads it back in order (FLIP-15, part II).

What is left out: what records say, so what an operator does with one is left open; time; several operators that read one
channel. The source never ends, but no more than `records` exist at a time, which bounds what the disk has to take: a quantity
that grows with `records` is one without a bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streamproof import WEAK, Array, Enum, Model, Queue, Range, Record, State, action, choose, require

FEEDBACK = ("bounded", "spilling")
POLICIES = ("feedback-first", "feedback-first-when-utilised", "forward-first-until-utilised", "fair", "forward-first")


class Cyclic(Model):
    """Flow control in a loop of operators with a feedback edge."""

    name = "cyclic"

    operators: int = 2
    """Operators in the loop; the first is the entry."""
    buffers: int = 2
    """Items that each channel can hold; the feedback edge holds as many in memory."""
    amplification: int = 2
    """Records that an operator sends on for one that it takes, at most."""
    records: int = 3
    """Records that exist at a time, at most."""
    barriers: int = 1
    """Checkpoint barriers that are under way at a time, at most."""
    rounds: int = 0
    """How often a record may take the feedback edge, what it was made from included; 0: no limit."""
    feedback: str = "spilling"
    """bounded or spilling."""
    policy: str = "fair"
    """Which input the entry reads first; the words are those of POLICIES."""
    utilised: int = 0
    """From so many waiting items on the feedback edge counts as utilised; 0: as many as it has buffers."""
    watch: int = 0
    """Count waits and logged records up to here; 0: do not count."""

    limits: ClassVar[Mapping[str, tuple[int | None, int | None]]] = {
        "operators": (1, None),
        "buffers": (1, None),
        "amplification": (1, None),
        "records": (1, None),
        "barriers": (0, None),
        "rounds": (0, None),
        "utilised": (0, None),
        "watch": (0, None),
    }
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "small": {},
        "medium": {"operators": 3, "records": 7},
        "large": {"operators": 3, "records": 9, "barriers": 2},
    }

    def setup(self) -> None:
        """What derives from the parameters."""
        for word, known in ((self.feedback, FEEDBACK), (self.policy, POLICIES)):
            if word not in known:
                raise ValueError(f"{word!r} is none of {', '.join(known)}")
        self.last = self.operators - 1
        self.inner = range(1, self.operators)
        self.spills = self.feedback == "spilling"
        self.threshold = self.utilised or self.buffers
        self.numbers = self.records + self.barriers + 1

    def state(self) -> State:
        """Nothing is under way."""
        item = {"kind": Enum("RECORD", "BARRIER"), "rounds": Range(0, self.rounds)}
        number = Range(0, self.numbers - 1)
        # One place more than may be used: that no writer uses it is a property.
        places = self.buffers + 1
        return State(
            unborn=Range(0, self.records, init=self.records),
            untriggered=Range(0, self.barriers, init=self.barriers),
            input=Array(self.operators, Queue(Record(**item), capacity=places)),
            memory=Queue(Record(**item, number=number), capacity=places),
            disk=Queue(Record(**item, number=number), capacity=self.records + self.barriers if self.spills else 0),
            written=number,
            due=number,
            task=Array(self.operators, Enum("IDLE", "SEND", "LEAVE", "BARRIER")),
            copies=Array(self.operators, Range(0, self.amplification)),
            left=Array(self.operators, Range(0, self.rounds)),
            read=Enum("FEEDBACK", "FORWARD"),
            forward_wait=Range(0, self.watch),
            feedback_wait=Range(0, self.watch),
            logged=Range(0, self.watch),
        )

    # --- the source

    @action
    def offer(self, s: Any) -> None:
        """The source has a record."""
        require(s.unborn > 0)
        require(self.has_room(s.input[0]))
        s.unborn -= 1
        s.input[0].push({"kind": "RECORD", "rounds": self.rounds})

    @action
    def trigger(self, s: Any) -> None:
        """A checkpoint begins: its barrier comes in among the records."""
        require(s.untriggered > 0)
        require(self.has_room(s.input[0]))
        s.untriggered -= 1
        s.input[0].push({"kind": "BARRIER", "rounds": 0})

    def has_room(self, channel: Any) -> Any:
        """Whether a channel has a free buffer."""
        return len(channel) < self.buffers

    # --- the entry

    @action(fairness=WEAK)
    def read_forward(self, s: Any) -> None:
        """The entry reads its forward input."""
        require(s.task[0] == "IDLE")
        require(len(s.input[0]) > 0)
        require(not self.ready(s) or not self.prefers_feedback(s))
        s.read = "FORWARD"
        s.forward_wait = 0
        if self.ready(s):
            s.feedback_wait = min(s.feedback_wait + 1, self.watch)
        if s.input[0].head.kind == "BARRIER":
            s.logged = 0
        self.take(s, 0, s.input[0].head)
        s.input[0].pop()

    @action(fairness=WEAK)
    def read_feedback(self, s: Any) -> None:
        """The entry reads what came back."""
        require(s.task[0] == "IDLE")
        require(len(s.memory) > 0)
        require(len(s.input[0]) == 0 or self.prefers_feedback(s))
        s.read = "FEEDBACK"
        s.feedback_wait = 0
        if len(s.input[0]) > 0:
            s.forward_wait = min(s.forward_wait + 1, self.watch)
        if s.memory.head.kind == "BARRIER":
            s.logged = 0
        elif self.checkpointing(s):
            s.logged = min(s.logged + 1, self.watch)
        self.take(s, 0, s.memory.head)
        s.memory.pop()
        s.due = (s.due + 1) % self.numbers
        if self.waiting(s) == 0:  # numbers begin anew when nothing waits
            s.due = 0
            s.written = 0

    def ready(self, s: Any) -> Any:
        """Whether the entry sees something on the feedback edge."""
        return self.waiting(s) > 0

    def waiting(self, s: Any) -> Any:
        """How many items wait on the feedback edge."""
        return len(s.memory) + len(s.disk)

    def prefers_feedback(self, s: Any) -> Any:
        """Whether the entry reads the feedback edge first."""
        turn = s.read == "FORWARD"
        utilised = self.waiting(s) >= self.threshold
        return {
            "feedback-first": True,
            "feedback-first-when-utilised": utilised or turn,
            "forward-first-until-utilised": utilised,
            "fair": turn,
            "forward-first": False,
        }[self.policy]

    def checkpointing(self, s: Any) -> Any:
        """Whether a barrier is in the loop, so that what comes back has to be logged."""
        channels = [s.input[i] for i in self.inner] + [s.memory, s.disk]
        return any(s.task[i] == "BARRIER" for i in range(self.operators)) or any(
            item.kind == "BARRIER" for channel in channels for item in channel
        )

    # --- every operator

    @action(i="inner", fairness=WEAK)
    def read_next(self, s: Any, i: int) -> None:
        """An operator behind the entry reads its input."""
        require(s.task[i] == "IDLE")
        require(len(s.input[i]) > 0)
        self.take(s, i, s.input[i].head)
        s.input[i].pop()

    def take(self, s: Any, i: int, item: Any) -> None:
        """Operator `i` decides what becomes of an item."""
        if item.kind == "BARRIER":
            s.task[i] = "BARRIER"
        else:
            copies = choose(range(self.amplification + 1))
            if copies == 0:
                s.task[i] = "LEAVE"
            else:
                require(s.unborn >= copies - 1)
                if self.rounds and i == self.last:
                    require(item.rounds > 0)
                s.unborn -= copies - 1
                s.task[i] = "SEND"
                s.copies[i] = copies
                s.left[i] = item.rounds

    @action(i="operators", fairness=WEAK)
    def leave(self, s: Any, i: int) -> None:
        """A record leaves the loop; a barrier that came back has done its work."""
        require(s.task[i] == "LEAVE" or (i == 0 and self.completing(s)))
        if s.task[i] == "LEAVE":
            s.unborn += 1
        else:
            s.untriggered += 1
        s.task[i] = "IDLE"

    def completing(self, s: Any) -> Any:
        """Whether the entry has a barrier that came back: a checkpoint is complete."""
        return s.task[0] == "BARRIER" and s.read == "FEEDBACK"

    @action(i="operators", fairness=WEAK)
    def send(self, s: Any, i: int) -> None:
        """An operator writes an item to the channel behind it, when there is room."""
        require(s.task[i] in ("SEND", "BARRIER"))
        require(i > 0 or not self.completing(s))
        kind = "BARRIER" if s.task[i] == "BARRIER" else "RECORD"
        if i == self.last:
            self.write_back(s, kind, s.left[i] - 1 if self.rounds and s.task[i] == "SEND" else 0)
        else:
            require(self.room_behind(s, i))
            s.input[i + 1].push({"kind": kind, "rounds": s.left[i]})
        if s.copies[i] > 0:
            s.copies[i] -= 1
        if s.copies[i] == 0:
            s.task[i] = "IDLE"
            s.left[i] = 0

    def room_behind(self, s: Any, i: int) -> Any:
        """Whether operator `i`, which is not the last, may write."""
        return self.has_room(s.input[i + 1])

    # --- the feedback edge

    def write_back(self, s: Any, kind: Any, rounds: Any) -> None:
        """An item on the feedback edge: to memory if there is room and nothing older is on disk, or else to disk."""
        item = {"kind": kind, "rounds": rounds, "number": s.written}
        s.written = (s.written + 1) % self.numbers
        if not self.spills:
            require(self.has_room(s.memory))
            s.memory.push(item)
        elif self.into_memory(s, kind):
            s.memory.push(item)
        else:
            self.spill(s, item)

    def into_memory(self, s: Any, kind: Any) -> Any:
        """Whether the next item goes to memory."""
        return self.has_room(s.memory) and len(s.disk) == 0

    def spill(self, s: Any, item: Any) -> None:
        """An item goes to disk."""
        s.disk.push(item)

    @action(fairness=WEAK)
    def read_back(self, s: Any) -> None:
        """The oldest item on disk goes to a buffer that has become free."""
        require(self.spills)
        if self.spills:
            require(len(s.disk) > 0)
            require(self.has_room(s.memory))
            self.fetch(s)

    def fetch(self, s: Any) -> None:
        """An item moves from disk to memory."""
        s.memory.push(s.disk.head)
        s.disk.pop()
