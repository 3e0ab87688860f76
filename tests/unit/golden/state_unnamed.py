"""A variable without a name."""

from streamproof import *


class Shop(Model):
    def state(self):
        return State(Range(0, 3))

    @action
    def work(self, s):
        pass
