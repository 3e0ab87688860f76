"""The machine of one channel as records follow it: all data types, numbers of any size, and what leaves no record."""

from __future__ import annotations

from typing import Any

from streamproof import action, require
from streamproof_models.credit_channel import DATA_TYPES, PRIORITY, TIMEOUTABLE, Channel

AMPLE = 1 << 40
"""Larger than any number in a record."""


class RecordedChannel(Channel):
    """A channel whose pool and task are unrestricted. Some of its calls leave no record."""

    name = "credit_channel"

    produced: int = AMPLE
    threads: int = 4
    release_recorded: bool = True
    """Whether the record contains the release of the input channel."""

    def setup(self) -> None:
        """Numbers have any size."""
        self.set_data_types(DATA_TYPES)
        self.buffer_sizes = self.backlogs = self.floating_requests = range(self.produced + 1)
        self.partials = range(1, self.produced + 1)
        self.task_threads = range(min(1, self.threads - 1), self.threads)

    def most(self) -> int:
        """Maximum number of buffers and credits of the channel at a time."""
        return self.exclusive + self.produced

    @action
    def refuse(self, s: Any) -> None:
        """The PartitionRequest arrives before the partition exists, and fails (Flink 1.17), which leaves no record."""
        require(s.partition_requests > 0 and not s.in_all_readers)
        s.partition_requests -= 1

    @action
    def retrigger_request(self, s: Any) -> None:
        """The consumer was notified that the partition does not exist, and repeats its request. If only one request has
        left a record it may be this one, and the reader may already exist."""
        require(s.exclusive_requested and not s.channel_released)
        require(s.partition_requests == 0 and s.expected_sequence_number == 0)
        if not s.in_all_readers and not s.reader_released:
            s.partition_requests = 1

    def cancel(self, s: Any) -> None:
        """Also before the request has arrived, and before the release if that is not recorded."""
        require(s.reader_created or s.partition_requests == 0)
        require(s.channel_released or not self.release_recorded)
        require(s.cancel_requests <= len(s.responses))
        s.cancel_requests += 1
        s.in_available_readers = False

    def request_buffer_after_release(self, s: Any) -> None:
        """The message for which a buffer was requested before may have been dropped, which leaves no record."""
        if s.buffer_requested:
            require(len(s.responses) > 1)
            s.buffer_requested = False
        super().request_buffer_after_release(s)

    def on_buffer(self, s: Any, size: int) -> None:
        """A barrier that may time out is announced by a priority event with its number."""
        require(len(s.responses) > 0)
        times_out = s.responses.head.data_type == TIMEOUTABLE
        super().on_buffer(s, size)
        if times_out:
            number = s.expected_sequence_number - 1
            announcement = {"sequence_number": number, "data_type": PRIORITY, "size": size, "exclusive": False}
            s.received_priority_buffers.push(announcement)

    @action
    def poll_timed_out(self, s: Any) -> None:
        """A barrier that has timed out overtakes what was received before it."""
        require(len(s.received_priority_buffers) == 0)
        require(s.received_blocking_event is not None and s.received_blocking_event.data_type == TIMEOUTABLE)
        s.received_blocking_event = None
        s.blocking_event = "POLLED"


class OutlinedChannel(RecordedChannel):
    """A channel of which only the messages are recorded."""

    name = "credit_channel"

    def sends_late(self, s: Any) -> Any:
        """A released reader may send more: neither the reason of the release nor the type of the partition is recorded."""
        return s.reader_released

    @action(n="floating_requests")
    def gain_credit(self, s: Any, n: int) -> None:
        """Buffers were requested or returned."""
        require(s.exclusive_requested)
        s.floating_buffers += n
        s.unannounced_credit += n

    @action
    def ignore_backlog(self, s: Any) -> None:
        """The backlog has been handled."""
        require(s.sender_backlog is not None)
        s.sender_backlog = None

    @action
    def poll_all(self, s: Any) -> None:
        """The task has taken everything that was received."""
        require(s.received_blocking_event is not None)
        s.received_buffers.clear()
        s.received_priority_buffers.clear()
        s.received_blocking_event = None
        s.blocking_event = "POLLED"
