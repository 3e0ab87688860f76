"""Loops that go wrong: every policy but the fair one, a feedback edge without a disk, mistakes in spilling and reading."""

from __future__ import annotations

from typing import Any

from streamproof import NONE, WEAK, Bool, Enum, Queue, Range, Record, State, action, choose, require
from streamproof_models.cyclic import Cyclic


class Bounded(Cyclic, variant="bounded"):
    """The feedback edge has its buffers and no disk, as before the proposal."""

    feedback: str = "bounded"


class BoundedUnamplified(Cyclic, variant="bounded-unamplified"):
    """A feedback edge without a disk, in a loop that never makes two records of one."""

    feedback: str = "bounded"
    amplification: int = 1


class FeedbackFirst(Cyclic, variant="feedback-first"):
    """The entry reads the forward input only when nothing waits on the feedback edge."""

    policy: str = "feedback-first"


class FeedbackFirstWhenUtilised(Cyclic, variant="feedback-first-when-utilised"):
    """The entry reads in turns, unless all buffers of the feedback edge are in use."""

    policy: str = "feedback-first-when-utilised"


class ForwardFirstUntilUtilised(Cyclic, variant="forward-first-until-utilised"):
    """The entry prefers the forward input, unless all buffers of the feedback edge are in use."""

    policy: str = "forward-first-until-utilised"


class ForwardFirst(Cyclic, variant="forward-first"):
    """The entry reads the feedback edge only when nothing waits on the forward input."""

    policy: str = "forward-first"


class StrictTurns(Cyclic, variant="strict-turns"):
    """The entry reads in turns and waits for the input whose turn it is, also when the other has something."""

    @action(fairness=WEAK)
    def read_forward(self, s: Any) -> None:
        """Only after the feedback edge."""
        require(s.read == "FEEDBACK")
        super().read_forward(s)

    @action(fairness=WEAK)
    def read_feedback(self, s: Any) -> None:
        """Only after the forward input."""
        require(s.read == "FORWARD")
        super().read_feedback(s)


class AlignedBarriers(Cyclic, variant="aligned-barriers"):
    """The entry aligns barriers as every operator with two inputs does: it holds one back until the other input has one."""

    @action(fairness=WEAK)
    def read_forward(self, s: Any) -> None:
        """A barrier stays where it is, and what is behind it too: the feedback edge has none yet."""
        require(len(s.input[0]) > 0)
        require(s.input[0].head.kind == "RECORD")
        super().read_forward(s)


class OneTooMany(Cyclic, variant="one-too-many"):
    """A writer asks whether a channel holds more than it has buffers, not whether one is free."""

    def room_behind(self, s: Any, i: int) -> Any:
        """Compares wrongly."""
        return len(s.input[i + 1]) <= self.buffers


class SpillDropped(Cyclic, variant="spill-dropped"):
    """What finds no buffer on the feedback edge is dropped, so that nobody has to wait."""

    def spill(self, s: Any, item: Any) -> None:
        """Into the void."""


class SpillOvertaken(Cyclic, variant="spill-overtaken"):
    """A new item takes a buffer that is free even while older ones are on disk."""

    def into_memory(self, s: Any, kind: Any) -> Any:
        """Whoever comes first."""
        return self.has_room(s.memory)


class BarrierOvertakes(Cyclic, variant="barrier-overtakes"):
    """A barrier is never written to disk: it is handed to the entry in memory, whatever is on disk."""

    def into_memory(self, s: Any, kind: Any) -> Any:
        """A barrier goes to memory if there is room."""
        return super().into_memory(s, kind) or (kind == "BARRIER" and self.has_room(s.memory))


class SpillNewestFirst(Cyclic, variant="spill-newest-first"):
    """The disk is a stack: what was written last is read back first."""

    def fetch(self, s: Any) -> None:
        """The last item moves to memory."""
        count = len(s.disk)
        s.memory.push(s.disk[count - 1])
        for at in range(self.records + self.barriers):
            if at < count:
                kind, rounds, number = s.disk.head.kind, s.disk.head.rounds, s.disk.head.number
                s.disk.pop()
                if at < count - 1:
                    s.disk.push({"kind": kind, "rounds": rounds, "number": number})


class SpillReadTwice(Cyclic, variant="spill-read-twice"):
    """The reader of the disk fails once, having handed an item over and not noted it, and begins with the same item again."""

    def state(self) -> State:
        """Also: whether it has failed; and one item more than there should be."""
        declared = dict(super().state().items())
        declared["unborn"] = Range(0, self.records + 1, init=self.records)
        declared["untriggered"] = Range(0, self.barriers + 1, init=self.barriers)
        number = Range(0, self.numbers - 1)
        item = Record(kind=Enum("RECORD", "BARRIER"), rounds=Range(0, self.rounds), number=number)
        declared["disk"] = Queue(item, capacity=self.records + self.barriers + 1)
        return State(**declared, failed=Bool())

    def fetch(self, s: Any) -> None:
        """The item is in memory; whether it is gone from disk depends."""
        fails = choose([False, True])
        if fails:
            require(not s.failed)
            s.failed = True
            s.memory.push(s.disk.head)
        else:
            super().fetch(s)


class SpillForgotten(Cyclic, variant="spill-forgotten"):
    """Nobody has to read back what is on disk."""

    @action(fairness=NONE)
    def read_back(self, s: Any) -> None:
        """Perhaps."""
        super().read_back(s)


class BlindToSpill(FeedbackFirst, variant="blind-to-spill"):
    """The feedback edge comes first, but the entry sees its buffers only: what is on disk does not count as waiting."""

    def ready(self, s: Any) -> Any:
        """Something is in memory."""
        return len(s.memory) > 0
