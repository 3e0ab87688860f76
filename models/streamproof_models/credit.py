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

from streamproof import WEAK, Array, Enum, Model, Range, State, action, choose, require, terminal


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
        """Every exclusive buffer is a credit at its sender; the pool is full."""
        channel = range(self.channels)
        most = self.most()
        return State(
            left=Array(channel, Range(0, self.depth, init=self.depth)),
            backlog=Array(channel, Range(0, self.depth)),
            credit=Array(channel, Range(0, most), init=self.exclusive),
            wire=Array(channel, Range(0, most)),
            known=Array(channel, Range(0, self.depth)),
            free=Array(channel, Range(0, most), init=self.exclusive),
            queued=Array(channel, Range(0, most)),
            lent=Array(channel, Range(0, self.floating)),
            unannounced=Array(channel, Range(0, most)),
            announced=Array(channel, Range(0, most)),
            consumer=Array(channel, Enum("LIVE", "STALLED", "GONE")),
            pool=Range(0, self.floating, init=self.floating),
        )

    def most(self) -> int:
        """Maximum number of buffers and credits of one channel."""
        return self.exclusive + self.floating

    # --- the sender

    @action(c="channels")
    def produce(self, s, c):
        """A buffer is full and waits to be sent."""
        require(s.left[c] > 0)
        require(s.consumer[c] != "GONE")
        s.left[c] -= 1
        s.backlog[c] += 1

    @action(c="channels", fairness=WEAK)
    def send(self, s, c):
        """A buffer goes on the wire for a credit."""
        require(s.backlog[c] > 0)
        require(s.credit[c] > 0)
        s.backlog[c] -= 1
        s.credit[c] -= 1
        s.wire[c] += 1

    @action(c="channels", fairness=WEAK)
    def tell(self, s, c):
        """A sender without credit announces its backlog."""
        require(s.backlog[c] > 0)
        require(s.credit[c] == 0)
        require(s.known[c] != s.backlog[c])
        s.known[c] = s.backlog[c]

    @action(c="channels", fairness=WEAK)
    def hear(self, s, c):
        """An announced credit arrives."""
        require(s.announced[c] > 0)
        s.announced[c] -= 1
        s.credit[c] += 1

    # --- the receiver

    @action(c="channels", fairness=WEAK)
    def receive(self, s, c):
        """A buffer arrives, with the sender backlog."""
        require(s.wire[c] > 0)
        require(s.free[c] > 0)
        s.wire[c] -= 1
        s.free[c] -= 1
        s.queued[c] += 1
        s.known[c] = s.backlog[c]

    @action(c="channels", fairness=WEAK)
    def consume(self, s, c):
        """A buffer has been consumed."""
        require(s.consumer[c] == "LIVE")
        require(s.queued[c] > 0)
        s.queued[c] -= 1
        if s.lent[c] > 0 and s.free[c] >= s.known[c] + self.exclusive:
            s.lent[c] -= 1
            self.lend(s, -1)
        else:
            s.free[c] += 1
            self.promise(s, c)

    def promise(self, s, c):
        """A freed buffer becomes a credit to announce."""
        s.unannounced[c] += 1

    @action(c="channels", fairness=WEAK)
    def borrow(self, s, c):
        """A floating buffer is assigned to a channel that requires more than its buffers."""
        require(s.pool > 0)
        require(s.consumer[c] != "GONE")
        require(s.free[c] < s.known[c] + self.exclusive)
        self.lend(s, 1)
        s.lent[c] += 1
        s.free[c] += 1
        s.unannounced[c] += 1

    def lend(self, s, count):
        """`count` buffers leave the pool."""
        s.pool -= count

    @action(c="channels", fairness=WEAK)
    def announce(self, s, c):
        """All new credits of a channel go out in one message."""
        require(s.unannounced[c] > 0)
        s.announced[c] += s.unannounced[c]
        s.unannounced[c] = 0

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
        self.give_back(s, c)
        s.lent[c] = 0
        s.left[c] = 0
        s.backlog[c] = 0
        s.credit[c] = 0
        s.wire[c] = 0
        s.known[c] = 0
        s.queued[c] = 0
        s.announced[c] = 0
        s.free[c] = self.exclusive
        s.unannounced[c] = self.exclusive

    def give_back(self, s, c):
        """The floating buffers of a channel return to the pool."""
        s.pool += s.lent[c]

    def idle(self, s, c):
        """Nothing that was produced for a channel is unread."""
        return s.backlog[c] + s.wire[c] + s.queued[c] == 0

    def all_read(self, s):
        """Every consumer reads."""
        return all(s.consumer[c] == "LIVE" for c in range(self.channels))


