"""The messages between the two ends of `credit_channel`, and the parameters of both."""

from __future__ import annotations

from typing import Any

from streamproof import Bool, Enum, Model, Queue, Range, Record

# Buffer.DataType
DATA = ("DATA_BUFFER", "DATA_BUFFER_WITH_CLEAR_END")
"""Data cost a credit and fill a receive buffer. All other types are events."""
PRIORITY = "PRIORITIZED_EVENT_BUFFER"
"""The type of events that overtake queued buffers."""
TIMEOUTABLE = "TIMEOUTABLE_ALIGNED_CHECKPOINT_BARRIER"
"""The type of aligned barriers that become priority events after a timeout."""
BLOCKING = ("RECOVERY_COMPLETION", "ALIGNED_CHECKPOINT_BARRIER", TIMEOUTABLE, "ALIGNED_WATERMARK_EVENT")
"""Events that block the subpartition until the consumer resumes it (`isBlockingUpstream`)."""
END_OF_PARTITION = "END_OF_PARTITION"
"""The type of the last event."""
PLAIN = ("EVENT_BUFFER", "END_OF_DATA", "END_OF_SEGMENT", "RECOVERY_METADATA", "UNALIGNED_WATERMARK_EVENT")
"""Events that neither block nor overtake."""
DATA_TYPES = (*DATA, PRIORITY, *BLOCKING, *PLAIN, END_OF_PARTITION)


class Messages(Model):
    """The messages of one channel, on a connection that preserves their order in each direction."""

    exclusive: int = 1
    """Number of exclusive buffers of the channel: the initial credit."""
    pipelined: bool = True
    """Whether the partition is pipelined; otherwise it is blocking, and read from files."""
    produced: int = 2
    """Maximum number of buffers and events of the subpartition."""
    threads: int = 1
    """Number of the consumer's threads. The first is the network thread, in which messages arrive."""

    def set_data_types(self, data_types: tuple[str, ...]) -> None:
        """Sets the data types that occur."""
        self.data_types = data_types
        self.data = tuple(t for t in DATA if t in data_types)
        self.blocking = tuple(t for t in BLOCKING if t in data_types)
        self.priority = tuple(t for t in (PRIORITY,) if t in data_types)

    def most(self) -> int:
        """Maximum number of buffers and credits of the channel at a time."""
        raise NotImplementedError

    def message_variables(self) -> dict[str, Any]:
        """No message is on its way."""
        bound = self.produced + 1
        response = Record(
            message=Enum("BufferResponse", "BacklogAnnouncement"),
            data_type=Enum(*self.data_types),
            sequence_number=Range(0, bound * 2),
            size=Range(0, bound * 4),
            backlog=Range(0, bound),
            partial_buffers=Range(1, bound * 2),
        )
        return {
            # to the producer
            "partition_requests": Range(0, 2),  # PartitionRequest: their number
            "add_credits": Queue(Range(1, self.most()), capacity=bound * 2),  # AddCredit: credits of each
            "resume_consumption_sent": Bool(),  # ResumeConsumption
            "add_credits_before_resume": Range(0, bound * 2),  # AddCredits that must arrive before ResumeConsumption
            # to the consumer
            "responses": Queue(response, capacity=bound * 3),  # BufferResponse, BacklogAnnouncement
        }
