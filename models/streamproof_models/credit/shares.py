"""The global buffers of a TaskExecutor, and the share of each local pool.

"A Deep-Dive into Flink's Network Stack", note 3: "if there are not enough buffers available, each buffer pool will get
the same share of the globally available ones (+-1)". A pool requires some buffers and can use more. Whenever a pool is
created or destroyed, the `NetworkBufferPool` distributes again what is beyond the requirements (`redistributeBuffers`).
A pool that holds more than its new size requests none until it has recycled enough (`LocalBufferPool.setNumBuffers`).

Abstraction: buffers are dealt out one by one; Flink computes shares by division (variant `divided`), with the same result up
to which pools get one more. All pools have the same limits. Lists of free buffers in the pools are left out: a recycled
buffer is globally free.
"""

from __future__ import annotations

from streamproof import STRONG, WEAK, Array, Bool, Model, Range, State, action, require


class BufferShares(Model):
    """Local pools that come and go, and the global buffers."""

    name = "buffer_shares"
    check_deadlock = False  # a pool can always come or go
    sizes = {
        "small": {},
        "medium": {"pools": 3, "buffers": 7, "most": 4},
        "large": {"pools": 4, "buffers": 9, "most": 4},
    }

    pools: int = 3
    """Number of local pools."""
    buffers: int = 5
    """Number of global buffers."""
    required: int = 1
    """Buffers that a pool requires."""
    most: int = 3
    """Largest number of buffers that a pool uses."""

    limits = {"pools": (1, None), "buffers": (1, None), "required": (0, None), "most": (0, None)}

    def setup(self):
        """The pools. Raises `ValueError` if a pool requires more than it uses."""
        if self.required > self.most:
            raise ValueError(f"required is {self.required}, more than most, {self.most}")
        self.every = range(self.pools)

    def state(self):
        """There is no pool."""
        number = Range(0, self.pools * self.most)
        return State(
            created=Array(self.pools, Bool()),
            size=Array(self.pools, number),  # LocalBufferPool.currentPoolSize
            held=Array(self.pools, Range(0, self.buffers)),  # numberOfRequestedMemorySegments
        )

    def free(self, s):
        """Number of buffers that no pool holds."""
        return self.buffers - sum(s.held[p] for p in self.every)

    def required_by(self, s):
        """Number of buffers that the pools require together."""
        return self.required * sum(s.created[p] for p in self.every)

    @action(p="every")
    def create(self, s, p):
        """A pool is created, if there are enough buffers for what all pools require."""
        require(not s.created[p] and self.fits_another(s))
        s.created[p] = True
        self.redistribute(s)

    def fits_another(self, s):
        """Whether the requirement of another pool can be met."""
        return self.required_by(s) + self.required <= self.buffers

    @action(p="every")
    def destroy(self, s, p):
        """A pool is destroyed with its last buffer recycled."""
        require(s.created[p] and s.held[p] == 0)
        s.created[p] = False
        self.redistribute(s)

    def redistribute(self, s):
        """Each pool gets what it requires; the rest is dealt out, one buffer each in turn, while pools can use more."""
        left, count, before = self.buffers - self.required_by(s), sum(s.created[p] for p in self.every), 0
        for p in self.every:
            turns = sum(before + turn * count < left for turn in range(self.most - self.required))
            s.size[p] = self.required + turns if s.created[p] else 0
            before += int(s.created[p])

    @action(p="every", fairness=STRONG)
    def request(self, s, p):
        """A task requests a buffer of its pool."""
        require(s.created[p] and self.permits(s, p) and self.free(s) > 0)
        s.held[p] += 1

    def permits(self, s, p):
        """Whether the pool is not at its size."""
        return s.held[p] < s.size[p]

    @action(p="every", fairness=WEAK)
    def recycle(self, s, p):
        """A buffer has been read, and is free again."""
        require(s.held[p] > 0)
        s.held[p] -= 1


class WeakRequests(BufferShares, variant="weak-requests"):
    """Other pools may take a free buffer each time before a waiting task comes to it."""

    @action(p="every", fairness=WEAK)
    def request(self, s, p):
        """As in the machine, with weak fairness."""
        require(s.created[p] and self.permits(s, p) and self.free(s) > 0)
        s.held[p] += 1


class DividedShares(BufferShares, variant="divided"):
    """The pools that get one more are those at which a whole buffer has come together, as in Flink 1.20 to 2.3."""

    def redistribute(self, s):
        """`redistributeBuffers`: the first `n` of `k` pools together get the whole part of `n / k` of what is distributed."""
        count = sum(int(s.created[p]) for p in self.every)
        left = self.buffers - self.required_by(s)
        distributed = min(left, count * (self.most - self.required))
        together = 0
        for p in self.every:
            s.size[p] = self.required if s.created[p] else 0
            if s.created[p]:
                together += distributed
                for _ in range(self.most - self.required):
                    if together >= count:
                        s.size[p] += 1
                        together -= count


class Overcommitted(BufferShares, variant="overcommitted"):
    """A pool is created whether its requirement can be met or not."""

    pools: int = 2
    buffers: int = 3
    required: int = 2

    def fits_another(self, s):
        """Always."""
        return True


class FirstTakesAll(BufferShares, variant="first-takes-all"):
    """The first pool gets what it can use, then the next one."""

    def redistribute(self, s):
        """As much as each pool can use, in their order."""
        left = self.buffers - self.required_by(s)
        for p in self.every:
            more = min(left, self.most - self.required) if s.created[p] else 0
            s.size[p] = self.required + more if s.created[p] else 0
            left -= more


class NotRedistributed(BufferShares, variant="not-redistributed"):
    """A pool gets what is left when it is created, and the others keep their sizes."""

    def redistribute(self, s):
        """Only pools that have just come or gone have another size."""
        given = sum(s.size[p] if s.created[p] else 0 for p in self.every)
        for p in self.every:
            if not s.created[p]:
                s.size[p] = 0
            elif s.size[p] == 0:
                s.size[p] = max(self.required, min(self.most, self.buffers - given))


class SharesRoundedDown(BufferShares, variant="shares-rounded-down"):
    """Each pool gets the whole part of its share, and the rest belongs to nobody."""

    def redistribute(self, s):
        """One more each, as often as there is one for all."""
        left = self.buffers - self.required_by(s)
        for p in self.every:
            s.size[p] = self.required if s.created[p] else 0
        for _ in range(self.most - self.required):
            count = sum(s.created[p] for p in self.every)
            if left >= count:
                for p in self.every:
                    if s.created[p]:
                        s.size[p] += 1
                left -= count


class ExcessKept(BufferShares, variant="excess-kept"):
    """A pool goes on requesting up to the largest size that it can use, whatever its share has become."""

    def permits(self, s, p):
        """Whether the pool can use another buffer."""
        return s.held[p] < self.most