class CreditBeforeFree(Credit, variant="credit-before-free"):
    """A buffer is a credit again when it is handed to the consumer, not when the consumer has read it."""

    def most(self) -> int:
        """Promises for borrowed buffers that are given back are made too."""
        return super().most() + self.depth

    @action(c="channels", fairness=WEAK)
    def receive(self, s, c):
        """The buffer that is filled is promised again at once."""
        super().receive(s, c)
        s.unannounced[c] += 1

    def promise(self, s, c):
        """It has been promised already."""


class FloatingLeak(Credit, variant="floating-leak"):
    """A channel that is released keeps its floating buffers."""

    def give_back(self, s, c):
        """Forgotten."""


class UncountedLending(Credit, variant="uncounted-lending"):
    """The pool grants its buffers to every channel, without accounting."""

    @action(c="channels", fairness=WEAK)
    def borrow(self, s, c):
        """A channel gets every floating buffer once."""
        require(s.lent[c] < self.floating)
        super().borrow(s, c)

    def lend(self, s, count):
        """Not noted."""

    def give_back(self, s, c):
        """Not noted either."""


class LostAnnouncement(Credit, variant="lost-announcement"):
    """Announcements may be lost, and are not repeated."""

    @action(c="channels")
    def lose(self, s, c):
        """An announced credit does not arrive."""
        require(s.announced[c] > 0)
        s.announced[c] -= 1


class ZeroExclusive(Credit, variant="zero-exclusive"):
    """Channels have no buffers of their own and live on the pool."""

    exclusive: int = 0
    limits = {"exclusive": (0, 0)}


class ZeroExclusiveReading(ZeroExclusive, variant="zero-exclusive-reading", without=("stall", "release")):
    """Channels live on the pool, and all consumers read, so that everything must come to a good end."""

    check_deadlock = True

    @terminal
    def delivered(self, s):
        """Everything was produced, sent and read."""
        return all(s.left[c] == 0 and self.idle(s, c) for c in range(self.channels))


class ZeroExclusiveSilent(ZeroExclusiveReading, variant="zero-exclusive-silent", without="tell"):
    """Before FLINK-16641: a backlog is announced with buffers only."""


class AnyBacklog(Credit, variant="any-backlog", without="tell"):
    """Backlog announcements are ignored: the receiver requests and returns floating buffers arbitrarily."""

    @action(c="channels", fairness=WEAK)
    def receive(self, s, c):
        """A buffer arrives, without a backlog announcement."""
        require(s.wire[c] > 0)
        require(s.free[c] > 0)
        s.wire[c] -= 1
        s.free[c] -= 1
        s.queued[c] += 1

    @action(c="channels", fairness=WEAK)
    def consume(self, s, c):
        """A buffer has been consumed."""
        require(s.consumer[c] == "LIVE")
        require(s.queued[c] > 0)
        s.queued[c] -= 1
        if choose([True, False]):
            require(s.lent[c] > 0)
            s.lent[c] -= 1
            self.lend(s, -1)
        else:
            s.free[c] += 1
            self.promise(s, c)

    @action(c="channels")
    def borrow(self, s, c):
        """A floating buffer is assigned to a channel, or not."""
        require(s.pool > 0)
        require(s.consumer[c] != "GONE")
        self.lend(s, 1)
        s.lent[c] += 1
        s.free[c] += 1
        s.unannounced[c] += 1

    @action(c="channels")
    def release(self, s, c):
        """A released channel is in its initial state."""
        super().release(s, c)
        s.credit[c] = self.exclusive
        s.unannounced[c] = 0


class NoCredit(Credit, variant="no-credit"):
    """Before 1.5: senders fill the connection, and a receiver without a buffer for what comes next stops reading it."""

    def state(self):
        """Also: the channel for which the connection waits; the number of channels means none."""
        declared = dict(super().state().items())
        return State(**declared, waits=Range(0, self.channels, init=self.channels))

    @action(c="channels")
    def announce(self, s, c):
        """There are no credits to announce."""
        require(False)

    def promise(self, s, c):
        """Nor to keep."""

    @action(c="channels", fairness=WEAK)
    def send(self, s, c):
        """A buffer goes on the wire as long as the connection takes it."""
        require(s.backlog[c] > 0)
        require(s.wire[c] < self.exclusive + self.floating)
        s.backlog[c] -= 1
        s.wire[c] += 1

    @action(c="channels", fairness=WEAK)
    def receive(self, s, c):
        """The next buffer on the connection is read, unless another channel's buffer blocks the connection."""
        require(s.waits in (self.channels, c))
        super().receive(s, c)
        s.waits = self.channels

    @action(c="channels", fairness=WEAK)
    def block(self, s, c):
        """The next buffer is for a channel without a free one: nothing else is read until it has one."""
        require(s.waits == self.channels)
        require(s.wire[c] > 0)
        require(s.free[c] == 0)
        s.waits = c

    @action(c="channels")
    def release(self, s, c):
        """The buffer that blocks the connection is discarded with its channel."""
        super().release(s, c)
        if s.waits == c:
            s.waits = self.channels
