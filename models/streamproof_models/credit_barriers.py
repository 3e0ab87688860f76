"""Credit-based flow control with checkpoint barriers: the machine of `credit`, with a barrier machine per channel.

A barrier is an event: it travels in order with the data of its channel and costs no credit. It is also a blocking
event: after sending one, the sender sends nothing more on that channel until the receiver, which has read it and done
its part of the checkpoint, resumes it. If channels have no exclusive buffers, a receiver returns the floating ones when
a barrier arrives, because otherwise blocked channels keep the buffers that others wait for (FLINK-16404); credits
granted before are void, and both ends restart at zero when the sender is resumed.

The counters of `credit` do not distinguish old and new buffers, so the position of a barrier is a number: how many
buffers are ahead of it. Announced credits and the message that resumes a sender also travel in order.

Abstractions: those of `credit`; no barriers that overtake data (unaligned checkpoints).
"""

from __future__ import annotations

from typing import ClassVar

from streamproof import WEAK, Bool, Enum, Model, Parts, Range, State, action, each, require
from streamproof_models.credit import Credit, ZeroExclusive


class Barrier(Model):
    """Where the barrier of one channel is, and how much data is ahead of it. It takes its steps with the channel's."""

    name = "barrier"

    checkpoints: int = 1
    """Barriers that come, one after the other."""
    most: int = 1
    """Maximum number of buffers ahead of a barrier."""
    void: int = 0
    """Maximum number of announcements ahead of the message that resumes the sender, if relevant."""

    check_deadlock = False

    def state(self):
        """No barrier."""
        return State(
            left=Range(0, self.checkpoints, init=self.checkpoints),
            place=Enum("NONE", "BACKLOG", "WIRE", "QUEUE", "READ"),
            ahead=Range(0, self.most),
            older=Range(0, self.most),
            resuming=Bool(),
            stale=Range(0, self.void),
        )

    def stopped(self, s):
        """Whether the sender is blocked: it has sent a barrier and was not resumed."""
        return s.place in ("WIRE", "QUEUE", "READ") or s.resuming

    def enter(self, s, ahead, older):
        """A barrier is queued behind `ahead` buffers at its sender; `older` ones in total have not been read."""
        require(s.left > 0)
        require(s.place == "NONE")
        s.left -= 1
        s.place = "BACKLOG"
        s.ahead = ahead
        s.older = older

    def move(self, s, start, end, ahead):
        """The barrier, first in its place, moves behind `ahead` buffers in the next place."""
        require(s.place == start)
        require(s.ahead == 0)
        s.place = end
        s.ahead = ahead

    @action
    def send(self, s):
        """A buffer is sent: not past the barrier, and not after it before the sender is resumed."""
        require(not self.stopped(s))
        require(s.place != "BACKLOG" or s.ahead > 0)
        if s.place == "BACKLOG":
            s.ahead -= 1

    @action
    def tell(self, s):
        """A blocked sender does not announce its backlog."""
        require(not self.stopped(s))

    @action
    def receive(self, s):
        """A buffer arrives."""
        if s.place == "WIRE" and s.ahead > 0:
            s.ahead -= 1

    @action
    def consume(self, s):
        """A buffer is read."""
        if s.older > 0:
            s.older -= 1
        if s.place == "QUEUE" and s.ahead > 0:
            s.ahead -= 1

    @action
    def hear(self, s):
        """An announced credit arrives: those announced before the resumption come before it, later ones after it."""
        if self.void > 0:
            require(not s.resuming or s.stale > 0)
            if s.resuming:
                s.stale -= 1

    @action
    def release(self, s):
        """The channel is given up, its barrier with it."""
        s.place = "NONE"
        s.ahead = 0
        s.older = 0
        s.resuming = False
        s.stale = 0


class Passable(Barrier):
    """The sender does not stop at barriers."""

    def stopped(self, s):
        """Never."""
        return False


class Revocable(ZeroExclusive):
    """A channel without exclusive buffers, whose credits may become void: new ones coexist with those."""

    def most(self) -> int:
        """Every floating buffer may have been promised and returned, and be promised again."""
        return 2 * super().most()


