"""The consumer's end of `credit_channel`: Flink's `RemoteInputChannel`."""

from __future__ import annotations

from typing import Any

from streamproof import WEAK, Bool, Enum, Option, Queue, Range, Record, action, require
from streamproof_models.credit_channel.buffer_manager import BufferManager


class InputChannel(BufferManager):
    """An input channel: the network thread fills it, the task polls it."""

    def channel_variables(self) -> dict[str, Any]:
        """Nothing is requested or received."""
        bound = self.produced + 1
        received = Record(
            sequence_number=Range(0, bound * 2),
            data_type=Enum(*self.data_types),
            size=Range(0, bound * 4),
            exclusive=Bool(),  # whether it fills an exclusive buffer
        )
        queue = Queue(received, capacity=bound * 2)
        event = Enum("NONE", "ARRIVING", "RECEIVED", "POLLED")
        return {
            "unannounced_credit": Range(0, self.most()),  # unannouncedCredit
            "expected_sequence_number": Range(0, bound * 2),  # expectedSequenceNumber
            "received_priority_buffers": queue,  # receivedBuffers: its priority elements
            "received_buffers": queue,  # receivedBuffers: the following ones
            "received_blocking_event": Option(received),  # receivedBuffers: its last element, if that is blocking
            "channel_released": Bool(),  # isReleased
            # calls that are not finished
            "partial_buffers_received": Range(0, bound * 2),  # of the first message in responses
            "bytes_received": Range(0, bound * 4),  # their total size
            "sender_backlog": Option(Range(0, bound)),  # received, and no buffers requested for it yet
            "backlog_noted": Bool(),  # onSenderBacklog was called for it
            "blocking_event": event,  # the last call for it: onBlockingUpstream, onBuffer, getNextBuffer
            "floating_released": Bool(),  # the last blocking event needs no releaseFloatingBuffers, or had it
        }

    @action
    def request_subpartition(self, s):
        """A PartitionRequest is sent, with the initial credit."""
        require(s.exclusive_requested and not s.channel_released)
        require(s.partition_requests == 0 and not s.reader_created)
        s.partition_requests = 1

    # --- the network thread

    @action(fairness=WEAK)
    def on_blocking_upstream(self, s):
        """A blocking event arrives: no data follow until the consumer resumes the subpartition."""
        self.arrives(s, "BufferResponse")
        require(s.responses.head.data_type in self.blocking and s.blocking_event == "NONE")
        s.blocking_event = "ARRIVING"
        s.floating_released = self.exclusive > 0

    @action(size="buffer_sizes", fairness=WEAK)
    def on_buffer(self, s, size):
        """A buffer or an event is received. The sizes of partial buffers add up to the size of their message."""
        self.expect(s)
        m = s.responses.head
        last = s.partial_buffers_received + 1 == m.partial_buffers
        require(s.bytes_received + size == m.size or (not last and s.bytes_received + size < m.size))
        exclusive = s.requested_exclusive and last
        received = {"sequence_number": s.expected_sequence_number, "data_type": m.data_type, "size": size}
        if m.data_type in self.blocking:
            require(s.blocking_event == "ARRIVING" and s.floating_released and m.backlog == 0)
            s.blocking_event = "RECEIVED"
            s.received_blocking_event = {**received, "exclusive": exclusive}
        elif m.data_type in self.priority:
            s.received_priority_buffers.push({**received, "exclusive": exclusive})
        else:
            s.received_buffers.push({**received, "exclusive": exclusive})
        s.bytes_received += size
        self.accept(s)

    @action(fairness=WEAK)
    def on_empty_buffer(self, s):
        """A message without data is received: it has a number and cost a credit."""
        self.expect(s)
        require(s.responses.head.data_type in self.data and s.responses.head.size == 0)
        self.accept(s)

    def expect(self, s):
        """The arriving message has the expected number and, if it has data, a buffer."""
        require(not s.channel_released)
        self.arrives(s, "BufferResponse")
        require(s.responses.head.data_type not in self.data or s.buffer_requested)
        require(s.expected_sequence_number == s.responses.head.sequence_number + s.partial_buffers_received)

    def accept(self, s):
        """The next number is expected. The last buffer of a message brings the backlog."""
        s.expected_sequence_number += 1
        if s.partial_buffers_received + 1 == s.responses.head.partial_buffers:
            s.sender_backlog = s.responses.head.backlog
            s.buffer_requested = False
            s.requested_exclusive = False
        self.finish_buffer(s)

    def finish_buffer(self, s):
        """The next partial buffer of the message is due, or the next message."""
        if s.partial_buffers_received + 1 == s.responses.head.partial_buffers:
            s.partial_buffers_received = 0
            s.bytes_received = 0
            s.responses.pop()
        else:
            s.partial_buffers_received += 1

    @action
    def discard(self, s):
        """A message for a released channel is dropped."""
        require(s.channel_released)
        require(len(s.responses) > 0 and s.responses.head.message == "BufferResponse")
        s.buffer_requested = False
        s.requested_exclusive = False
        self.finish_buffer(s)

    @action(fairness=WEAK)
    def receive_backlog_announcement(self, s):
        """A BacklogAnnouncement arrives."""
        self.arrives(s, "BacklogAnnouncement")
        s.sender_backlog = s.responses.head.backlog
        s.backlog_noted = True
        s.responses.pop()

    @action(fairness=WEAK)
    def on_sender_backlog(self, s):
        """The backlog of a received buffer is noted."""
        require(s.sender_backlog is not None and not s.backlog_noted)
        s.backlog_noted = True

    @action(t="threads", fairness=WEAK)
    def notify_buffer_available(self, s, t):
        """Free buffers that the channel has gained become unannounced credit."""
        require(s.credit_gained[t] is not None)
        s.unannounced_credit += s.credit_gained[t]
        s.credit_gained[t] = None

    @action(fairness=WEAK)
    def announce_credit(self, s):
        """All unannounced credit is sent in one AddCredit, if there is any."""
        if s.unannounced_credit > 0:
            s.add_credits.push(s.unannounced_credit)
        s.unannounced_credit = 0

    # --- the task

    @action(fairness=WEAK)
    def poll_priority(self, s):
        """The task takes priority events first."""
        require(len(s.received_priority_buffers) > 0)
        s.received_priority_buffers.pop()

    @action(fairness=WEAK)
    def poll(self, s):
        """The task takes the next buffer or event."""
        require(len(s.received_priority_buffers) == 0)
        require(len(s.received_buffers) > 0 or s.received_blocking_event is not None)
        if len(s.received_buffers) > 0:
            if s.received_buffers.head.exclusive:
                s.exclusive_in_use += 1
            s.received_buffers.pop()
        else:
            s.received_blocking_event = None
            s.blocking_event = "POLLED"

    @action(t="task_threads", fairness=WEAK)
    def resume_consumption(self, s, t):
        """The task has handled the blocking event: ResumeConsumption is sent. Without exclusive buffers the credit restarts
        at zero."""
        require(s.credit_gained[t] is None and s.blocking_event == "POLLED")
        require(not s.channel_released and not s.resume_consumption_sent)
        s.blocking_event = "NONE"
        s.resume_consumption_sent = True
        s.add_credits_before_resume = len(s.add_credits)
        if self.exclusive == 0:
            s.unannounced_credit = 0

    @action
    def release_channel(self, s):
        """The channel is released: it accepts nothing more."""
        require(not s.channel_released)
        s.channel_released = True

    @action
    def clear_received_buffers(self, s):
        """A released channel drops what it has received."""
        require(s.channel_released)
        s.received_priority_buffers.clear()
        s.received_buffers.clear()
        s.received_blocking_event = None
