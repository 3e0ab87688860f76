"""One channel of credit-based flow control, with both ends, message by message, as in Apache Flink.

The producer's end is a reader of one subpartition (`CreditBasedSequenceNumberingViewReader`, `PartitionRequestQueue`,
`PipelinedSubpartition`), the consumer's end an input channel and its buffers (`RemoteInputChannel`, `BufferManager`);
Flink 1.17 to 2.3. Each action is one call on either end, so a record of these calls can be followed step by step; calls
that Flink nests or makes consecutively in one thread are separate actions, linked by `stated` and `owed`.

A credit is a free receive buffer reserved by the consumer. A data message costs one, an event none; both share one sequence
of numbers. Data announce the producer's backlog: the consumer then requires `backlog + exclusive` buffers and requests the
missing ones. A blocking event stops the producer until the consumer resumes it; without exclusive buffers both ends then
restart at zero, and the producer announces its backlog in a separate message.

Abstractions: other channels of the gate (the pool is nondeterministic), contents of buffers (only sizes), whether the last
buffer of a queue is finished or flushed (so the announced backlog may be one less than the actual one).
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Option, Queue, Range, Record, State, action, require, terminal
from streamproof_models.credit_channel_producer import BARRIER, BLOCKING, DATA, KINDS, PLAIN, URGENT, Producer

__all__ = ["BARRIER", "BLOCKING", "DATA", "KINDS", "PLAIN", "SMALL", "URGENT", "CreditChannel", "RecordedChannel"]

SMALL = ("DATA_BUFFER", "ALIGNED_CHECKPOINT_BARRIER", URGENT)
"""Kinds of messages in an exploration: one per treatment."""


class CreditChannel(Producer):
    """A producer's reader and a consumer's channel, and the messages between them."""

    name = "credit_channel"

    threads: int = 1
    """Number of threads in which the consumer handles buffers. The first is the network thread, in which messages arrive."""
    floating: int = 1
    """Maximum number of buffers that the pool grants to the channel."""
    overtaking: bool = False
    """Whether there are events that overtake queued messages."""

    check_deadlock = False
    """A consumer may always be slow, so there is no deadlock."""
    limits = {
        "exclusive": (0, None),
        "threads": (1, None),
        "produced": (1, None),
        "floating": (0, None),
    }
    sizes = {
        "small": {"produced": 1},
        "medium": {"overtaking": True, "threads": 2},
        "large": {"produced": 3},
    }

    def setup(self):
        """The possible backlog announcements of the producer."""
        self.name_kinds(SMALL if self.overtaking else SMALL[:2])
        self.size = range(2)
        self.amount = range(self.produced + 1)
        self.loan = range(self.floating + 1)
        self.pieces = range(1, 2 if self.pipelined else 3)
        self.dropped = [0, 1]
        self.tasks = range(min(1, self.threads - 1), self.threads)

    def state(self):
        """Nothing is connected."""
        most = self.most()
        long = self.produced + 1
        kind = Enum(*self.kinds)
        message = Record(
            what=Enum("BUFFER", "BACKLOG"),
            kind=kind,
            seq=Range(0, long * 2),
            size=Range(0, long * 4),
            backlog=Range(0, long),
            pieces=Range(1, long * 2),
        )
        received = Record(seq=Range(0, long * 2), kind=kind, size=Range(0, long * 4), own=Bool())
        return State(
            # the producer
            opened=Bool(),
            credits=Range(0, most),
            sent=Range(0, long * 2),
            blocked=Bool(),
            finished=Bool(),
            closed=Bool(),
            listed=Bool(),
            queued=Bool(),
            registered=Bool(),
            cancels=Range(0, long * 3 + 1),
            made=Range(0, long),
            urgent=Queue(kind, capacity=long),
            queue=Queue(kind, capacity=long),
            stock=Range(0, long),
            abandoned=Bool(),
            # under way
            requests=Range(0, 2),
            down=Queue(message, capacity=long * 3),
            up=Queue(Range(1, most), capacity=long * 2),
            resuming=Bool(),
            ahead=Range(0, long * 2),
            # the consumer
            ready=Bool(),
            free=Range(0, self.exclusive),
            borrowed=Range(0, most),
            required=Range(-long * 2, long + self.exclusive, init=0),
            waiting=Bool(),
            unannounced=Range(0, most),
            expected=Range(0, long * 2),
            holding=Bool(),
            own=Bool(),
            piece=Range(0, long * 2),
            filled=Range(0, long * 4),
            stated=Option(Range(0, long)),
            noted=Bool(),
            used=Range(0, self.exclusive),
            owed=Array(range(self.threads), Option(Range(0, most))),
            inbox=Queue(received, capacity=long * 2),
            first=Queue(received, capacity=long * 2),
            barrier=Option(received),
            stop=Enum("NO", "COMING", "HERE", "HANDLED"),
            drained=Bool(),
            released=Bool(),
            emptied=Bool(),
        )

    def most(self) -> int:
        """Maximum number of buffers and credits of the channel at a time."""
        return self.exclusive + self.floating + self.produced

    def lends(self, s, n):
        """Whether the pool can grant that many more buffers to the channel."""
        return s.borrowed + n <= self.floating

    # --- the consumer: connecting

    @action
    def set_aside(self, s):
        """The channel gets its exclusive buffers."""
        require(not s.ready)
        s.ready = True
        s.free = self.exclusive

    @action
    def request(self, s):
        """The subpartition is requested; the initial credit goes with the request."""
        require(s.ready)
        require(not s.released)
        require(s.requests == 0)
        require(not s.opened)
        s.requests = 1

    # --- the consumer: arriving messages

    def in_network(self, s):
        """The network thread is sequential: it finishes the actions caused by a message before it continues."""
        require(s.stated is None)
        require(s.owed[0] is None)

    @action(fairness=WEAK)
    def take(self, s):
        """A free buffer, a floating one if possible, is taken for the data message that arrives."""
        self.in_network(s)
        require(len(s.down) > 0)
        require(s.down.head.what == "BUFFER")
        require(s.down.head.kind in self.data)
        require(not s.holding)
        require(s.free + s.borrowed > 0)
        s.holding = True
        s.required -= 1
        if s.borrowed > 0:
            s.borrowed -= 1
        else:
            s.free -= 1
            s.own = True

    @action
    def take_none(self, s):
        """A released channel has no buffer for arriving messages."""
        self.in_network(s)
        require(s.released)
        require(len(s.down) > 0)
        if s.holding:
            require(self.turned_away(s))
        else:
            require(s.down.head.what == "BUFFER")
            require(s.down.head.kind in self.data)
        require(s.free + s.borrowed == 0)
        s.holding = True
        s.required -= 1

    def turned_away(self, s):
        """Whether the message for which a buffer was requested before may have been dropped without a record."""
        return False

    @action(fairness=WEAK)
    def stop_coming(self, s):
        """A blocking event arrives: nothing follows it until the consumer resumes."""
        self.in_network(s)
        require(len(s.down) > 0)
        require(s.down.head.what == "BUFFER")
        require(s.down.head.kind in self.blocking)
        require(s.stop == "NO")
        s.stop = "COMING"
        s.drained = self.exclusive > 0

    @action(fairness=WEAK)
    def drain(self, s):
        """A channel without exclusive buffers returns its floating buffers."""
        self.in_network(s)
        require(s.stop == "COMING")
        require(not s.drained)
        s.drained = True
        s.required = 0
        s.borrowed = 0

    @action(size="size", fairness=WEAK)
    def receive(self, s, size):
        """A buffer or an event is accepted under the next number. The sizes of those in one message add up to its size."""
        require(not s.released)
        self.next_piece(s)
        m = s.down.head
        require(s.expected == m.seq + s.piece)
        require(s.filled + size == m.size or (s.piece + 1 < m.pieces and s.filled + size < m.size))
        entry = {"seq": s.expected, "kind": m.kind, "size": size, "own": s.own and s.piece + 1 == m.pieces}
        if m.kind in self.blocking:
            require(s.stop == "COMING")
            require(s.drained)
            require(m.backlog == 0)
            s.stop = "HERE"
            s.barrier = entry
            if BARRIER in self.kinds and m.kind == BARRIER:
                s.first.push({"seq": s.expected, "kind": URGENT, "size": size, "own": False})
        elif URGENT in self.kinds and m.kind == URGENT:
            s.first.push(entry)
        else:
            s.inbox.push(entry)
        s.expected += 1
        s.filled += size
        self.pass_piece(s)

    @action(fairness=WEAK)
    def receive_empty(self, s):
        """An empty data message uses its number, and its credit."""
        require(not s.released)
        self.next_piece(s)
        require(s.down.head.kind in self.data)
        require(s.down.head.size == 0)
        require(s.expected == s.down.head.seq + s.piece)
        s.expected += 1
        self.pass_piece(s)

    @action
    def discard(self, s):
        """A message that arrives at a released channel is dropped, and its number not counted."""
        require(s.released)
        require(len(s.down) > 0)
        require(s.down.head.what == "BUFFER")
        s.holding = False
        s.own = False
        self.drop_piece(s)

    @action(fairness=WEAK)
    def hear_backlog(self, s):
        """A backlog announcement arrives."""
        self.in_network(s)
        require(len(s.down) > 0)
        require(s.down.head.what == "BACKLOG")
        s.stated = s.down.head.backlog
        s.noted = True
        s.down.pop()

    @action(fairness=WEAK)
    def note_backlog(self, s):
        """The announced backlog is passed on to the buffer manager."""
        require(s.stated is not None)
        require(not s.noted)
        s.noted = True

    def next_piece(self, s):
        """The common conditions for accepting a message: it has arrived, the last one is handled, data have a buffer."""
        self.in_network(s)
        require(len(s.down) > 0)
        require(s.down.head.what == "BUFFER")
        if s.down.head.kind in self.data:
            require(s.holding)

    def pass_piece(self, s):
        """The next buffer of a message is due, or the next message; the last buffer announces the backlog."""
        if s.piece + 1 == s.down.head.pieces:
            s.stated = s.down.head.backlog
            s.holding = False
            s.own = False
        self.drop_piece(s)

    def drop_piece(self, s):
        """Continues with the next one."""
        if s.piece + 1 == s.down.head.pieces:
            s.piece = 0
            s.filled = 0
            s.down.pop()
        else:
            s.piece += 1

    # --- the consumer: buffers and credits

    @action(got="loan", fairness=WEAK)
    def want(self, s, got):
        """The pool grants the requested buffers as far as possible, and registers the channel as waiting for the others."""
        require(s.noted)
        require(s.stated is not None)
        require(s.owed[0] is None)
        wanted = s.stated + self.exclusive
        s.stated = None
        s.noted = False
        s.owed[0] = got
        if s.released:
            require(got == 0)
        else:
            s.required = wanted
            have = s.free + s.borrowed
            if s.waiting or have >= wanted:
                require(got == 0)
            else:
                require(have + got <= wanted)
                require(self.lends(s, got))
                s.borrowed += got
                s.waiting = have + got < wanted

    @action(t="threads", fairness=WEAK)
    def gain(self, s, t):
        """Gained buffers become credits to announce."""
        require(s.owed[t] is not None)
        s.unannounced += s.owed[t]
        s.owed[t] = None

    @action(got="loan", t="threads", fairness=WEAK)
    def accept_offer(self, s, got, t):
        """The pool offers a buffer to a waiting channel, which takes it and requests further ones."""
        require(s.waiting)
        require(not s.released)
        require(s.owed[t] is None)
        require(s.free + s.borrowed < s.required)
        require(got > 0)
        require(s.free + s.borrowed + got <= s.required)
        require(self.lends(s, got))
        s.borrowed += got
        s.owed[t] = got
        s.waiting = s.free + s.borrowed < s.required

    @action(noted=[True, False], fairness=WEAK)
    def decline_offer(self, s, noted):
        """The pool offers a buffer that the channel no longer needs. A released channel may not even record it."""
        require(s.waiting)
        require(s.released or s.free + s.borrowed >= s.required)
        if noted:
            s.waiting = False
        else:
            require(s.released)

    @action(t="threads", fairness=WEAK)
    def recycle(self, s, t):
        """An exclusive buffer that was consumed returns: a new credit, unless a borrowed one is given back for it."""
        require(s.owed[t] is None)
        if not s.released:
            if s.used > 0:
                s.used -= 1
            else:
                require(s.own)
                require(s.down.head.size == 0)
                s.own = False
            s.free += 1
            if s.free + s.borrowed > s.required and s.borrowed > 0:
                s.borrowed -= 1
            else:
                s.owed[t] = 1

    @action(fairness=WEAK)
    def announce(self, s):
        """All unannounced credits are sent to the producer in one message; without any nothing is sent."""
        if s.unannounced > 0:
            s.up.push(s.unannounced)
        s.unannounced = 0

    # --- the consumer: the task

    @action(fairness=WEAK)
    def poll_first(self, s):
        """The task takes urgent messages first."""
        require(len(s.first) > 0)
        s.first.pop()

    @action(fairness=WEAK)
    def poll(self, s):
        """The task takes messages in the order received."""
        require(len(s.first) == 0)
        require(len(s.inbox) > 0 or s.barrier is not None)
        if len(s.inbox) > 0:
            if s.inbox.head.own:
                s.used += 1
            s.inbox.pop()
        else:
            s.barrier = None
            s.stop = "HANDLED"

    @action
    def poll_late(self, s):
        """A barrier becomes urgent after a timeout, and overtakes messages received before it."""
        require(BARRIER in self.kinds)
        require(len(s.first) == 0)
        require(s.barrier is not None and s.barrier.kind == BARRIER)
        s.barrier = None
        s.stop = "HANDLED"

    @action(t="tasks", fairness=WEAK)
    def resume(self, s, t):
        """The task has handled the blocking event and resumes the producer."""
        require(s.owed[t] is None)
        require(s.stop == "HANDLED")
        require(not s.released)
        require(not s.resuming)
        s.stop = "NO"
        s.resuming = True
        s.ahead = len(s.up)
        if self.exclusive == 0:
            s.unannounced = 0

    @action
    def release(self, s):
        """The channel is released: nothing is accepted from now on."""
        require(not s.released)
        s.released = True

    @action
    def forget(self, s):
        """Messages received and not taken are dropped."""
        require(s.released)
        s.first.clear()
        s.inbox.clear()
        s.barrier = None

    @action
    def empty(self, s):
        """The buffers of a released channel are returned."""
        require(s.released)
        require(not s.emptied)
        s.emptied = True
        s.used = 0
        s.own = False
        s.free = 0
        s.borrowed = 0

    @terminal
    def over(self, s):
        """Both ends are gone."""
        return s.closed and s.released


class DoubledCredit(CreditChannel, variant="doubled-credit"):
    """An announcement counts twice."""

    def worth(self, s, n):
        """Twice, as far as the machine can count."""
        return min(2 * n, self.most() - s.credits)


class Unpaid(CreditChannel, variant="unpaid"):
    """Data are sent whether there is credit or not."""

    def may_pay(self, s):
        """Always."""
        return True


class BarrierPasses(CreditChannel, variant="barrier-passes"):
    """A blocking event stops nobody."""

    def stops(self) -> bool:
        """Never."""
        return False


class RecordedChannel(CreditChannel):
    """A channel as it was recorded: nothing bounds its numbers but what they mean."""

    name = "credit_channel"

    given_up: bool = True
    """Whether the record says when the consumer released the channel."""

    def setup(self):
        """Numbers are as large as they come."""
        super().setup()
        self.name_kinds(KINDS)
        self.size = range(self.produced + 1)
        self.loan = range(self.produced + 1)
        self.pieces = range(1, self.produced + 1)

    def turned_away(self, s):
        """What reaches a released channel leaves no record."""
        return len(s.down) > 1

    @action
    def refuse(self, s):
        """The request arrives before the partition is there, and fails (Flink 1.17). The call leaves no record."""
        require(s.requests > 0)
        require(not s.listed)
        s.requests -= 1

    @action
    def request_again(self, s):
        """The consumer was notified that the partition does not exist, and repeats its request. If only one request has
        left a record it may be this one, and the reader may already exist."""
        require(s.ready)
        require(not s.released)
        require(s.requests == 0)
        require(s.expected == 0)
        if not s.listed and not s.closed:
            s.requests = 1

    def may_cancel(self, s):
        """After the release, or at any time where that is not recorded."""
        return (s.opened or s.requests == 0) and (s.released or not self.given_up)

    def lends(self, s, n):
        """The pool is shared: what it has left is not the channel's to know."""
        return True

    def flushes(self, s):
        """As often as the producer likes."""
        return True

    def repeats(self, s):
        """Whenever there is reason to."""
        return True
