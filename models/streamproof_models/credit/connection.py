"""Credit-based flow control, message by message: several channels on one connection, which preserves the order of messages.

TaskManagers have one connection for all channels between them. Downstream it carries buffers, each with its channel, its
number in that channel and the sender backlog; upstream it carries announcements of credit, and the cancellation of a
released channel. The machine of `credit` counts the messages that are queued here. This machine changes its rules for what
is sent and received, takes over the others, and refines it: through its counters, every step here is a step there, of a
receiver that requests and returns floating buffers arbitrarily.

A channel is released at its receiver; messages on their way are discarded on arrival, and its sender continues until the
cancellation has arrived on the connection, behind earlier announcements.

Abstractions: contents, except numbers; events (`credit_barriers` has them), partial buffers, several connections. An
announcement of several credits is one message, whose credits the sender counts one by one.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Queue, Range, Record, State, action, refines, require
from streamproof_models.credit import variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.credit.machine import Credit


class CreditConnection(Credit, without="announce_backlog"):
    """Credit-based flow control of several channels, with the messages on their connection."""

    name = "credit_connection"

    depth: int = 1
    """Maximum number of buffers produced by each sender."""

    sizes = {"small": {}, "medium": {"depth": 2}, "large": {"channels": 3, "floating": 2}}

    def state(self):
        """The senders know of the exclusive buffers; nothing is on the connection. The comments name Flink's fields."""
        channel, most = range(self.channels), self.most()
        which, number, buffers = Range(0, self.channels - 1), Range(0, self.depth), Range(0, most)
        response = Record(channel=which, sequence_number=number, backlog=number)
        request = Record(channel=which, credit=buffers)  # credit 0: CancelPartitionRequest
        return State(
            # the senders
            to_produce=Array(channel, number, init=self.depth),  # buffers that the task still produces
            buffers_in_backlog=Array(channel, number),  # PipelinedSubpartition.buffersInBacklog
            num_credits_available=Array(channel, buffers, init=self.exclusive),  # ...ViewReader.numCreditsAvailable
            sequence_number=Array(channel, number),  # PipelinedSubpartition.sequenceNumber
            cancelled=Array(channel, Bool()),  # the reader is not in PartitionRequestQueue.allReaders
            # the connection
            responses=Queue(response, capacity=self.room()),  # BufferResponses
            requests=Queue(request, capacity=self.channels * (most + 1)),  # AddCredits, CancelPartitionRequests
            credit_to_add=Array(channel, buffers),  # of the AddCredit that has arrived
            announced_credit=Array(channel, buffers),  # sum of requests and credit_to_add
            # the receivers
            expected_sequence_number=Array(channel, number),  # RemoteInputChannel.expectedSequenceNumber
            sender_backlog=Array(channel, number),  # BufferManager.numRequiredBuffers is this + exclusive
            available_buffers=Array(channel, buffers, init=self.exclusive),  # free ones: BufferManager.bufferQueue
            received_buffers=Array(channel, buffers),  # RemoteInputChannel.receivedBuffers
            floating_buffers=Array(channel, Range(0, self.floating)),  # floating ones of the channel, free or received
            unannounced_credit=Array(channel, buffers),  # RemoteInputChannel.unannouncedCredit
            consumer=Array(channel, Enum("LIVE", "STALLED", "GONE")),  # GONE: RemoteInputChannel.isReleased
            pool=Range(0, self.floating, init=self.floating),  # LocalBufferPool.availableMemorySegments of the gate
        )

    def room(self) -> int:
        """Maximum number of buffers on the connection."""
        return self.channels * self.most()

    def in_flight(self, s, c):
        """Number of buffers of one channel on the connection."""
        return sum(message.channel == c for message in s.responses)

    def credit_in_flight(self, s, c):
        """Number of credits of one channel on the connection, or arrived and not added."""
        return s.credit_to_add[c] + sum(message.credit if message.channel == c else 0 for message in s.requests)

    # --- the senders

    def produce(self, s, c):
        """A buffer is full and waits to be sent."""
        require(s.to_produce[c] > 0 and not s.cancelled[c])
        s.to_produce[c] -= 1
        s.buffers_in_backlog[c] += 1

    def send(self, s, c):
        """A buffer goes on the connection for a credit."""
        require(s.num_credits_available[c] > 0)
        s.num_credits_available[c] -= 1
        self.write(s, c)

    def write(self, s, c):
        """A buffer goes on the connection, with its number and the backlog behind it."""
        require(s.buffers_in_backlog[c] > 0)
        s.buffers_in_backlog[c] -= 1
        backlog, number = s.buffers_in_backlog[c], s.sequence_number[c]
        s.responses.push({"channel": c, "sequence_number": number, "backlog": backlog})
        s.sequence_number[c] += 1

    @action(fairness=WEAK)
    def receive_request(self, s):
        """The next AddCredit or CancelPartitionRequest arrives, when all credits of the one before are added."""
        require(len(s.requests) > 0 and all(credit == 0 for credit in s.credit_to_add))
        c, credit = s.requests.head.channel, s.requests.head.credit
        if credit > 0:
            s.credit_to_add[c] = credit
        else:
            s.cancelled[c] = True
            s.to_produce[c] = 0
            s.buffers_in_backlog[c] = 0
            s.num_credits_available[c] = 0
        s.requests.pop()

    def add_credit(self, s, c):
        """One credit of the AddCredit that has arrived is added."""
        require(s.credit_to_add[c] > 0)
        s.credit_to_add[c] -= 1
        s.announced_credit[c] -= 1
        s.num_credits_available[c] += 1

    # --- the receivers

    def receive(self, s, c):
        """The next buffer on the connection arrives, with the sender backlog."""
        require(s.consumer[c] != "GONE" and s.available_buffers[c] > 0)
        require(len(s.responses) > 0 and s.responses.head.channel == c)
        s.available_buffers[c] -= 1
        s.received_buffers[c] += 1
        s.sender_backlog[c] = s.responses.head.backlog
        self.read(s, c)

    @action(c="channels", fairness=WEAK)
    def discard(self, s, c):
        """The next buffer on the connection is for a channel that was released."""
        require(s.consumer[c] == "GONE")
        require(len(s.responses) > 0 and s.responses.head.channel == c)
        self.read(s, c)

    def read(self, s, c):
        """The next buffer is taken off the connection."""
        s.responses.pop()
        s.expected_sequence_number[c] = min(s.expected_sequence_number[c] + 1, self.depth)

    def announce_credit(self, s, c):
        """All new credits of a channel go out in one message."""
        require(s.unannounced_credit[c] > 0)
        s.requests.push({"channel": c, "credit": s.unannounced_credit[c]})
        s.announced_credit[c] += s.unannounced_credit[c]
        s.unannounced_credit[c] = 0

    def release(self, s, c):
        """A receiver releases a channel, returns its floating buffers, and notifies the sender."""
        require(s.consumer[c] != "GONE")
        s.consumer[c] = "GONE"
        self.return_floating_buffers(s, c, s.floating_buffers[c])
        s.sender_backlog[c] = 0
        s.available_buffers[c] = self.exclusive
        s.received_buffers[c] = 0
        s.unannounced_credit[c] = 0
        s.requests.push({"channel": c, "credit": 0})

    @refines(Credit, variant="any-backlog", **{name: name for name in ("channels", "exclusive", "floating", "depth")})
    def counted(self, s):
        """Messages are counted, and a released channel is in its initial state."""

        def unless_gone(numbers, released=0):
            return [released if s.consumer[c] == "GONE" else number for c, number in enumerate(numbers)]

        return {
            "to_produce": unless_gone(s.to_produce),
            "buffers_in_backlog": unless_gone(s.buffers_in_backlog),
            "num_credits_available": unless_gone(s.num_credits_available, self.exclusive),
            "in_flight": unless_gone([self.in_flight(s, c) for c in range(self.channels)]),
            "announced_credit": unless_gone(s.announced_credit),
            "sender_backlog": [0 for c in range(self.channels)],
        }
