"""A union of a class of cases that has a field."""

from streamproof import Case, Model, Range, State, Union, action


class Ping(Case):
    id: int


class Shop(Model):
    def state(self):
        return State(message=Union(Ping), n=Range(0, 1))

    @action
    def go(self, s):
        s.n = 1
