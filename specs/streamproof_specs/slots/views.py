"""Safety of the views of slots in Flink 2.3, as far as logs show them: an accepted log has these properties."""

from __future__ import annotations

from streamproof import Spec, invariant, leads_to, lemma, reachable, step, temporal
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


@invariant
def known_in_order(m, s):
    """A view of a slot tells what has happened: the ResourceManager has a slot that was requested, and as ALLOCATED one that
    was allocated; that was after the request had arrived; an offer on its way was sent; what the JobMaster holds, it has
    accepted from an offer that it still has, or lost with the connection."""
    return all(
        (s.rm[a] == "UNUSED" or s.started[a])
        and (s.rm[a] != "ALLOCATED" or s.allocated[a])
        and (not s.allocated[a] or not s.request[a])
        and (s.offers[a] == 0 or s.offered[a])
        and (s.jm[a] == "ABSENT" or (s.accepted[a] and (s.received[a] or s.gone[a])))
        for a in range(m.allocations)
    )


@step
def lives_once(m, s, t):
    """The TaskExecutor allocates a slot once; it gives up what it has, or uses it, and a slot that it frees under tasks is
    not used again."""
    return all(
        (s.te[a] != "ABSENT" or t.te[a] == "ABSENT" or (t.te[a] == "ALLOCATED" and not s.allocated[a]))
        and (s.te[a] == t.te[a] or s.te[a] != "RELEASING" or t.te[a] == "ABSENT")
        and (s.task[a] or not t.task[a] or s.te[a] == "ACTIVE")
        for a in range(m.allocations)
    )


@step
def views_with_messages(m, s, t):
    """A view that changes is known to the others: with PENDING goes a request, to a connected TaskExecutor; a slot is
    allocated when the TaskExecutor says so; accepted when the JobMaster holds it."""
    return all(
        (s.started[a] == t.started[a] or t.rm[a] == "PENDING")
        and (s.rm[a] != "UNUSED" or t.rm[a] == "UNUSED" or (t.request[a] and not t.lost[a]))
        and (s.allocated[a] == t.allocated[a] or t.te[a] == "ALLOCATED")
        and (s.accepted[a] == t.accepted[a] or t.jm[a] == "FREE")
        for a in range(m.allocations)
    )


@step
def offers_counted(m, s, t):
    """Each offer is counted while it is on its way: one more is sent by a TaskExecutor whose slot no JobMaster uses, one
    less is on its way when it arrives; a JobMaster holds a slot again only from an offer that has arrived."""
    return all(
        (t.offers[a] <= s.offers[a] or (t.offers[a] == s.offers[a] + 1 and s.te[a] == "ALLOCATED"))
        and (s.offered[a] or not t.offered[a] or t.offers[a] > 0)
        and (s.received[a] or not t.received[a] or s.offers[a] in (0, m.repeats) or t.offers[a] == s.offers[a] - 1)
        and (s.jm[a] != "ABSENT" or t.jm[a] == "ABSENT" or (s.received[a] and not t.gone[a]))
        for a in range(m.allocations)
    )


@step
def loses_offers(m, s, t):
    """With its connection to the TaskExecutor the JobMaster loses all offers that came, or were to come, through it; else
    an offer is void only for a JobMaster that does not have the slot any more."""
    return all(
        (s.gone[a] or not t.gone[a] or not (t.offered[a] or t.received[a] or t.offers[a] > 0))
        and (not s.offered[a] or t.offered[a] or t.gone[a] or (s.jm[a] != "ABSENT" and t.jm[a] == "ABSENT"))
        for a in range(m.allocations)
    )


@temporal
def none_kept(m, s):
    """The ResourceManager frees every slot that its TaskExecutor has freed."""
    return all(leads_to(s.allocated[a] and s.te[a] == "ABSENT", s.rm[a] == "UNUSED") for a in range(m.allocations))


@reachable
def rejected(m, s):
    """A request fails before a slot is allocated, while the TaskExecutor is connected."""
    return any(
        s.rm[a] == "UNUSED" and s.started[a] and not s.request[a] and not s.allocated[a] and not s.lost[a]
        for a in range(m.allocations)
    )


@reachable
def runs(m, s):
    """All components agree on a slot whose task runs."""
    return any(
        s.rm[a] == "ALLOCATED" and s.te[a] == "ACTIVE" and s.jm[a] == "RESERVED" and s.task[a] and s.offers[a] == 0
        for a in range(m.allocations)
    )


@reachable
def outlives_connection(m, s):
    """A task still runs in a slot that waits for another JobMaster, which has lost what the one before had accepted."""
    return any(
        s.te[a] == "ALLOCATED"
        and s.task[a]
        and s.jm[a] == "ABSENT"
        and s.accepted[a]
        and s.offered[a]
        and s.offers[a] == 0
        and not s.received[a]
        for a in range(m.allocations)
    )


@reachable
def returned(m, s):
    """A slot is returned by the JobMaster, and freed by the TaskExecutor and the ResourceManager, without any loss."""
    return any(
        s.rm[a] == "UNUSED"
        and s.te[a] == "ABSENT"
        and s.jm[a] == "ABSENT"
        and s.accepted[a]
        and not s.offered[a]
        and not s.gone[a]
        and not s.lost[a]
        for a in range(m.allocations)
    )


@reachable
def dropped(m, s):
    """ResourceManager and JobMaster have lost a TaskExecutor, whose slot is still to be freed after its task."""
    return any(
        s.rm[a] == "UNUSED"
        and s.lost[a]
        and s.gone[a]
        and s.te[a] == "RELEASING"
        and not s.task[a]
        and s.jm[a] == "RESERVED"
        for a in range(m.allocations)
    )


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
        *(known_in_order, lives_once, views_with_messages, offers_counted, loses_offers, none_kept),
        *(rejected, runs, outlives_connection, returned, dropped),
    ),
    expected={
        "reused": {"requested_once": "violated", "known_in_order": "violated"},
        "freed-early": {"freed_last": "violated"},
        "active-unasked": {"active_was_accepted": "violated"},
        "unoffered": {"held_was_allocated": "violated"},
        "old-offer": {"offered_again": "violated", "loses_offers": "violated", "returned": "violated"},
        "unnoticed-loss": {"lost_unused": "violated"},
        "freed-with-task": {"task_in_slot": "violated", "dropped": "violated"},
    },
)
