"""An asynchronous rule."""

from streamproof import *


class Shop(Model):
    channels: int = 2

    def state(self):
        return State(
            backlog=Range(0, 3), full=Bool(), mode=Enum("IDLE", "BUSY"), wire=Queue(Range(0, 3), capacity=2),
        )

    @action
    def work(self, s):
        s.backlog = 0

    @action
    async def send(self, s):
        s.backlog = 1
