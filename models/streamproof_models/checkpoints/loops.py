"""Checkpoints of a job with a loop: barriers, the log of the feedback edge, a restart, and the end of the loop.

FLIP-15, part II, says only that "the fault tolerance logic for cycles (upstream logging) can be embedded" in the feedback
channel. The protocol is that of Carbone et al., Lightweight Asynchronous Snapshots for Distributed Dataflows, section 4.3.

A source feeds the *head* of a loop. The head sends each record to the *body*, which lets it leave the loop or sends it
back on the feedback edge, as often as it likes: the loop may contain records without end. A barrier enters with the records.
The head takes its snapshot when it reads the barrier, sends it on, and from then on logs what it reads from the feedback
edge, until the barrier has returned: those records were sent before the snapshot of the body and received after its
own. The log is part of the head's snapshot. After a failure all tasks restart, and the feedback edge begins with the log.

When the source has ended, the head sends a baton around its loop, again and again, and ends when it returns and no record
did in between (the only head of one loop: `baton` has several). A restart begins a new attempt.

Abstractions: acknowledgements, notifications and the end of all tasks at a restart take no time (`checkpoints` has
these); a source that has ended passes barriers on (FLIP-147); the feedback edge is unbounded (`cyclic`).
"""

from __future__ import annotations

from streamproof import (
    WEAK,
    Array,
    Bool,
    Enum,
    Model,
    Queue,
    Range,
    Record,
    State,
    action,
    choose,
    measure,
    require,
    terminal,
)

TASKS = ("SOURCE", "HEAD", "BODY")


