"""Safety of the views of slots in Flink 2.3, as far as logs show them: an accepted log has these properties."""

from __future__ import annotations

from streamproof import Spec, invariant, lemma, step
from streamproof_models.slots import views_variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.slots.views import SlotViews


@invariant
def task_in_slot(m, s):
    """A slot with a task is not free."""
    return all(not s.task[a] or s.te[a] != "ABSENT" for a in range(m.allocations))


@invariant
def active_was_accepted(m, s):
    """A slot is ACTIVE only if the JobMaster has accepted it."""
    return all(s.te[a] != "ACTIVE" or s.accepted[a] for a in range(m.allocations))


@invariant
def held_was_allocated(m, s):
    """The JobMaster holds only slots that the ResourceManager requested and the TaskExecutor allocated."""
    return all(s.jm[a] == "ABSENT" or (s.started[a] and s.allocated[a]) for a in range(m.allocations))


@step
def requested_once(m, s, t):
    """No slot is requested again under an allocation id that was used."""
    return all(s.rm[a] != "UNUSED" or t.rm[a] == "UNUSED" or not s.started[a] for a in range(m.allocations))


@step
def freed_last(m, s, t):
    """The ResourceManager frees an allocated slot only after its TaskExecutor, unless that one is lost."""
    return all(
        s.rm[a] != "ALLOCATED" or t.rm[a] == "ALLOCATED" or s.te[a] == "ABSENT" or s.lost[a]
        for a in range(m.allocations)
    )


@step
def offered_again(m, s, t):
    """A slot that the JobMaster gives up comes back only with another offer."""
    return all(s.jm[a] == "ABSENT" or t.jm[a] != "ABSENT" or not t.received[a] for a in range(m.allocations))


@step
def lost_unused(m, s, t):
    """No request gets a slot of a TaskExecutor that the JobMaster has disconnected."""
    return all(not s.gone[a] or s.jm[a] == "RESERVED" or t.jm[a] != "RESERVED" for a in range(m.allocations))


@lemma
def begun_in_order(m, s):
    """A request, its arrival, an allocation, an offer, its arrival: each after the one before."""
    return all(
        (s.started[a] or (s.rm[a] == "UNUSED" and not s.request[a] and not s.allocated[a]))
        and (s.allocated[a] or (s.te[a] == "ABSENT" and not s.offered[a] and s.offers[a] == 0))
        and (s.allocated[a] or (s.jm[a] == "ABSENT" and not s.received[a] and not s.accepted[a]))
        for a in range(m.allocations)
    )


SPEC = Spec(
    SlotViews,
    properties=(
        *(task_in_slot, active_was_accepted, held_was_allocated),
        *(requested_once, freed_last, offered_again, lost_unused, begun_in_order),
    ),
    expected={
        "reused": {"requested_once": "violated"},
        "freed-early": {"freed_last": "violated"},
        "active-unasked": {"active_was_accepted": "violated"},
        "unoffered": {"held_was_allocated": "violated"},
        "old-offer": {"offered_again": "violated"},
        "unnoticed-loss": {"lost_unused": "violated"},
        "freed-with-task": {"task_in_slot": "violated"},
    },
)
