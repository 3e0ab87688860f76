"""Failure budgets: a job is given up for a task that failed too often, and for nothing else."""

from __future__ import annotations

from streamproof import Spec, invariant, reachable
from streamproof_models.failover.budgets import FailureBudgets


@invariant
def given_up_for_cause(m, s):
    """A job that was given up had a task that failed of itself more often than its budget permits."""
    return s.job != "FAILED" or any(s.failed[t] > m.per_task for t in m.tasks)


@invariant
def given_up_in_time(m, s):
    """No task fails of itself more often than its budget permits, without the job being given up."""
    return s.job == "FAILED" or all(s.failed[t] <= m.per_task for t in m.tasks)


@reachable
def survives_more_failures(m, s):
    """A job finishes after more failures than the budget of one task has."""
    return s.job == "FINISHED" and sum(s.failed[t] for t in m.tasks) > m.per_task


SPEC = Spec(
    FailureBudgets,
    properties=(given_up_for_cause, given_up_in_time, survives_more_failures),
    expected={
        "missing-inputs-unhandled": {"given_up_for_cause": "violated", "deadlock": "violated"},
        "missing-inputs-count": {"given_up_for_cause": "violated"},
        "restarts-count": {"given_up_for_cause": "violated"},
        "total-failures": {"given_up_for_cause": "violated", "survives_more_failures": "violated"},
        "forgotten-by-restart": {"given_up_in_time": "violated"},
    },
)
