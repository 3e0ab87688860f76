"""A parameter without a default."""

from streamproof import *


class Shop(Model):
    depth: int

    def state(self):
        return State(backlog=Range(0, self.depth))

    @action
    def work(self, s):
        s.backlog = 0
