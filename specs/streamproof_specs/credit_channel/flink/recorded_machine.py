"""The machine of one channel as records follow it: all data types, numbers of any size, and what leaves no record."""

from __future__ import annotations

from typing import Any

from streamproof import action, require
from streamproof_models.credit_channel import DATA_TYPES, OutlinedCalls, RareCalls

AMPLE = 1 << 40
"""Larger than any number in a record."""


class RecordedChannel(RareCalls):
    """A channel whose pool and task are unrestricted. Some of its calls leave no record."""

    name = "credit_channel"

    produced: int = AMPLE
    threads: int = 4

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
    def request_answered(self, s: Any) -> None:
        """A request is repeated that the producer has recorded already: of the requests only one has left a record."""
        require(s.reader_created and not s.channel_released and s.expected_sequence_number == 0)


class OutlinedChannel(OutlinedCalls, RecordedChannel):
    """A channel of which only the messages are recorded."""

    name = "credit_channel"
