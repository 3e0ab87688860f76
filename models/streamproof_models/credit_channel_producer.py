"""The producer's end of a channel of credit-based flow control: see `credit_channel`."""

from __future__ import annotations

from streamproof import WEAK, Model, action, require

DATA = ("DATA_BUFFER", "DATA_BUFFER_WITH_CLEAR_END")
"""Kinds of messages that cost a credit and fill a receive buffer."""

BARRIER = "TIMEOUTABLE_ALIGNED_CHECKPOINT_BARRIER"
"""A blocking barrier that may overtake queued messages after a timeout."""

BLOCKING = ("RECOVERY_COMPLETION", "ALIGNED_CHECKPOINT_BARRIER", BARRIER, "ALIGNED_WATERMARK_EVENT")
"""Kinds of events after which the producer stops until it is resumed."""

URGENT = "PRIORITIZED_EVENT_BUFFER"
"""The kind of event that overtakes every queued message."""

LAST = "END_OF_PARTITION"
"""The event after which nothing is sent."""

PLAIN = ("EVENT_BUFFER", "END_OF_DATA", "END_OF_SEGMENT", "RECOVERY_METADATA", "UNALIGNED_WATERMARK_EVENT", LAST)
"""Kinds of events that travel like data and do not block."""

KINDS = (*DATA, URGENT, *BLOCKING, *PLAIN)
"""Kinds of messages: those of `Buffer.DataType`."""


