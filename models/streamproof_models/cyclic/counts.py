"""The loop with finite buffers as counters, for proofs about every capacity and every number of records.

Only the numbers of items per place are kept from `cyclic`: kinds, order and rounds are abstracted, and the entry may
read either input. Every behaviour of every policy is allowed here; and a policy that always reads one of the nonempty
inputs has a deadlock only if this model has one.
"""

from __future__ import annotations

from streamproof import Array, Model, Range, State, action, require

ENTRIES = ("any", "not-full", "not-waiting")


class CyclicCounts(Model):
    """Numbers of items in a loop of operators with a feedback edge."""

    name = "cyclic_counts"

    operators: int = 2
    """Number of operators in the loop; the first is the entry."""
    buffers: int = 1
    """Capacity of each channel, in items; the feedback edge holds as many in memory."""
    amplification: int = 2
    """Maximum number of records that an operator sends on for one that it takes."""
    records: int = 4
    """Maximum number of records that exist at a time."""
    spilling: bool = True
    """Whether the feedback edge has a disk."""
    entry: str = "any"
    """When the entry reads its forward input: at any time (any), not while all buffers of the feedback edge are in use
    (not-full), or only while nothing waits on it (not-waiting)."""

    check_deadlock = False
    """Deadlock freedom is an invariant here, and a stronger one: see `moves`."""
    instance_bounds = ("records",)
    limits = {
        "operators": (1, None),
        "buffers": (1, None),
        "amplification": (1, None),
        "records": (1, None),
    }
    sizes = {
        "small": {},
        "medium": {"operators": 4, "buffers": 4, "records": 14},
    }

    def setup(self):
        """The operators behind the entry, and those before another."""
        if self.entry not in ENTRIES:
            raise ValueError(f"{self.entry!r} is none of {', '.join(ENTRIES)}")
        self.last = self.operators - 1
        self.inner = range(1, self.operators)
        self.front = range(self.operators - 1)

    def state(self):
        """All channels are empty. Every number may be as large as the number of records: tighter bounds are properties."""
        count = Range(0, self.records)
        return State(
            unborn=Range(0, self.records, init=self.records),
            queue=Array(self.operators, count),
            held=Array(self.operators, count),
            memory=count,
            disk=count,
        )

    @action
    def offer(self, s):
        """The source has a record."""
        require(s.unborn > 0)
        require(s.queue[0] < self.buffers)
        s.unborn -= 1
        s.queue[0] += 1

    def work(self, s, i, more):
        """Operator `i` creates one more than `more` records."""
        require(s.held[i] == 0)
        require(s.unborn >= more)
        s.unborn -= more
        s.held[i] = more + 1

    @action(more="amplification")
    def read_forward(self, s, more):
        """The entry reads its forward input."""
        require(s.queue[0] > 0)
        require(self.opens(s))
        self.work(s, 0, more)
        s.queue[0] -= 1

    def opens(self, s):
        """Whether the entry may read its forward input."""
        if self.entry == "not-full":
            return s.memory < self.buffers
        if self.entry == "not-waiting":
            return s.memory + s.disk == 0
        return True

    @action(more="amplification")
    def read_feedback(self, s, more):
        """The entry reads what came back."""
        require(s.memory > 0)
        self.work(s, 0, more)
        s.memory -= 1

    @action(i="inner", more="amplification")
    def read_next(self, s, i, more):
        """An operator behind the entry reads its input."""
        require(s.queue[i] > 0)
        self.work(s, i, more)
        s.queue[i] -= 1

    @action(i="operators")
    def leave(self, s, i):
        """What an operator holds leaves the loop, of several copies one."""
        require(s.held[i] > 0)
        s.held[i] -= 1
        s.unborn += 1

    @action(i="front")
    def send(self, s, i):
        """An operator writes to the channel behind it."""
        require(s.held[i] > 0)
        require(s.queue[i + 1] < self.buffers)
        s.held[i] -= 1
        s.queue[i + 1] += 1

    @action
    def send_back(self, s):
        """The last operator writes to the feedback edge: to memory, or to disk if there is no room or something on it."""
        require(s.held[self.last] > 0)
        s.held[self.last] -= 1
        if not self.spilling:
            require(s.memory < self.buffers)
            s.memory += 1
        elif s.memory < self.buffers and s.disk == 0:
            s.memory += 1
        else:
            s.disk += 1

    @action
    def read_back(self, s):
        """The oldest item on disk goes to a buffer that has become free."""
        require(s.disk > 0)
        require(s.memory < self.buffers)
        s.disk -= 1
        s.memory += 1

    def inside(self, s):
        """Number of records in the loop, behind the forward input."""
        return sum(s.queue[i] for i in self.inner) + sum(s.held[i] for i in range(self.operators)) + s.memory + s.disk

    def moves(self, s):
        """Whether some step is possible without a record that chooses to leave the loop."""
        reads = s.held[0] == 0 and (s.memory > 0 or (s.queue[0] > 0 and self.opens(s)))
        back = s.held[self.last] > 0 and (self.spilling or s.memory < self.buffers)
        return (
            (s.unborn > 0 and s.queue[0] < self.buffers)
            or reads
            or any(s.held[i] == 0 and s.queue[i] > 0 for i in self.inner)
            or any(s.held[i] > 0 and s.queue[i + 1] < self.buffers for i in self.front)
            or back
            or (s.disk > 0 and s.memory < self.buffers)
        )


class BoundedCounts(CyclicCounts, variant="bounded"):
    """No disk: what an operator has made must find a buffer."""

    spilling: bool = False


class UngatedCounts(CyclicCounts, variant="bounded-unamplified"):
    """No disk and no amplification, and the entry reads its forward input although the feedback edge is full."""

    spilling: bool = False
    amplification: int = 1


class GatedCounts(UngatedCounts, variant="bounded-gated"):
    """No disk and no amplification, and the entry lets nothing in while the feedback edge is full."""

    entry: str = "not-full"


class FirstCounts(CyclicCounts, variant="feedback-first"):
    """A disk, no amplification, and the entry lets nothing in while something waits on the feedback edge."""

    amplification: int = 1
    entry: str = "not-waiting"


class AmplifiedCounts(CyclicCounts, variant="feedback-first-amplified"):
    """The same, and one record may become two."""

    entry: str = "not-waiting"


class SpillDropped(CyclicCounts, variant="spill-dropped"):
    """No disk: what finds no buffer of the feedback edge is dropped."""

    def send_back(self, s):
        """The last operator writes to memory, or nowhere."""
        require(s.held[self.last] > 0)
        s.held[self.last] -= 1
        if s.memory < self.buffers:
            s.memory += 1


class ReadBackUnchecked(CyclicCounts, variant="read-back-unchecked"):
    """What is on disk is read back whether there is a free buffer or not."""

    def read_back(self, s):
        """The oldest item on disk goes to memory."""
        require(s.disk > 0)
        s.disk -= 1
        s.memory += 1
