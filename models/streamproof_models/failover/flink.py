"""Failover as Flink does it (1.17 to 2.3), as a variant: what its JobMaster does otherwise than the proposal.

* A task is DEPLOYING and INITIALIZING before it is RUNNING. Its output counts as available from its deployment.
* There is no fence: a FINISHED task counts as such although a pending decision restarts it. So results may be read, and
  released, that are about to be replaced.
* Regions are merged inside a logical region only.
* Reports of different tasks overtake each other: a reader may be FINISHED before its pipelined producer.
* A consumer of a hybrid result is scheduled with its producer, and may finish, and the result be released, before it.
* The JobMaster forgets the partitions of a lost TaskExecutor (`untrack`). What it does not track, or considers lost, may be
  there all the same: a task is held up by nothing but its own failure.
* A task may end as CANCELED before the failure of its peer is known (`withdraw`). All tasks may restart (`fail_globally`).
"""

from __future__ import annotations

from typing import ClassVar

from streamproof import WEAK, action, require
from streamproof_models.failover.machine import Failover, grouped
from streamproof_models.failover.regions import Merging


class FlinkRules(Failover, variant="flink"):
    """What the JobMaster of Flink does, by its logs and its source."""

    merging = Merging.LOGICAL_REGION
    active: ClassVar[tuple[str, ...]] = ("SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING")
    reading: ClassVar[tuple[str, ...]] = ("INITIALIZING", "RUNNING")

    def setup(self):
        """Adds which inputs are hybrid, and the tasks that may notice the end of their peers."""
        super().setup()
        hybrid = {e.dataset for e in self.job_graph().edges if e.exchange.hybrid}
        self.early = tuple(p for p in self.partitions if p in hybrid or p.rpartition("#")[0] in hybrid)
        """Hybrid partitions, which are read while they are written."""
        early = {c for c, p in self.partition_of.items() if p in set(self.early)}
        region, channels = self.region_of, self.channels
        across = [(c, a, z) for c, (a, z) in channels.items() if region[a] != region[z]]
        self.upstream = grouped(self.tasks, ((z, a) for c, a, z in across if c not in early))
        self.begun_before = grouped(self.tasks, ((z, a) for c, a, z in across if c in early))
        """Task -> the producers of its hybrid inputs."""
        coupled = {t for c, ends in channels.items() if c not in self.partition_of or c in early for t in ends}
        self.coupled = tuple(t for t in self.tasks if t in coupled)
        """The tasks with a peer that works at the same time."""
        self.globally: tuple[str, ...] = ("job",)
        """What may fail as a whole."""

    # --- scheduling

    def is_ready(self, s, tasks):
        """As in the machine; the producers of hybrid inputs have been scheduled."""
        begun = all(s.status[a] != "CREATED" for t in tasks for a in self.begun_before[t])
        return begun and super().is_ready(s, tasks)

    def has_finished(self, s, t):
        """Whether task `t` is FINISHED, restarted or not."""
        return s.status[t] == "FINISHED"

    def take_up(self, s, tasks):
        """Tasks wait for their slots."""
        for t in tasks:
            s.status[t] = "SCHEDULED"

    @action(t="tasks", fairness=WEAK)
    def deploy(self, s, t):
        """The task's slot is assigned and the task sent to its TaskExecutor; the JobMaster tracks its output from now on."""
        require(s.job == "RUNNING" and s.status[t] == "SCHEDULED")
        s.status[t] = "DEPLOYING"
        self.mark_output(s, t, "PRODUCING")

    @action(t="tasks", fairness=WEAK)
    def initialize(self, s, t):
        """The TaskExecutor has accepted the task."""
        require(s.job == "RUNNING" and s.status[t] == "DEPLOYING")
        s.status[t] = "INITIALIZING"

    def read_inputs(self, s, t):
        """Task `t` begins to read, of the producers' present attempts."""
        for c in self.noted[t]:
            if s.read[c] is None:
                s.read[c] = s.attempt[self.channels[c][0]]

    def is_delivered(self, s, c):
        """A stored input may be there whatever the JobMaster knows of it; of a pipelined one the producer is at work or
        FINISHED, since the report of its end may be late."""
        return c in self.partition_of or s.status[self.channels[c][0]] in (*self.active, "FINISHED")

    def store_output(self, s, t):
        """As in the machine, but what has been released or forgotten: partitions are tracked from the deployment on."""
        for p in self.outputs[t]:
            if s.partition[p] == "PRODUCING":
                s.partition[p] = "STORED"

    def releasable(self, p):
        """As in the machine; a hybrid partition also before its producer has finished."""
        return ("PRODUCING", "STORED", "GONE") if p in self.early else super().releasable(p)

    # --- failures

    @action(p="partitions")
    def untrack(self, s, p):
        """The JobMaster forgets a partition with its lost TaskExecutor."""
        require(s.job == "RUNNING" and s.partition[p] in ("PRODUCING", "STORED", "GONE"))
        self.spend_loss(s)
        s.partition[p] = "NONE"

    @action(t="coupled")
    def withdraw(self, s, t):
        """A task that was sent ends as CANCELED without a cancel call: a peer has gone before the JobMaster knew."""
        require(s.job == "RUNNING" and s.status[t] in self.active and s.status[t] != "SCHEDULED")
        self.spend_failure(s)
        self.end(s, t, "CANCELED")

    @action(g="globally")
    def fail_globally(self, s, g):
        """A failure of the whole job: everything restarts, tasks that were never scheduled included."""
        require(s.job == "RUNNING" and s.decided < self.decisions)
        self.spend_failure(s)
        for t in self.tasks:
            if s.status[t] == "CREATED":
                s.status[t] = "CANCELING"
        self.begin_restart(s, dict.fromkeys(self.tasks, True))