class Producer(Model):
    """A reader of one subpartition and the queue that it reads, or the stored partition."""

    exclusive: int = 1
    """Number of exclusive receive buffers of the channel: the initial credit."""
    pipelined: bool = True
    """Whether the producer hands over its buffers while writing them; otherwise they come from a stored partition."""
    produced: int = 2
    """Maximum number of messages that the producer creates."""

    def name_kinds(self, kinds: tuple[str, ...]) -> None:
        """The kinds of messages there are."""
        self.kinds = kinds
        self.data = tuple(k for k in DATA if k in kinds)
        self.blocking = tuple(k for k in BLOCKING if k in kinds)

    def flushes(self, s):
        """Whether a buffer may be sent in parts while it is written: each may, `produced` in all."""
        return s.sent < s.made

    def repeats(self, s):
        """Whether the backlog may be announced again: not while the last announcement is on its way."""
        return all(m.what == "BUFFER" for m in s.down)

    @action(kind="kinds")
    def enqueue(self, s, kind):
        """The task hands over a buffer, possibly still being written to, or an event."""
        require(self.pipelined)
        require(not s.finished)
        require(not s.abandoned)
        require(s.made < self.produced)
        s.made += 1
        if kind == URGENT:
            s.urgent.push(kind)
        else:
            s.queue.push(kind)
        if kind in self.data:
            s.stock += 1
        if kind == LAST:
            s.finished = True

    @action
    def abandon(self, s):
        """The partition is released with all queued messages; no event announces it."""
        require(len(s.urgent) + len(s.queue) > 0)
        require(not s.abandoned)
        s.abandoned = True
        s.urgent.clear()
        s.queue.clear()

    @action
    def accept(self, s):
        """The request for the subpartition arrives; its initial credit counts from now on."""
        require(s.requests > 0)
        s.requests -= 1
        s.opened = True
        s.credits = self.exclusive

    @action(fairness=WEAK)
    def create(self, s):
        """The partition is there: the reader gets its view and its place in the map of all readers."""
        require(s.opened)
        require(not s.listed)
        require(not s.closed)
        s.listed = True

    @action(fairness=WEAK)
    def add_credit(self, s):
        """Announced credits arrive, each announcement by itself and in their order."""
        require(s.listed)
        require(len(s.up) > 0)
        s.credits += self.worth(s, s.up.pop())
        if s.ahead > 0:
            s.ahead -= 1

    @action(fairness=WEAK)
    def restart(self, s):
        """The consumer's wish to go on arrives, after all credits that were announced before it."""
        require(s.listed)
        require(s.resuming)
        require(s.ahead == 0)
        require(s.blocked)
        s.resuming = False
        s.blocked = False
        if self.exclusive == 0:
            s.credits = 0

    @action(size="size", backlog="amount", skipped="dropped", kept=[False, True], more=[False, True], fairness=WEAK)
    def send_data(self, s, size, backlog, skipped, kept, more):
        """A buffer goes out for a credit. Empty finished ones before it are `skipped`; one still written to is `kept`.
        With `more` to send the reader is queued again."""
        require(self.pipelined)
        self.may_send(s)
        require(len(s.urgent) == 0)
        self.skip(s, skipped)
        require(len(s.queue) > 0)
        require(s.queue.head in self.data)
        require(self.may_pay(s))
        require(size > 0 or self.exclusive == 0)
        kind = s.queue.head
        s.credits = max(s.credits - 1, 0)
        if kept:
            require(len(s.queue) == 1)
            require(self.flushes(s))
        else:
            s.queue.pop()
            s.stock -= 1
        require(self.states(s, backlog))
        self.put(s, kind, size, backlog, 1)
        self.queue_again(s, more)

    @action(size="size", backlog="amount", skipped="dropped", more=[False, True], fairness=WEAK)
    def send_event(self, s, size, backlog, skipped, more):
        """An event goes out, for nothing. After one of a blocking kind only urgent ones go until the consumer resumes."""
        require(self.pipelined)
        self.take_turn(s)
        if len(s.urgent) > 0:
            require(skipped == 0)
            kind = s.urgent.pop()
            require(self.states(s, backlog))
            self.put(s, kind, size, backlog, 1)
        else:
            require(not s.blocked)
            self.skip(s, skipped)
            require(len(s.queue) > 0)
            require(s.queue.head not in self.data)
            kind = s.queue.pop()
            if kind in self.blocking:
                require(backlog == 0)
                s.blocked = self.stops()
            else:
                require(self.states(s, backlog))
            self.put(s, kind, size, backlog, 1)
        self.queue_again(s, more)

    @action(kind="kinds", size="size", backlog="amount", pieces="pieces", fairness=WEAK)
    def send_stored(self, s, kind, size, backlog, pieces):
        """A message of a stored partition goes out; several buffers may share one, and it costs one credit."""
        require(not self.pipelined)
        self.may_send(s)
        require(not s.finished)
        require(s.made < self.produced)
        s.made += 1
        if kind in self.data:
            require(self.may_pay(s))
            s.credits = max(s.credits - 1, 0)
        else:
            require(pieces == 1)
        if kind in self.blocking:
            require(backlog == 0)
            s.blocked = self.stops()
        if kind == LAST:
            s.finished = True
        self.put(s, kind, size, backlog, pieces)

    @action(backlog="amount", fairness=WEAK)
    def tell_backlog(self, s, backlog):
        """Without initial credit, the backlog must be announced in a separate message."""
        require(self.exclusive == 0)
        require(not s.registered)
        self.may_send(s)
        require(s.credits == 0)
        require(backlog > 0)
        if self.pipelined:
            require(len(s.urgent) == 0)
            require(len(s.queue) > 0 and s.queue.head in self.data)
            require(self.states(s, backlog))
        require(self.repeats(s))
        s.down.push({"what": "BACKLOG", "kind": self.kinds[0], "seq": 0, "size": 0, "backlog": backlog, "pieces": 1})

    @action
    def cancel(self, s):
        """A request to cancel arrives, and takes the reader out of the queue of available ones. The consumer sends one when
        it gives the channel up, and one more for each message that reaches it later. A reader that is in the map of all
        readers is released then (`close`); of one that is not, `registered` stays as it is."""
        require(self.may_cancel(s))
        require(s.cancels <= len(s.down))
        s.cancels += 1
        s.queued = False

    @action
    def close(self, s):
        """The reader is released, on a request to cancel or with its connection. Only with the connection this is the end:
        a notification that was under way queues the reader once more, and what the partition still has is sent."""
        require(s.opened)
        require(s.listed)
        s.listed = False
        s.queued = False
        s.registered = False
        s.closed = True

    def may_cancel(self, s):
        """Whether the consumer has requested the subpartition and has a reason to release it."""
        return s.opened and s.released

    def sends_late(self, s):
        """Whether a released reader continues; one of a stored partition has no more data."""
        return self.pipelined and s.closed and s.cancels > 0

    def take_turn(self, s):
        """The common condition for messages: the reader is queued, or not registered as queued, so that a notification
        or a credit may just have queued it. One that is registered and not queued never sends again."""
        require(s.opened)
        require(s.listed or self.sends_late(s))
        require(s.queued or not s.registered)
        s.queued = False
        s.registered = False

    def queue_again(self, s, more):
        """The reader is queued again if it can send more."""
        require(not more or len(s.urgent) > 0 or (not s.blocked and len(s.queue) > 0))
        s.queued = more
        s.registered = more

    def may_pay(self, s):
        """Whether there is a credit for a data message."""
        return s.credits > 0

    def worth(self, s, n):
        """The credit gained from an announcement."""
        return n

    def stops(self) -> bool:
        """Whether a blocking event stops the producer."""
        return True

    def may_send(self, s):
        """The common condition for messages of the producer that are not urgent."""
        self.take_turn(s)
        require(not s.blocked)

    def skip(self, s, number):
        """Finished empty buffers leave the queue unsent."""
        for _ in range(number):
            require(len(s.queue) > 0)
            require(s.queue.head in self.data)
            s.queue.pop()
            s.stock -= 1

    def states(self, s, backlog):
        """The possible backlog announcements: all queued data, or all but the last, which may be unfinished."""
        if s.blocked or len(s.queue) == 0:
            return backlog == 0
        if s.stock == 0 or s.queue[len(s.queue) - 1] not in self.data:
            return backlog == s.stock
        return backlog == s.stock or backlog == s.stock - 1

    def put(self, s, kind, size, backlog, pieces):
        """A message goes out under the next number, or numbers."""
        s.down.push({"what": "BUFFER", "kind": kind, "seq": s.sent, "size": size, "backlog": backlog, "pieces": pieces})
        s.sent += pieces
