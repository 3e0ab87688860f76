"""Safety of one logical slot."""

from __future__ import annotations

from streamproof import Spec, step
from streamproof_models.slots.logical import LogicalSlot


@step
def removed_once(m, s, t):
    """A slot that was removed stays so."""
    return s.slot != "REMOVED" or t.slot == "REMOVED"


SPEC = Spec(LogicalSlot, properties=(removed_once,), expected={"reused": {"removed_once": "violated"}})
