"""Variants of `task_attempt` that break one rule."""

from __future__ import annotations

from streamproof import require
from streamproof_models.attempts.machine import TaskAttempt


class LateReports(TaskAttempt, variant="late-reports"):
    """The JobManager accepts every report, even after it has given the attempt up."""

    def is_expected(self, s):
        """Always."""
        return True


class Optimistic(TaskAttempt, variant="optimistic"):
    """The JobManager counts the attempt as INITIALIZING when it has sent the deployment, and waits for no report."""

    def submit(self, s):
        """As if the task had started."""
        super().submit(s)
        s.master = "INITIALIZING"


class SubmittedAgain(TaskAttempt, variant="submitted-again"):
    """A deployment whose answer is late is sent again, beside the task that it has started."""

    def submit(self, s):
        """The JobManager has no answer yet."""
        require(s.master == "DEPLOYING" and (s.deployment == "NONE" or s.task == "CREATED"))
        s.deployment = "SENT"

    def receive(self, s):
        """The TaskManager has the task already, or gets it now."""
        task = s.task
        super().receive(s)
        if task != "NONE":
            s.task = task

    def reject(self, s):
        """Only what is no task yet."""
        require(s.task == "NONE")
        super().reject(s)


class RegisteredAgain(TaskAttempt, variant="registered-again"):
    """The task's thread, which goes on with its set-up, registers a partition that was released meanwhile."""

    def register(self, s, p):
        """It looks only whether the partition is there."""
        require(s.setting_up and s.partition[p] != "REGISTERED")
        s.partition[p] = "REGISTERED"


class RetriesRejected(TaskAttempt, variant="retries-rejected"):
    """The JobManager answers a rejected deployment with another one of the same attempt, as often as it is rejected."""

    def reject(self, s):
        """The JobManager is to send it again."""
        require(s.deployment == "SENT")
        s.deployment = "NONE"


class WaitsForReport(TaskAttempt, variant="waits-for-report", without="give_up"):
    """The JobManager waits for the report of a cancelled task, also where none can come."""
