"""Temporal: of a number."""

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

    @temporal
    def fills(self, s):
        return eventually(s.backlog)
