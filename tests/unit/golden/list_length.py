"""A position in a local list whose length depends on the state."""

from streamproof import *


class Shop(Model):
    channels: int = 2

    def state(self):
        return State(
            backlog=Range(0, 3), full=Bool(), mode=Enum("IDLE", "BUSY"), wire=Queue(Range(0, 3), capacity=2),
        )

    @action
    def work(self, s):
        waiting = []
        if s.full:
            waiting.append(1)
        waiting[0] = 2
        s.backlog = len(waiting)
