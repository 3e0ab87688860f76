"""Properties of regions that need slots: every task finishes, and no two regions hold slots that the other needs."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, step, temporal
from streamproof_models import slots_variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.region_slots import RegionSlots
from streamproof_specs import slots


@temporal
def all_finish(m, s):
    """Every task finishes."""
    return eventually(all(t in s.job.finished for t in m.tasks))


@invariant
def no_partial_gangs(m, s):
    """At most one region holds slots while a task of it has none."""
    return sum(int(m.is_partial(s, r)) for r in m.regions) <= 1


@step
def inputs_first(m, s, t):
    """A task gets a slot only when its inputs from other regions have been produced."""
    return all(
        m.has_slot(s, u) or not m.has_slot(t, u) or all(producer in s.job.finished for producer in m.job.upstream[u])
        for u in m.tasks
    )


SPEC = Spec(
    RegionSlots,
    properties=(all_finish, no_partial_gangs, inputs_first),
    carries={"cluster": (slots.served, slots.returned)},
    expected={
        "one-by-one": {"all_finish": "violated", "no_partial_gangs": "violated", "deadlock": "violated"},
        "consumers-later": {"all_finish": "violated", "no_partial_gangs": "violated", "deadlock": "violated"},
        "eager": {"all_finish": "violated", "inputs_first": "violated", "deadlock": "violated"},
        "merge-within-logical-region-only": {"all_finish": "violated", "deadlock": "violated"},
        "literal": {"all_finish": "violated", "cluster.served": "violated", "deadlock": "violated"},
        "synchronous-announcement": {"all_finish": "violated", "cluster.returned": "violated", "deadlock": "violated"},
    },
)
