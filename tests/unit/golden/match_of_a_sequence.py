"""A match over a local list."""

from streamproof import *


class Vote(Case):
    voter: int
    value: str


class Commit(Case):
    pass


class Other(Case):
    pass


class Shop(Model):
    channels: int = 2

    def state(self):
        return State(
            message=Union(Vote(voter=Range(0, 1), value=Enum("YES", "NO")), Commit()), backlog=Range(0, 3),
        )

    @action
    def work(self, s):
        match [s.backlog, 1]:
            case (0, x):
                s.backlog = x
