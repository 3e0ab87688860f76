"""Readers of a batch source, one of them late, whose enumerator signals all when there are no more splits.

Source: a public analysis of rows that a batch read loses, with logs (`BigQuerySourceEnumerator.assignSplits` under Flink
2.1), and the classes `SourceCoordinator` and `SubtaskGatewayImpl`; apache/flink#28572 (FLINK-40011) describes the same
race. A task that has finished on its TaskManager, which the JobManager does not know, cannot receive an event: its attempt
fails, its output is discarded and its splits return. An event for a task that the JobManager knows to have finished is lost
without a trace.

Abstraction: a reader emits a split in one step; events arrive at once.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Model, Range, State, action, require, terminal


class LateReaders(Model):
    """An enumerator with splits, the readers that wait for one, and their tasks."""

    name = "late_readers"

    readers: int = 3
    """Number of readers."""
    splits: int = 2
    """Number of splits."""
    attempts: int = 2
    """Maximum number of attempts of a reader."""

    limits = {"readers": (1, None), "splits": (0, None), "attempts": (1, None)}
    signals_all = False
    """Whether the end of the splits is signalled to all registered readers, as before the fix."""
    keeps_entry = False
    """Whether a reader that was signalled the end stays among those that wait for a split, as before the fix."""

    def setup(self):
        """The splits and the readers."""
        self.every, self.tasks = range(self.splits), range(self.readers)

    def state(self):
        """The comments name what the enumerator and Flink have."""
        return State(
            split=Array(self.every, Enum("POOL", "READING", "EMITTED", "ORPHAN")),
            reader_of=Array(self.every, Range(0, self.readers - 1)),  # of a split that is not in the pool
            # FINISHING: finished on the TaskManager, and RUNNING for the JobManager
            task=Array(self.tasks, Enum("STARTING", "RUNNING", "FINISHING", "FINISHED")),
            attempt=Array(self.tasks, Range(1, self.attempts)),
            waits=Array(self.tasks, Bool()),  # readersAwaitingSplit
            signalled=Array(self.tasks, Bool()),  # subtaskHasNoMoreSplits
            lost=Array(self.tasks, Bool()),  # an event could not be delivered
        )

    @action(r="tasks", fairness=WEAK)
    def request(self, s, r):
        """A reader that has nothing to read requests a split, and the enumerator serves all that wait."""
        require(s.task[r] in ("STARTING", "RUNNING") and not s.signalled[r] and not s.waits[r])
        require(not any(s.split[x] == "READING" and s.reader_of[x] == r for x in self.every))
        s.task[r] = "RUNNING"
        s.waits[r] = True
        self.serve(s)

    def serve(self, s):
        """`assignSplits`: a split for each, or the end."""
        for r in self.tasks:
            if s.waits[r]:
                if any(x == "POOL" for x in s.split):
                    self.assign(s, r)
                elif self.signals_all:
                    for q in self.tasks:
                        self.signal(s, q)
                    s.waits[r] = self.keeps_entry
                else:
                    self.signal(s, r)
                    s.waits[r] = self.keeps_entry

    def assign(self, s, r):
        """The first split. A task that has finished does not get it, which counts while the JobManager does not know."""
        s.waits[r] = False
        given = False
        for x in self.every:
            if s.split[x] == "POOL" and not given:
                given = True
                s.split[x] = "ORPHAN" if s.task[r] == "FINISHED" else "READING"
                s.reader_of[x] = r
                s.lost[r] = s.task[r] == "FINISHING"

    def signal(self, s, q):
        """A `NoMoreSplitsEvent`, unless the reader is not registered."""
        if s.task[q] != "STARTING":
            s.signalled[q] = True
        if s.task[q] == "FINISHING":
            s.lost[q] = True

    @action(x="every", fairness=WEAK)
    def read(self, s, x):
        """A reader emits the rows of a split."""
        require(s.split[x] == "READING" and s.task[s.reader_of[x]] == "RUNNING")
        s.split[x] = "EMITTED"

    @action(r="tasks", fairness=WEAK)
    def finish(self, s, r):
        """A reader that was signalled the end, and has read all, finishes on its TaskManager."""
        require(s.task[r] == "RUNNING" and s.signalled[r])
        require(not any(s.split[x] == "READING" and s.reader_of[x] == r for x in self.every))
        s.task[r] = "FINISHING"

    @action(r="tasks", fairness=WEAK)
    def report(self, s, r):
        """The JobManager learns that the task has finished; an event lost before has no effect any more."""
        require(s.task[r] == "FINISHING")
        s.task[r] = "FINISHED"
        s.lost[r] = False
        for x in self.every:
            if s.reader_of[x] == r and s.split[x] == "READING":
                s.split[x] = "ORPHAN"

    @action(r="tasks", fairness=WEAK)
    def fail(self, s, r):
        """An event was lost: the attempt fails, its output is discarded, and `addSplitsBack` returns its splits."""
        require(s.task[r] == "FINISHING" and s.lost[r] and s.attempt[r] < self.attempts)
        s.task[r] = "STARTING"
        s.attempt[r] += 1
        s.lost[r] = False
        s.signalled[r] = False
        s.waits[r] = False
        for x in self.every:
            if s.reader_of[x] == r and s.split[x] in ("READING", "EMITTED"):
                s.split[x] = "POOL"

    @terminal
    def over(self, s):
        """All readers have finished."""
        return all(t == "FINISHED" for t in s.task)


class SignalsAll(LateReaders, variant="signals-all"):
    """Each request without splits signals the end to all registered readers, also to those about to finish."""

    signals_all = True


class NeverSignalled(LateReaders, variant="never-signalled"):
    """No reader is signalled the end: all of them wait for a split."""

    keeps_entry = True

    def signal(self, s, q):
        """No event is sent."""


class StaleEntries(SignalsAll, variant="stale-entries"):
    """The same, and readers that were signalled the end still wait for a split: before the fix."""

    keeps_entry = True
