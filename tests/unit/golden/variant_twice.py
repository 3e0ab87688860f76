"""Two variants of one name."""

from streamproof import *


class Shop(Model):
    def state(self):
        return State(backlog=Range(0, 3))

    @action
    def work(self, s):
        s.backlog = 0


class Slow(Shop, variant="broken"):
    pass


class Fast(Shop, variant="broken"):
    pass
