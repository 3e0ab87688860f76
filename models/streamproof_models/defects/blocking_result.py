"""A task that writes a blocking result partition with as many network buffers as subpartitions, or one more.

Source: the description of FLINK-15030 (apache/flink#10395). A subpartition writes a full buffer to its file, and recycles
it, when the next buffer is added to it. So the writer needs a further buffer before it gets one back.

Abstraction: a record fills a buffer; the pool has its minimum only.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Enum, Model, Range, State, action, require, terminal


class BlockingResult(Model):
    """The subpartitions of a result, and its buffer pool."""

    name = "blocking_result"

    subpartitions: int = 2
    """Number of subpartitions."""
    records: int = 5
    """Number of records that are written."""

    limits = {"subpartitions": (1, None), "records": (0, None)}
    spare = 1
    """Buffers beyond one for each subpartition; since FLINK-15030."""

    def state(self):
        """All buffers are in the pool."""
        buffers = self.subpartitions + self.spare
        return State(
            free=Range(0, buffers, init=buffers),
            buffer=Array(self.subpartitions, Enum("NONE", "FILLING", "FULL", "FLUSHED")),  # the latest one
            records_left=Range(0, self.records, init=self.records),
        )

    @action(p="subpartitions", fairness=WEAK)
    def request(self, s, p):
        """The writer gets a buffer for a subpartition, which flushes and recycles the one before."""
        require(s.records_left > 0 and s.free > 0 and s.buffer[p] in ("NONE", "FULL"))
        require(all(b != "FILLING" for b in s.buffer))
        if s.buffer[p] == "NONE":
            s.free -= 1
        s.buffer[p] = "FILLING"

    @action(p="subpartitions", fairness=WEAK)
    def write(self, s, p):
        """A record fills the buffer."""
        require(s.buffer[p] == "FILLING")
        s.records_left -= 1
        s.buffer[p] = "FULL"

    @action(p="subpartitions", fairness=WEAK)
    def flush(self, s, p):
        """The end of the data: what is left is written and recycled."""
        require(s.records_left == 0 and s.buffer[p] == "FULL")
        s.buffer[p] = "FLUSHED"
        s.free += 1

    @terminal
    def written(self, s):
        """All records are in the file."""
        return s.records_left == 0 and all(b in ("NONE", "FLUSHED") for b in s.buffer)


class WithoutSpare(BlockingResult, variant="without-spare"):
    """Before FLINK-15030: as many buffers as subpartitions."""

    spare = 0


class KeptAtEnd(BlockingResult, variant="kept-at-end"):
    """The last buffers are written, but not recycled."""

    def flush(self, s, p):
        """The buffer does not return to the pool."""
        require(s.records_left == 0 and s.buffer[p] == "FULL")
        s.buffer[p] = "FLUSHED"
