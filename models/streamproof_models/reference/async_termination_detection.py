"""What detecting the end of a computation with asynchronous messages means, apart from any algorithm.

Markus Kuppe and Stephan Merz, the abstract specification that EWD 998 refines. Published for n = 2..5 with at most
three messages pending at a node: 65, 513, 4,097, 32,769 states.
"""

from __future__ import annotations

from streamproof import ANY, WEAK, Array, Bool, Model, Range, State
from streamproof import action, choose, initially, invariant, leads_to, require, step, temporal


class AsyncTerminationDetection(Model):
    """Active nodes send messages, messages activate nodes; once all is quiet, that may be noticed."""

    name = "reference.async_termination_detection"
    n: int = 4
    most_pending: int = 3
    sizes = {"small": {"n": 3}, "medium": {"n": 4}, "large": {"n": 5}}

    def state(self):
        return State(
            active=Array(range(self.n), Bool(init=ANY)),
            pending=Array(range(self.n), Range(0, self.most_pending)),
            detected=Bool(init=ANY),
        )

    def ended(self, s):
        """No node is active and no message is on its way."""
        return all(not s.active[i] and s.pending[i] == 0 for i in range(self.n))

    @initially
    def nothing_detected_too_early(self, s):
        """At the start the end may be known if it has come."""
        return not s.detected or self.ended(s)

    @action(i="n")
    def become_passive(self, s, i):
        """A node finishes; if that ends the computation, it may be noticed at once."""
        require(s.active[i])
        s.active[i] = False
        if choose([False, True]):
            require(s.detected != self.ended(s))
            s.detected = self.ended(s)

    @action(i="n")
    def receive(self, s, i):
        """A message activates its receiver."""
        require(s.pending[i] > 0)
        s.pending[i] -= 1
        s.active[i] = True

    @action(i="n", j="n")
    def send(self, s, i, j):
        """An active node sends a message, perhaps to itself; beyond the bound nothing changes, but the step counts."""
        require(s.active[i])
        if s.pending[j] < self.most_pending:
            s.pending[j] += 1

    @action(fairness=WEAK)
    def detect(self, s):
        """The end is noticed."""
        require(self.ended(s))
        s.detected = True

    @invariant
    def detection_is_right(self, s):
        """What is detected is true."""
        return not s.detected or self.ended(s)

    @step
    def quiet_for_ever(self, s, t):
        """Once the computation has ended, it stays so."""
        return not self.ended(s) or self.ended(t)

    @temporal
    def end_is_detected(self, s):
        """Once the computation has ended, that is detected."""
        return leads_to(self.ended(s), s.detected)
