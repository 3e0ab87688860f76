"""Variants of `credit_flush` that omit one rule."""

from __future__ import annotations

from streamproof_models.credit.flush import CreditFlush
from streamproof_models.credit.machine import Credit
from streamproof_models.credit.variants import CreditBeforeFree, LostAnnouncement, UncountedLending


class OnlyWhenFull(CreditFlush, variant="only-when-full"):
    """There is no flusher: a buffer is visible when it is full, or an event follows."""

    def flush(self, s, c):
        """There is none."""


class FlushedOnce(CreditFlush, variant="flushed-once"):
    """The flusher passes over a buffer that it has flushed before."""

    def flush(self, s, c):
        """A buffer of which something was sent stays as it is."""
        if s.writer[c].reader_position == 0:
            super().flush(s, c)


class EventWaits(CreditFlush, variant="event-waits"):
    """An event waits with what is ahead of it for the flusher."""

    def add_event(self, s, c):
        """The buffer ahead stays as it is."""
        self.take_event(s, c)


class Unlimited(CreditFlush, variant="no-limit"):
    """The writers' pool has no limit."""

    def exhausted(self, s):
        """Never."""
        return False


class FlushedBeforeFree(CreditFlush, variant="credit-before-free"):
    """The channels of the variant of `credit` of that name: a buffer is a credit again before the consumer has read it."""

    def flow_control(self, model: type[Credit] = CreditBeforeFree) -> Credit:
        """Channels that announce too early."""
        return super().flow_control(model)


class FlushedUncounted(CreditFlush, variant="uncounted-lending"):
    """The channels of the variant of `credit` of that name: the pool lends without accounting."""

    def flow_control(self, model: type[Credit] = UncountedLending) -> Credit:
        """Channels that get every floating buffer."""
        return super().flow_control(model)


class FlushedUnannounced(CreditFlush, variant="lost-announcement"):
    """The channels of the variant of `credit` of that name: announced credits may be lost. Writers wait for their buffers."""

    def flow_control(self, model: type[Credit] = LostAnnouncement) -> Credit:
        """Channels that lose credits."""
        return super().flow_control(model)
