"""An array with the shape of a grid instead of an index."""

from streamproof import *


class Shop(Model):
    def state(self):
        return State(credit=Array((2, 3), Bool()))

    @action
    def work(self, s):
        pass
