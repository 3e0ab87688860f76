"""Credit-based flow control with checkpoint barriers: the machine of `credit`, with a barrier machine per channel.

A barrier is an event: it travels in order with the data of its channel and costs no credit. It is also a blocking
event: after sending one, the sender sends nothing more on that channel until the receiver, which has read it and done
its part of the checkpoint, resumes it.

The counters of `credit` do not distinguish old and new buffers, so the position of a barrier is a number: how many
buffers are ahead of it. Announced credits and the message that resumes a sender also travel in order.

Abstractions: those of `credit`; no barriers that overtake data (unaligned checkpoints).
"""

from __future__ import annotations

from typing import ClassVar

from streamproof import WEAK, Bool, Enum, Model, Parts, Range, State, action, each, require
from streamproof_models.credit.machine import Credit


class Barrier(Model):
    """Where the barrier of one channel is, and how much data is ahead of it. It takes its steps with the channel's."""

    checkpoints: int = 1
    """Barriers that come, one after the other."""
    most: int = 1
    """Maximum number of buffers ahead of a barrier."""
    void: int = 0
    """Maximum number of credits announced before ResumeConsumption, if they become void."""

    def state(self):
        """No barrier."""
        return State(
            checkpoints_left=Range(0, self.checkpoints, init=self.checkpoints),
            place=Enum("NONE", "BACKLOG", "IN_FLIGHT", "RECEIVED", "READ"),  # as the buffers of `credit`
            ahead=Range(0, self.most),  # buffers ahead of the barrier in its place
            older=Range(0, self.most),  # unread buffers that were produced before the barrier
            resuming=Bool(),  # ResumeConsumption is on its way
            void_credit=Range(0, self.void),  # credits announced before ResumeConsumption, if they become void
        )

    def is_blocked(self, s):
        """PipelinedSubpartition.isBlocked: the sender has sent a barrier and was not resumed."""
        return s.place in ("IN_FLIGHT", "RECEIVED", "READ") or s.resuming

    def enter(self, s, ahead, older):
        """A barrier is queued behind `ahead` buffers at its sender; `older` ones in total have not been read."""
        require(s.checkpoints_left > 0 and s.place == "NONE")
        s.checkpoints_left -= 1
        s.place = "BACKLOG"
        s.ahead = ahead
        s.older = older

    def move(self, s, start, end, ahead):
        """The barrier, first in its place, moves behind `ahead` buffers in the next place."""
        require(s.place == start and s.ahead == 0)
        s.place = end
        s.ahead = ahead

    @action
    def send(self, s):
        """A buffer is sent: not past the barrier, and not after it before the sender is resumed."""
        require(not self.is_blocked(s) and (s.place != "BACKLOG" or s.ahead > 0))
        if s.place == "BACKLOG":
            s.ahead -= 1

    @action
    def announce_backlog(self, s):
        """A blocked sender does not announce its backlog."""
        require(not self.is_blocked(s))

    @action
    def receive(self, s):
        """A buffer arrives."""
        if s.place == "IN_FLIGHT" and s.ahead > 0:
            s.ahead -= 1

    @action
    def consume(self, s):
        """A buffer is read."""
        if s.older > 0:
            s.older -= 1
        if s.place == "RECEIVED" and s.ahead > 0:
            s.ahead -= 1

    @action
    def add_credit(self, s):
        """An announced credit arrives: those announced before ResumeConsumption arrive before it, later ones after it."""
        if self.void > 0:
            require(not s.resuming or s.void_credit > 0)
            if s.resuming:
                s.void_credit -= 1

    @action
    def release(self, s):
        """The channel is released, with its barrier."""
        s.place = "NONE"
        s.ahead = 0
        s.older = 0
        s.resuming = False
        s.void_credit = 0


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
    instance_bounds = ("depth", "checkpoints")
    check_deadlock = False
    """A consumer may always stall, so there is no deadlock; liveness is stated by temporal properties."""
    limits = {**Credit.limits, "checkpoints": (1, None)}
    sizes = {"small": {}, "medium": {"depth": 2}, "large": {"depth": 2, "floating": 2, "checkpoints": 2}}

    def setup(self):
        """The tasks, each with the channels that it reads."""
        channels = list(range(self.channels))
        self.reads = [channels] if self.aligned else [[c] for c in channels]
        self.tasks = len(self.reads)

    def parts(self):
        """The flow control, and a barrier beside each of its channels."""
        parts = Parts(flow=self.flow_control(), barrier=each(self.channels, self.barrier_of))
        for rule in ("send", "announce_backlog", "receive", "consume", "add_credit", "release"):
            parts = parts.together(rule, f"flow.{rule}(c)", f"barrier[c].{rule}()", doc=getattr(Credit, rule).__doc__)
        return parts

    def flow_control(self, model: type[Credit] = Credit) -> Credit:
        """The channels."""
        return model(channels=self.channels, exclusive=self.exclusive, floating=self.floating, depth=self.depth)

    def barrier_of(self, c: int) -> Barrier:
        """The barrier of a channel."""
        return Barrier(checkpoints=self.checkpoints, most=self.depth)

    @action(c="channels", fairness=WEAK)
    def trigger(self, s, c):
        """A checkpoint reaches a sender: its barrier is queued behind the buffers produced so far."""
        require(s.flow.consumer[c] != "GONE")
        waiting = s.flow.buffers_in_backlog[c]
        self.barrier[c].enter(s.barrier[c], waiting, waiting + s.flow.in_flight[c] + s.flow.received_buffers[c])

    @action(c="channels", fairness=WEAK)
    def send_barrier(self, s, c):
        """A barrier goes on the wire, without a credit; the sender is blocked."""
        require(not s.barrier[c].resuming)
        self.barrier[c].move(s.barrier[c], "BACKLOG", "IN_FLIGHT", s.flow.in_flight[c])

    @action(c="channels", fairness=WEAK)
    def receive_barrier(self, s, c):
        """A barrier arrives, without a buffer."""
        self.barrier[c].move(s.barrier[c], "IN_FLIGHT", "RECEIVED", s.flow.received_buffers[c])

    @action(c="channels", fairness=WEAK)
    def read_barrier(self, s, c):
        """A consumer that has read everything ahead of a barrier reads the barrier."""
        require(s.flow.consumer[c] == "LIVE")
        self.barrier[c].move(s.barrier[c], "RECEIVED", "READ", 0)

    @action(task="tasks", fairness=WEAK)
    def resume_consumption(self, s, task):
        """A task has read the barriers of all its channels, has done its part of the checkpoint, and resumes the senders."""
        channels = self.reads[task]
        require(any(s.barrier[c].place == "READ" for c in channels))
        require(all(s.barrier[c].place == "READ" or s.flow.consumer[c] == "GONE" for c in channels))
        for c in channels:
            if s.barrier[c].place == "READ":
                self.resume_channel(s, c)

    def resume_channel(self, s, c):
        """ResumeConsumption is sent."""
        s.barrier[c].place = "NONE"
        s.barrier[c].older = 0
        s.barrier[c].resuming = True

    @action(c="channels", fairness=WEAK)
    def resume_sender(self, s, c):
        """ResumeConsumption arrives."""
        require(s.barrier[c].resuming and s.barrier[c].void_credit == 0)
        s.barrier[c].resuming = False

    def void(self, s, c):
        """Credits without a buffer."""
        return 0
