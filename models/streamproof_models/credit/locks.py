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
PLACES = ("BEGIN", "LOCK", "LOCKED", "RETURN", "NOTIFY", "ADD", "RETURNED", "DONE")


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

    # --- what the fixes changed

    returns_in_lock = False
    """A thread returns a surplus buffer while it holds its channel's lock; FLINK-22946 ended this."""
    tests_before_lock = True
    """A channel rejects a buffer after its release, tested before its lock is taken; since FLINK-18595."""
    tests_in_lock = True
    """The same, tested while its lock is held."""
    notifies_in_lock = False
    """The pool's lock is held while a channel is notified; FLINK-9676 ended this."""

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

    def state(self):
        """Every thread is about to begin. The comments name Flink's fields and the objects that are locked."""
        channel, thread = range(self.channels), Option(Range(0, len(self.work) - 1))
        return State(
            at=Array(self.threads, Enum(*PLACES)),  # what the thread does next
            listener=Array(self.threads, Option(Range(0, self.channels - 1))),  # the channel that it notifies
            lock=Array(channel, thread),  # holder of the lock of BufferManager.bufferQueue
            pool_lock=thread,  # holder of the lock of LocalBufferPool.availableMemorySegments
            is_released=Array(channel, Bool()),  # RemoteInputChannel.isReleased
            is_waiting=Array(channel, Bool(), init=True),  # BufferManager.isWaitingForFloatingBuffers
            floating_buffers=Array(
                channel, Range(0, self.channels), init=1
            ),  # bufferQueue.floatingBuffers: surplus ones
            pool=Range(0, self.channels),  # LocalBufferPool.availableMemorySegments
        )

    def returns_locked(self, t: int) -> bool:
        """Whether a thread holds the lock of its channel while it returns buffers."""
        return self.work[t][0] == "release" or self.returns_in_lock

    @action(t="threads", fairness=WEAK)
    def begin(self, s, t):
        """A thread that releases a channel first marks it as released."""
        job, c = self.work[t]
        require(s.at[t] == "BEGIN")
        s.at[t] = "LOCK"
        if job == "release":
            s.is_released[c] = True

    @action(t="threads", fairness=WEAK)
    def lock_channel(self, s, t):
        """A thread takes the lock of its channel."""
        c = self.work[t][1]
        require(s.at[t] == "LOCK" and s.lock[c] is None)
        s.lock[c] = t
        s.at[t] = "LOCKED"

    @action(t="threads", fairness=WEAK)
    def take_floating_buffer(self, s, t):
        """With the lock of its channel, a thread takes a floating buffer to return, or unlocks if there is none."""
        job, c = self.work[t]
        require(s.at[t] == "LOCKED")
        if s.floating_buffers[c] == 0 or (job == "recycle" and s.is_released[c]):
            s.lock[c] = None
            s.at[t] = "DONE"
        else:
            s.floating_buffers[c] -= 1
            s.at[t] = "RETURN"
            if not self.returns_locked(t):
                s.lock[c] = None

    @action(t="threads", fairness=WEAK)
    def return_to_pool(self, s, t):
        """`LocalBufferPool.recycle`: the pool takes the buffer, or chooses a waiting channel."""
        require(s.at[t] == "RETURN" and (s.pool_lock is None or s.pool_lock == t))
        if not any(s.is_waiting):
            s.pool += 1
            s.pool_lock = None
            s.at[t] = "RETURNED"
        else:
            d = choose(range(self.channels))
            require(s.is_waiting[d])
            s.is_waiting[d] = False
            s.listener[t] = d
            s.at[t] = "NOTIFY"
            if self.notifies_in_lock:
                s.pool_lock = t

    @action(t="threads", d="channels", fairness=WEAK)
    def notify_buffer_available(self, s, t, d):
        """The channel is notified of the buffer; a released one rejects it."""
        require(s.at[t] == "NOTIFY" and s.listener[t] == d)
        if self.tests_before_lock and s.is_released[d]:
            self.reject(s, t)
        else:
            s.at[t] = "ADD"

    @action(t="threads", d="channels", fairness=WEAK)
    def add_floating_buffer(self, s, t, d):
        """With the lock of the channel the buffer is added to it, if it needs one and was not released."""
        require(s.at[t] == "ADD" and s.listener[t] == d and (s.lock[d] is None or s.lock[d] == t))
        if d == self.work[t][1] or (self.tests_in_lock and s.is_released[d]):
            self.reject(s, t)
        else:
            s.floating_buffers[d] += 1
            s.listener[t] = None
            s.at[t] = "RETURNED"
            if s.pool_lock == t:
                s.pool_lock = None

    def reject(self, s, t):
        """The pool chooses another channel."""
        s.listener[t] = None
        s.at[t] = "RETURN"

    @action(t="threads", fairness=WEAK)
    def continue_after_return(self, s, t):
        """The buffer is returned. A released channel may have further ones, others do not."""
        job, c = self.work[t]
        require(s.at[t] == "RETURNED")
        if job == "release":
            s.at[t] = "LOCKED"
        else:
            s.at[t] = "DONE"
            if self.returns_locked(t):
                s.lock[c] = None

    @terminal
    def done(self, s):
        """Every thread has finished."""
        return all(at == "DONE" for at in s.at)


class ReturnedInLock(CreditLocks, variant="before-22946"):
    """Before FLINK-22946: a surplus buffer is returned while the channel's lock is held."""

    returns_in_lock = True


class TestedInLock(ReturnedInLock, variant="before-18595"):
    """Before FLINK-18595: also, a channel tests for its release only while its lock is held."""

    tests_before_lock = False


class NotifiedInLock(TestedInLock, variant="before-9676"):
    """Before FLINK-9676: also, the pool's lock is held while a channel is notified."""

    notifies_in_lock = True


class TestedBeforeLock(CreditLocks, variant="given-to-released"):
    """A channel tests for its release before its lock is taken, and not again."""

    tests_in_lock = False


class RejectedDropped(CreditLocks, variant="rejected-dropped"):
    """The pool chooses no other channel for a buffer that a released channel rejects."""

    def reject(self, s, t):
        """The buffer is lost."""
        s.listener[t] = None
        s.at[t] = "RETURNED"
