"""An assignment to a part of a value that lies nowhere."""

from streamproof import *


class Shop(Model):
    channels: int = 2

    def state(self):
        return State(
            wire=Queue(Record(size=Range(0, 3)), capacity=2), backlog=Range(0, 3)
        )

    @action
    def work(self, s):
        letter = s.wire.pop()
        letter.size = 1
