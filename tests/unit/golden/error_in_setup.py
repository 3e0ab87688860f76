"""An exception in setup()."""

from streamproof import *


class Shop(Model):
    depth: int = 3

    def setup(self):
        self.half = self.depth // 0

    def state(self):
        return State(backlog=Range(0, self.half))

    @action
    def work(self, s):
        s.backlog = 0
