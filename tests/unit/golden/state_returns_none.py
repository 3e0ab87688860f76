"""A state that is not returned."""

from streamproof import *


class Shop(Model):
    def state(self):
        State(backlog=Range(0, 3))

    @action
    def work(self, s):
        pass
