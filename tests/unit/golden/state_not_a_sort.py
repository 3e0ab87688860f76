"""A Python type instead of a sort."""

from streamproof import *


class Shop(Model):
    def state(self):
        return State(backlog=int)

    @action
    def work(self, s):
        pass
