from streamproof import Model, Range, State, action, always, temporal


class Shop(Model):
    def state(self):
        return State(x=Range(0, 2))

    @action
    def advance(self, s):
        s.x = (s.x + 1) % 3

    @temporal
    def steady(self, s):
        return always(next(s.x == 1))
