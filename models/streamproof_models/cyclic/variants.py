"""Variants of loops: every policy but the fair one, a feedback edge without a disk, mistakes in spilling and reading."""

from __future__ import annotations

from streamproof import action, each, require
from streamproof_models.cyclic.machine import Cyclic
from streamproof_models.cyclic.parts import KINDS, Channel


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
    """The entry reads in turns and waits for the input whose turn it is, also when the other has an item."""

    @action(kind=KINDS)
    def prefer_forward(self, s, kind):
        """Only after the feedback edge."""
        require(s.operator[0].last_read == "FEEDBACK")
        super().prefer_forward(s, kind)

    @action(kind=KINDS)
    def prefer_feedback(self, s, kind):
        """Only after the forward input."""
        require(s.operator[0].last_read == "FORWARD")
        super().prefer_feedback(s, kind)


class AlignedBarriers(Cyclic, variant="aligned-barriers"):
    """The entry aligns barriers as every operator with two inputs does: it holds one back until the other input has one."""

    @action(kind=KINDS)
    def prefer_forward(self, s, kind):
        """A barrier blocks the forward input: the feedback edge has none yet."""
        require(kind == "RECORD")
        super().prefer_forward(s, kind)


class OneTooMany(Cyclic, variant="one-too-many"):
    """A writer tests whether more than all buffers are in use, instead of whether one is free."""

    def parts(self):
        """Other channels and another feedback edge."""
        settings = {"buffers": self.buffers, "rounds": self.rounds}
        return (
            super()
            .parts()
            .instead(
                channel=each(self.operators, lambda i: Channel.build("one-too-many", **settings)),
                back=self.feedback_edge("one-too-many"),
            )
        )


class SpillDropped(Cyclic, variant="spill-dropped"):
    """An item without a free buffer on the feedback edge is dropped."""

    def parts(self):
        """Another feedback edge."""
        return super().parts().instead(back=self.feedback_edge("dropped"))


class SpillOvertaken(Cyclic, variant="spill-overtaken"):
    """A new item takes a free buffer although older items are on disk."""

    def parts(self):
        """Another feedback edge."""
        return super().parts().instead(back=self.feedback_edge("overtaken"))


class BarrierOvertakes(Cyclic, variant="barrier-overtakes"):
    """A barrier takes a free buffer although older items are on disk."""

    def parts(self):
        """Another feedback edge."""
        return super().parts().instead(back=self.feedback_edge("barrier-in-memory"))


class SpillNewestFirst(Cyclic, variant="spill-newest-first"):
    """The disk is a stack: what was written last is read back first."""

    def parts(self):
        """Another feedback edge."""
        return super().parts().instead(back=self.feedback_edge("newest-first"))


class SpillReadTwice(Cyclic, variant="spill-read-twice"):
    """The reader of the disk fails once, after delivering an item without recording it, and repeats the same item."""

    def parts(self):
        """A feedback edge with room for one item more."""
        return super().parts().instead(back=self.feedback_edge("read-twice", most=self.most + 1))

    def repeated(self, s):
        """One, once the reader has failed."""
        return int(s.back.failed)


class SpillForgotten(Cyclic, variant="spill-forgotten"):
    """Items on disk need not be read back."""

    def parts(self):
        """Another feedback edge."""
        return super().parts().instead(back=self.feedback_edge("forgotten"))


class SpillLeftOver(Cyclic, variant="spill-left-over"):
    """The feedback edge begins with the file of an earlier attempt, which has one record."""

    def parts(self):
        """A feedback edge with room for one item more."""
        return super().parts().instead(back=self.feedback_edge("left-over", most=self.most + 1))
