"""Names for the elements of a list of any length."""

from streamproof import *


class Shop(Model):
    channels: int = 2

    def state(self):
        return State(
            credit=Array(range(2), Range(0, 3)), backlog=Range(0, 3), seen=Set(Range(0, 3)), owner=Option(Range(0, 1)),
            node=Record(load=Range(0, 3), up=Bool()),
        )

    @action
    def work(self, s):
        first, second = [c for c in s.credit if c > 0]
        s.backlog = first + second
