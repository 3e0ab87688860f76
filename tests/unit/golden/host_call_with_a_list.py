"""A call into another language with a list of the rule."""

from streamproof import *
import math


class Shop(Model):
    channels: int = 2

    def state(self):
        return State(
            backlog=Range(0, 3), full=Bool(), mode=Enum("IDLE", "BUSY"), wire=Queue(Range(0, 3), capacity=2),
        )

    @action
    def work(self, s):
        s.backlog = math.prod([1, self.channels])
