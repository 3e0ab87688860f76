"""'is' between values."""

from streamproof import *


class Shop(Model):
    quiet: str = "IDLE"

    def state(self):
        return State(
            backlog=Range(0, 3), full=Bool(), mode=Enum("IDLE", "BUSY"), wire=Queue(Range(0, 3), capacity=2),
        )

    @action
    def work(self, s):
        if s.mode is self.quiet:
            s.full = True
