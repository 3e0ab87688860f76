"""A list of first values that is too short."""

from streamproof import *


class Shop(Model):
    def state(self):
        return State(credit=Array(3, Bool(), init=[True]))

    @action
    def work(self, s):
        pass
