"""A member that is named twice."""

from streamproof import *


class Shop(Model):
    def state(self):
        return State(mode=Enum("IDLE", "BUSY", "IDLE"))

    @action
    def work(self, s):
        pass
