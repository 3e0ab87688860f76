"""Failure budgets: a job is given up for a task that failed too often, and for nothing else."""

from __future__ import annotations

from streamproof import Spec, invariant, reachable, step
from streamproof_models.failover.budgets import FailureBudgets
from streamproof_specs.failover.properties import (
    complete_result,
    consistent_result,
    ends,
    fresh_attempts,
    inputs_exist,
    stops_before_restart,
    unrelated_undisturbed,
)


@invariant
def given_up_for_cause(m, s):
    """A job that was given up had a task that failed of itself more often than its budget permits."""
    return s.job != "FAILED" or any(s.failed[t] > m.per_task for t in m.tasks)


@invariant
def given_up_in_time(m, s):
    """No task fails of itself more often than its budget permits, without the job being given up."""
    return s.job == "FAILED" or all(s.failed[t] <= m.per_task for t in m.tasks)


@invariant
def failures_counted(m, s):
    """Every failure of the instance is still to come, or a task failed of itself."""
    return s.failures_left + sum(s.failed[t] for t in m.tasks) == m.failures


@invariant
def own_failures_charged(m, s):
    """While the job is not given up, the failures of a task itself are charged to it, and nothing else is."""
    return s.job == "FAILED" or all(s.charged[t] == s.failed[t] for t in m.tasks)


@step
def over_is_over(m, s, t):
    """In a job that has finished or was given up no task changes its state, no partition is lost, and nothing is decided."""
    return s.job == "RUNNING" or (
        t.job == s.job
        and t.decided == s.decided
        and all(t.status[u] == s.status[u] and t.attempt[u] == s.attempt[u] for u in m.tasks)
        and all(t.partition[p] == s.partition[p] for p in m.partitions)
        and all(m.is_carried_out(t, k) == m.is_carried_out(s, k) for k in range(m.places))
    )


@reachable
def survives_more_failures(m, s):
    """A job finishes after more failures than the budget of one task has, and a missing input if one can be lost."""
    failed = sum(s.failed[t] for t in m.tasks)
    return s.job == "FINISHED" and failed > m.per_task and s.decided >= failed + min(m.losses, len(m.partitions), 1)


SPEC = Spec(
    FailureBudgets,
    properties=(
        given_up_for_cause,
        given_up_in_time,
        failures_counted,
        own_failures_charged,
        over_is_over,
        consistent_result,
        complete_result,
        inputs_exist,
        stops_before_restart,
        fresh_attempts,
        unrelated_undisturbed,
        survives_more_failures,
        ends,
    ),
    expected={
        "missing-inputs-unhandled": {
            "given_up_for_cause": "violated",
            "own_failures_charged": "violated",
            "deadlock": "violated",
            "ends": "violated",
        },
        "missing-inputs-count": {"given_up_for_cause": "violated", "own_failures_charged": "violated"},
        "restarts-count": {"given_up_for_cause": "violated", "own_failures_charged": "violated"},
        "total-failures": {"given_up_for_cause": "violated", "survives_more_failures": "violated"},
        "forgotten-by-restart": {"given_up_in_time": "violated", "own_failures_charged": "violated"},
    },
)
