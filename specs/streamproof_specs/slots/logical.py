"""What a logical slot goes through: an accepted log has these properties."""

from __future__ import annotations

from streamproof import Spec, step
from streamproof_models.slots.logical import LogicalSlot


@step
def requested_first(m, s, t):
    """It is allocated only if it was requested."""
    return s.slot != "NONE" or t.slot in ("NONE", "REQUESTED")


@step
def removed_once(m, s, t):
    """Nothing happens after its end."""
    return s.slot != "REMOVED" or t.slot == "REMOVED"


SPEC = Spec(
    LogicalSlot,
    properties=(requested_first, removed_once),
    expected={"unrequested": {"requested_first": "violated"}, "requested-again": {"removed_once": "violated"}},
)
