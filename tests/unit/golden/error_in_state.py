"""An exception in state()."""

from streamproof import *


class Shop(Model):
    depth: int = 3

    def state(self):
        return State(backlog=Range(0, self.depht))

    @action
    def work(self, s):
        pass
