"""What the detectors of termination share: their properties, and a counter of what detection costs.

The counter counts messages of the detection received after the computation has ended, until the end is known. If they can
only be received sequentially, like those of a token that travels round a ring, the count is also the latency.
"""

from __future__ import annotations

from streamproof import Model, Range, action, invariant, leads_to, measure, require, temporal


class Detector(Model):
    """A detector of termination, which counts what it needs after the end when `counted` is not 0.

    A subclass says what `ended(s)` and `detected(s)` mean, declares `**self.counter()` among its variables, and calls
    `receive_control(s)` where a message of the detection is received. More than `counted` are a mistake of the model.
    Process 0 detects, the processes `others` do not.
    """

    n: int = 3
    counted: int = 0
    limits = {"counted": (0, None)}
    check_deadlock = False  # after the detection the system is idle

    def setup(self):
        self.others = range(1, self.n)

    def ended(self, s):
        """Whether the computation has ended: no process is active and no message is on its way."""
        return all(not s.active[i] and s.pending[i] == 0 for i in range(self.n))

    def detected(self, s):
        """Whether process 0 concludes that the computation has ended."""
        raise NotImplementedError

    def over(self, s):
        """Whether no step of the computation is possible any longer."""
        return self.ended(s)

    def counter(self):
        """The variable of the counter, if enabled."""
        return {"spent": Range(0, self.counted)} if self.counted else {}

    def receive_control(self, s):
        """A message of the detection is received; the computation's own messages are not counted."""
        if self.counted and self.over(s):
            s.spent += 1

    @measure
    def messages_after_the_end(self, s):
        """Messages of the detection that are received after the end of the computation."""
        return s.spent if self.counted else None

    @invariant
    def detection_is_right(self, s):
        """When process 0 concludes that the computation has ended, it has."""
        return not self.detected(s) or self.ended(s)

    @temporal
    def end_is_detected(self, s):
        """When the computation has ended, process 0 comes to know it."""
        return leads_to(self.ended(s), self.detected(s))


class Ring(Detector):
    """A detector whose token travels round a ring of processes, which work for a while."""

    @action(i="n")
    def deactivate(self, s, i):
        """A process has nothing left to do."""
        require(s.active[i])
        s.active[i] = False
