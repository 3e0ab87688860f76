"""Credit-based flow control, message by message: several channels on one connection, which preserves the order of messages.

TaskManagers have one connection for all channels between them. Downstream it carries buffers, each with its channel, its
number in that channel and the sender backlog; upstream it carries announcements of credit, and the cancellation of a
released channel. The machine of `credit` counts the messages that are queued here, and is refined by this one: through
its counters, every step here is a step there, of a receiver that requests and returns floating buffers arbitrarily.

A channel is released at its receiver; messages on their way are discarded on arrival, and its sender continues until the
cancellation has arrived on the connection, behind earlier announcements.

Abstractions: contents, except numbers; events (`credit_barriers` has them), partial buffers, several connections. An
announcement of several credits is one message, whose credits the sender counts one by one.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Model, Queue, Range, Record, State, action, refines, require
from streamproof_models.credit import Credit


class CreditConnection(Model):
    """Credit-based flow control of several channels, with the messages on their connection."""

    name = "credit_connection"

    channels: int = 2
    """Number of channels that share the connection and the floating buffers."""
    exclusive: int = 1
    """Number of exclusive buffers per channel."""
    floating: int = 1
    """Number of floating buffers of the gate."""
    depth: int = 1
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
        "medium": {"depth": 2},
        "large": {"channels": 3, "floating": 2},
    }

    def state(self):
        """The senders know of the exclusive buffers; nothing is on the connection."""
        channel = range(self.channels)
        which, most = Range(0, self.channels - 1), self.exclusive + self.floating
        number = Range(0, self.depth)
        return State(
            # the senders
            left=Array(channel, number, init=self.depth),
            backlog=Array(channel, number),
            credit=Array(channel, Range(0, most), init=self.exclusive),
            sent=Array(channel, number),
            cancelled=Array(channel, Bool()),
            # the connection; an announcement of no credit cancels, and how many are announced is counted beside
            down=Queue(Record(channel=which, number=number, behind=number), capacity=self.room()),
            up=Queue(Record(channel=which, credits=Range(0, most)), capacity=self.channels * (most + 1)),
            heard=Array(channel, Range(0, most)),
            announced=Array(channel, Range(0, most)),
            # the receivers
            expected=Array(channel, number),
            known=Array(channel, number),
            free=Array(channel, Range(0, most), init=self.exclusive),
            queued=Array(channel, Range(0, most)),
            lent=Array(channel, Range(0, self.floating)),
            unannounced=Array(channel, Range(0, most)),
            consumer=Array(channel, Enum("LIVE", "STALLED", "GONE")),
            pool=Range(0, self.floating, init=self.floating),
        )

    def room(self) -> int:
        """Maximum number of buffers on the connection."""
        return self.channels * (self.exclusive + self.floating)

    def on_wire(self, s, c):
        """Number of buffers of one channel on the connection."""
        return sum(message.channel == c for message in s.down)

    def on_way(self, s, c):
        """Number of credits of one channel on the connection, or arrived and not counted."""
        return s.heard[c] + sum(message.credits if message.channel == c else 0 for message in s.up)

    # --- the senders

    @action(c="channels")
    def produce(self, s, c):
        """A buffer is full and waits to be sent."""
        require(s.left[c] > 0)
        require(not s.cancelled[c])
        s.left[c] -= 1
        s.backlog[c] += 1

    @action(c="channels", fairness=WEAK)
    def send(self, s, c):
        """A buffer goes on the connection for a credit, with its number and how many wait behind it."""
        require(s.credit[c] > 0)
        s.credit[c] -= 1
        self.put(s, c)

    def put(self, s, c):
        """A buffer goes on the connection."""
        require(s.backlog[c] > 0)
        s.backlog[c] -= 1
        s.down.push({"channel": c, "number": s.sent[c], "behind": s.backlog[c]})
        s.sent[c] += 1

    @action(fairness=WEAK)
    def listen(self, s):
        """The next message from the receiver arrives, when all credits of the one before are counted."""
        require(len(s.up) > 0)
        require(all(credits == 0 for credits in s.heard))
        c, credits = s.up.head.channel, s.up.head.credits
        if credits > 0:
            s.heard[c] = credits
        else:
            s.cancelled[c] = True
            s.left[c] = 0
            s.backlog[c] = 0
            s.credit[c] = 0
        s.up.pop()

    @action(c="channels", fairness=WEAK)
    def hear(self, s, c):
        """An announced credit is counted."""
        require(s.heard[c] > 0)
        s.heard[c] -= 1
        s.announced[c] -= 1
        s.credit[c] += 1

    # --- the receivers

    @action(c="channels", fairness=WEAK)
    def receive(self, s, c):
        """The next buffer on the connection arrives and is filled into a free one."""
        require(len(s.down) > 0)
        require(s.down.head.channel == c)
        require(s.consumer[c] != "GONE")
        require(s.free[c] > 0)
        s.free[c] -= 1
        s.queued[c] += 1
        s.known[c] = s.down.head.behind
        self.take(s, c)

    @action(c="channels", fairness=WEAK)
    def discard(self, s, c):
        """The next buffer on the connection is for a channel that was released."""
        require(len(s.down) > 0)
        require(s.down.head.channel == c)
        require(s.consumer[c] == "GONE")
        self.take(s, c)

    def take(self, s, c):
        """The next buffer is off the connection."""
        s.down.pop()
        s.expected[c] = min(s.expected[c] + 1, self.depth)

    @action(c="channels", fairness=WEAK)
    def consume(self, s, c):
        """A buffer has been consumed."""
        require(s.consumer[c] == "LIVE")
        require(s.queued[c] > 0)
        s.queued[c] -= 1
        if s.lent[c] > 0 and s.free[c] >= s.known[c] + self.exclusive:
            s.lent[c] -= 1
            s.pool += 1
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
        s.pool -= 1
        s.lent[c] += 1
        s.free[c] += 1
        self.promise(s, c)

    @action(c="channels", fairness=WEAK)
    def announce(self, s, c):
        """All new credits of a channel go out in one message."""
        require(s.unannounced[c] > 0)
        s.up.push({"channel": c, "credits": s.unannounced[c]})
        s.announced[c] += s.unannounced[c]
        s.unannounced[c] = 0

    @action(c="channels")
    def stall(self, s, c):
        """A consumer stops reading, forever."""
        require(s.consumer[c] == "LIVE")
        s.consumer[c] = "STALLED"

    @action(c="channels")
    def release(self, s, c):
        """A receiver releases a channel, returns its floating buffers, and notifies the sender."""
        require(s.consumer[c] != "GONE")
        s.consumer[c] = "GONE"
        s.pool += s.lent[c]
        s.lent[c] = 0
        s.known[c] = 0
        s.free[c] = self.exclusive
        s.queued[c] = 0
        s.unannounced[c] = 0
        s.up.push({"channel": c, "credits": 0})

    # --- the refinement mapping

    @refines(
        Credit,
        variant="any-backlog",
        channels="channels",
        exclusive="exclusive",
        floating="floating",
        depth="depth",
    )
    def counted(self, s):
        """Messages are counted, and a released channel is in its initial state."""
        channels = range(self.channels)
        here = [s.consumer[c] != "GONE" for c in channels]
        return {
            "left": [s.left[c] if here[c] else 0 for c in channels],
            "backlog": [s.backlog[c] if here[c] else 0 for c in channels],
            "credit": [s.credit[c] if here[c] else self.exclusive for c in channels],
            "wire": [self.on_wire(s, c) if here[c] else 0 for c in channels],
            "known": [0 for c in channels],
            "announced": [s.announced[c] if here[c] else 0 for c in channels],
        }


class Reordering(CreditConnection, variant="reordering"):
    """The connection does not keep the order, as if there were two."""

    @action
    def overtake(self, s):
        """The next buffer arrives after all others."""
        require(len(s.down) > 1)
        message = s.down.head
        s.down.push({"channel": message.channel, "number": message.number, "behind": message.behind})
        s.down.pop()

    def room(self) -> int:
        """One more is on its way while it is overtaken."""
        return super().room() + 1


class Lossy(CreditConnection, variant="lossy"):
    """The connection loses buffers."""

    @action
    def lose(self, s):
        """The next buffer does not arrive."""
        require(len(s.down) > 0)
        s.down.pop()


class LostAnnouncements(CreditConnection, variant="lost-announcement"):
    """The connection loses announcements."""

    @action
    def lose(self, s):
        """The next announcement does not arrive."""
        require(len(s.up) > 0)
        require(s.up.head.credits > 0)
        s.up.pop()


class NoCredits(CreditConnection, variant="no-credit"):
    """Before 1.5: senders fill the connection, and a receiver without a buffer for what comes next stops reading it."""

    @action(c="channels", fairness=WEAK)
    def send(self, s, c):
        """A buffer goes on the connection as long as that has room."""
        require(len(s.down) < self.room())
        self.put(s, c)

    def promise(self, s, c):
        """There are no credits."""
