"""A random number, behind a call."""

from streamproof import *
import random


class Shop(Model):
    channels: int = 2

    def state(self):
        return State(
            backlog=Range(0, 3), full=Bool(), mode=Enum("IDLE", "BUSY"), wire=Queue(Range(0, 3), capacity=2),
        )

    @action
    def work(self, s):
        s.backlog = self.draw()

    def draw(self):
        return random.randint(0, 3)
