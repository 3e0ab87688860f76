"""The receive buffers of `credit_channel`: Flink's `BufferManager`."""

from __future__ import annotations

from typing import Any

from streamproof import WEAK, Array, Bool, Option, Range, action, require
from streamproof_models.credit_channel.messages import Messages


class BufferManager(Messages):
    """The exclusive and floating buffers of an input channel. Each free buffer is one credit."""

    def buffer_variables(self) -> dict[str, Any]:
        """The channel has no buffers."""
        bound, most = self.produced + 1, self.most()
        return {
            "exclusive_requested": Bool(),  # requestExclusiveBuffers was called
            "exclusive_buffers": Range(0, self.exclusive),  # bufferQueue.exclusiveBuffers: free ones
            "floating_buffers": Range(0, most),  # bufferQueue.floatingBuffers: free ones
            "num_required_buffers": Range(-bound * 2, bound + self.exclusive, init=0),  # numRequiredBuffers
            "is_waiting_for_floating_buffers": Bool(),  # isWaitingForFloatingBuffers
            "exclusive_in_use": Range(0, self.exclusive),  # exclusive buffers with data, held by the task
            "buffer_requested": Bool(),  # the decoder has requested the buffer of the arriving message
            "requested_exclusive": Bool(),  # that buffer is an exclusive one
            "credit_gained": Array(range(self.threads), Option(Range(0, most))),  # per thread, by its unfinished call
            "buffers_released": Bool(),  # releaseAllBuffers was called
        }

    def available(self, s):
        """Number of free buffers: `bufferQueue.getAvailableBufferSize()`."""
        return s.exclusive_buffers + s.floating_buffers

    def arrives(self, s, message):
        """The first message on its way arrives. The network thread has finished the calls for the message before."""
        require(s.sender_backlog is None and s.credit_gained[0] is None)
        require(len(s.responses) > 0 and s.responses.head.message == message)

    @action
    def request_exclusive_buffers(self, s):
        """The channel gets its exclusive buffers."""
        require(not s.exclusive_requested)
        s.exclusive_requested = True
        s.exclusive_buffers = self.exclusive

    @action(fairness=WEAK)
    def request_buffer(self, s):
        """The decoder takes a free buffer, a floating one if possible, for the data that arrive."""
        self.arrives(s, "BufferResponse")
        require(s.responses.head.data_type in self.data and not s.buffer_requested)
        require(self.available(s) > 0)
        s.buffer_requested = True
        s.num_required_buffers -= 1
        if s.floating_buffers > 0:
            s.floating_buffers -= 1
        else:
            s.exclusive_buffers -= 1
            s.requested_exclusive = True

    @action
    def request_buffer_after_release(self, s):
        """A released channel has no buffer for the data that arrive."""
        self.arrives(s, "BufferResponse")
        require(s.responses.head.data_type in self.data and not s.buffer_requested)
        require(s.channel_released and self.available(s) == 0)
        s.buffer_requested = True
        s.num_required_buffers -= 1

    @action(got="floating_requests", fairness=WEAK)
    def request_floating_buffers(self, s, got):
        """For the sender's backlog the channel requests floating buffers. If the pool has too few, it waits for the rest."""
        require(s.backlog_noted and s.sender_backlog is not None and s.credit_gained[0] is None)
        required, available = s.sender_backlog + self.exclusive, self.available(s)
        s.sender_backlog = None
        s.backlog_noted = False
        s.credit_gained[0] = got
        if not s.channel_released:
            s.num_required_buffers = required
        if s.channel_released or s.is_waiting_for_floating_buffers or available >= required:
            require(got == 0)
        else:
            require(available + got <= required)
            s.floating_buffers += got
            s.is_waiting_for_floating_buffers = available + got < required

    @action(got="floating_requests", t="threads", fairness=WEAK)
    def accept_floating_buffer(self, s, got, t):
        """The pool offers a buffer to the waiting channel, which takes it and requests further ones."""
        require(s.is_waiting_for_floating_buffers and not s.channel_released and s.credit_gained[t] is None)
        require(self.available(s) < s.num_required_buffers)
        require(got > 0 and self.available(s) + got <= s.num_required_buffers)
        s.floating_buffers += got
        s.credit_gained[t] = got
        s.is_waiting_for_floating_buffers = self.available(s) < s.num_required_buffers

    @action(noted=[True, False], fairness=WEAK)
    def decline_floating_buffer(self, s, noted):
        """The pool offers a buffer that the channel does not need. A released channel may still count as waiting."""
        require(s.is_waiting_for_floating_buffers)
        require(s.channel_released or self.available(s) >= s.num_required_buffers)
        if noted:
            s.is_waiting_for_floating_buffers = False
        else:
            require(s.channel_released)

    @action(t="threads", fairness=WEAK)
    def recycle(self, s, t):
        """An exclusive buffer returns after use, also that of an empty message. It is a new credit, unless the channel
        returns a surplus floating buffer instead."""
        require(s.credit_gained[t] is None)
        if not s.channel_released:
            if s.exclusive_in_use > 0:
                s.exclusive_in_use -= 1
            else:
                require(s.requested_exclusive and s.responses.head.size == 0)
                s.requested_exclusive = False
            s.exclusive_buffers += 1
            if self.available(s) > s.num_required_buffers and s.floating_buffers > 0:
                s.floating_buffers -= 1
            else:
                s.credit_gained[t] = 1

    @action(fairness=WEAK)
    def release_floating_buffers(self, s):
        """When a blocking event arrives, a channel without exclusive buffers returns its floating ones."""
        require(s.sender_backlog is None and s.credit_gained[0] is None)
        require(s.blocking_event == "ARRIVING" and not s.floating_released)
        s.floating_released = True
        s.num_required_buffers = 0
        s.floating_buffers = 0

    @action
    def release_all_buffers(self, s):
        """A released channel returns its buffers."""
        require(s.channel_released and not s.buffers_released)
        s.buffers_released = True
        s.exclusive_in_use = 0
        s.requested_exclusive = False
        s.exclusive_buffers = 0
        s.floating_buffers = 0
