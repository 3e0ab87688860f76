"""The value of a union has no elements."""

from streamproof import *


class Busy(Case):
    load: int


class Shop(Model):
    channels: int = 2

    def state(self):
        return State(
            credit=Array(range(2), Range(0, 3)), backlog=Range(0, 3), seen=Set(Range(0, 3)), owner=Option(Range(0, 1)),
            node=Union(Busy(load=Range(0, 3))),
        )

    @action
    def work(self, s):
        for v in s.node:
            s.backlog = v
