"""Properties of slot allocation with locks and queues: slots are not lost, and no subtask waits for a free one."""

from __future__ import annotations

from streamproof import Spec, invariant, leads_to, step, temporal
from streamproof_models.slots import calls, variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.slots.machine import Slots


@invariant
def exclusive(m, s):
    """Two subtasks in one slot belong to the sharing group, and to different vertices or one co-location constraint."""
    pairs = [(t, u) for t in m.threads for u in m.threads if t < u and not may_share(m.work[t], m.work[u])]
    return all(s.slot[t] is None or s.slot[t] != s.slot[u] for t, u in pairs)


def may_share(one, other):
    """Whether two subtasks may be in one slot."""
    if one.constraint is not None and one.constraint == other.constraint:
        return one.vertex != other.vertex
    return one.is_shared and other.is_shared and one.group != other.group


@invariant
def no_leak(m, s):
    """An allocated slot of a live instance belongs to a subtask, or to the call that allocated it."""
    return all(
        s.allocated[x] == "FREE" or s.instance[m.instance_of(x)] != "ALIVE" or m.holders(s, x) > 0 or s.new_slot == x
        for x in m.all_slots
    )


@invariant
def owned(m, s):
    """The slot of a subtask is allocated, or its instance is dead."""
    return all(
        s.slot[t] is None or s.allocated[s.slot[t]] != "FREE" or s.instance[m.instance_of(s.slot[t])] != "ALIVE"
        for t in m.threads
    )


@invariant
def co_located(m, s):
    """Running subtasks of one co-location constraint are in one slot, at its locked location."""
    of = [[t for t in m.threads if m.work[t].constraint == c] for c in range(m.constraints)]
    return all(
        s.at[t] != "RUNNING"
        or (
            m.instance_of(s.slot[t]) == s.locked[c]
            and all(s.at[u] != "RUNNING" or s.slot[u] == s.slot[t] for u in of[c])
        )
        for c in range(m.constraints)
        for t in of[c]
    )


@step
def dead_refused(m, s, t):
    """A dead instance allocates no slot."""
    return all(
        s.instance[m.instance_of(x)] == "ALIVE" or s.allocated[x] != "FREE" or t.allocated[x] == "FREE"
        for x in m.all_slots
    )


@step
def local_used(m, s, t):
    """A call that gets a new slot at its preferred location uses it."""
    return all(
        s.at[k] != "DECIDE"
        or t.at[k] != "RUNNING"
        or s.new_slot is None
        or m.instance_of(s.new_slot) != s.preferred
        or t.slot[k] == s.new_slot
        for k in m.threads
    )


@step
def place_used(m, s, t):
    """A call gets a place in the group if its vertex has no subtask in one of the slots, and its location is open."""
    return all(
        s.at[k] != "CREATED"
        or t.at[k] == "CREATED"
        or t.slot[k] is not None
        or m.is_locked(t, k)
        or m.is_local_only(t, k)
        or not any(is_open(m, s, k, x) for x in m.all_slots)
        for k in m.threads
        if m.work[k].is_shared
    )


def is_open(m, s, k, x):
    """Whether a slot of the group has no subtask of the same vertex, or co-location group."""
    same = [u for u in m.threads if m.work[u].group == m.work[k].group]
    return s.allocated[x] == "SHARED" and m.holders(s, x) > 0 and not any(s.slot[u] == x for u in same)


@temporal
def served(m, s):
    """A slot is not free for ever while a subtask is queued."""
    return leads_to(waiting(m, s), not waiting(m, s))


def waiting(m, s):
    """Whether a subtask is queued, and a slot is free."""
    return len(s.queue) > 0 and any(m.is_free(s, x) for x in m.all_slots)


@temporal
def returned(m, s):
    """Every call of the scheduler returns."""
    return all(leads_to(s.at[t] in CALL, s.at[t] not in CALL) for t in m.threads)


CALL = ("FIND", "ALLOCATE", "DECIDE")


@temporal
def ended(m, s):
    """A queued subtask that gets a slot ends, once its gang is scheduled."""
    return all(
        leads_to(
            s.at[t] == "RUNNING" and all(s.at[u] != "CREATED" for u in m.gangs[t]), s.at[t] in ("FINISHED", "FAILED")
        )
        for t in m.gangs
    )


SPEC = Spec(
    Slots,
    properties=(exclusive, no_leak, owned, co_located, dead_refused, local_used, place_used, served, returned, ended),
    expected={
        "literal": {"served": "violated"},
        "synchronous-announcement": dict.fromkeys(("served", "returned", "ended", "deadlock"), "violated"),
        "leak-on-error": {"no_leak": "violated"},
        "unused-kept": {"no_leak": "violated"},
        "shared-twice": {"exclusive": "violated"},
        "dead-instance": {"dead_refused": "violated"},
        "released-place": {"owned": "violated", "co_located": "violated"},
        "location-preferred": {"co_located": "violated"},
        "far-place": {"local_used": "violated"},
        "partial-gang": {"ended": "violated", "deadlock": "violated"},
        "coalesced": {"served": "violated", "ended": "violated", "deadlock": "violated"},
        "not-put-back": {"served": "violated"},
        "never-locked": {"co_located": "violated"},
        "place-withheld": {"place_used": "violated"},
        "future-leaks": {"no_leak": "violated"},
        "forced-location": {"forced_respected": "violated", "served": "violated"},
    },
    variant_parameters={
        "literal": {"instances": 1, "slots": 2, "tasks": "A Q", "deaths": 0},
        "synchronous-announcement": {"instances": 1, "slots": 2, "tasks": "Q Q", "deaths": 0},
        "leak-on-error": {"instances": 1, "tasks": "A", "deaths": 0},
        "unused-kept": {"tasks": "A B", "deaths": 0},
        "shared-twice": {"instances": 1, "tasks": "A A", "deaths": 0},
        "dead-instance": {"instances": 1, "tasks": "A"},
        "released-place": {"instances": 3, "tasks": "A H0", "deaths": 0},
        "location-preferred": {"tasks": "H0 T0 Q", "deaths": 0},
        "far-place": {"tasks": "A B", "deaths": 0},
        "partial-gang": {"tasks": "Q Q Q Q", "deaths": 0},
        "newest-first": {"instances": 1, "tasks": "A Q Q Q"},
        "coalesced": {"instances": 1, "slots": 2, "tasks": "Q Q", "gang": 2, "deaths": 0},
        "not-put-back": {"instances": 1, "slots": 2, "tasks": "A Q", "deaths": 0},
        "never-locked": {"tasks": "H0 T0", "deaths": 0},
        "place-withheld": {"instances": 1, "tasks": "A B A", "deaths": 0},
        "future-fails": {"tasks": "A Q"},
        "refusing": {"tasks": "A Q"},
        "forced-location-only": {"tasks": "A Q"},
        "future-leaks": {"instances": 1, "tasks": "Q", "deaths": 0},
        "forced-location": {"tasks": "Q", "deaths": 0},
    },
)
