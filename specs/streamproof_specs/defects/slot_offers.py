"""Properties of slot offers: no active slot is forgotten, and no slot is used that is none."""

from __future__ import annotations

from streamproof import Spec, invariant, leads_to, reachable, step, temporal
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


@invariant
def released_by_owner(m, s):
    """The JobMaster releases the slot that it has, after its offer; the slot is active until the release arrives, and free
    from then on."""
    return all(
        s.release[i] == "NONE"
        or (s.owned == i and s.offer[i] == "NONE" and s.slot[i] == ("ACTIVE" if s.release[i] == "SENT" else "FREE"))
        for i in range(m.slots)
    )


@step
def released_once(m, s, t):
    """A release is sent, received, and answered or timed out, and then over."""
    return all(
        (t.release[i] != "SENT" or s.release[i] in ("NONE", "SENT"))
        and (t.release[i] != "TIMEOUT" or s.release[i] in ("RELEASED", "TIMEOUT"))
        for i in range(m.slots)
    )


@step
def faults_counted(m, s, t):
    """Each call or answer that is lost is counted, and nothing else."""
    lost = sum(
        (s.offer[i] != "TIMEOUT" and t.offer[i] == "TIMEOUT")
        or (s.release[i] != "TIMEOUT" and t.release[i] == "TIMEOUT")
        for i in range(m.slots)
    )
    return t.faults_left == s.faults_left - lost


@temporal
def calls_end(m, s):
    """An allocated slot is offered; every offer and every release is over some time."""
    return all(
        leads_to(s.slot[i] == "ALLOCATED", s.slot[i] == "ACTIVE")
        and leads_to(s.offer[i] != "NONE", s.offer[i] == "NONE")
        and leads_to(s.release[i] != "NONE", s.release[i] == "NONE")
        for i in range(m.slots)
    )


@reachable
def offer_lost(m, s):
    """All offers are lost, as far as faults permit."""
    return sum(s.offer[i] == "TIMEOUT" for i in range(m.slots)) == min(m.slots, m.faults)


@reachable
def answer_lost(m, s):
    """The answer to a release is lost."""
    return m.faults == 0 or any(s.release[i] == "TIMEOUT" for i in range(m.slots))


SPEC = Spec(
    SlotOffers,
    properties=(
        *(none_forgotten, owned_active, released_by_owner, released_once, faults_counted),
        *(calls_end, offer_lost, answer_lost),
    ),
    expected={
        "not-offered-again": {"none_forgotten": "violated", "deadlock": "violated"},
        "accepts-any-slot": {"none_forgotten": "violated"},
        "used-after-time-out": dict.fromkeys(("owned_active", "released_by_owner", "calls_end"), "violated"),
    },
    variant_parameters={
        "not-offered-again": {"slots": 1, "faults": 1},
        "accepts-any-slot": {"slots": 2, "faults": 0},
        "used-after-time-out": {"slots": 1, "faults": 1},
    },
)
