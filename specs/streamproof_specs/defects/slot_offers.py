"""Properties of slot offers: no active slot is forgotten, and no slot is used that is none."""

from __future__ import annotations

from streamproof import Spec, invariant
from streamproof_models.defects.slot_offers import SlotOffers


@invariant
def none_forgotten(m, s):
    """An active slot is the JobMaster's, or a call about it is under way."""
    return all(
        s.slot[i] != "ACTIVE" or s.owned == i or s.offer[i] != "NONE" or s.release[i] != "NONE" for i in range(m.slots)
    )


@invariant
def owned_active(m, s):
    """The JobMaster's slot is active, unless it is being released."""
    return all(s.owned != i or s.slot[i] == "ACTIVE" or s.release[i] != "NONE" for i in range(m.slots))


SPEC = Spec(
    SlotOffers,
    properties=(none_forgotten, owned_active),
    expected={
        "not-offered-again": {"none_forgotten": "violated", "deadlock": "violated"},
        "accepts-any-slot": {"none_forgotten": "violated"},
        "used-after-time-out": {"owned_active": "violated"},
    },
    variant_parameters={
        "not-offered-again": {"slots": 1, "faults": 1},
        "accepts-any-slot": {"slots": 2, "faults": 0},
        "used-after-time-out": {"slots": 1, "faults": 1},
    },
)
