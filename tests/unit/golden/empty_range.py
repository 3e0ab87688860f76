"""A range with its ends exchanged."""

from streamproof import *


class Shop(Model):
    def state(self):
        return State(backlog=Range(3, 0))

    @action
    def work(self, s):
        pass
