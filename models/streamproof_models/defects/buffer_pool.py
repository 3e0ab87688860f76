"""A `LocalBufferPool` that gets its segments from the `NetworkBufferPool`, and the input channels that wait for them.

Source: the description of FLINK-24035 (apache/flink#17037). Other tasks hold all segments at first. The pool listens at the
global pool while it has no segment; an input channel (its `BufferManager`) listens at the pool while it has no buffer. A
channel is notified when a buffer is recycled to the pool, not when the pool gets a segment from the global pool. Since the
fix a pool is created with one segment, so that a buffer is always in use or available.

Abstraction: a channel needs one buffer.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Model, Range, State, action, choose, require, terminal


class BufferPool(Model):
    """A pool of buffers, created with one segment, and the channels that wait for a buffer."""

    name = "buffer_pool"

    channels: int = 2
    """Number of input channels; each needs one buffer."""
    segments: int = 2
    """Number of segments; other tasks hold them all at first."""

    limits = {"channels": (1, None), "segments": (1, None)}
    reserves = True
    """The pool is created with one segment; since FLINK-24035."""

    def state(self):
        """The comments name Flink's fields."""
        return State(
            created=Bool(),
            others=Range(0, self.segments, init=self.segments),  # segments that other tasks hold
            free=Range(0, self.segments),  # NetworkBufferPool.availableMemorySegments
            available=Range(0, self.segments),  # LocalBufferPool.availableMemorySegments
            listens=Bool(),  # the pool waits for NetworkBufferPool.getAvailableFuture
            channel=Array(self.channels, Enum("IDLE", "LISTENS", "READS", "DONE")),  # LISTENS: in registeredListeners
        )

    @action(fairness=WEAK)
    def create(self, s):
        """The pool is created; without a segment, it listens at the global pool."""
        require(not s.created and (s.free > 0 or not self.reserves))
        s.created = True
        if s.free > 0:
            s.free -= 1
            s.available += 1
        else:
            s.listens = True

    @action(c="channels", fairness=WEAK)
    def request(self, s, c):
        """A channel requests a buffer; without one, it listens at the pool."""
        require(s.created and s.channel[c] == "IDLE")
        if s.available > 0:
            s.available -= 1
            s.channel[c] = "READS"
        elif s.free > 0:
            s.free -= 1
            s.channel[c] = "READS"
        else:
            s.channel[c] = "LISTENS"

    @action(fairness=WEAK)
    def recycle_to_global(self, s):
        """Another task recycles a segment. A pool that listens takes it, and notifies no channel."""
        require(s.others > 0)
        s.others -= 1
        if s.listens:
            s.available += 1
            s.listens = False
        else:
            s.free += 1

    @action(c="channels", fairness=WEAK)
    def recycle(self, s, c):
        """A channel has read its buffer, and recycles it to the pool, which gives it to a channel that listens."""
        require(s.channel[c] == "READS")
        s.channel[c] = "DONE"
        if any(at == "LISTENS" for at in s.channel):
            d = choose(range(self.channels))
            require(s.channel[d] == "LISTENS")
            s.channel[d] = "READS"
        else:
            s.available += 1

    @terminal
    def done(self, s):
        """Every channel has had its buffer."""
        return all(at == "DONE" for at in s.channel)


class WithoutReserve(BufferPool, variant="without-reserve"):
    """Before FLINK-24035: a pool may be created without a segment."""

    reserves = False


class UnusedDropped(BufferPool, variant="unused-dropped"):
    """The pool may notify a channel that does not listen any more, and does not take back the buffer that it refuses."""

    def recycle(self, s, c):
        """`BufferListener.notifyBufferAvailable` returns false, and nobody looks."""
        require(s.channel[c] == "READS")
        s.channel[c] = "DONE"
        if any(at == "LISTENS" for at in s.channel):
            d = choose(range(self.channels))
            if s.channel[d] == "LISTENS":
                s.channel[d] = "READS"
        else:
            s.available += 1
