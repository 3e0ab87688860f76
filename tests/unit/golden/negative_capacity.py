"""A queue with a negative capacity."""

from streamproof import *


class Shop(Model):
    def state(self):
        return State(wire=Queue(Bool(), capacity=-1))

    @action
    def work(self, s):
        pass
