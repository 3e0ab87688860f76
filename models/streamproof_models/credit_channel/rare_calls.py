"""Calls on a channel that are rare in Flink, and not part of the protocol's idea: requests that come too early, messages that
are dropped after a release, barriers that time out. Real records have them."""

from __future__ import annotations

from streamproof import action, require
from streamproof_models.credit_channel.channel import Channel, CreditChannel
from streamproof_models.credit_channel.messages import PRIORITY, TIMEOUTABLE


class RareCalls(Channel):
    """A channel with the calls that are rare, in addition to the others."""

    late_release: bool = False
    """Whether the release of the input channel may take place after its requests to cancel: records may lack it."""

    @action
    def refuse(self, s):
        """The PartitionRequest arrives before the partition exists, and fails (Flink 1.17)."""
        require(s.partition_requests > 0)
        s.partition_requests -= 1

    @action
    def time_out(self, s):
        """The partition has not come into being in time: the reader is given up (Flink 2.x)."""
        require(s.reader_created and not s.in_all_readers and not s.reader_released)
        s.reader_created = False
        s.num_credits_available = 0

    @action
    def retrigger_request(self, s):
        """The consumer was notified that the partition does not exist, and repeats its request."""
        require(s.exclusive_requested and not s.channel_released)
        require(s.partition_requests == 0 and not s.reader_created)
        s.partition_requests = 1

    def cancel(self, s):
        """Also before the request has arrived, and before the release if that may be late."""
        require(s.reader_created or s.partition_requests == 0)
        require(s.channel_released or self.late_release)
        self.may_cancel(s)
        s.cancel_requests += 1
        s.in_available_readers = False

    def on_buffer(self, s, size):
        """A barrier that may time out is announced by a priority event with its number."""
        require(len(s.responses) > 0)
        times_out = s.responses.head.data_type == TIMEOUTABLE
        super().on_buffer(s, size)
        if times_out:
            number = s.expected_sequence_number - 1
            announcement = {"sequence_number": number, "data_type": PRIORITY, "size": size, "exclusive": False}
            s.received_priority_buffers.push(announcement)

    @action
    def poll_timed_out(self, s):
        """A barrier that has timed out overtakes what was received before it."""
        require(len(s.received_priority_buffers) == 0)
        require(s.received_blocking_event is not None and s.received_blocking_event.data_type == TIMEOUTABLE)
        s.received_blocking_event = None
        s.blocking_event = "POLLED"


class Flink(CreditChannel, RareCalls, variant="flink"):
    """All calls of real Flink, with barriers that may time out."""

    def setup(self):
        """The blocking event is a barrier that may time out."""
        super().setup()
        self.set_data_types(("DATA_BUFFER", TIMEOUTABLE, PRIORITY))


class OutlinedCalls(RareCalls):
    """A channel of which only messages are recorded: its buffers come and go, and its task takes what has come, unseen."""

    def sends_late(self, s):
        """A released reader may send more: neither the reason of the release nor the type of the partition is recorded."""
        return s.reader_released

    @action(n="floating_requests")
    def gain_credit(self, s, n):
        """Buffers were requested or returned: each is one credit."""
        require(s.exclusive_requested)
        self.grant(s, n)
        s.floating_buffers += n
        s.unannounced_credit += n

    def grant(self, s, n):
        """The pool has so many buffers."""

    @action
    def ignore_backlog(self, s):
        """The backlog has been handled."""
        require(s.sender_backlog is not None)
        s.sender_backlog = None

    @action
    def poll_all(self, s):
        """The task has taken everything that was received."""
        require(s.received_blocking_event is not None)
        s.received_buffers.clear()
        s.received_priority_buffers.clear()
        s.received_blocking_event = None
        s.blocking_event = "POLLED"


class Outlined(Flink, OutlinedCalls, variant="outlined"):
    """What traces of messages alone show of Flink.

    Without exclusive buffers such a trace does not show credit to be conserved: what the consumer has gained may be from
    before or after it has restarted at zero.
    """

    produced: int = 1

    def grant(self, s, n):
        """The pool grants `floating` buffers, which are announced before it grants more than there are."""
        require(s.floating_buffers + n <= self.floating and s.unannounced_credit + n <= self.most())
