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
        require(s.cancel_requests <= len(s.responses))
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
