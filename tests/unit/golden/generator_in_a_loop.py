"""A generator that is read while the loop changes the state."""

from streamproof import *


class Shop(Model):
    channels: int = 2

    def state(self):
        return State(
            backlog=Range(0, 3), full=Bool(), mode=Enum("IDLE", "BUSY"), wire=Queue(Range(0, 3), capacity=2),
        )

    @action
    def work(self, s):
        for v in (w + s.backlog for w in s.wire):
            s.backlog = 0
