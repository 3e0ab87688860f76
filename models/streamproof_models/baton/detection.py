"""The specification of termination detection: quiescence is stable, and only quiescent sections are detected."""

from __future__ import annotations

from streamproof import Array, Bool, Model, State, action, choose, require


class Detection(Model):
    """Sections of a computation, each of which becomes quiescent for good, and is detected afterwards."""

    name = "baton_detection"
    check_deadlock = False

    sections: int = 1
    """Number of sections of the computation."""

    limits = {"sections": (1, None)}

    def state(self):
        """Every section is active."""
        return State(active=Array(self.sections, Bool(), init=True), detected=Array(self.sections, Bool()))

    @action
    def become_quiescent(self, s):
        """Some sections become quiescent at once: one record less can be the last one of many."""
        for i in range(self.sections):
            quiescent = choose([False, True])
            require(not quiescent or s.active[i])
            s.active[i] = s.active[i] and not quiescent

    @action(i="sections")
    def detect(self, s, i):
        """A quiescent section is detected, perhaps with others."""
        require(not s.detected[i])
        for other in range(self.sections):
            detected = other == i or choose([False, True])
            require(not detected or not s.active[other])
            s.detected[other] = s.detected[other] or detected
