"""A first value outside the range."""

from streamproof import *


class Shop(Model):
    def state(self):
        return State(backlog=Range(0, 3, init=4))

    @action
    def work(self, s):
        pass
