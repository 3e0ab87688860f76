"""The locks of credit-based flow control: threads that recycle buffers, and hand them to waiting channels.

Each channel's buffers are guarded by a lock, and so is the pool of floating buffers. A thread that recycles an exclusive
buffer may find a surplus floating one in its channel, and one that releases a channel returns all its floating ones; the
pool immediately hands such a buffer to a waiting channel, for which that channel's lock is taken. So a thread may hold
the lock of one channel while it acquires that of another (`BufferManager` and `LocalBufferPool` of Flink).

The rules are those of Flink 1.14 and later: the pool's lock is not held while a channel is notified (FLINK-9676), a
released channel rejects the buffer before its lock is taken (FLINK-18595), and a surplus buffer is returned after the
channel's lock has been released (FLINK-22946). The variants are earlier versions.

Abstractions: everything that takes no second lock; the reason why a channel with a surplus buffer waits (it may have
begun to wait when its sender had a larger backlog). A thread that holds the second lock only adds a buffer and releases
it, which is one step.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Model, Option, Range, State, action, choose, require, terminal

JOBS = ("release", "recycle")


class CreditLocks(Model):
    """Threads that recycle buffers and release channels, and the locks that they take."""

    name = "credit_locks"

    channels: int = 2
    """Number of channels of the gate; each begins with a surplus floating buffer, and waits for one."""
    jobs: str = "release0 recycle1 recycle0"
    """The job of each thread: release a channel, or recycle one of its exclusive buffers."""

    limits = {"channels": (1, None)}
    sizes = {
        "small": {},
        "medium": {"channels": 3, "jobs": "release0 recycle1 recycle0 recycle2"},
        "large": {"channels": 3, "jobs": "release0 release1 recycle1 recycle0 recycle2"},
    }

    def setup(self):
        """The threads, each with its job and its channel."""
        known = {f"{job}{c}": (job, c) for job in JOBS for c in range(self.channels)}
        words = self.jobs.split()
        for word in words:
            if word not in known:
                raise ValueError(f"{word!r} is not a job: write {' or '.join(JOBS)} and a channel, like release0")
        self.work = [known[word] for word in words]
        released = [c for job, c in self.work if job == "release"]
        if not words or len(set(released)) < len(released):
            raise ValueError("give at least one job, and release no channel twice")
        self.threads = range(len(words))
        self.releasing = [t for t in self.threads if self.work[t][0] == "release"]
        self.buffers = self.channels

    def state(self):
        """Every thread is about to begin."""
        channel, thread = range(self.channels), Range(0, len(self.work) - 1)
        return State(
            at=Array(self.threads, Enum("BEGIN", "ENTER", "INSIDE", "POOL", "TELL", "GIVE", "BACK", "DONE")),
            told=Array(self.threads, Option(Range(0, self.channels - 1))),
            lock=Array(channel, Option(thread)),
            pool_lock=Option(thread),
            released=Array(channel, Bool()),
            waits=Array(channel, Bool(), init=True),
            spare=Array(channel, Range(0, self.buffers), init=1),
            pool=Range(0, self.buffers),
        )

    # --- changes between versions

    def gives_back_inside(self) -> bool:
        """Whether a surplus buffer is returned while the channel's lock is held."""
        return False

    def refuses_first(self) -> bool:
        """Whether a released channel rejects a buffer before its lock is taken."""
        return True

    def holds_pool(self) -> bool:
        """Whether the pool's lock is held while a channel is notified of a buffer."""
        return False

    def refuses_inside(self) -> bool:
        """Whether a released channel rejects a buffer after its lock is taken."""
        return True

    # --- one thread

    def keeps_lock(self, t: int) -> bool:
        """Whether a thread holds the lock of its channel while it returns buffers."""
        return self.work[t][0] == "release" or self.gives_back_inside()

    @action(t="threads", fairness=WEAK)
    def begin(self, s, t):
        """A channel to be released is marked so, before anything else."""
        job, c = self.work[t]
        require(s.at[t] == "BEGIN")
        s.at[t] = "ENTER"
        if job == "release":
            s.released[c] = True

    @action(t="threads", fairness=WEAK)
    def enter(self, s, t):
        """A thread takes the lock of its channel."""
        c = self.work[t][1]
        require(s.at[t] == "ENTER")
        require(s.lock[c] is None)
        s.lock[c] = t
        s.at[t] = "INSIDE"

    @action(t="threads", fairness=WEAK)
    def inside(self, s, t):
        """With the lock of its channel, a thread takes a floating buffer to give back, or lets go if there is none."""
        job, c = self.work[t]
        require(s.at[t] == "INSIDE")
        if s.spare[c] == 0 or (job == "recycle" and s.released[c]):
            s.lock[c] = None
            s.at[t] = "DONE"
        else:
            s.spare[c] -= 1
            s.at[t] = "POOL"
            if not self.keeps_lock(t):
                s.lock[c] = None

    @action(t="threads", fairness=WEAK)
    def give_back(self, s, t):
        """The pool takes the buffer, or chooses a waiting channel."""
        require(s.at[t] == "POOL")
        require(s.pool_lock is None or s.pool_lock == t)
        if all(not waits for waits in s.waits):
            s.pool += 1
            s.pool_lock = None
            s.at[t] = "BACK"
        else:
            d = choose(range(self.channels))
            require(s.waits[d])
            s.waits[d] = False
            s.told[t] = d
            s.at[t] = "TELL"
            if self.holds_pool():
                s.pool_lock = t

    @action(t="threads", d="channels", fairness=WEAK)
    def tell(self, s, t, d):
        """A channel is notified of the buffer; a released one rejects it."""
        require(s.at[t] == "TELL")
        require(s.told[t] == d)
        if self.refuses_first() and s.released[d]:
            self.refuse(s, t)
        else:
            s.at[t] = "GIVE"

    @action(t="threads", d="channels", fairness=WEAK)
    def give(self, s, t, d):
        """With the lock of the channel the buffer is added to it, if it needs one and was not released."""
        require(s.at[t] == "GIVE")
        require(s.told[t] == d)
        require(s.lock[d] is None or s.lock[d] == t)
        if d == self.work[t][1] or (self.refuses_inside() and s.released[d]):
            self.refuse(s, t)
        else:
            s.spare[d] += 1
            s.told[t] = None
            s.at[t] = "BACK"
            if s.pool_lock == t:
                s.pool_lock = None

    def refuse(self, s, t):
        """The pool chooses another one."""
        s.told[t] = None
        s.at[t] = "POOL"

    @action(t="threads", fairness=WEAK)
    def back(self, s, t):
        """The buffer is returned: a released channel may have more of them, others do not."""
        job, c = self.work[t]
        require(s.at[t] == "BACK")
        if job == "release":
            s.at[t] = "INSIDE"
        else:
            s.at[t] = "DONE"
            if self.keeps_lock(t):
                s.lock[c] = None

    @terminal
    def done(self, s):
        """Every thread has finished."""
        return all(at == "DONE" for at in s.at)

    def in_hand(self, s):
        """Number of floating buffers held by threads."""
        return sum(at in ("POOL", "TELL", "GIVE") for at in s.at)


class GivenBackInside(CreditLocks, variant="before-22946"):
    """Before FLINK-22946: a surplus buffer is given back while the channel's lock is held."""

    def gives_back_inside(self) -> bool:
        """It is."""
        return True


class NotRefused(GivenBackInside, variant="before-18595"):
    """Before FLINK-18595: also, a channel looks whether it was released when its lock is held."""

    def refuses_first(self) -> bool:
        """It does not."""
        return False


class PoolHeld(NotRefused, variant="before-9676"):
    """Before FLINK-9676: also, the pool's lock is held while a channel is notified."""

    def holds_pool(self) -> bool:
        """It is."""
        return True


class GivenToReleased(CreditLocks, variant="given-to-released"):
    """A channel looks whether it was released before its lock is taken, and not again."""

    def refuses_inside(self) -> bool:
        """It does not."""
        return False
