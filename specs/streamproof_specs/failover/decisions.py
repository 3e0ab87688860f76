"""Properties of backtracking failover for any number of failures and losses, on a given job graph: those of `failover`."""

from __future__ import annotations

from streamproof import Spec, measure
from streamproof_models.failover.decisions import FailoverDecisions
from streamproof_specs.failover.lemmas import LEMMAS
from streamproof_specs.failover.properties import SPEC as FAILOVER
from streamproof_specs.failover.properties import (
    complete_result,
    consistent_result,
    ends,
    fresh_attempts,
    inputs_exist,
    no_mixed_versions,
    stops_before_restart,
    survives,
    unrelated_undisturbed,
)


@measure
def remaining(m, s):
    """More than the number of steps until the job has ended: what a task has before it, what pending decisions restart, and
    for each failure, loss and decision still to come what it may undo."""
    return (
        6 * len(m.tasks) * (m.decisions - s.decided)
        + s.failures_left
        + s.losses_left
        + sum(before(m, s, t) for t in m.tasks)
        + sum(sum(int(s.restarting[k][t]) for k in range(m.places)) for t in m.tasks)
    )


def before(m, s, t):
    """Number of steps before task `t` until it has finished, if nothing fails; one if it has finished."""
    if s.status[t] == "FINISHED":
        return 5 if m.will_restart(s, t) else 1
    left = {"RUNNING": 2, "SCHEDULED": 3, "CREATED": 4, "FAILED": 5, "CANCELED": 5, "CANCELING": 6}
    return sum(number * int(s.status[t] == status) for status, number in left.items())


PROPERTIES = (
    no_mixed_versions,
    consistent_result,
    complete_result,
    inputs_exist,
    stops_before_restart,
    fresh_attempts,
    unrelated_undisturbed,
    survives,
)
NAMES = {*(p.__name__ for p in PROPERTIES), "deadlock"}
ENDLESS = ("region-without-backtracking", "early-release", "no-merging", "merge-within-logical-region-only")
"""Variants of which a task may wait for ever: for an input that nobody produces again, though no restart is left to say
so, or for another region."""

SPEC = Spec(
    FailoverDecisions,
    properties=(*PROPERTIES, ends, *LEMMAS),
    measures=(remaining,),
    expected={
        variant: {name: verdict for name, verdict in FAILOVER.expected[variant].items() if name in NAMES}
        | ({"ends": "violated"} if variant in ENDLESS else {})
        for variant in FailoverDecisions.variants
    },
)
