"""The specification of termination detection: quiescence is stable, and only quiescent parts are detected."""

from __future__ import annotations

from streamproof import Array, Bool, Model, State, action, choose, require


class Detection(Model):
    """Several parts of a computation, each of which becomes quiet, for good, and is found to be quiet afterwards."""

    name = "baton_promise"
    check_deadlock = False

    things: int = 1
    """Parts of the computation that are watched."""

    limits = {"things": (1, None)}

    def state(self):
        """Everything is active."""
        return State(active=Array(self.things, Bool(), init=True), detected=Array(self.things, Bool()))

    @action
    def calm(self, s):
        """Some become quiet at once: one record less can be the last one for many."""
        for i in range(self.things):
            quiet = choose([False, True])
            require(not quiet or s.active[i])
            s.active[i] = s.active[i] and not quiet

    @action(i="things")
    def detect(self, s, i):
        """One that is quiet is found to be, and others with it."""
        require(not s.detected[i])
        for other in range(self.things):
            found = other == i or choose([False, True])
            require(not found or not s.active[other])
            s.detected[other] = s.detected[other] or found
