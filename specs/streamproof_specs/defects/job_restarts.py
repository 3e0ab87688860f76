"""Properties of restarts and ends of a job: nothing is restored in vain, nothing tracked for ever."""

from __future__ import annotations

from streamproof import Spec, invariant
from streamproof_models.defects.job_restarts import JobRestarts


@invariant
def restores_for_tasks(m, s):
    """State is restored only for tasks that restart."""
    return not s.idle


@invariant
def none_leaked(m, s):
    """No partition of an earlier attempt is tracked."""
    return not s.leaked


SPEC = Spec(
    JobRestarts,
    properties=(restores_for_tasks, none_leaked),
    expected={
        "always-fails": {"deadlock": "violated"},
        "restores-nothing": {"restores_for_tasks": "violated"},
        "failed-tracked": {"none_leaked": "violated"},
    },
    variant_parameters={
        "always-fails": {"tasks": 1, "restarts": 0},
        "restores-nothing": {"tasks": 1, "restarts": 2},
        "failed-tracked": {"tasks": 1, "restarts": 1},
    },
)
