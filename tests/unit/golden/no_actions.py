"""A model without rules."""

from streamproof import *


class Shop(Model):
    def state(self):
        return State(backlog=Range(0, 3))

    def work(self, s):
        s.backlog = 0
