"""Properties of the core of `regions`, which the machine that follows Flink's logs is a subclass of (variant `flink`)."""

from __future__ import annotations

import streamproof_models.regions.variants  # noqa: F401  (declaring a variant registers it)
from streamproof import Spec, invariant, step
from streamproof_models.regions.core import SchedulingCore
from streamproof_specs.regions.properties import acyclic, completed, inputs_finished, together


@invariant
def counted_there(m, s):
    """The counter of a group is the number of its partitions that cannot be read, counted one by one."""
    return all(s.unfinished[g] == sum(int(not m.is_there(s, t, g)) for t in m.producers[g]) for g in m.groups)


@step
def scheduled_together(m, s, t):
    """A task is scheduled with all tasks of its region."""
    return all(
        not any(s.status[a] == "CREATED" and t.status[a] != "CREATED" for a in tasks)
        or all(s.status[a] == "CREATED" and t.status[a] == "SCHEDULED" for a in tasks)
        for tasks in m.regions.values()
    )


@step
def scheduled_with_inputs(m, s, t):
    """A region is scheduled when all partitions that it reads from other regions can be read."""
    return m.eager or all(
        s.status[a] != "CREATED"
        or t.status[a] == "CREATED"
        or all(m.region_of[p] == m.region_of[a] or m.is_there(s, p, g) for p in m.producers[g])
        for a, g in m.gates
        if m.crosses(g)
    )


SPEC = Spec(
    SchedulingCore,
    properties=(
        *(counted_there, scheduled_together, scheduled_with_inputs),
        *(acyclic, together, inputs_finished, completed),
    ),
    expected={
        # A producer may restart beside its readers and be out of restarts: such jobs are the matter of failover.
        "flink": dict.fromkeys(("together", "inputs_finished", "completed"), "violated"),
        "flink-counter-not-reset": dict.fromkeys(
            ("counted_there", "scheduled_with_inputs", "together", "inputs_finished", "completed"), "violated"
        ),
        "flink-task-by-task": dict.fromkeys(
            ("scheduled_together", "together", "inputs_finished", "completed"), "violated"
        ),
        "flink-without-inputs": dict.fromkeys(("scheduled_with_inputs", "inputs_finished", "completed"), "violated"),
    },
    variant_parameters={"flink-without-inputs": {"topology": "join"}},
)
