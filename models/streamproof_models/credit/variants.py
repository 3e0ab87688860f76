"""Variants of `credit`: earlier versions of Flink, and rules that break it."""

from __future__ import annotations

from streamproof import WEAK, Range, State, action, choose, require, terminal
from streamproof_models.credit.machine import Credit


class CreditBeforeFree(Credit, variant="credit-before-free"):
    """A buffer is a credit again when it is handed to the consumer, not when the consumer has read it."""

    def most(self) -> int:
        """Floating buffers that return to the pool have been announced, too."""
        return super().most() + self.depth

    def receive(self, s, c):
        """The received buffer is a new credit at once."""
        super().receive(s, c)
        s.unannounced_credit[c] += 1

    def recycle(self, s, c):
        """The buffer is a credit already."""
        s.available_buffers[c] += 1


class FloatingLeak(Credit, variant="floating-leak"):
    """A channel that is released keeps its floating buffers."""

    def release(self, s, c):
        """Forget the floating buffers first."""
        s.floating_buffers[c] = 0
        super().release(s, c)


class UncountedLending(Credit, variant="uncounted-lending"):
    """The pool grants its buffers to every channel, without accounting."""

    def request_floating_buffer(self, s, c):
        """A channel gets every floating buffer once."""
        require(s.floating_buffers[c] < self.floating)
        super().request_floating_buffer(s, c)
        s.pool += 1

    def return_floating_buffers(self, s, c, count):
        """The pool does not count them."""
        s.floating_buffers[c] -= count


class LostAnnouncement(Credit, variant="lost-announcement"):
    """Announcements may be lost, and are not repeated."""

    @action(c="channels")
    def lose(self, s, c):
        """An announced credit does not arrive."""
        require(s.announced_credit[c] > 0)
        s.announced_credit[c] -= 1


class LostBuffer(Credit, variant="lost-buffer"):
    """Buffers may be lost on the wire, with their credits."""

    @action(c="channels")
    def lose(self, s, c):
        """A buffer on the wire does not arrive."""
        require(s.in_flight[c] > 0)
        s.in_flight[c] -= 1


class ZeroExclusive(Credit, variant="zero-exclusive"):
    """Channels have floating buffers only."""

    exclusive: int = 0
    limits = {"exclusive": (0, 0)}


class ZeroExclusiveReading(ZeroExclusive, variant="zero-exclusive-reading", without=("stall", "release")):
    """Channels have floating buffers only, and all consumers read, so that every buffer must be read."""

    check_deadlock = True

    @terminal
    def delivered(self, s):
        """Everything was produced, sent and read."""
        return all(s.to_produce[c] == 0 and self.idle(s, c) for c in range(self.channels))


class ZeroExclusiveSilent(ZeroExclusiveReading, variant="zero-exclusive-silent", without="announce_backlog"):
    """Before FLINK-16641: a backlog is announced with buffers only."""


class AnyBacklog(Credit, variant="any-backlog", without="announce_backlog"):
    """The receiver ignores the backlog: it requests and returns floating buffers arbitrarily."""

    def receive(self, s, c):
        """A buffer arrives, without the sender backlog."""
        super().receive(s, c)
        s.sender_backlog[c] = 0

    def consume(self, s, c):
        """A buffer has been consumed: a floating one returns to the pool, or not."""
        require(s.consumer[c] == "LIVE" and s.received_buffers[c] > 0)
        s.received_buffers[c] -= 1
        if choose([True, False]):
            require(s.floating_buffers[c] > 0)
            self.return_floating_buffers(s, c, 1)
        else:
            self.recycle(s, c)

    @action(c="channels")
    def request_floating_buffer(self, s, c):
        """The pool gives a buffer to any channel, or does not."""
        self.take_floating_buffer(s, c)

    def release(self, s, c):
        """A released channel is in its initial state."""
        super().release(s, c)
        s.num_credits_available[c] = self.exclusive
        s.unannounced_credit[c] = 0


class NoCredit(Credit, variant="no-credit", without="announce_credit"):
    """Before 1.5: senders fill the connection, and a receiver without a buffer for what comes next stops reading it."""

    def state(self):
        """Also: the channel for which the connection waits; the number of channels means none."""
        declared = dict(super().state().items())
        return State(**declared, waits=Range(0, self.channels, init=self.channels))

    def recycle(self, s, c):
        """There are no credits."""
        s.available_buffers[c] += 1

    def send(self, s, c):
        """A buffer goes on the wire as long as the connection takes it."""
        require(s.buffers_in_backlog[c] > 0 and s.in_flight[c] < self.most())
        s.buffers_in_backlog[c] -= 1
        s.in_flight[c] += 1

    def receive(self, s, c):
        """The next buffer on the connection is read, unless another channel's buffer blocks the connection."""
        require(s.waits in (self.channels, c))
        super().receive(s, c)
        s.waits = self.channels

    @action(c="channels", fairness=WEAK)
    def block(self, s, c):
        """The next buffer is for a channel without a free one: nothing else is read until it has one."""
        require(s.waits == self.channels)
        require(s.in_flight[c] > 0 and s.available_buffers[c] == 0)
        s.waits = c

    def release(self, s, c):
        """The buffer that blocks the connection is discarded with its channel."""
        super().release(s, c)
        if s.waits == c:
            s.waits = self.channels
