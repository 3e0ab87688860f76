"""Credit-based flow control with writers of buffers: the machine of `credit`, with a writer machine per channel.

A writer requests a buffer from its task's LocalBufferPool, whose size is that of the receiver's gate, and waits if it
is empty. The buffer is part of the channel's queue from the beginning, but becomes visible to the network when it is
full, when the flush timeout has passed (an output flusher runs every `timeout` ticks of a clock), or when an event
follows it. A buffer flushed before it is full stays in place: its contents are sent, and records written afterwards
must become visible again.

Abstractions: those of `credit`; records that span buffers; the event itself, which costs nothing (`credit_barriers` has
it); delayed notifications of the network; sent buffers still held by the network stack.
"""

from __future__ import annotations

from typing import ClassVar

from streamproof import WEAK, Bool, Model, Parts, Range, State, action, each, require
from streamproof_models.credit.machine import Credit


class Writer(Model):
    """The buffer that records of one channel are written to."""

    records: int = 3
    """Maximum number of records written."""
    size: int = 2
    """Number of records per buffer."""
    timeout: int = 2
    """Maximum number of ticks until a record is visible to the network."""
    events: int = 1
    """Maximum number of events that follow records."""

    def state(self):
        """There is no buffer."""
        return State(
            records_left=Range(0, self.records, init=self.records),
            events_left=Range(0, self.events, init=self.events),
            buffer_builder=Bool(),  # BufferWritingResultPartition.unicastBufferBuilders contains an unfinished buffer
            writer_position=Range(0, self.size),  # BufferConsumer.writerPosition: records in that buffer
            reader_position=Range(0, self.size),  # BufferConsumer.currentReaderPosition: those that were sent
            flush_requested=Bool(),  # PipelinedSubpartition.flushRequested: the others are visible to the network
            age=Range(0, self.timeout),  # ticks since records became hidden
        )

    def hidden(self, s):
        """Whether there are records that are not visible to the network."""
        return s.buffer_builder and s.writer_position > s.reader_position and not s.flush_requested

    def needs_buffer(self, s):
        """Whether there is a record and no buffer for it."""
        return s.records_left > 0 and not s.buffer_builder

    @action
    def write(self, s):
        """A record is written."""
        require(s.records_left > 0 and s.buffer_builder)
        s.records_left -= 1
        s.writer_position += 1

    def close(self, s):
        """Nothing more is written to the buffer; what it has not sent is sent as any other."""
        s.buffer_builder = False
        s.writer_position = 0
        s.reader_position = 0
        s.flush_requested = False
        s.age = 0

    def release_writer(self, s):
        """The channel is released."""
        self.close(s)
        s.records_left = 0
        s.events_left = 0


class CreditFlush(Model):
    """Credit-based flow control with writers, their pool, and the rules of flushing."""

    name = "credit_flush"
    flow: ClassVar[Credit]
    """The channels."""
    writer: ClassVar[tuple[Writer, ...]]
    """The writer of each channel."""

    channels: int = 1
    """Number of channels that share the connection, the floating buffers, and the sender's pool."""
    exclusive: int = 1
    """Number of exclusive buffers per channel."""
    floating: int = 1
    """Number of floating buffers of the gate."""
    records: int = 3
    """Maximum number of records per channel."""
    size: int = 2
    """Number of records per buffer."""
    timeout: int = 2
    """Maximum number of ticks until a record is visible to the network."""
    events: int = 1
    """Maximum number of events per channel."""
    instance_bounds = ("records", "events")
    check_deadlock = False
    """A consumer may always stall, so there is no deadlock; liveness is stated by temporal properties."""
    limits = {
        **dict.fromkeys(("channels", "exclusive", "records", "size", "timeout"), (1, None)),
        **dict.fromkeys(("floating", "events"), (0, None)),
    }
    sizes = {
        "small": {},
        "medium": {"channels": 2, "records": 2, "events": 0},
        "large": {"channels": 2, "records": 3},
    }

    def parts(self):
        """The flow control, and a writer beside each of its channels. No buffer becomes visible without a record."""
        writer = Writer(records=self.records, size=self.size, timeout=self.timeout, events=self.events)
        parts = Parts(flow=self.flow_control(), writer=each(self.channels, lambda c: writer))
        return parts.block("flow.produce", "flow.send", "flow.release", "writer.write")

    def flow_control(self, model: type[Credit] = Credit) -> Credit:
        """The channels."""
        return model(channels=self.channels, exclusive=self.exclusive, floating=self.floating, depth=self.records)

    def state(self):
        """The ticks since the last flush."""
        return State(clock=Range(0, self.timeout - 1))  # RecordWriter.OutputFlusher

    def limit(self) -> int:
        """Buffers of the sender's pool."""
        return self.channels * self.exclusive + self.floating

    def used(self, s, c):
        """Number of the sender's buffers of a channel; a visible one that is still written to counts once."""
        return s.flow.buffers_in_backlog[c] + int(s.writer[c].buffer_builder) - int(s.writer[c].flush_requested)

    def exhausted(self, s):
        """Whether the sender's pool is empty."""
        return sum(self.used(s, c) for c in range(self.channels)) >= self.limit()

    @action(c="channels", fairness=WEAK)
    def request_buffer(self, s, c):
        """A writer gets a buffer."""
        require(self.writer[c].needs_buffer(s.writer[c]) and not self.exhausted(s))
        s.writer[c].buffer_builder = True

    @action(c="channels")
    def write(self, s, c):
        """A record is written; a buffer that is full is visible."""
        self.writer[c].write(s.writer[c])
        if s.writer[c].writer_position == self.size:
            self.finish_buffer(s, c)

    def finish_buffer(self, s, c):
        """The buffer is finished, and visible."""
        if self.writer[c].hidden(s.writer[c]):
            self.flow.produce(s.flow, c)
        self.writer[c].close(s.writer[c])

    @action(fairness=WEAK)
    def tick(self, s):
        """Time passes. Every `timeout` ticks the flusher makes all records visible."""
        for c in range(self.channels):
            if self.writer[c].hidden(s.writer[c]):
                s.writer[c].age = min(s.writer[c].age + 1, self.timeout)
        if s.clock == self.timeout - 1:
            for c in range(self.channels):
                self.flush(s, c)
        s.clock = (s.clock + 1) % self.timeout

    def flush(self, s, c):
        """The records become visible; the buffer stays open for further ones."""
        if self.writer[c].hidden(s.writer[c]):
            self.flow.produce(s.flow, c)
            s.writer[c].flush_requested = True
            s.writer[c].age = 0

    @action(c="channels")
    def add_event(self, s, c):
        """An event is added to the queue. The buffer ahead of it is finished, so that neither waits."""
        self.take_event(s, c)
        self.finish_buffer(s, c)

    def take_event(self, s, c):
        """There is one event less to come."""
        require(s.writer[c].events_left > 0 and s.flow.consumer[c] != "GONE")
        s.writer[c].events_left -= 1

    @action(c="channels", fairness=WEAK)
    def send(self, s, c):
        """A visible buffer goes on the wire for a credit; if it is still written to, what it has now."""
        if s.writer[c].flush_requested and s.flow.buffers_in_backlog[c] == 1:
            s.writer[c].reader_position = s.writer[c].writer_position
            s.writer[c].flush_requested = False
        self.flow.send(s.flow, c)

    @action(c="channels")
    def release(self, s, c):
        """A channel is released, with its writer."""
        self.flow.release(s.flow, c)
        self.writer[c].release_writer(s.writer[c])
