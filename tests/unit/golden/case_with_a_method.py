"""A case with a method."""

from streamproof import *


class Commit(Case):
    sender: int

    def mine(self, me):
        return self.sender == me


class Shop(Model):
    def state(self):
        return State(message=Union(Commit(sender=Range(0, 1))))
