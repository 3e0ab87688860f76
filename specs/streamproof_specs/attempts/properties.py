"""Properties of one execution attempt, for every loss of messages.

Both state machines are Flink's; the failover protocol relies on the agreement of the two views: a task whose attempt
the JobManager considers FINISHED is never run again, and a partition is never served before it is registered.
"""

from __future__ import annotations

from streamproof import Spec, invariant, step
from streamproof_models.attempts import variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.attempts.machine import OVER, TaskAttempt


@invariant
def finished_is_finished(m, s):
    """The JobManager has the attempt as FINISHED, INITIALIZING or RUNNING only after its task has reached that state."""
    return (
        (s.master != "FINISHED" or s.task == "FINISHED")
        and (s.master != "RUNNING" or s.task not in ("NONE", "CREATED", "DEPLOYING", "INITIALIZING"))
        and (s.master != "INITIALIZING" or s.task not in ("NONE", "CREATED", "DEPLOYING"))
    )


@invariant
def deployed_once(m, s):
    """A task exists only where a deployment was sent and taken."""
    return s.task == "NONE" or s.deployment == "TAKEN"


@step
def ends_are_final(m, s, t):
    """An attempt that has ended is never active again, on either side."""
    return (s.master not in OVER or t.master == s.master) and (s.task not in OVER or t.task == s.task)


@step
def released_for_good(m, s, t):
    """A released partition does not come back."""
    return all(s.partition[p] != "RELEASED" or t.partition[p] == "RELEASED" for p in range(m.partitions))


SPEC = Spec(
    TaskAttempt,
    properties=(finished_is_finished, deployed_once, ends_are_final, released_for_good),
    termination=True,
    expected={
        "late-reports": {"ends_are_final": "violated"},
        "optimistic": {"finished_is_finished": "violated"},
        "submitted-again": {"deployed_once": "violated", "termination": "violated"},
        "registered-again": {"released_for_good": "violated", "termination": "violated"},
        "retries-rejected": {"termination": "violated"},
        "waits-for-report": {"deadlock": "violated"},
    },
)
