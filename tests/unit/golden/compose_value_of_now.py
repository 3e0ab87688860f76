"""A part read outside a temporal operator."""

from streamproof import *


class Lane(Model):
    room: int = 2

    def state(self):
        return State(held=Range(0, self.room), pool=Range(0, 3, init=3))

    @action
    def push(self, s):
        require(s.held < self.room)
        s.held += 1
        s.pool -= 1

    @action(k=range(2), fairness=WEAK)
    def pop(self, s, k):
        require(s.held > k)
        s.held -= 1

    @invariant
    def bounded(self, s):
        return s.held <= self.room


class Shop(Model):
    def parts(self):
        return (
            Parts(
                lane=each(2, lambda c: Lane()),
            )
        )

    @temporal
    def some(self, s):
        held = s.lane[0].held
        return eventually(held == 1)
