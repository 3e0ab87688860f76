"""A scheduler that restarts or ends a job: decisions that overtake each other, and what each leaves behind.

Sources: the descriptions of FLINK-20626 (apache/flink#14405), FLINK-31041 (#21970) and FLINK-19703 (#13766), and the class
`DefaultScheduler`. A decision notes a version of each task that it restarts, cancels them, and goes on after they have
ended and a delay, with those whose version is still its own. A job that has failed for good goes from FAILING to FAILED
when its tasks have ended; a user may cancel it meanwhile.

Abstraction: all tasks are one region, each writes one partition; a task ends its work with the others.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Model, Range, State, action, require, terminal


class JobRestarts(Model):
    """The scheduler of one job: its state, its tasks, the decisions to restart, and the partitions that it tracks."""

    name = "job_restarts"

    tasks: int = 2
    """Number of tasks."""
    restarts: int = 3
    """Maximum number of decisions to restart; the failure after them is final."""

    limits = {"tasks": (1, None), "restarts": (0, None)}
    skips_empty = True
    """A decision that has no task left does nothing; since FLINK-31041."""
    ends_cancelled = True
    """A failing job that a user has cancelled ends as CANCELED; since FLINK-20626."""
    untracks_failed = True
    """The partition of a task that its TaskExecutor reports as failed is no longer tracked; since FLINK-19703."""

    def state(self):
        """All tasks run."""
        return State(
            job=Enum("RUNNING", "RESTARTING", "FAILING", "CANCELLING", "FINISHED", "FAILED", "CANCELED"),
            task=Array(self.tasks, Enum("RUNNING", "CANCELING", "ENDED")),
            tracked=Array(self.tasks, Bool(init=True)),  # the partition of the present attempt
            decided=Range(0, self.restarts),
            delayed=Array(range(1, self.restarts + 1), Bool()),  # decisions that are still to go on
            version=Array(self.tasks, Range(0, self.restarts)),  # ExecutionVertexVersioner: the latest decision
            doomed=Bool(),  # the failure is final
            leaked=Bool(),  # the partition of an earlier attempt is tracked
            idle=Bool(),  # state was restored for no task
        )

    # --- failures

    @action(t="tasks")
    def fail(self, s, t):
        """A TaskExecutor reports that a task has failed."""
        require(s.job in ("RUNNING", "RESTARTING") and s.task[t] == "RUNNING")
        s.task[t] = "ENDED"
        if self.untracks_failed:
            s.tracked[t] = False
        self.decide(s)

    @action
    def fail_globally(self, s):
        """The whole job fails, for example because a coordinator does."""
        require(s.job in ("RUNNING", "RESTARTING"))
        self.decide(s)

    def decide(self, s):
        """All tasks restart, or the job fails."""
        if s.decided < self.restarts:
            s.decided += 1
            s.delayed[s.decided] = True
            s.job = "RESTARTING"
            for t in range(self.tasks):
                s.version[t] = s.decided
        else:
            s.job = "FAILING"
            s.doomed = True
        self.cancel_tasks(s)

    def cancel_tasks(self, s):
        """All tasks at work are being cancelled."""
        for t in range(self.tasks):
            if s.task[t] == "RUNNING":
                s.task[t] = "CANCELING"

    @action(t="tasks", fairness=WEAK)
    def stop(self, s, t):
        """A task that is being cancelled has ended."""
        require(s.task[t] == "CANCELING")
        s.task[t] = "ENDED"
        s.tracked[t] = False

    @action(d=lambda m: range(1, m.restarts + 1), fairness=WEAK)
    def restart(self, s, d):
        """`restartTasks`: the delay of a decision is over, and what it has cancelled has ended."""
        require(s.delayed[d] and s.job in ("RUNNING", "RESTARTING") and all(x != "CANCELING" for x in s.task))
        s.delayed[d] = False
        if any(v == d for v in s.version) and s.job == "RESTARTING":
            for t in range(self.tasks):
                s.leaked = s.leaked or s.tracked[t]
                s.task[t] = "RUNNING"
                s.tracked[t] = True
            s.job = "RUNNING"
        elif not self.skips_empty:
            s.idle = True  # restoreState: the coordinators are reset, although the tasks go on

    # --- ends

    @action
    def cancel_job(self, s):
        """A user cancels the job."""
        require(s.job in ("RUNNING", "RESTARTING", "FAILING"))
        s.job = "CANCELLING"
        self.cancel_tasks(s)

    @action(fairness=WEAK)
    def end(self, s):
        """All tasks have ended: the job, too."""
        require(s.job in ("FAILING", "CANCELLING") and all(x == "ENDED" for x in s.task))
        require(s.job == "FAILING" or not s.doomed or self.ends_cancelled)
        s.job = "FAILED" if s.job == "FAILING" else "CANCELED"

    @action(fairness=WEAK)
    def finish(self, s):
        """All tasks have done their work."""
        require(s.job == "RUNNING" and all(x == "RUNNING" for x in s.task))
        for t in range(self.tasks):
            s.task[t] = "ENDED"
            s.tracked[t] = False
        s.job = "FINISHED"

    @terminal
    def over(self, s):
        """The job has ended."""
        return s.job in ("FINISHED", "FAILED", "CANCELED")


class AlwaysFails(JobRestarts, variant="always-fails"):
    """Before FLINK-20626: a job whose failure is final only goes from FAILING to FAILED."""

    ends_cancelled = False


class RestoresNothing(JobRestarts, variant="restores-nothing"):
    """Before FLINK-31041: a decision whose tasks a newer one has taken over restores state all the same."""

    skips_empty = False


class FailedTracked(JobRestarts, variant="failed-tracked"):
    """Before FLINK-19703: partitions are untracked when a task is cancelled, not when it is reported as failed."""

    untracks_failed = False
