"""Records that span buffers: written byte by byte into buffers of fixed size, and put together again at the receiver.

"A Deep-Dive into Flink's Network Stack": a record that is larger than what is left of a buffer continues in the next
one (`RecordWriter`), and the receiver gathers the bytes of a record before it deserialises it
(`SpillingAdaptiveSpanningRecordDeserializer`), with one deserialiser for each channel, since buffers of several
channels arrive in any order. A receiver may fail and connect again while its sender goes on (FLINK-18112, approximate
local recovery): what the sender still has may begin in the middle of a record, whose beginning is lost, and the sender
leaves out the rest of it (`PipelinedApproximateSubpartition`, `BufferConsumer.skipBuffer`).

Abstraction: a record is a number of units; a buffer has a range of units of its channel's stream. Credits are the
subject of `credit`.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Model, Queue, Range, Record, State, action, require, terminal


class RecordSpans(Model):
    """Senders, channels, and a receiver with a deserialiser for each channel."""

    name = "record_spans"
    sizes = {
        "small": {},
        "medium": {"lengths": "3,1,2", "failures": 2},
        "large": {"lengths": "3,1,2", "channels": 3, "failures": 1},
    }

    lengths: str = "3,1"
    """The records of each channel, by their lengths in units."""
    buffer: int = 2
    """Units in a buffer."""
    channels: int = 2
    """Number of channels."""
    wire: int = 2
    """Number of buffers of a channel that are under way."""
    failures: int = 1
    """Number of failures of the receiver of a channel."""

    limits = {"buffer": (1, None), "channels": (1, None), "wire": (1, None), "failures": (0, None)}

    def setup(self):
        """The units of a stream. Raises `ValueError` for lengths that are no numbers from 1."""
        self.length_of = tuple(int(n) for n in self.lengths.split(","))
        if min(self.length_of) < 1:
            raise ValueError(f"lengths {self.lengths!r}: a record has at least one unit")
        self.record_at = tuple(r for r, n in enumerate(self.length_of) for _ in range(n))
        """Position in a stream -> the record whose unit it is."""
        self.total = len(self.record_at)
        self.starts = tuple(i for i, r in enumerate(self.record_at) if i == 0 or self.record_at[i - 1] != r)
        """The positions at which a record begins."""
        self.single_units = False
        """Whether every buffer has one unit, which is where the buffer begins; so a rule needs no term for each unit."""
        self.every = range(self.channels)
        self.deserialisers = tuple(self.every)
        """Channel -> its deserialiser."""

    def state(self):
        """Nothing is written."""
        position = Range(0, self.total)
        return State(
            written=Array(self.channels, position),
            closed=Array(self.channels, position),  # units before the open buffer
            skipping=Array(self.channels, Bool()),  # the sender leaves out the rest of a record
            under_way=Array(self.channels, Queue(Record(start=position, end=position), capacity=self.wire)),
            gathered=Array(self.channels, position),  # units of the deserialiser's record
            next_unit=Array(self.channels, position),  # the position after them
            delivered=Array(self.channels, Range(0, len(self.length_of))),
            lost=Array(self.channels, Bool()),  # by a failure
            failures_left=Range(0, self.failures, init=self.failures),
            # for properties
            garbled=Bool(),  # a record was put together of units that do not follow each other
            left_out=Bool(),  # a sender skipped the beginning of a record
        )

    @action(c="every", fairness=WEAK)
    def write(self, s, c):
        """A unit is written into the open buffer."""
        require(s.written[c] < self.total and s.written[c] - s.closed[c] < self.buffer and self.fits(s, c))
        s.written[c] += 1

    def fits(self, s, c):
        """Whether the next unit may be written here: a record may span buffers."""
        return True

    @action(c="every", fairness=WEAK)
    def send(self, s, c):
        """The open buffer, full or flushed, is sent without what is to be skipped."""
        require(s.written[c] > s.closed[c] and len(s.under_way[c]) < self.wire)
        start = self.first_sent(s, c)
        if any(s.closed[c] <= i and i < start for i in self.starts):
            s.left_out = True
        if start < s.written[c]:
            s.under_way[c].push({"start": start, "end": s.written[c]})
        if start < s.written[c] or s.written[c] in self.starts:
            s.skipping[c] = False
        s.closed[c] = s.written[c]

    def first_sent(self, s, c):
        """The first unit of the open buffer that is sent: with a record to skip, where the next one begins."""
        if not s.skipping[c]:
            return s.closed[c]
        return min((i for i in (*self.starts, self.total) if i >= s.closed[c]), default=self.total)

    @action(c="every", fairness=WEAK)
    def receive(self, s, c):
        """The receiver gives the units of a buffer to the channel's deserialiser, which delivers the records that are
        whole."""
        require(len(s.under_way[c]) > 0)
        sent = s.under_way[c].pop()
        d = self.deserialisers[c]
        for unit in (sent.start,) if self.single_units else range(self.total):
            if sent.start <= unit and unit < sent.end:
                self.gather(s, c, d, unit)

    def gather(self, s, c, d, unit):
        """A unit that begins a record begins a new one; any other must follow the last one."""
        if s.gathered[d] == 0 and unit not in self.starts:
            s.garbled = True
        if s.gathered[d] > 0 and s.next_unit[d] != unit:
            s.garbled = True
        s.gathered[d] = min(s.gathered[d] + 1, self.total)
        s.next_unit[d] = unit + 1
        if unit + 1 in (*self.starts, self.total):
            s.gathered[d] = 0
            s.delivered[c] = min(s.delivered[c] + 1, len(self.length_of))

    @action(c="every")
    def fail(self, s, c):
        """The receiver of a channel fails: what is under way to it is lost, and it connects again."""
        require(s.failures_left > 0)
        s.failures_left -= 1
        s.under_way[c].clear()
        s.lost[c] = True
        s.skipping[c] = self.skips(s, c)
        self.forget(s, c)

    def skips(self, s, c):
        """Whether the sender has to leave out the rest of a record: the open buffer does not begin with one."""
        return s.closed[c] not in (*self.starts, self.total)

    def forget(self, s, c):
        """The new receiver has no units of the old one's last record."""
        s.gathered[self.deserialisers[c]] = 0

    @terminal
    def over(self, s):
        """Everything was written, sent and received."""
        return all(s.closed[c] == self.total and len(s.under_way[c]) == 0 for c in self.every)


