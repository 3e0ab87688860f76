from streamproof import Model, Range, State, action, first


class Shop(Model):
    def state(self):
        return State(stock=Range(0, 2))

    @action
    def sell(self, s):
        s.stock = first((k for k in range(3) if s.stock == k), default=None) + 1