class CreditBarriers(Model):
    """Credit-based flow control with checkpoint barriers."""

    name = "credit_barriers"
    flow: ClassVar[Credit]
    """The channels."""
    barrier: ClassVar[tuple[Barrier, ...]]
    """The barrier of each channel."""

    channels: int = 2
    """Number of channels that share the connection and the floating buffers."""
    exclusive: int = 1
    """Number of exclusive buffers per channel."""
    floating: int = 1
    """Number of floating buffers of the gate."""
    depth: int = 1
    """Maximum number of buffers produced by each sender."""
    checkpoints: int = 1
    """Maximum number of barriers sent by each sender."""
    aligned: bool = False
    """Whether one task reads all channels, and resumes none before it has read the barriers of all."""

    check_deadlock = False
    """A consumer may always stall, so there is no deadlock; liveness is stated by temporal properties."""
    limits = {
        "channels": (1, None),
        "exclusive": (1, None),
        "floating": (0, None),
        "depth": (1, None),
        "checkpoints": (1, None),
    }
    sizes = {
        "small": {},
        "medium": {"depth": 2},
        "large": {"depth": 2, "floating": 2, "checkpoints": 2},
    }

    def setup(self):
        """The tasks, each with the channels that it reads."""
        everything = list(range(self.channels))
        self.reads = [everything] if self.aligned else [[c] for c in everything]
        self.readers = len(self.reads)

    def parts(self):
        """The flow control, and a barrier beside each of its channels."""
        return (
            Parts(flow=self.flow_control(), barrier=each(self.channels, self.barrier_of))
            .together("send", "flow.send(c)", "barrier[c].send()", doc="A buffer goes on the wire for a credit.")
            .together("tell", "flow.tell(c)", "barrier[c].tell()", doc="A sender without credit announces its backlog.")
            .together("receive", "flow.receive(c)", "barrier[c].receive()", doc="A buffer arrives.")
            .together("consume", "flow.consume(c)", "barrier[c].consume()", doc="A buffer has been read.")
            .together("hear", "flow.hear(c)", "barrier[c].hear()", doc="An announced credit arrives.")
            .together("release", "flow.release(c)", "barrier[c].release()", doc="A channel is given up.")
        )

    def flow_control(self) -> Credit:
        """The channels."""
        return Credit(**self.capacities())

    def capacities(self) -> dict[str, int]:
        """The parameters of the flow control."""
        return {
            "channels": self.channels,
            "exclusive": self.exclusive,
            "floating": self.floating,
            "depth": self.depth,
        }

    def barrier_of(self, c: int) -> Barrier:
        """The barrier of a channel."""
        return Barrier(checkpoints=self.checkpoints, most=self.depth)

    @action(c="channels", fairness=WEAK)
    def trigger(self, s, c):
        """A checkpoint reaches a sender: its barrier is queued behind the buffers produced so far."""
        require(s.flow.consumer[c] != "GONE")
        waiting = s.flow.backlog[c]
        self.barrier[c].enter(s.barrier[c], waiting, waiting + s.flow.wire[c] + s.flow.queued[c])

    @action(c="channels", fairness=WEAK)
    def emit(self, s, c):
        """A barrier goes on the wire, without a credit; the sender stops."""
        require(not s.barrier[c].resuming)
        self.barrier[c].move(s.barrier[c], "BACKLOG", "WIRE", s.flow.wire[c])

    @action(c="channels", fairness=WEAK)
    def arrive(self, s, c):
        """A barrier arrives, without a buffer."""
        self.barrier[c].move(s.barrier[c], "WIRE", "QUEUE", s.flow.queued[c])
        self.block_channel(s, c)

    def block_channel(self, s, c):
        """The receiver's buffer management when a barrier blocks the channel: none."""

    @action(c="channels", fairness=WEAK)
    def read(self, s, c):
        """A consumer that has read everything ahead of a barrier reads the barrier."""
        require(s.flow.consumer[c] == "LIVE")
        self.barrier[c].move(s.barrier[c], "QUEUE", "READ", 0)

    @action(r="readers", fairness=WEAK)
    def resume(self, s, r):
        """A task has read the barriers of all its channels, has done its part of the checkpoint, and resumes the senders."""
        require(any(s.barrier[c].place == "READ" for c in self.reads[r]))
        require(all(s.barrier[c].place == "READ" or s.flow.consumer[c] == "GONE" for c in self.reads[r]))
        for c in self.reads[r]:
            if s.barrier[c].place == "READ":
                s.barrier[c].place = "NONE"
                s.barrier[c].older = 0
                s.barrier[c].resuming = True
                self.forget_at_receiver(s, c)

    def forget_at_receiver(self, s, c):
        """Credits survive."""

    @action(c="channels", fairness=WEAK)
    def resumed(self, s, c):
        """The sender is resumed."""
        require(s.barrier[c].resuming)
        require(s.barrier[c].stale == 0)
        s.barrier[c].resuming = False
        self.forget_at_sender(s, c)

    def forget_at_sender(self, s, c):
        """Credits survive."""

    def void(self, s, c):
        """Credits without a buffer."""
        return 0


