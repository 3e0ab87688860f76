"""Splits that a source coordinator assigns to a reader by events, which may be lost, beside checkpoints and failovers.

Sources: the descriptions of FLINK-21996 (apache/flink#15605), FLINK-23233 (#16432) and FLINK-35522 (#24887), and the
classes `SourceCoordinator` and `SourceCoordinatorContext`. A checkpoint stores the coordinator first, then the reader; in
between no event is sent. An event whose acknowledgement fails lets the reader fail over to the latest checkpoint, and the
splits assigned since then return to the enumerator. A reader that asks for a split after the end was signalled
is not answered.

Abstraction: one reader, and others that only take splits; splits are read in no time; a lost event is noticed by a
time-out.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Model, Range, State, action, require, terminal


class SplitAssignment(Model):
    """An enumerator with its coordinator, and a reader."""

    name = "split_assignment"

    splits: int = 2
    """Number of splits."""
    checkpoints: int = 2
    """Maximum number of checkpoints that are begun."""
    faults: int = 2
    """Maximum number of lost events and failures of the reader."""

    limits = {"splits": (1, None), "checkpoints": (0, None), "faults": (0, None)}
    awaits_events = True
    """The coordinator's part of a checkpoint waits for the events on their way; since FLINK-21996."""
    remembers_failed = True
    """It waits for the failover as well, if one of them has failed; since FLINK-23233."""
    repeats_end = True
    """A new reader is signalled that there are no more splits, whether or not it has any; since FLINK-35522."""

    def setup(self):
        """The splits."""
        self.every = range(self.splits)

    def state(self):
        """The comments name what Flink has."""
        return State(
            # with the enumerator, another reader, an AddSplitEvent, one that is lost or has failed, the reader, nobody
            split=Array(self.every, Enum("UNASSIGNED", "ELSEWHERE", "SENT", "LOST", "FAILED", "READ", "ORPHAN")),
            reader=Enum("STARTED", "ASKS", "WAITS", "FINISHED"),
            signalled=Bool(),  # subtaskHasNoMoreSplits
            end=Bool(),  # a NoMoreSplitsEvent on its way
            stage=Enum("IDLE", "COORDINATOR"),  # the parts of the pending checkpoint
            pending=Array(self.every, Bool()),  # the splits that are assigned in its first part
            assigned=Array(self.every, Bool()),  # ... in the latest complete checkpoint
            restored=Array(self.every, Bool()),  # those that are the reader's there
            begun=Range(0, self.checkpoints),
            faults_left=Range(0, self.faults, init=self.faults),
        )

    # --- assignment

    @action(fairness=WEAK)
    def register(self, s):
        """A new reader registers. In batch jobs, it gets the splits of the one before again, and the end."""
        require(s.reader == "STARTED")
        s.reader = "ASKS"
        if s.signalled and (self.repeats_end or any(x == "READ" for x in s.split)):
            s.end = True

    @action(fairness=WEAK)
    def ask(self, s):
        """A split request arrives; there may be no more splits, or that was signalled."""
        require(s.reader == "ASKS" and s.stage == "IDLE")
        s.reader = "WAITS"
        if not s.signalled and all(x != "UNASSIGNED" for x in s.split):
            s.signalled = True
            s.end = True

    @action(x="every")
    def take(self, s, x):
        """Another reader gets a split."""
        require(s.split[x] == "UNASSIGNED" and s.reader in ("STARTED", "ASKS"))
        s.split[x] = "ELSEWHERE"

    @action(x="every", fairness=WEAK)
    def assign(self, s, x):
        """`assignSplits`: an event with a split, unless a checkpoint has closed the gateway."""
        require(s.reader == "WAITS" and s.stage == "IDLE" and not s.signalled)
        require(s.split[x] == "UNASSIGNED" and all(y not in ("SENT", "LOST", "FAILED") for y in s.split))
        s.split[x] = "SENT"

    @action(x="every", fairness=WEAK)
    def deliver(self, s, x):
        """The reader has the split, and asks for the next one."""
        require(s.split[x] == "SENT" and s.reader == "WAITS")
        s.split[x] = "READ"
        s.reader = "ASKS"

    @action(fairness=WEAK)
    def finish(self, s):
        """The reader is signalled that there are no more splits."""
        require(s.end and s.reader == "WAITS")
        s.end = False
        s.reader = "FINISHED"

    # --- checkpoints

    @action
    def store_coordinator(self, s):
        """The coordinator's part, when all events are acknowledged."""
        require(s.stage == "IDLE" and s.reader in ("ASKS", "WAITS") and s.begun < self.checkpoints and not s.end)
        require(not self.awaits_events or all(x not in ("SENT", "LOST") for x in s.split))
        require(not self.remembers_failed or all(x != "FAILED" for x in s.split))
        s.begun += 1
        s.stage = "COORDINATOR"
        for x in self.every:
            s.pending[x] = s.split[x] not in ("UNASSIGNED", "ELSEWHERE")

    @action(fairness=WEAK)
    def store_reader(self, s):
        """The reader's part, behind what was sent before: the checkpoint is complete."""
        require(s.stage == "COORDINATOR" and s.reader in ("ASKS", "WAITS") and all(x != "SENT" for x in s.split))
        s.stage = "IDLE"
        for x in self.every:
            s.assigned[x] = s.pending[x]
            s.restored[x] = s.split[x] == "READ"
            s.pending[x] = False

    # --- faults

    @action(x="every")
    def lose(self, s, x):
        """An event is lost."""
        require(s.split[x] == "SENT" and s.faults_left > 0)
        s.faults_left -= 1
        s.split[x] = "LOST"

    @action(x="every", fairness=WEAK)
    def time_out(self, s, x):
        """The acknowledgement fails; the failover is still to be triggered."""
        require(s.split[x] == "LOST")
        s.split[x] = "FAILED"

    @action(fairness=WEAK)
    def fail_over(self, s):
        """An event has failed."""
        require(any(x == "FAILED" for x in s.split))
        self.restart(s)

    @action
    def crash(self, s):
        """The reader fails of itself."""
        require(s.reader in ("ASKS", "WAITS") and s.faults_left > 0)
        s.faults_left -= 1
        self.restart(s)

    def restart(self, s):
        """A new reader has the splits of the latest checkpoint; those assigned later return to the enumerator. What the
        coordinator had assigned there, but the reader did not have, is nowhere."""
        for x in self.every:
            if s.restored[x]:
                s.split[x] = "READ"
            elif s.split[x] != "ELSEWHERE":
                s.split[x] = "ORPHAN" if s.assigned[x] else "UNASSIGNED"
            s.pending[x] = False
        if any(x == "UNASSIGNED" for x in s.split):
            s.signalled = False
        s.stage = "IDLE"
        s.end = False
        s.reader = "STARTED"

    @terminal
    def over(self, s):
        """The reader has finished."""
        return s.reader == "FINISHED"


class IgnoresEvents(SplitAssignment, variant="ignores-events"):
    """Before FLINK-21996: a checkpoint does not wait for events on their way."""

    awaits_events = False


class ForgetsFailed(SplitAssignment, variant="forgets-failed"):
    """Before FLINK-23233: an event that has failed is no longer waited for, though its failover is still to come."""

    remembers_failed = False


class EndWithSplits(SplitAssignment, variant="end-with-splits"):
    """Before FLINK-35522: the end is repeated behind cached splits only, so a reader that had none is not signalled."""

    repeats_end = False
