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
from streamproof_models.credit import Credit


class Writer(Model):
    """The buffer that records of one channel are written to."""

    name = "writer"

    records: int = 3
    """Maximum number of records written."""
    size: int = 2
    """Number of records per buffer."""
    timeout: int = 2
    """Maximum number of ticks until a record is visible to the network."""
    events: int = 1
    """Maximum number of events that follow records."""

    check_deadlock = False

    def state(self):
        """There is no buffer."""
        return State(
            left=Range(0, self.records, init=self.records),
            to_come=Range(0, self.events, init=self.events),
            open=Bool(),
            written=Range(0, self.size),
            sent=Range(0, self.size),
            visible=Bool(),
            age=Range(0, self.timeout),
        )

    def hidden(self, s):
        """Whether there are records that are not visible to the network."""
        return s.open and s.written > s.sent and not s.visible

    def wants(self, s):
        """Whether there is a record and no buffer for it."""
        return s.left > 0 and not s.open

    @action
    def write(self, s):
        """A record is written."""
        require(s.left > 0)
        require(s.open)
        s.left -= 1
        s.written += 1

    def close(self, s):
        """Nothing more is written to the buffer; what it has not sent is sent as any other."""
        s.open = False
        s.written = 0
        s.sent = 0
        s.visible = False
        s.age = 0

    def give_up(self, s):
        """The channel is given up."""
        self.close(s)
        s.left = 0
        s.to_come = 0


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

    check_deadlock = False
    """A consumer may always stall, so there is no deadlock; liveness is stated by temporal properties."""
    limits = {
        "channels": (1, None),
        "exclusive": (1, None),
        "floating": (0, None),
        "records": (1, None),
        "size": (1, None),
        "timeout": (1, None),
        "events": (0, None),
    }
    sizes = {
        "small": {},
        "medium": {"channels": 2, "records": 2, "events": 0},
        "large": {"channels": 2, "records": 3},
    }

    def parts(self):
        """The flow control, and a writer beside each of its channels."""
        return Parts(flow=self.flow_control(), writer=each(self.channels, self.writer_of)).block(
            "flow.produce", "flow.send", "flow.release", "writer.write"
        )

    def flow_control(self) -> Credit:
        """The channels; no buffer becomes visible without a record."""
        return Credit(channels=self.channels, exclusive=self.exclusive, floating=self.floating, depth=self.records)

    def writer_of(self, c: int) -> Writer:
        """The writer of a channel."""
        return Writer(records=self.records, size=self.size, timeout=self.timeout, events=self.events)

    def state(self):
        """The ticks since the last flush."""
        return State(clock=Range(0, self.timeout - 1))

    def limit(self) -> int:
        """Buffers of the sender's pool."""
        return self.channels * self.exclusive + self.floating

    def used(self, s, c):
        """Number of the sender's buffers of a channel; a visible one that is still written to counts once."""
        return s.flow.backlog[c] + int(s.writer[c].open) - int(s.writer[c].visible)

    def exhausted(self, s):
        """Whether the sender's pool is empty."""
        return sum(self.used(s, c) for c in range(self.channels)) >= self.limit()

    @action(c="channels", fairness=WEAK)
    def request(self, s, c):
        """A writer gets a buffer."""
        require(self.writer[c].wants(s.writer[c]))
        require(not self.exhausted(s))
        s.writer[c].open = True

    @action(c="channels")
    def write(self, s, c):
        """A record is written; a buffer that is full is visible."""
        self.writer[c].write(s.writer[c])
        if s.writer[c].written == self.size:
            self.finish(s, c)

    def finish(self, s, c):
        """Nothing more is written to a buffer, and the network sees what it has."""
        if self.writer[c].hidden(s.writer[c]):
            self.flow.produce(s.flow, c)
        self.writer[c].close(s.writer[c])

    @action(fairness=WEAK)
    def tick(self, s):
        """Time passes; when it is up the flusher makes visible what is not."""
        for c in range(self.channels):
            if self.writer[c].hidden(s.writer[c]):
                s.writer[c].age = min(s.writer[c].age + 1, self.timeout)
        if s.clock == self.timeout - 1:
            for c in range(self.channels):
                self.flush(s, c)
        s.clock = (s.clock + 1) % self.timeout

    def flush(self, s, c):
        """The network sees what was written, and the buffer goes on being written to."""
        if self.writer[c].hidden(s.writer[c]):
            self.flow.produce(s.flow, c)
            s.writer[c].visible = True
            s.writer[c].age = 0

    @action(c="channels")
    def event(self, s, c):
        """An event follows what was written."""
        require(s.writer[c].to_come > 0)
        require(s.flow.consumer[c] != "GONE")
        s.writer[c].to_come -= 1
        self.make_way(s, c)

    def make_way(self, s, c):
        """The buffer ahead of an event is closed, so that neither waits."""
        self.finish(s, c)

    @action(c="channels", fairness=WEAK)
    def send(self, s, c):
        """A visible buffer goes on the wire for a credit; if it is still written to, what it has now."""
        if s.writer[c].visible and s.flow.backlog[c] == 1:
            s.writer[c].sent = s.writer[c].written
            s.writer[c].visible = False
        self.flow.send(s.flow, c)

    @action(c="channels")
    def release(self, s, c):
        """A channel is given up, and its writer with it."""
        self.flow.release(s.flow, c)
        self.writer[c].give_up(s.writer[c])


class OnlyWhenFull(CreditFlush, variant="only-when-full"):
    """There is no flusher: a buffer is visible when it is full, or an event follows."""

    def flush(self, s, c):
        """Nobody comes by."""


class FlushedOnce(CreditFlush, variant="flushed-once"):
    """The flusher passes over a buffer that it has flushed before."""

    def flush(self, s, c):
        """Only what nothing was sent of is made visible."""
        if s.writer[c].sent == 0:
            super().flush(s, c)


class EventWaits(CreditFlush, variant="event-waits"):
    """An event waits with what is ahead of it for the flusher."""

    def make_way(self, s, c):
        """The buffer ahead stays as it is."""


class Unlimited(CreditFlush, variant="no-limit"):
    """The writers take as many buffers as they like."""

    def exhausted(self, s):
        """Never."""
        return False
