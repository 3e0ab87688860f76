"""A model without a state."""

from streamproof import *


class Shop(Model):
    @action
    def work(self, s):
        s.backlog = 0
