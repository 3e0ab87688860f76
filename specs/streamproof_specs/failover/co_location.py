"""Co-located tasks of different regions: in one place, none waits without end, and no other task is disturbed."""

from __future__ import annotations

from streamproof import Spec, invariant, reachable
from streamproof_models.failover.co_location import CoLocation
from streamproof_specs.failover.properties import survives, unrelated_undisturbed


@invariant
def in_one_place(m, s):
    """Tasks of one constraint that are at work are on one TaskExecutor."""
    return all(
        s.host[t] == s.host[u] or not m.is_placed(s, t) or not m.is_placed(s, u)
        for tasks in m.constraints.values()
        for t in tasks
        for u in tasks
    )


@reachable
def finishes_elsewhere(m, s):
    """A job finishes after it lost a TaskExecutor with co-located tasks."""
    return s.job == "FINISHED" and s.decided > 0 and any(s.lost[e] for e in m.hosts)


SPEC = Spec(
    CoLocation,
    properties=(in_one_place, unrelated_undisturbed, survives, finishes_elsewhere),
    expected={
        "any-place": {"in_one_place": "violated"},
        "locked-forever": {"deadlock": "violated"},
        "locked-to-the-lost": {"survives": "violated"},
        "one-region": {"unrelated_undisturbed": "violated"},
        "constraints-in-regions": {"unrelated_undisturbed": "violated"},
        "constraints-in-regions-unmerged": {"deadlock": "violated", "finishes_elsewhere": "violated"},
    },
)
