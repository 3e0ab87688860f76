"""Benchmark model: credit-based flow control, with states of one machine word."""

from __future__ import annotations

from streamproof import WEAK, Array, Model, Range, State, action, invariant, leads_to, require, temporal


class CreditBench(Model):
    """Credit-based flow control of channels that share floating buffers: 5 variables per channel and the pool, one word."""

    channels: int = 4
    exclusive: int = 2
    floating: int = 2
    depth: int = 3

    def state(self):
        """Sender backlog, credit, messages in flight, buffers filled at the receiver, and floating buffers held."""
        channel = range(self.channels)
        most = self.exclusive + self.floating
        return State(
            backlog=Array(channel, Range(0, self.depth, init=self.depth)),
            credit=Array(channel, Range(0, most, init=self.exclusive)),
            wire=Array(channel, Range(0, most)),
            filled=Array(channel, Range(0, most)),
            extra=Array(channel, Range(0, self.floating)),
            pool=Range(0, self.floating, init=self.floating),
        )

    @action(c="channels", fairness=WEAK)
    def produce(self, s, c):
        """The producer adds a message to the backlog."""
        require(s.backlog[c] < self.depth)
        s.backlog[c] += 1

    @action(c="channels", fairness=WEAK)
    def send(self, s, c):
        """The sender sends a message and uses a credit."""
        require(s.backlog[c] > 0 and s.credit[c] > 0)
        s.backlog[c] -= 1
        s.credit[c] -= 1
        s.wire[c] += 1

    @action(c="channels", fairness=WEAK)
    def receive(self, s, c):
        """A message fills a buffer."""
        require(s.wire[c] > 0)
        s.wire[c] -= 1
        s.filled[c] += 1

    @action(c="channels", fairness=WEAK)
    def recycle(self, s, c):
        """The receiver announces a consumed buffer as credit."""
        require(s.filled[c] > 0)
        s.filled[c] -= 1
        s.credit[c] += 1

    @action(c="channels", fairness=WEAK)
    def borrow(self, s, c):
        """A channel with a backlog takes a floating buffer."""
        require(s.pool > 0 and s.backlog[c] > s.credit[c])
        s.pool -= 1
        s.extra[c] += 1
        s.credit[c] += 1

    @action(c="channels", fairness=WEAK)
    def give_back(self, s, c):
        """A channel returns a consumed floating buffer to the pool."""
        require(s.filled[c] > 0 and s.extra[c] > 0)
        s.filled[c] -= 1
        s.extra[c] -= 1
        s.pool += 1

    @invariant
    def conserved(self, s):
        """The number of buffers is constant."""
        return (
            all(s.credit[c] + s.wire[c] + s.filled[c] == self.exclusive + s.extra[c] for c in range(self.channels))
            and s.pool + sum(s.extra[c] for c in range(self.channels)) == self.floating
        )

    @temporal
    def served(self, s):
        """A full backlog is eventually served."""
        return leads_to(s.backlog[0] == self.depth, s.wire[0] > 0)