class LoopCheckpoints(Model):
    """One loop with its source, and the coordinator of its checkpoints. Checkpoints and records are numbered from 1."""

    name = "loop_checkpoints"
    sizes = {
        "small": {},
        "medium": {"records": 3, "failures": 2},
        "large": {"records": 3, "checkpoints": 3, "failures": 2},
    }

    records: int = 2
    """Number of records of the source."""
    checkpoints: int = 2
    """Number of checkpoints that are triggered."""
    failures: int = 1
    """Number of failures."""
    aborts: int = 1
    """Number of pending checkpoints that are aborted."""

    limits = {"records": (1, None), "checkpoints": (0, None), "failures": (0, None), "aborts": (0, None)}

    # --- a number that variants change

    copies = 1
    """How often an edge has room for each record."""

    def setup(self):
        """Records, and the largest number of items on an edge: all records and barriers, END and a baton."""
        self.every = range(1, self.records + 1)
        self.room = self.copies * self.records + self.checkpoints + 1

    def state(self):
        """The job starts from nothing."""
        checkpoint = Range(0, self.checkpoints)
        item = Record(
            kind=Enum("RECORD", "BARRIER", "END", "BATON"),
            of=Range(0, max(self.records, self.checkpoints)),  # number of the record or checkpoint
            odd=Bool(),  # on the feedback edge: whether an odd number of records was sent before
        )
        edge = Queue(item, capacity=self.room)
        log = Queue(item, capacity=self.room)
        counts = Array(self.every, Range(0, 2))
        snapshot = Record(
            emitted=Range(0, self.records),
            read_odd=Bool(),
            log=log,
            sent_odd=Bool(),
            out=counts,
        )
        return State(
            # source, head and body, and the edges before and behind them
            emitted=Range(0, self.records),  # the offset of the source
            ended=Bool(),  # the source has sent END
            forward=edge,
            phase=Enum("RUNNING", "ATTEMPTING", "TERMINATED"),
            dirty=Bool(),  # the head has read a record since it sent the baton
            read_odd=Bool(),  # state of the head: the number of records read from the feedback edge, modulo 2
            inner=edge,
            sent_odd=Bool(),  # state of the body: the number of records sent back, modulo 2
            out=counts,  # the number of times that a record has left the loop
            back=edge,
            published=counts,  # what the outside has seen
            # checkpoints
            last_id=checkpoint,
            pending=checkpoint,
            logging=checkpoint,  # whose barrier is away
            log=log,
            acknowledged=Array(TASKS, Bool()),
            taken=snapshot,  # of the pending checkpoint
            stored=snapshot,  # the latest completed checkpoint
            failures_left=Range(0, self.failures, init=self.failures),
            aborts_left=Range(0, self.aborts, init=self.aborts),
        )

    # --- source

    @action(fairness=WEAK)
    def emit(self, s):
        """The source sends the next record."""
        require(s.emitted < self.records)
        s.emitted += 1
        s.forward.push({"kind": "RECORD", "of": s.emitted, "odd": False})

    @action(fairness=WEAK)
    def end_source(self, s):
        """The source has no more records."""
        require(s.emitted == self.records and not s.ended)
        s.ended = True
        s.forward.push({"kind": "END", "of": 0, "odd": False})

    @action
    def trigger(self, s):
        """The coordinator triggers the next checkpoint; the source takes its snapshot and sends the barrier."""
        require(s.pending == 0 and s.last_id < self.checkpoints and s.phase != "TERMINATED")
        s.last_id += 1
        s.pending = s.last_id
        s.taken.emitted = s.emitted
        s.acknowledged["SOURCE"] = True
        s.forward.push({"kind": "BARRIER", "of": s.last_id, "odd": False})

    # --- head

    @action(fairness=WEAK)
    def read_record(self, s):
        """The head reads a record from its forward input."""
        self.take_forward(s, "RECORD")
        s.inner.push(s.forward.pop())

    @action(fairness=WEAK)
    def read_barrier(self, s):
        """The head reads a barrier from its forward input: it departs."""
        self.take_forward(s, "BARRIER")
        require(self.may_depart(s))
        self.depart(s, s.forward.head.of)
        s.inner.push(s.forward.pop())

    @action(fairness=WEAK)
    def read_end(self, s):
        """The head reads END, and starts the first attempt to end the loop."""
        self.take_forward(s, "END")
        s.forward.pop()
        s.phase = "ATTEMPTING"
        self.attempt(s)

    def take_forward(self, s, kind):
        """The head may read an item of that kind from its forward input."""
        require(len(s.forward) > 0 and s.forward.head.kind == kind)

    def may_depart(self, s):
        """Whether the head reads a barrier now: always."""
        return True

    def depart(self, s, c):
        """The head takes its snapshot, and begins to log."""
        if s.pending == c:
            s.taken.read_odd = s.read_odd
        self.begin_log(s, c)

    def begin_log(self, s, c):
        """An empty log."""
        s.logging = c
        s.log.clear()

    def attempt(self, s):
        """The head sends the baton around."""
        s.dirty = False
        s.inner.push({"kind": "BATON", "of": 0, "odd": False})

    @action(fairness=WEAK)
    def read_back(self, s):
        """The head reads a record from the feedback edge, logs it if a barrier is away, and sends it on."""
        self.take_back(s, "RECORD")
        self.log_read(s)
        s.read_odd = not s.read_odd
        self.note_record(s)
        s.inner.push({"kind": "RECORD", "of": s.back.pop().of, "odd": False})

    def take_back(self, s, kind):
        """The head may read an item of that kind from the feedback edge."""
        require(len(s.back) > 0 and s.back.head.kind == kind)

    def log_read(self, s):
        """What the head reads while a barrier is away."""
        if s.logging != 0:
            s.log.push(s.back.head)

    def note_record(self, s):
        """A baton that is away does not end the loop."""
        s.dirty = s.phase == "ATTEMPTING"

    @action(fairness=WEAK)
    def return_barrier(self, s):
        """A barrier returns: the log is complete, and with it the head's snapshot."""
        self.take_back(s, "BARRIER")
        self.arrive(s, s.back.pop().of)

    def arrive(self, s, c):
        """The head acknowledges, unless the checkpoint is no longer pending."""
        if s.logging == c:
            if s.pending == c:
                s.taken.log = list(s.log)
                s.acknowledged["HEAD"] = True
            self.end_log(s)

    def end_log(self, s):
        """The head logs no more."""
        s.logging = 0
        s.log.clear()

    @action(fairness=WEAK)
    def return_baton(self, s):
        """The baton returns: the loop ends, unless the head has read a record from it in between."""
        self.take_back(s, "BATON")
        s.back.pop()
        if self.may_end(s):
            s.phase = "TERMINATED"
            s.pending = 0
            self.publish(s, s.out)
        else:
            self.attempt(s)

    def may_end(self, s):
        """Whether the head has read no record since it sent the baton."""
        return not s.dirty

    # --- body

    @action(fairness=WEAK)
    def process(self, s):
        """The body reads a record, which leaves the loop or is sent back."""
        require(len(s.inner) > 0 and s.inner.head.kind == "RECORD")
        r = s.inner.pop().of
        leaves = choose([True, False])
        if leaves:
            s.out[r] += 1
        else:
            self.send_record(s, r)

    def send_record(self, s, r):
        """The body sends a record back."""
        self.send_back(s, {"kind": "RECORD", "of": r, "odd": s.sent_odd})
        s.sent_odd = not s.sent_odd

    def send_back(self, s, item):
        """The feedback edge is a queue."""
        s.back.push(item)

    @action(fairness=WEAK)
    def pass_barrier(self, s):
        """The body takes its snapshot, and sends the barrier back."""
        require(len(s.inner) > 0 and s.inner.head.kind == "BARRIER")
        c = s.inner.head.of
        if s.pending == c:
            s.taken.sent_odd = s.sent_odd
            s.taken.out = list(s.out)
            s.acknowledged["BODY"] = True
            self.prepare(s)
        self.send_barrier(s, c)
        s.inner.pop()

    def prepare(self, s):
        """The body's output is prepared, and published when the checkpoint is complete."""

    def send_barrier(self, s, c):
        """Behind the records that were sent before."""
        self.send_back(s, {"kind": "BARRIER", "of": c, "odd": False})

    @action(fairness=WEAK)
    def pass_baton(self, s):
        """The body, which holds no record, sends the baton back."""
        require(len(s.inner) > 0 and s.inner.head.kind == "BATON")
        self.send_back(s, s.inner.pop())

    # --- coordinator

    @action(fairness=WEAK)
    def complete(self, s):
        """All tasks have acknowledged: the checkpoint is stored, and what the body had put out before is published."""
        require(s.pending != 0 and all(s.acknowledged))
        s.stored = s.taken
        self.publish(s, s.taken.out)
        self.drop(s)

    def publish(self, s, out):
        """What the outside has not seen yet."""
        for r in self.every:
            s.published[r] = max(s.published[r], out[r])

    def drop(self, s):
        """No checkpoint is pending."""
        s.pending = 0
        s.acknowledged = {"SOURCE": False, "HEAD": False, "BODY": False}
        s.taken = self.nothing(s)

    def nothing(self, s):
        """An empty snapshot."""
        return {
            "emitted": 0,
            "read_odd": False,
            "log": [],
            "sent_odd": False,
            "out": [0] * self.records,
        }

    @action
    def abort(self, s):
        """The pending checkpoint is aborted; its barrier goes on."""
        require(s.pending != 0 and s.aborts_left > 0)
        s.aborts_left -= 1
        self.drop(s)

    # --- failures

    @action
    def fail(self, s):
        """A task fails: all restart from the latest completed checkpoint, with empty edges but for the log."""
        require(s.failures_left > 0 and s.phase != "TERMINATED")
        s.failures_left -= 1
        self.drop(s)
        self.end_log(s)
        s.emitted = s.stored.emitted
        s.read_odd = s.stored.read_odd
        s.sent_odd = s.stored.sent_odd
        s.out = list(s.stored.out)
        s.forward.clear()
        s.inner.clear()
        self.restart_attempt(s)
        self.replay(s)

    def restart_attempt(self, s):
        """The source sends END again, with which a new attempt begins."""
        s.ended = False
        s.phase = "RUNNING"
        s.dirty = False

    def replay(self, s):
        """The feedback edge begins with the log."""
        s.back = list(s.stored.log)

    @terminal
    def done(self, s):
        """The loop has ended."""
        return s.phase == "TERMINATED"

    @measure
    def longest_log(self, s):
        """Number of logged records."""
        return len(s.log)
