"""Variants of loops: every policy but the fair one, a feedback edge without a disk, mistakes in spilling and reading."""

from __future__ import annotations

from streamproof import Range, State, action, require
from streamproof_models import cyclic_channels as parts
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
    strong: bool = True


class FeedbackFirstInMemory(Cyclic, variant="feedback-first-in-memory"):
    """The feedback edge comes first, but the entry sees its buffers only: what is on disk does not count as waiting."""

    policy: str = "feedback-first-in-memory"
    strong: bool = True


class FeedbackFirstWhenUtilised(Cyclic, variant="feedback-first-when-utilised"):
    """The entry reads in turns, unless all buffers of the feedback edge are in use."""

    policy: str = "feedback-first-when-utilised"
    strong: bool = True


class ForwardFirstUntilUtilised(Cyclic, variant="forward-first-until-utilised"):
    """The entry prefers the forward input, unless all buffers of the feedback edge are in use."""

    policy: str = "forward-first-until-utilised"
    strong: bool = True


class ForwardFirst(Cyclic, variant="forward-first"):
    """The entry reads the feedback edge only when nothing waits on the forward input."""

    policy: str = "forward-first"
    strong: bool = True


class StrictTurns(Cyclic, variant="strict-turns"):
    """The entry reads in turns and waits for the input whose turn it is, also when the other has something."""

    @action
    def from_forward(self, s):
        """Only after the feedback edge."""
        require(s.read == "FEEDBACK")
        super().from_forward(s)

    @action
    def from_feedback(self, s):
        """Only after the forward input."""
        require(s.read == "FORWARD")
        super().from_feedback(s)


class AlignedBarriers(Cyclic, variant="aligned-barriers"):
    """The entry aligns barriers as every operator with two inputs does: it holds one back until the other input has one."""

    @action
    def from_forward(self, s):
        """A barrier stays where it is, and what is behind it too: the feedback edge has none yet."""
        require(len(s.channel[0].items) > 0)
        require(s.channel[0].items.head.kind == "RECORD")
        super().from_forward(s)


class OneTooMany(Cyclic, variant="one-too-many"):
    """A writer tests whether more than all buffers are in use, instead of whether one is free."""

    def channel_of(self, i: int) -> parts.Channel:
        """A channel that compares wrongly."""
        return parts.OneTooMany(buffers=self.buffers, rounds=self.rounds)

    def feedback_edge(self) -> parts.FeedbackEdge:
        """A feedback edge that does so too."""
        return parts.OneTooManyBack(**self.feedback_settings())


class SpillDropped(Cyclic, variant="spill-dropped"):
    """What finds no buffer on the feedback edge is dropped, so that nobody has to wait."""

    def feedback_edge(self) -> parts.FeedbackEdge:
        """One that drops."""
        return parts.Dropped(**self.feedback_settings())


class SpillOvertaken(Cyclic, variant="spill-overtaken"):
    """A new item takes a buffer that is free even while older ones are on disk."""

    def feedback_edge(self) -> parts.FeedbackEdge:
        """One on which whoever comes first is first."""
        return parts.Overtaken(**self.feedback_settings())


class BarrierOvertakes(Cyclic, variant="barrier-overtakes"):
    """A barrier is never written to disk if there is a buffer: it is handed to the entry in memory, whatever is on disk."""

    def feedback_edge(self) -> parts.FeedbackEdge:
        """One that prefers barriers."""
        return parts.BarrierInMemory(**self.feedback_settings())


class SpillNewestFirst(Cyclic, variant="spill-newest-first"):
    """The disk is a stack: what was written last is read back first."""

    def feedback_edge(self) -> parts.FeedbackEdge:
        """One with a stack."""
        return parts.NewestFirst(**self.feedback_settings())


class SpillReadTwice(Cyclic, variant="spill-read-twice"):
    """The reader of the disk fails once, after delivering an item without recording it, and repeats the same item."""

    def state(self):
        """One item more than there should be can come back to the source."""
        declared = dict(super().state().items())
        declared["unborn"] = Range(0, self.records + 1, init=self.records)
        declared["untriggered"] = Range(0, self.barriers + 1, init=self.barriers)
        return State(**declared)

    def feedback_edge(self) -> parts.FeedbackEdge:
        """One that may fail."""
        return parts.ReadTwice(**{**self.feedback_settings(), "most": self.records + self.barriers + 1})


class SpillForgotten(Cyclic, variant="spill-forgotten"):
    """Nobody has to read back what is on disk."""

    def feedback_edge(self) -> parts.FeedbackEdge:
        """One that need not read back."""
        return parts.Forgotten(**self.feedback_settings())
