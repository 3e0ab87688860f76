"""A method of one of two places."""

from streamproof import *


class Shop(Model):
    channels: int = 2

    def state(self):
        return State(
            full=Bool(), wire=Queue(Bool(), capacity=2), other=Queue(Bool(), capacity=2), backlog=Range(0, 3)
        )

    @action
    def work(self, s):
        first = s.wire if s.full else s.other
        first.push(1)
