"""Properties of a shared slot: no allocation is forgotten."""

from __future__ import annotations

from streamproof import Spec, invariant
from streamproof_models.defects.shared_slot import SharedSlot


@invariant
def returned(m, s):
    """When a task has ended, none of its allocations is still allocated."""
    return not any(s.task[r] == "DONE" and s.slot[r, a] in ("ALLOCATED", "RELEASING") for r, a in m.ids)


@invariant
def tracked(m, s):
    """The table has every allocation that is not being released."""
    return all(s.slot[r, a] != "ALLOCATED" or s.entry[r] == a for r, a in m.ids)


SPEC = Spec(
    SharedSlot,
    properties=(returned, tracked),
    expected={
        "removes-any": {"returned": "violated", "tracked": "violated"},
        "waits-for-release": {"deadlock": "violated"},
    },
    variant_parameters={"removes-any": {"requests": 1}, "waits-for-release": {"requests": 1}},
)