class SharedDeserialiser(RecordSpans, variant="shared-deserialiser"):
    """All channels have one deserialiser, so the halves of a record may have another channel's units between them."""

    def setup(self):
        """As in the machine, with one deserialiser."""
        super().setup()
        self.deserialisers = (0,) * self.channels


class PartialKept(RecordSpans, variant="partial-kept"):
    """The units that the deserialiser has gathered outlive a failure."""

    def forget(self, s, c):
        """Nothing."""


class RestNotSkipped(RecordSpans, variant="rest-not-skipped"):
    """After a failure the sender goes on in the middle of a record."""

    def skips(self, s, c):
        """Never."""
        return False


class WholeBufferSkipped(RecordSpans, variant="buffer-skipped"):
    """After a failure the sender leaves out the whole open buffer, with the records that begin in it."""

    def first_sent(self, s, c):
        """Nothing of a buffer with something to skip."""
        return s.written[c] if s.skipping[c] else s.closed[c]


class DroppedWhenFull(RecordSpans, variant="dropped-when-full"):
    """A buffer that the channel has no room for is dropped, instead of holding the writer up."""

    @action(c="every", fairness=WEAK)
    def send(self, s, c):
        """As in the machine, or dropped."""
        if len(s.under_way[c]) == self.wire:
            require(s.written[c] > s.closed[c])
            s.closed[c] = s.written[c]
        else:
            super().send(s, c)


class NoSpanning(RecordSpans, variant="no-spanning"):
    """A record is written into one buffer, and never fits if it is larger."""

    def fits(self, s, c):
        """Whether the rest of the record fits into the open buffer."""
        room = self.buffer - (s.written[c] - s.closed[c])
        return all(
            s.written[c] != i or i not in self.starts or self.length_of[self.record_at[i]] <= room
            for i in range(self.total)
        )
