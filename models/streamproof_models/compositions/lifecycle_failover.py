"""Failover of a batch job whose result partitions have a life cycle: `failover` and `partition_lifecycle` together.

The scheduler of `failover` decides what runs and what restarts; the JobMaster's partition tracker, the TaskExecutors and
the ResourceManager of `partition_lifecycle` decide which partitions exist. Neither alone can say what a release costs: the
first has no TaskExecutor to lose a partition with, the second no job graph to restart along.

A partition is released when no region needs it for recovery: all tasks that depend on it have finished. Flink releases it
when its own consumers have finished; that is a variant.

Abstractions: those of both machines. Each task writes at most one partition that can be read again, and each such
partition has one reader. A connection ends at most `losses` times without a reason at its other end. No message is lost
but with its connection, and the JobMaster does not crash.
"""

from __future__ import annotations

from streamproof import WEAK, action, require
from streamproof_models.compositions.lifecycle_failover_partitions import StoredPartitions


class LifecycleFailover(StoredPartitions):
    """Backtracking failover over result partitions that TaskExecutors store, lose and delete."""

    name = "lifecycle_failover"

    # --- tasks

    @action(r="regions", e="executors", fairness=WEAK)
    def schedule(self, s, r, e):
        """A region is scheduled; what it stores will be at one TaskExecutor."""
        written = [p for t in self.regions[r] for p in self.outputs[t]]
        require(len(written) > 0 or e == 0)
        self.job.schedule(s.job, r)
        for p in written:
            self.store.deploy(s.store, self.number[p], e)

    @action(t="tasks", fairness=WEAK)
    def run(self, s, t):
        """A task runs, and begins to read the partitions that the JobMaster takes for stored."""
        self.job.run(s.job, t)
        for p in self.reads[t]:
            if s.store.tracked[self.number[p]] == "STORED":
                self.store.begin(s.store, self.number[p], 0)

    def read_to_the_end(self, s, t):
        """A task has read its inputs, which must be there."""
        for p in self.reads[t]:
            i = self.number[p]
            require(s.store.attempt[i] > 0)
            for a in range(self.attempts):
                if s.store.attempt[i] == a + 1:
                    self.store.consume(s.store, i, 0, a)

    @action(p="partitions", a="attempts", fairness=WEAK)
    def store_output(self, s, p, a):
        """A task has read its inputs to the end; its partition is stored, and a report is on its way."""
        t, i = self.producer[p], self.number[p]
        require(s.job.status[t] == "RUNNING" and s.store.attempt[i] == a + 1)
        require(all(self.job.is_delivered(s.job, c) for c in self.job.inputs[t]))
        self.read_to_the_end(s, t)
        self.store.finish(s.store, i, a)

    @action(p="partitions", e="executors", fairness=WEAK)
    def receive_report(self, s, p, e):
        """The JobMaster learns that a producer has finished, unless it is being cancelled or is another attempt."""
        t, i = self.producer[p], self.number[p]
        report = s.store.to_master[0, e]
        require(report is not None and report.partition == i)
        current = s.store.registered[0, e] and s.store.attempt[i] == report.attempt + 1
        if current and s.store.tracked[i] == "PRODUCING" and s.job.status[t] == "RUNNING":
            self.job.finish(s.job, t)
            s.store.tracked[i] = "STORED"
        s.store.to_master[0, e] = None

    @action(t="tasks", fairness=WEAK)
    def finish(self, s, t):
        """A task without a partition of its own has read its inputs to the end."""
        require(len(self.outputs[t]) == 0)
        self.job.finish(s.job, t)
        self.read_to_the_end(s, t)

    @action(fairness=WEAK)
    def complete(self, s):
        """The job has finished: the JobMaster closes its connections and ends."""
        self.job.complete(s.job)
        self.store.end(s.store, 0)

    # --- restarts

    @action(t="tasks")
    def fail(self, s, t):
        """A task fails of itself."""
        self.job.fail(s.job, t)
        self.follow(s)

    @action(t="tasks", p=lambda m, t: m.reads[t], fairness=WEAK)
    def miss(self, s, t, p):
        """A task does not find its input, or the JobMaster knows that it is gone: the task fails and names it."""
        i = self.number[p]
        if any(s.store.attempt[i] == a + 1 and self.is_missing(s, p, a) for a in range(self.attempts)):
            s.job.partition[p] = "GONE"
        self.job.miss(s.job, t, p)
        s.job.partition[p] = "NONE" if s.job.partition[p] == "GONE" else s.job.partition[p]
        self.follow(s)

    def is_missing(self, s, p, a):
        """Whether the reader asks for a partition that its TaskExecutor does not have any longer."""
        i = self.number[p]
        reading = s.store.consumer[i, 0] == "READING" and s.job.partition[p] == "STORED"
        return reading and self.store.is_missing(s.store, i, a)

    @action(t="tasks")
    def give_up(self, s, t):
        """The restart strategy allows no further attempt: the job fails, and its JobMaster ends."""
        self.job.give_up(s.job, t)
        self.store.end(s.store, 0)

    @action(t="tasks", fairness=WEAK)
    def cancel(self, s, t):
        """A task being cancelled has stopped."""
        self.job.cancel(s.job, t)
        self.follow(s)

    @action(k="decisions", fairness=WEAK)
    def restart(self, s, k):
        """All tasks of a decision have stopped, and start again."""
        self.job.restart(s.job, k)
        self.follow(s)
