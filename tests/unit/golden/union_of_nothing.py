"""A union without cases."""

from streamproof import *


class Commit(Case):
    pass


class Shop(Model):
    channels: int = 2

    def state(self):
        return State(message=Union(), backlog=Range(0, 3))

    @action
    def work(self, s):
        s.backlog = 1
