"""The subpartition of `credit_channel`: Flink's `PipelinedSubpartition`."""

from __future__ import annotations

from typing import Any

from streamproof import Bool, Enum, Queue, Range, action, require
from streamproof_models.credit_channel.messages import END_OF_PARTITION, PRIORITY, Messages


class Subpartition(Messages):
    """The queue of buffers and events between the producing task and the reader."""

    def subpartition_variables(self) -> dict[str, Any]:
        """Nothing is queued."""
        bound = self.produced + 1
        buffers = Queue(Enum(*self.data_types), capacity=bound)
        return {
            "buffers": buffers,  # buffers, without its priority elements
            "priority_buffers": buffers,  # the priority elements of buffers
            "buffers_in_backlog": Range(0, bound),  # buffersInBacklog
            "sequence_number": Range(0, bound * 2),  # sequenceNumber
            "total_number_of_buffers": Range(0, bound),  # totalNumberOfBuffers
            "is_blocked": Bool(),  # isBlocked
            "is_finished": Bool(),  # isFinished
            "subpartition_released": Bool(),  # isReleased
        }

    @action(data_type="data_types")
    def add(self, s, data_type):
        """The task adds an event, or a buffer to which it may still write."""
        require(self.pipelined and not s.is_finished and not s.subpartition_released)
        require(s.total_number_of_buffers < self.produced)
        s.total_number_of_buffers += 1
        if data_type == PRIORITY:
            s.priority_buffers.push(data_type)
        else:
            s.buffers.push(data_type)
        if data_type in self.data:
            s.buffers_in_backlog += 1
        if data_type == END_OF_PARTITION:
            s.is_finished = True

    @action
    def release_subpartition(self, s):
        """The partition is released, with all its buffers."""
        require(len(s.priority_buffers) + len(s.buffers) > 0 and not s.subpartition_released)
        s.subpartition_released = True
        s.priority_buffers.clear()
        s.buffers.clear()

    def poll_data(self, s, skipped, unfinished):
        """`pollBuffer`, for data: an `unfinished` buffer gives what is written of it and stays queued."""
        require(len(s.priority_buffers) == 0 and not s.is_blocked)
        self.skip_empty(s, skipped)
        require(len(s.buffers) > 0 and s.buffers.head in self.data)
        require(not unfinished or len(s.buffers) == 1)
        data_type = s.buffers.head
        if not unfinished:
            s.buffers.pop()
            s.buffers_in_backlog -= 1
        return data_type

    def poll_event(self, s, skipped):
        """`pollBuffer`, for events, of which priority events are first."""
        require(not s.is_blocked)
        if len(s.priority_buffers) > 0:
            require(skipped == 0)
            data_type = s.priority_buffers.pop()
        else:
            self.skip_empty(s, skipped)
            require(len(s.buffers) > 0 and s.buffers.head not in self.data)
            data_type = s.buffers.pop()
        return data_type

    def skip_empty(self, s, count):
        """`pollBuffer` drops finished buffers without data. Without credit it is not called: the first buffer is data."""
        require(count == 0 or s.num_credits_available > 0)
        for _ in range(count):
            require(len(s.buffers) > 0 and s.buffers.head in self.data)
            s.buffers.pop()
            s.buffers_in_backlog -= 1

    def block(self, s):
        """A blocking event stops the subpartition."""
        s.is_blocked = True

    def is_backlog(self, s, backlog):
        """`getBuffersInBacklogUnsafe`: all data in the queue, or all but a last buffer that the task still writes to."""
        if s.is_blocked or len(s.buffers) == 0:
            return backlog == 0
        if s.buffers_in_backlog == 0 or s.buffers[len(s.buffers) - 1] not in self.data:
            return backlog == s.buffers_in_backlog
        return backlog == s.buffers_in_backlog or backlog == s.buffers_in_backlog - 1

    def has_next(self, s):
        """Whether something can be polled, given credit."""
        return not s.is_blocked and len(s.priority_buffers) + len(s.buffers) > 0
