"""An array with no elements."""

from streamproof import *


class Shop(Model):
    def state(self):
        return State(credit=Array(range(0), Bool()))

    @action
    def work(self, s):
        pass
