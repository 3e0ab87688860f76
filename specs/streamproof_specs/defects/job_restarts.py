"""Properties of restarts and ends of a job: nothing is restored in vain, nothing tracked for ever, and the job ends."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, reachable, step, temporal
from streamproof_models.defects.job_restarts import JobRestarts

AFTER = {
    "RUNNING": ("RESTARTING", "FAILING", "CANCELLING", "FINISHED"),
    "RESTARTING": ("RUNNING", "FAILING", "CANCELLING"),
    "FAILING": ("CANCELLING", "FAILED"),
    "CANCELLING": ("CANCELED",),
}
"""The states that may follow a state of the job; the others are ends."""
ENDS = ("FINISHED", "FAILED", "CANCELED")
"""States of a job that has ended."""


@invariant
def restores_for_tasks(m, s):
    """State is restored only for tasks that restart."""
    return not s.idle


@invariant
def none_leaked(m, s):
    """No partition of an earlier attempt is tracked."""
    return not s.leaked


@invariant
def tasks_as_the_job(m, s):
    """All tasks of a running job run, all tasks of a job that has ended have ended; in between, none is left at work."""
    return all(
        x == "RUNNING" if s.job == "RUNNING" else x == "ENDED" if s.job in ENDS else x != "RUNNING" for x in s.task
    )


@invariant
def tracked_while_attempted(m, s):
    """The partition of a task is tracked until the task has ended."""
    return all(s.tracked[t] == (s.task[t] != "ENDED") for t in range(m.tasks))


@invariant
def latest_decides(m, s):
    """All tasks have the version of the latest decision; a job is RESTARTING until that one goes on, and only decisions
    that were made are delayed."""
    return (
        all(v == s.decided for v in s.version)
        and all(d <= s.decided or not s.delayed[d] for d in range(1, m.restarts + 1))
        and (
            s.job not in ("RUNNING", "RESTARTING")
            or (s.job == "RESTARTING") == any(d == s.decided and s.delayed[d] for d in range(1, m.restarts + 1))
        )
    )


@invariant
def fails_at_last(m, s):
    """A job fails for good only after its last restart, and does not run again."""
    if s.job in ("FAILING", "FAILED"):
        return s.doomed and s.decided == m.restarts
    return not s.doomed or (s.decided == m.restarts and s.job in ("CANCELLING", "CANCELED"))


@step
def job_in_order(m, s, t):
    """The job goes from state to state in its order, and an end is final."""
    return s.job == t.job or any(s.job == a and t.job in after for a, after in AFTER.items())


@step
def decisions_in_order(m, s, t):
    """Decisions are made one by one; that a cancelled task has ended makes none, and none goes on when the job ends."""
    return (
        (t.decided == s.decided or (t.decided == s.decided + 1 and t.job == "RESTARTING"))
        and all(
            s.task[i] != "CANCELING" or t.task[i] != "ENDED" or (s.decided == t.decided and s.doomed == t.doomed)
            for i in range(m.tasks)
        )
        and all(
            t.delayed[d] or not s.delayed[d] or s.job in ("RUNNING", "RESTARTING") for d in range(1, m.restarts + 1)
        )
    )


@temporal
def ends(m, s):
    """A job that runs and has not failed ends, whatever happens."""
    return s.job == "RUNNING" and s.decided == 0 and not s.doomed and eventually(s.job in ENDS)


@reachable
def fails_as_a_whole(m, s):
    """A job restarts although none of its tasks has failed."""
    return m.restarts == 0 or (s.job == "RESTARTING" and all(x == "CANCELING" for x in s.task))


@reachable
def cancelled_while_failing(m, s):
    """A user cancels a job that fails for good."""
    return s.job == "CANCELLING" and s.doomed


SPEC = Spec(
    JobRestarts,
    properties=(
        *(restores_for_tasks, none_leaked, tasks_as_the_job, tracked_while_attempted, latest_decides, fails_at_last),
        *(job_in_order, decisions_in_order, ends, fails_as_a_whole, cancelled_while_failing),
    ),
    expected={
        "always-fails": {"deadlock": "violated", "ends": "violated"},
        "restores-nothing": {"restores_for_tasks": "violated"},
        "failed-tracked": {"none_leaked": "violated", "tracked_while_attempted": "violated"},
    },
    variant_parameters={
        "always-fails": {"tasks": 1, "restarts": 0},
        "restores-nothing": {"tasks": 1, "restarts": 2},
        "failed-tracked": {"tasks": 1, "restarts": 1},
    },
)