class BarrierOvertakes(CreditBarriers, variant="barrier-overtakes"):
    """A barrier needs no credit, so it does not wait behind data that do."""

    @action(c="channels", fairness=WEAK)
    def emit(self, s, c):
        """A barrier is sent whatever waits ahead of it."""
        s.barrier[c].ahead = 0
        super().emit(s, c)


class BarrierCostsCredit(CreditBarriers, variant="barrier-costs-credit"):
    """The sender treats a barrier as it does data."""

    @action(c="channels", fairness=WEAK)
    def emit(self, s, c):
        """A credit is spent for a barrier, which takes no buffer at the receiver and so gives none back."""
        require(s.flow.credit[c] > 0)
        super().emit(s, c)
        s.flow.credit[c] -= 1


class NotStopped(CreditBarriers, variant="not-stopped"):
    """The sender goes on after a barrier."""

    def barrier_of(self, c: int) -> Barrier:
        """A barrier that stops nobody."""
        return Passable(checkpoints=self.checkpoints, most=self.depth)


class Aligned(CreditBarriers, variant="aligned"):
    """One task reads all channels and waits for all barriers."""

    aligned: bool = True


class NoExclusive(CreditBarriers, variant="zero-exclusive"):
    """Channels live on the pool; what one has is given back while it is stopped, and credits are forgotten at both ends."""

    exclusive: int = 0
    aligned: bool = True
    limits = {"exclusive": (0, 0), "floating": (1, None)}

    def flow_control(self) -> Credit:
        """Channels with void credits."""
        return Revocable(**self.capacities())

    def barrier_of(self, c: int) -> Barrier:
        """A barrier after which old and new credits must be distinguished."""
        return Barrier(checkpoints=self.checkpoints, most=self.depth, void=2 * self.floating)

    def block_channel(self, s, c):
        """The free buffers are returned to the pool, and no more are requested."""
        self.flow.lend(s.flow, -s.flow.free[c])
        s.flow.lent[c] -= s.flow.free[c]
        s.flow.free[c] = 0
        s.flow.known[c] = 0

    def forget_at_receiver(self, s, c):
        """Unannounced credits are dropped; announced ones arrive before the resumption."""
        s.flow.unannounced[c] = 0
        s.barrier[c].stale = s.flow.announced[c]

    def forget_at_sender(self, s, c):
        """The sender's credits are void."""
        s.flow.credit[c] = 0

    def void(self, s, c):
        """From the arrival of a barrier on all credits, from the resumption on those ahead of it."""
        flow, barrier = s.flow, s.barrier[c]
        if barrier.place in ("QUEUE", "READ"):
            return flow.credit[c] + flow.announced[c] + flow.unannounced[c]
        return flow.credit[c] + barrier.stale if barrier.resuming else 0


class KeepsWhileStopped(NoExclusive, variant="zero-exclusive-keeping"):
    """Before FLINK-16404: a channel that is stopped keeps its floating buffers and the sender its credits."""

    def block_channel(self, s, c):
        """Nothing is given back."""

    def forget_at_receiver(self, s, c):
        """Credits survive; which come before the resumption makes no difference."""
        s.barrier[c].stale = s.flow.announced[c]

    def forget_at_sender(self, s, c):
        """Credits survive."""

    def void(self, s, c):
        """None."""
        return 0


class NotForgotten(NoExclusive, variant="zero-exclusive-no-reset"):
    """Floating buffers are given back, and the sender keeps the credits that stood for them."""

    def forget_at_sender(self, s, c):
        """Credits survive."""
