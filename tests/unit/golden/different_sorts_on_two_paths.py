"""A local name with a value of another sort on each path."""

from streamproof import *


class Shop(Model):
    channels: int = 2

    def state(self):
        return State(
            backlog=Range(0, 3), full=Bool(), mode=Enum("IDLE", "BUSY"), wire=Queue(Range(0, 3), capacity=2),
        )

    @action
    def work(self, s):
        if s.full:
            found = s.mode
        else:
            found = s.backlog
        s.backlog = found
