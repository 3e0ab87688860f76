"""The log of a feedback edge as counts: `loop_checkpoints` for any number of records and failures, without queues.

An edge is two numbers: the records before the barrier that is in the loop, and those behind it. One barrier is in the loop
at a time, also if its checkpoint was aborted. The forward input, the order of records and the end of the loop are left out.
Each step of `loop_checkpoints` without aborted checkpoints is a step of this machine, or none.
"""

from __future__ import annotations

from streamproof import Enum, Model, Range, State, action, choose, require


class LoopCheckpointCounts(Model):
    """A loop of a head and a body, its checkpoints, and restarts."""

    name = "loop_checkpoint_counts"
    check_deadlock = False
    """Safety only."""

    records: int = 3
    """Number of records of the source."""
    failures: int = 2
    """Number of failures."""

    limits = {"records": (1, None), "failures": (0, None)}

    def state(self):
        """The job starts from nothing."""
        number = Range(0, 2 * self.records)
        return State(
            emitted=number,  # read by the head from the source
            inner=number,  # before the barrier, or all
            inner_behind=number,
            back=number,
            back_behind=number,
            out=number,
            published=number,
            barrier=Enum("NONE", "INNER", "BACK"),
            checkpoint=Enum("NONE", "PENDING", "ACKNOWLEDGED"),
            log=number,
            # of the pending checkpoint, and of the latest one
            taken_emitted=number,
            taken_log=number,
            taken_out=number,
            stored_emitted=number,
            stored_log=number,
            stored_out=number,
            failures_left=Range(0, self.failures, init=self.failures),
        )

    @action
    def emit(self, s):
        """The head reads a record of the source and sends it on."""
        require(s.emitted < self.records)
        s.emitted += 1
        self.send(s)

    def send(self, s):
        """The head sends behind the barrier, if that is on the same edge."""
        if s.barrier == "INNER":
            s.inner_behind += 1
        else:
            s.inner += 1

    @action
    def depart(self, s):
        """The head takes its snapshot, sends the barrier on, and begins to log; the checkpoint may be aborted already."""
        require(s.barrier == "NONE" and s.checkpoint == "NONE")
        s.barrier = "INNER"
        s.log = 0
        if choose(pending=True, aborted=False):
            s.checkpoint = "PENDING"
            s.taken_emitted = s.emitted

    @action
    def process(self, s):
        """The body reads a record before the barrier; it leaves, or is sent back."""
        require(s.inner > 0)
        s.inner -= 1
        if choose(leaves=True, returns=False):
            s.out += 1
        elif s.barrier == "BACK":
            s.back_behind += 1
        else:
            s.back += 1

    @action
    def pass_barrier(self, s):
        """The body takes its snapshot and sends the barrier back."""
        require(s.barrier == "INNER" and s.inner == 0)
        s.barrier = "BACK"
        if s.checkpoint == "PENDING":
            s.taken_out = s.out
        s.inner = s.inner_behind
        s.inner_behind = 0

    @action
    def read_back(self, s):
        """The head reads a record before the barrier, logs it while the barrier is away, and sends it on."""
        require(s.back > 0)
        s.back -= 1
        if self.logs(s):
            s.log += 1
        self.send(s)

    def logs(self, s):
        """Whether the head logs: from the departure of the barrier to its return."""
        return s.barrier != "NONE"

    @action
    def return_barrier(self, s):
        """The barrier returns: the log is complete, and with it the checkpoint acknowledged, unless that was aborted."""
        require(s.barrier == "BACK" and s.back == 0)
        s.barrier = "NONE"
        s.back = s.back_behind
        s.back_behind = 0
        if s.checkpoint == "PENDING":
            s.checkpoint = "ACKNOWLEDGED"
            s.taken_log = s.log
        s.log = 0

    @action
    def complete(self, s):
        """The checkpoint is stored, and what had left the loop before the snapshot of the body is published."""
        require(s.checkpoint == "ACKNOWLEDGED")
        s.stored_emitted = s.taken_emitted
        s.stored_log = s.taken_log
        s.stored_out = s.taken_out
        s.published = s.stored_out
        self.drop(s)

    @action
    def abort(self, s):
        """The checkpoint is aborted; its barrier goes on."""
        require(s.checkpoint != "NONE")
        self.drop(s)

    def drop(self, s):
        """No checkpoint is pending."""
        s.checkpoint = "NONE"
        s.taken_emitted = 0
        s.taken_log = 0
        s.taken_out = 0

    @action
    def fail(self, s):
        """All tasks restart from the latest checkpoint, with the log on the feedback edge."""
        require(s.failures_left > 0)
        s.failures_left -= 1
        self.drop(s)
        s.barrier = "NONE"
        s.log = 0
        s.emitted = s.stored_emitted
        s.out = s.stored_out
        s.inner = 0
        s.inner_behind = 0
        s.back = self.replayed(s)
        s.back_behind = 0

    def replayed(self, s):
        """The log, once."""
        return s.stored_log


class NotReplayedCounts(LoopCheckpointCounts, variant="not-replayed"):
    """The log is not replayed."""

    def replayed(self, s):
        """Nothing."""
        return 0


class ReplayedTwiceCounts(LoopCheckpointCounts, variant="replayed-twice"):
    """The log is replayed twice."""

    failures: int = 1

    def replayed(self, s):
        """Twice."""
        return 2 * s.stored_log


class EndsEarlyCounts(LoopCheckpointCounts, variant="ends-early"):
    """The log ends when the body has its snapshot."""

    def logs(self, s):
        """Until then."""
        return s.barrier == "INNER"


class BeginsLateCounts(LoopCheckpointCounts, variant="begins-late"):
    """The log begins when the body has its snapshot."""

    def logs(self, s):
        """From then on."""
        return s.barrier == "BACK"


class PublishedAtSnapshotCounts(LoopCheckpointCounts, variant="published-at-snapshot"):
    """The body publishes its output with its snapshot."""

    @action
    def pass_barrier(self, s):
        """The checkpoint is not complete."""
        super().pass_barrier(s)
        s.published = s.out
