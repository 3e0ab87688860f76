"""The cost of termination detection: a counter for detectors.

It counts messages of the detection received after the computation has ended, until the end is known. If they can only
be received sequentially, like those of a token that travels round a ring, the count is also the latency.
"""

from __future__ import annotations

from streamproof import Model, Range, measure


class Counting(Model):
    """A detector of termination, which counts what it needs after the end when `counted` is not 0.

    A subclass has `ended(s)`, true from the end of the computation on, declares `**self.counter()` among its variables, and
    calls `receive_control(s)` where a message of the detection is received. More than `counted` are a mistake of the model.
    """

    counted: int = 0
    limits = {"counted": (0, None)}

    def ended(self, s):
        """Whether the computation has ended."""
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
