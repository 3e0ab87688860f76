"""Temporal: called with a value."""

from streamproof import *


class Shop(Model):
    channels: int = 2

    def state(self):
        return State(
            backlog=Range(0, 3), full=Bool(), mode=Enum("IDLE", "BUSY"), wire=Queue(Range(0, 3), capacity=2),
        )

    @action
    def work(self, s):
        s.full = True

    def later(self, s, level):
        return eventually(s.backlog > level)

    @temporal
    def grows(self, s):
        return always(self.later(s, s.backlog))
