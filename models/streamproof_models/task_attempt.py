"""One execution attempt of a task: its state on the JobManager, and on its TaskManager.

The JobManager and the TaskManager each keep a state (`org.apache.flink.runtime.executiongraph.Execution` and
`org.apache.flink.runtime.taskmanager.Task`, Flink 1.14 to 2.3). The JobManager sends the deployment and the cancel
request, and ignores late reports of the task. The connection may be cut: reports are lost then, and the JobManager ends the
attempt by itself.
"""

from __future__ import annotations

from streamproof import WEAK, Enum, State, action, require, terminal
from streamproof_models.taskmanager_task import TaskManagerTask

MASTER = ("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED")
"""States of an execution on the JobManager."""

DEPLOYED = ("DEPLOYING", "INITIALIZING", "RUNNING")
"""States in which the JobManager expects the TaskManager's reports."""

OVER = ("FINISHED", "CANCELED", "FAILED")
"""Terminal states, on both sides."""


class TaskAttempt(TaskManagerTask):
    """Life of one execution attempt."""

    name = "task_attempt"

    may_cut: bool = True
    """Whether the connection to the TaskManager can be lost."""

    sizes = {"small": {}, "medium": {"partitions": 3}, "large": {"partitions": 5}}

    def state(self):
        """Nothing has happened yet."""
        return State(master=Enum(*MASTER), **dict(super().state().items()))

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


class LateReports(TaskAttempt, variant="late-reports"):
    """The JobManager accepts every report, even after it has given the attempt up."""

    def is_expected(self, s):
        """Always."""
        return True
