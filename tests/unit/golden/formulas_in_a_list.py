"""Several temporal formulas in a list."""

from streamproof import *


class Shop(Model):
    channels: int = 2

    def state(self):
        return State(
            backlog=Range(0, 3), full=Bool(), mode=Enum("IDLE", "BUSY"), wire=Queue(Range(0, 3), capacity=2),
        )

    @action
    def work(self, s):
        s.full = not s.full

    @temporal
    def each(self, s):
        return [eventually(s.full) for _ in range(self.channels)]
