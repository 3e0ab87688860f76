"""A parameter with the name of something every model has."""

from streamproof import *


class Shop(Model):
    variant: str = "fast"

    def state(self):
        return State(backlog=Range(0, 3))

    @action
    def work(self, s):
        s.backlog = 0
