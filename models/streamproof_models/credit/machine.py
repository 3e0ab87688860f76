"""Credit-based flow control: one connection, several channels, one gate with a shared pool of floating buffers.

A sender may put a buffer on the wire only for a credit, and a credit is a free buffer reserved by the receiver. The
receiver owns `exclusive` buffers per channel; it requests `floating` ones according to the announced sender backlog. A
consumed buffer is returned to the pool if it is an unneeded floating one, and becomes a new credit otherwise
(`RemoteInputChannel`, `BufferManager` and `CreditBasedSequenceNumberingViewReader` of Flink 1.5 and later).

Abstractions: contents and order (a channel is a handful of counters, and the connection delivers the buffers and
announcements of different channels in any order); a backlog announcement arrives immediately, or with a buffer; no
events, which cost no credit; no partial buffers; no local channels. Buffers of a channel are indistinguishable, so only
the counters determine whether a consumed one is floating. A channel is released at both ends simultaneously. Each
sender produces at most `depth` buffers.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Enum, Model, Range, State, action, require


class Credit(Model):
    """Credit-based flow control of one connection with several channels."""

    name = "credit"

    channels: int = 2
    """Number of channels that share the connection and the floating buffers."""
    exclusive: int = 1
    """Number of exclusive buffers per channel."""
    floating: int = 1
    """Number of floating buffers of the gate."""
    depth: int = 2
    """Maximum number of buffers produced by each sender."""
    instance_bounds = ("channels", "depth")
    check_deadlock = False
    """A consumer may always stall, so there is no deadlock; liveness is stated by temporal properties."""
    limits = {
        "channels": (1, None),
        "exclusive": (1, None),
        "floating": (0, None),
        "depth": (1, None),
    }
    sizes = {
        "small": {},
        "medium": {"channels": 3, "floating": 2},
        "large": {"channels": 3, "floating": 2, "depth": 3},
    }

    def state(self):
        """Every exclusive buffer is a credit at its sender; the pool is full. The comments name Flink's fields."""
        channel = range(self.channels)
        produced, buffers = Range(0, self.depth), Range(0, self.most())
        return State(
            # the sender
            to_produce=Array(channel, produced, init=self.depth),  # buffers that the task still produces
            buffers_in_backlog=Array(channel, produced),  # PipelinedSubpartition.buffersInBacklog
            num_credits_available=Array(channel, buffers, init=self.exclusive),  # ...ViewReader.numCreditsAvailable
            # the connection
            in_flight=Array(channel, buffers),  # buffers on the wire: BufferResponses
            announced_credit=Array(channel, buffers),  # credits on their way to the sender: AddCredits
            # the receiver
            sender_backlog=Array(channel, produced),  # BufferManager.numRequiredBuffers is this + exclusive
            available_buffers=Array(channel, buffers, init=self.exclusive),  # free ones: BufferManager.bufferQueue
            received_buffers=Array(channel, buffers),  # RemoteInputChannel.receivedBuffers
            floating_buffers=Array(channel, Range(0, self.floating)),  # floating ones of the channel, free or received
            unannounced_credit=Array(channel, buffers),  # RemoteInputChannel.unannouncedCredit
            consumer=Array(channel, Enum("LIVE", "STALLED", "GONE")),  # GONE: RemoteInputChannel.isReleased
            pool=Range(0, self.floating, init=self.floating),  # LocalBufferPool.availableMemorySegments of the gate
        )

    def most(self) -> int:
        """Maximum number of buffers and credits of one channel."""
        return self.exclusive + self.floating

    # --- the sender

    @action(c="channels")
    def produce(self, s, c):
        """A buffer is full and waits to be sent."""
        require(s.to_produce[c] > 0 and s.consumer[c] != "GONE")
        s.to_produce[c] -= 1
        s.buffers_in_backlog[c] += 1

    @action(c="channels", fairness=WEAK)
    def send(self, s, c):
        """A buffer goes on the wire for a credit."""
        require(s.buffers_in_backlog[c] > 0 and s.num_credits_available[c] > 0)
        s.buffers_in_backlog[c] -= 1
        s.num_credits_available[c] -= 1
        s.in_flight[c] += 1

    @action(c="channels", fairness=WEAK)
    def announce_backlog(self, s, c):
        """A sender without credit announces its backlog."""
        require(s.buffers_in_backlog[c] > 0 and s.num_credits_available[c] == 0)
        require(s.sender_backlog[c] != s.buffers_in_backlog[c])
        s.sender_backlog[c] = s.buffers_in_backlog[c]

    @action(c="channels", fairness=WEAK)
    def add_credit(self, s, c):
        """An announced credit arrives."""
        require(s.announced_credit[c] > 0)
        s.announced_credit[c] -= 1
        s.num_credits_available[c] += 1

    # --- the receiver

    @action(c="channels", fairness=WEAK)
    def receive(self, s, c):
        """A buffer arrives, with the sender backlog."""
        require(s.in_flight[c] > 0 and s.available_buffers[c] > 0)
        s.in_flight[c] -= 1
        s.available_buffers[c] -= 1
        s.received_buffers[c] += 1
        s.sender_backlog[c] = s.buffers_in_backlog[c]

    @action(c="channels", fairness=WEAK)
    def consume(self, s, c):
        """A buffer has been consumed: a surplus floating one returns to the pool, any other is recycled."""
        require(s.consumer[c] == "LIVE" and s.received_buffers[c] > 0)
        s.received_buffers[c] -= 1
        if s.floating_buffers[c] > 0 and s.available_buffers[c] >= s.sender_backlog[c] + self.exclusive:
            self.return_floating_buffers(s, c, 1)
        else:
            self.recycle(s, c)

    def recycle(self, s, c):
        """A free buffer of the channel is a new credit."""
        s.available_buffers[c] += 1
        s.unannounced_credit[c] += 1

    def return_floating_buffers(self, s, c, count):
        """Floating buffers of a channel return to the pool."""
        s.floating_buffers[c] -= count
        s.pool += count

    @action(c="channels", fairness=WEAK)
    def request_floating_buffer(self, s, c):
        """The pool gives a buffer to a channel that requires more than it has free."""
        require(self.needs(s, c))
        self.take_floating_buffer(s, c)

    def take_floating_buffer(self, s, c):
        """A floating buffer is a new credit of the channel that gets it."""
        require(s.pool > 0 and s.consumer[c] != "GONE")
        s.pool -= 1
        s.floating_buffers[c] += 1
        s.available_buffers[c] += 1
        s.unannounced_credit[c] += 1

    @action(c="channels", fairness=WEAK)
    def announce_credit(self, s, c):
        """All new credits of a channel go out in one message."""
        require(s.unannounced_credit[c] > 0)
        s.announced_credit[c] += s.unannounced_credit[c]
        s.unannounced_credit[c] = 0

    # --- what may happen to a consumer

    @action(c="channels")
    def stall(self, s, c):
        """A consumer stops reading, forever."""
        require(s.consumer[c] == "LIVE")
        s.consumer[c] = "STALLED"

    @action(c="channels")
    def release(self, s, c):
        """A channel is released: nothing of it remains on its way, its floating buffers return to the pool."""
        require(s.consumer[c] != "GONE")
        s.consumer[c] = "GONE"
        self.return_floating_buffers(s, c, s.floating_buffers[c])
        s.to_produce[c] = 0
        s.buffers_in_backlog[c] = 0
        s.num_credits_available[c] = 0
        s.in_flight[c] = 0
        s.announced_credit[c] = 0
        s.sender_backlog[c] = 0
        s.received_buffers[c] = 0
        s.available_buffers[c] = self.exclusive
        s.unannounced_credit[c] = self.exclusive

    # --- for properties

    def idle(self, s, c):
        """Nothing that was produced for a channel is unread."""
        return s.buffers_in_backlog[c] + s.in_flight[c] + s.received_buffers[c] == 0

    def unread(self, s, c):
        """Number of buffers of a channel that are to be produced or read."""
        return s.to_produce[c] + s.buffers_in_backlog[c] + s.in_flight[c] + s.received_buffers[c]

    def needs(self, s, c):
        """Whether a channel requires more buffers than it has free."""
        return s.available_buffers[c] < s.sender_backlog[c] + self.exclusive

    def all_read(self, s):
        """Every consumer reads."""
        return all(s.consumer[c] == "LIVE" for c in range(self.channels))
