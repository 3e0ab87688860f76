"""A set and a set are joined as numbers are."""

from streamproof import Model, Range, Set, State, action


class Shop(Model):
    def state(self):
        return State(seen=Set(Range(0, 2)))

    @action
    def go(self, s):
        s.seen += {1}
