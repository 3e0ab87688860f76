"""Which part is assigned to depends on the state."""

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

    def state(self):
        return State(at=Range(0, 1))

    @action
    def clear(self, s):
        s.lane[s.at].held = 0
