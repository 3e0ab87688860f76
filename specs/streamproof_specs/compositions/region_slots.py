"""Properties of regions that need slots: every task finishes, and no two regions hold slots that the other needs."""

from __future__ import annotations

from streamproof import Spec, invariant, step
from streamproof_models.compositions.region_slots import RegionSlots
from streamproof_models.slots import variants  # noqa: F401  (declaring a variant registers it)
from streamproof_specs.regions import properties as regions
from streamproof_specs.slots import properties as slots


@invariant
def no_partial_gangs(m, s):
    """At most one region holds slots while a task of it has none."""
    return sum(int(m.is_partial(s, r)) for r in m.regions) <= 1


@step
def inputs_first(m, s, t):
    """A task gets a slot only when its inputs from other regions have been produced."""
    return all(
        m.has_slot(s, u) or not m.has_slot(t, u) or all(s.job.status[p] == "FINISHED" for p in m.upstream[u])
        for u in m.tasks
    )


SPEC = Spec(
    RegionSlots,
    properties=(no_partial_gangs, inputs_first),
    carries={
        "job": (regions.acyclic, regions.scheduled, regions.completed),
        "cluster": (slots.served, slots.returned),
    },
    expected={
        "one-by-one": {"job.completed": "violated", "no_partial_gangs": "violated", "deadlock": "violated"},
        "consumers-later": {"job.completed": "violated", "no_partial_gangs": "violated", "deadlock": "violated"},
        "eager": {"job.completed": "violated", "inputs_first": "violated", "deadlock": "violated"},
        "merge-within-logical-region-only": dict.fromkeys(
            ("job.acyclic", "job.scheduled", "job.completed", "deadlock"), "violated"
        ),
        "literal": dict.fromkeys(("job.scheduled", "job.completed", "cluster.served", "deadlock"), "violated"),
        "synchronous-announcement": dict.fromkeys(("job.completed", "cluster.returned", "deadlock"), "violated"),
    },
)
