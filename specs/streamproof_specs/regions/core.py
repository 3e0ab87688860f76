"""Properties of the core of `regions`, which the machine that follows Flink's logs is a subclass of (variant `flink`)."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, step, temporal
from streamproof_models.regions import variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.regions.core import SchedulingCore
from streamproof_specs.regions.properties import acyclic


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


@temporal
def ended(m, s):
    """The job finishes, or no task may restart any more."""
    return eventually(m.over(s))


SPEC = Spec(
    SchedulingCore,
    properties=(counted_there, scheduled_together, scheduled_with_inputs, acyclic, ended),
    expected={
        "unmerged": dict.fromkeys(("acyclic", "ended", "deadlock"), "violated"),
        "flink-counter-not-reset": {"counted_there": "violated", "scheduled_with_inputs": "violated"},
        "flink-task-by-task": {"scheduled_together": "violated"},
        "flink-without-inputs": {"scheduled_with_inputs": "violated"},
    },
    variant_parameters={
        "unmerged": {"topology": "cyclic-region"},
        "flink-counter-not-reset": {"parallelism": 1},
        "flink-task-by-task": {"parallelism": 1},
        "flink-without-inputs": {"topology": "join"},
    },
)
