"""The head of a loop of a job with checkpoints: it aligns the barriers of its forward channels, and then departs.

A channel whose barrier has been read is not read until then. On a feedback channel the barrier returns after the departure,
and the channel stays open; one that comes before waits, as on a forward channel (`loop_checkpoints` has the log).
"""

from __future__ import annotations

from streamproof import Array, Bool, State, action, require
from streamproof_models.cyclic.head import END, LoopHead

BARRIER = "barrier"


class BarrierHead(LoopHead, variant="barriers"):
    """With checkpoints. All properties hold."""

    batons: str = "{}"

    def setup(self):
        """A barrier is an item of every channel."""
        super().setup()
        self.kinds = (*self.kinds, BARRIER)
        self.control = (*self.control, BARRIER)

    def state(self):
        """No barrier has come."""
        return State(
            **dict(super().state().items()),
            kept=Array(self.all, Bool()),  # channels that are not read
            away=Array(self.back, Bool()),  # feedback channels on which a barrier is to return
            ended=Array(self.forward, Bool()),  # END has been read
        )

    @action(c="forward", kind="kinds")
    def read_forward(self, s, c, kind):
        """Not behind a barrier."""
        require(not s.kept[c])
        super().read_forward(s, c, kind)

    @action(c="back", kind="kinds")
    def read_feedback(self, s, c, kind):
        """Not behind a barrier that has come early."""
        require(not s.kept[c])
        super().read_feedback(s, c, kind)

    def read(self, s, c, kind):
        """A barrier, or END, which is as good as all barriers."""
        super().read(s, c, kind)
        if c < self.forward:
            s.kept[c] = kind == BARRIER
            s.ended[c] = s.ended[c] or kind == END
        elif kind == BARRIER and not s.over:
            s.kept[c] = not s.away[c]
            s.away[c] = False

    @action
    def depart(self, s):
        """All barriers have come, and nothing is held: the head takes its snapshot, and sends the barrier on."""
        require(s.held == 0 and all(s.kept[c] or s.ended[c] for c in range(self.forward)))
        require(s.over or not any(s.away[c] for c in self.back))
        for c in self.back:
            s.away[c] = not s.over and not s.kept[c]
        for c in self.all:
            s.kept[c] = False

    def can_take_instead(self, s, c, kind):
        """Nor does it count as waiting."""
        return not s.kept[c] and super().can_take_instead(s, c, kind)
