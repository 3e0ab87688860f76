"""Properties of a shared slot: no allocation is forgotten."""

from __future__ import annotations

from streamproof import Spec, invariant, reachable, step
from streamproof_models.defects.shared_slot import SharedSlot


@invariant
def returned(m, s):
    """When a task has ended, none of its allocations is still allocated."""
    return not any(s.task[r] == "DONE" and s.slot[r, a] in ("ALLOCATED", "RELEASING") for r, a in m.ids)


@invariant
def tracked(m, s):
    """The table has every allocation that is not being released."""
    return all(s.slot[r, a] != "ALLOCATED" or s.entry[r] == a for r, a in m.ids)


@invariant
def entry_of_deployed(m, s):
    """The table has an entry for each task that is deployed, with an allocation in use, and for no other task."""
    return all(
        (s.entry[r] is not None) == (s.task[r] == "DEPLOYED")
        and all(s.slot[r, a] in ("ALLOCATED", "RELEASING") for a in range(m.allocations) if s.entry[r] == a)
        for r in range(m.requests)
    )


@step
def each_in_order(m, s, t):
    """A task is deployed, then done; an allocation is made, perhaps released while its task goes on, and returned."""
    return all(s.task[r] != "NEW" or t.task[r] != "DONE" for r in range(m.requests)) and all(
        s.slot[r, a] == t.slot[r, a]
        or (s.slot[r, a] == "NONE" and t.slot[r, a] == "ALLOCATED")
        or (s.slot[r, a] == "ALLOCATED" and t.slot[r, a] == ("RELEASING" if t.task[r] == "DEPLOYED" else "RETURNED"))
        or (s.slot[r, a] == "RELEASING" and t.slot[r, a] == "RETURNED")
        for r, a in m.ids
    )


@reachable
def allocated_again(m, s):
    """All allocations of a task but its last one are returned, and the task goes on."""
    return any(
        s.task[r] == "DEPLOYED" and all(s.slot[r, a] == "RETURNED" for a in range(m.allocations - 1))
        for r in range(m.requests)
    )


SPEC = Spec(
    SharedSlot,
    properties=(returned, tracked, entry_of_deployed, each_in_order, allocated_again),
    expected={
        "removes-any": dict.fromkeys(("returned", "tracked", "entry_of_deployed"), "violated"),
        "waits-for-release": {"deadlock": "violated", "allocated_again": "violated"},
    },
    variant_parameters={"removes-any": {"requests": 1}, "waits-for-release": {"requests": 1}},
)
