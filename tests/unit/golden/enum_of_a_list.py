"""Members in a list."""

from streamproof import *


class Shop(Model):
    def state(self):
        return State(mode=Enum(["IDLE", "BUSY"]))

    @action
    def work(self, s):
        pass
