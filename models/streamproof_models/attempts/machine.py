"""One execution attempt of a task: its state on the JobManager, and on its TaskManager.

The JobManager and the TaskManager each keep a state (`org.apache.flink.runtime.executiongraph.Execution` and
`org.apache.flink.runtime.taskmanager.Task`, Flink 1.14 to 2.3). The JobManager sends the deployment and the cancel
request, and ignores late reports of the task. The connection may be cut: reports are lost then, and the JobManager ends the
attempt by itself.

The task's thread sets it up, and registers its result partitions meanwhile; each is released once. The task reports
INITIALIZING, RUNNING and its final state to the JobManager, in this order.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Model, Queue, State, action, require, terminal

TASK = ("NONE", "CREATED", "DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED")
"""States of a task; NONE before it is received."""

AT_WORK = ("CREATED", "DEPLOYING", "INITIALIZING", "RUNNING")
"""States of a task that has not ended and was not cancelled."""

REPORTS = ("INITIALIZING", "RUNNING", "FINISHED", "CANCELED", "FAILED")
"""States that a task reports."""

MASTER = ("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED")
"""States of an execution on the JobManager."""

DEPLOYED = ("DEPLOYING", "INITIALIZING", "RUNNING")
"""States in which the JobManager expects the TaskManager's reports."""

OVER = ("FINISHED", "CANCELED", "FAILED")
"""Terminal states, on both sides."""


class TaskAttempt(Model):
    """Life of one execution attempt."""

    name = "task_attempt"

    partitions: int = 1
    """Result partitions that the attempt writes."""
    may_cut: bool = True
    """Whether the connection to the TaskManager can be lost."""

    limits = {"partitions": (0, None)}
    sizes = {"small": {}, "medium": {"partitions": 3}, "large": {"partitions": 5}}

    def state(self):
        """Nothing has happened yet."""
        partition = Enum("NONE", "REGISTERED", "RELEASED")
        return State(
            master=Enum(*MASTER),
            task=Enum(*TASK),
            setting_up=Bool(),
            **({"partition": Array(self.partitions, partition)} if self.partitions else {}),
            deployment=Enum("NONE", "SENT", "TAKEN"),
            cancel_sent=Bool(),
            reports=Queue(Enum(*REPORTS), capacity=3),
            cut=Bool(),
        )

    # --- the TaskManager

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

    # --- the JobManager

    @action(fairness=WEAK)
    def schedule(self, s):
        """A slot is requested."""
        require(s.master == "CREATED")
        s.master = "SCHEDULED"

    @action(fairness=WEAK)
    def deploy(self, s):
        """The slot is allocated."""
        require(s.master == "SCHEDULED")
        s.master = "DEPLOYING"

    @action(fairness=WEAK)
    def submit(self, s):
        """The deployment goes out, once."""
        require(s.master == "DEPLOYING" and s.deployment == "NONE")
        s.deployment = "SENT"

    @action(fairness=WEAK)
    def update(self, s):
        """The next report changes the state on the JobManager."""
        require(len(s.reports) > 0 and self.is_expected(s))
        report = s.reports.pop()
        s.master = "CANCELED" if s.master == "CANCELING" else report

    @action(fairness=WEAK)
    def ignore(self, s):
        """The next report comes too late to change the state."""
        require(len(s.reports) > 0 and not self.is_expected(s))
        s.reports.pop()

    def is_expected(self, s):
        """Whether the first report changes the state on the JobManager."""
        report = s.reports.head
        if report == "INITIALIZING":
            return s.master == "DEPLOYING"
        if report == "RUNNING":
            return s.master == "INITIALIZING"
        return s.master in DEPLOYED or s.master == "CANCELING"

    @action
    def cancel(self, s):
        """The JobManager cancels the attempt."""
        require(s.master in ("CREATED", "SCHEDULED", *DEPLOYED))
        s.cancel_sent = s.master in DEPLOYED
        s.master = "CANCELING"

    @action
    def fail(self, s):
        """The JobManager considers the attempt failed for its own reasons: no slot, an executor lost, a time-out."""
        require(s.master in ("SCHEDULED", *DEPLOYED))
        s.master = "FAILED"
        s.cancel_sent = True

    @action(fairness=WEAK)
    def give_up(self, s):
        """Cancelling is over without a report, which cannot come: the task never arrived, or the connection is cut."""
        require(s.master == "CANCELING")
        require(s.cut or s.deployment == "NONE" or (s.task == "NONE" and s.deployment == "TAKEN"))
        s.master = "CANCELED"

    # --- the connection

    @action
    def disconnect(self, s):
        """The connection is lost, with the reports on the way."""
        require(self.may_cut and not s.cut)
        s.cut = True
        s.reports.clear()

    @terminal
    def over(self, s):
        """The attempt has ended for the JobManager."""
        return s.master in OVER
