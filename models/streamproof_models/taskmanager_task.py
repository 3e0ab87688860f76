"""The task of one execution attempt on its TaskManager (`org.apache.flink.runtime.taskmanager.Task`).

The task's thread sets it up, and registers its result partitions meanwhile; each is released once. The task reports
INITIALIZING, RUNNING and its final state to the JobManager, in this order.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Model, Queue, State, action, require

TASK = ("NONE", "CREATED", "DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED")
"""States of a task; NONE before it is received."""

AT_WORK = ("CREATED", "DEPLOYING", "INITIALIZING", "RUNNING")
"""States of a task that has not ended and was not cancelled."""

REPORTS = ("INITIALIZING", "RUNNING", "FINISHED", "CANCELED", "FAILED")
"""States that a task reports."""


class TaskManagerTask(Model):
    """The TaskManager's part of an execution attempt."""

    partitions: int = 1
    """Result partitions that the attempt writes."""

    limits = {"partitions": (0, None)}

    def state(self):
        """No deployment has arrived."""
        partition = Enum("NONE", "REGISTERED", "RELEASED")
        return State(
            task=Enum(*TASK),
            setting_up=Bool(),
            **({"partition": Array(self.partitions, partition)} if self.partitions else {}),
            deployment=Enum("NONE", "SENT", "TAKEN"),
            cancel_sent=Bool(),
            reports=Queue(Enum(*REPORTS), capacity=3),
            cut=Bool(),
        )

    @action(fairness=WEAK)
    def receive(self, s):
        """The deployment arrives."""
        require(s.deployment == "SENT")
        s.deployment = "TAKEN"
        s.task = "CREATED"

    @action
    def reject(self, s):
        """The deployment arrives and is rejected; the JobManager is notified of the failure."""
        require(s.deployment == "SENT")
        s.deployment = "TAKEN"
        self.report(s, "FAILED")

    def report(self, s, what):
        """A report goes out, into nothing if the connection is cut."""
        if not s.cut:
            s.reports.push(what)

    @action(fairness=WEAK)
    def start(self, s):
        """The task's thread begins to set it up."""
        require(s.task == "CREATED")
        s.task = "DEPLOYING"
        s.setting_up = True

    @action(p="partitions", fairness=WEAK)
    def register(self, s, p):
        """A result partition is available from now on. The task's thread continues its set-up until it notices a
        cancellation or a failure from outside."""
        require(s.setting_up and s.partition[p] == "NONE")
        s.partition[p] = "REGISTERED"

    @action(fairness=WEAK)
    def initialize(self, s):
        """The task restores its state."""
        require(s.task == "DEPLOYING")
        s.task = "INITIALIZING"
        s.setting_up = False
        self.report(s, "INITIALIZING")

    @action(fairness=WEAK)
    def run(self, s):
        """The task works."""
        require(s.task == "INITIALIZING")
        s.task = "RUNNING"
        self.report(s, "RUNNING")

    @action(fairness=WEAK)
    def finish(self, s):
        """The task has done its work."""
        require(s.task == "RUNNING")
        self.end(s, "FINISHED")

    @action
    def crash(self, s):
        """The task fails, or is failed by its TaskManager."""
        require(s.task in AT_WORK)
        self.end(s, "FAILED")

    @action
    def withdraw(self, s):
        """The task ends as CANCELED without a cancel call: its peers are gone."""
        require(s.task in AT_WORK)
        self.end(s, "CANCELED")

    @action(fairness=WEAK)
    def cancel_task(self, s):
        """The request to cancel arrives."""
        require(s.cancel_sent and s.task in AT_WORK)
        s.task = "CANCELING"

    @action(fairness=WEAK)
    def stop(self, s):
        """The cancelled task has ended."""
        require(s.task == "CANCELING")
        self.end(s, "CANCELED")

    def end(self, s, how):
        """The task has ended, and reports its final state."""
        s.task = how
        if how != "FAILED":
            s.setting_up = False
        self.report(s, how)

    @action(p="partitions")
    def release(self, s, p):
        """A result partition is given up."""
        require(s.partition[p] == "REGISTERED")
        s.partition[p] = "RELEASED"
