"""Safety of slot allocation for any number of instances, slots, subtasks and co-location constraints."""

from __future__ import annotations

from streamproof import Spec, invariant, lemma, step
from streamproof_models.slots import owners_variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.slots.owners import SlotOwners


@invariant
def exclusive(m, s):
    """Two subtasks in one slot belong to the sharing group, and to different vertices."""
    return all(
        t == u
        or not (s.holds[t] and s.holds[u] and s.slot[t] == s.slot[u])
        or (s.shared[t] and s.shared[u] and s.vertex[t] != s.vertex[u])
        for t in range(m.subtasks)
        for u in range(m.subtasks)
    )


@invariant
def no_leak(m, s):
    """An allocated slot of a live instance belongs to a subtask, or to the call that allocated it."""
    return all(
        s.allocated[x] in ("ABSENT", "FREE")
        or s.dead[s.home[x]]
        or (s.has_new and s.new_slot == x)
        or (s.holds[s.owner[x]] and s.slot[s.owner[x]] == x)
        for x in range(m.slots)
    )


@invariant
def owned(m, s):
    """The slot of a subtask is allocated."""
    return all(not s.holds[t] or s.allocated[s.slot[t]] in ("SIMPLE", "SHARED") for t in range(m.subtasks))


@invariant
def co_located(m, s):
    """Running subtasks of one co-location constraint are at its locked location."""
    return all(
        s.at[t] != "RUNNING"
        or not s.constrained[t]
        or (s.locked[s.constraint[t]] and s.home[s.slot[t]] == s.location[s.constraint[t]])
        for t in range(m.subtasks)
    )


@invariant
def in_one_slot(m, s):
    """Running subtasks of one co-location constraint are in one slot."""
    return all(
        t == u
        or not (s.at[t] == "RUNNING" and s.at[u] == "RUNNING" and s.constrained[t] and s.constrained[u])
        or s.constraint[t] != s.constraint[u]
        or s.slot[t] == s.slot[u]
        for t in range(m.subtasks)
        for u in range(m.subtasks)
    )


@step
def dead_refused(m, s, t):
    """A dead instance allocates no slot."""
    return all(not s.dead[s.home[x]] or s.allocated[x] != "FREE" or t.allocated[x] == "FREE" for x in range(m.slots))


@lemma
def one_call(m, s):
    """At most one subtask is in a call, with the global lock; there is no new slot without the lock."""
    return all(
        s.at[t] != "CALL" or (s.global_lock and all(t == u or s.at[u] != "CALL" for u in range(m.subtasks)))
        for t in range(m.subtasks)
    ) and (not s.has_new or s.global_lock)


@lemma
def holds_when_running(m, s):
    """A subtask has a slot while it runs and returns it, perhaps in its call, and at no other time."""
    return all(
        (s.holds[t] or s.at[t] not in ("RUNNING", "RETURN"))
        and (not s.holds[t] or s.at[t] in ("CALL", "RUNNING", "RETURN"))
        for t in range(m.subtasks)
    )


@lemma
def kind_of_slot(m, s):
    """A slot is SHARED for subtasks of the sharing group, and SIMPLE for others; so is the new slot of a call."""
    return all(
        (not s.holds[t] or is_for(s, s.slot[t], t)) and (s.at[t] != "CALL" or not s.has_new or is_for(s, s.new_slot, t))
        for t in range(m.subtasks)
    )


@lemma
def queued_alone(m, s):
    """Only a subtask without a group is queued, and it gets no place in its call; one with a constraint has the group."""
    return all(
        (s.at[t] != "QUEUED" or not s.shared[t])
        and (s.at[t] != "CALL" or s.shared[t] or not s.holds[t])
        and (s.shared[t] or not s.constrained[t])
        for t in range(m.subtasks)
    )


def is_for(s, x, t):
    """Whether a slot is allocated for a subtask of this kind."""
    return (s.allocated[x] == "SHARED" and s.shared[t]) or (s.allocated[x] == "SIMPLE" and not s.shared[t])


@lemma
def new_is_unused(m, s):
    """No subtask has the new slot of a call, and it is allocated."""
    return not s.has_new or (
        s.allocated[s.new_slot] in ("SIMPLE", "SHARED")
        and all(not s.holds[t] or s.slot[t] != s.new_slot for t in range(m.subtasks))
    )


@lemma
def returned_alone(m, s):
    """A slot that a thread returns has no other subtask, and its instance lives."""
    return all(
        s.at[t] != "RETURN"
        or (
            not s.dead[s.home[s.slot[t]]]
            and all(t == u or not s.holds[u] or s.slot[u] != s.slot[t] for u in range(m.subtasks))
        )
        for t in range(m.subtasks)
    )


@lemma
def place_at_location(m, s):
    """The place of a call for a locked constraint is at its location."""
    return all(
        not bound(s, t) or not s.holds[t] or s.home[s.slot[t]] == s.location[s.constraint[t]] for t in range(m.subtasks)
    )


@lemma
def new_at_location(m, s):
    """The new slot of a call for a locked constraint is at its location."""
    return all(
        not bound(s, t) or not s.has_new or s.home[s.new_slot] == s.location[s.constraint[t]] for t in range(m.subtasks)
    )


@lemma
def new_without_partner(m, s):
    """A call for a locked constraint has a new slot only if no other subtask of it runs."""
    return all(
        not bound(s, t) or not s.has_new or not m.is_partner(s, t, u)
        for t in range(m.subtasks)
        for u in range(m.subtasks)
    )


@lemma
def place_with_partner(m, s):
    """The place of a call for a locked constraint is where the other subtasks of it run."""
    return all(
        not bound(s, t) or not s.holds[t] or not m.is_partner(s, t, u) or s.slot[u] == s.slot[t]
        for t in range(m.subtasks)
        for u in range(m.subtasks)
    )


def bound(s, t):
    """Whether there is a call for a subtask with a locked constraint."""
    return s.at[t] == "CALL" and s.constrained[t] and s.locked[s.constraint[t]]


SPEC = Spec(
    SlotOwners,
    properties=(
        exclusive,
        no_leak,
        owned,
        co_located,
        in_one_slot,
        dead_refused,
        one_call,
        holds_when_running,
        queued_alone,
        kind_of_slot,
        new_is_unused,
        returned_alone,
        place_at_location,
        new_at_location,
        new_without_partner,
        place_with_partner,
    ),
    expected={
        "shared-twice": {"exclusive": "violated"},
        "dead-instance": {"dead_refused": "violated"},
        "location-preferred": {"co_located": "violated", "in_one_slot": "violated"},
        "leak-on-error": {"no_leak": "violated"},
        "unlocked-group": {"owned": "violated"},
    },
)
