"""A queue without a capacity."""

from streamproof import *


class Shop(Model):
    def state(self):
        return State(wire=Queue(Bool()))

    @action
    def work(self, s):
        pass
