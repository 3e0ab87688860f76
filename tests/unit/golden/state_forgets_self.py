"""state() without self."""

from streamproof import *


class Shop(Model):
    def state():
        return State(backlog=Range(0, 3))

    @action
    def work(self, s):
        s.backlog = 0
