"""A recursion that ends in the state only."""

from streamproof import *


class Shop(Model):
    channels: int = 2

    def state(self):
        return State(
            backlog=Range(0, 3), full=Bool(), mode=Enum("IDLE", "BUSY"), wire=Queue(Range(0, 3), capacity=2),
        )

    @action
    def work(self, s):
        s.backlog = self.down(s, s.backlog)

    def down(self, s, k):
        return 0 if k == 0 else self.down(s, k - 1)
