"""An option of an option."""

from streamproof import *


class Shop(Model):
    def state(self):
        return State(owner=Option(Option(Bool())))

    @action
    def work(self, s):
        pass
