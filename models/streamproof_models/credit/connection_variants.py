"""Variants of `credit_connection`: connections that do not keep all messages in order, and flow control without credit."""

from __future__ import annotations

from streamproof import Array, Range, State, action, require
from streamproof_models.credit.connection import CreditConnection


class Reordering(CreditConnection, variant="reordering"):
    """The connection does not keep the order, as if there were two."""

    @action
    def overtake(self, s):
        """The next buffer arrives after all others."""
        require(len(s.responses) > 1)
        s.responses = s.responses[1:] + s.responses[:1]


class Lossy(CreditConnection, variant="lossy"):
    """The connection loses buffers."""

    @action
    def lose(self, s):
        """The next buffer does not arrive."""
        require(len(s.responses) > 0)
        s.responses.pop()


class LostAnnouncements(CreditConnection, variant="lost-announcement"):
    """The connection loses announcements of credit."""

    @action
    def lose(self, s):
        """The next AddCredit does not arrive."""
        require(len(s.requests) > 0 and s.requests.head.credit > 0)
        s.requests.pop()


class NoCredits(CreditConnection, variant="no-credit"):
    """Before 1.5: senders fill the connection, and a receiver without a buffer for what comes next stops reading it."""

    def send(self, s, c):
        """A buffer goes on the connection as long as that has room."""
        require(len(s.responses) < self.room())
        self.write(s, c)

    def recycle(self, s, c):
        """There are no credits."""
        s.available_buffers[c] += 1

    def take_floating_buffer(self, s, c):
        """There are no credits."""
        super().take_floating_buffer(s, c)
        s.unannounced_credit[c] = 0


class FloatingGranted(CreditConnection, variant="floating-granted"):
    """A sender begins with a credit for each floating buffer, too."""

    def state(self):
        """The floating buffers are not assigned yet."""
        buffers = Range(0, self.most())
        credit = Array(range(self.channels), buffers, init=self.exclusive + self.floating)
        return State(**{**dict(super().state().items()), "num_credits_available": credit})

    def most(self) -> int:
        """Floating buffers are announced once more when they are assigned."""
        return super().most() + self.floating
