"""Properties of checkpoints: what completes, what a restart restores, what is published, and that checkpoints go on."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, leads_to, lemma, step, temporal
from streamproof_models.checkpoints import variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.checkpoints.machine import Checkpoints


@invariant
def consistent(m, s):
    """In a completed checkpoint every task of one attempt has taken a snapshot."""
    return all(
        s.checkpoint[c] != "COMPLETED" or all(s.snapshot[c, t] == s.plan[c] for t in range(m.tasks)) for c in m.every
    )


@invariant
def limited(m, s):
    """At most `concurrent` checkpoints are pending."""
    return sum(int(x == "PENDING") for x in s.checkpoint) <= m.concurrent


@invariant
def current(m, s):
    """While the job runs, every pending checkpoint is of the current attempts of the tasks."""
    return all(s.job != "RUNNING" or s.checkpoint[c] != "PENDING" or s.plan[c] == s.attempt for c in m.every)


@invariant
def published_is_stored(m, s):
    """What a task has published is in the newest checkpoint of the store: no restart undoes it."""
    return all(s.published[t] <= m.newest(s) for t in range(m.tasks))


@step
def ends_once(m, s, t):
    """A checkpoint completes or is aborted once."""
    return all(s.checkpoint[c] in ("NONE", "PENDING") or t.checkpoint[c] == s.checkpoint[c] for c in m.every)


@step
def ids_rise(m, s, t):
    """A checkpoint completes only after all with lower ids."""
    return t.latest >= s.latest


@step
def restores_latest(m, s, t):
    """A restart restores the checkpoint that was completed last."""
    return t.attempt == s.attempt or t.restored == s.latest


@step
def triggers_pending(m, s, t):
    """Tasks are triggered for pending checkpoints only."""
    return all(s.triggers[c, k] or not t.triggers[c, k] or s.checkpoint[c] == "PENDING" for c, k in m.pairs)


@temporal
def ends(m, s):
    """Every checkpoint eventually ends."""
    return all(leads_to(s.checkpoint[c] == "PENDING", s.checkpoint[c] != "PENDING") for c in m.every)


@temporal
def recovers(m, s):
    """A failed job eventually runs again."""
    return leads_to(s.job != "RUNNING", s.job == "RUNNING" and all(s.running))


@temporal
def goes_on(m, s):
    """Checkpoints are triggered again and again, until the ids of the model are used."""
    return eventually(s.last_id == m.ids)


@lemma
def failures_counted(m, s):
    """Every restart is one failure; the attempts of a plan are not of the future."""
    return s.failures_left + s.attempt + int(s.job != "RUNNING") == m.failures and s.planned <= s.attempt


@lemma
def unused_ids(m, s):
    """Nothing is known of an id that was not given out; an id whose plan is made has no pending checkpoint yet."""
    return (
        (s.stage != "PLANNING" or s.last_id < m.ids)
        and (s.stage not in ("PLANNED", "CREATED") or s.last_id >= 1)
        and all(
            (c <= s.last_id and (s.stage != "PLANNED" or c != s.last_id))
            or (
                s.checkpoint[c] == "NONE"
                and not s.store[c]
                and all(
                    not s.triggers[c, t]
                    and s.answer[c, t] == "NONE"
                    and not s.notices[c, t]
                    and not s.acknowledged[c, t]
                    and s.snapshot[c, t] == -1
                    for t in range(m.tasks)
                )
            )
            for c in m.every
        )
    )


@lemma
def room(m, s):
    """While a checkpoint is planned there is room for it."""
    return s.stage not in ("PLANNING", "PLANNED") or sum(int(x == "PENDING") for x in s.checkpoint) < m.concurrent


@lemma
def planned_attempts(m, s):
    """Pending checkpoints and messages are of the current attempts; snapshots and answers of those of the plan."""
    return all(
        (s.checkpoint[c] != "PENDING" or (s.job != "RESTARTING" and s.plan[c] == s.attempt))
        and (s.stage != "CREATED" or c != s.last_id or s.plan[c] == s.planned)
        and all(
            (s.stage != "CREATED" or c != s.last_id or (s.answer[c, t] == "NONE" and s.snapshot[c, t] == -1))
            and (
                not s.triggers[c, t]
                or (
                    s.job != "RESTARTING"
                    and s.plan[c] == s.attempt
                    and s.answer[c, t] == "NONE"
                    and s.snapshot[c, t] == -1
                    and (s.stage != "CREATED" or c != s.last_id)
                )
            )
            and (s.snapshot[c, t] == -1 or s.snapshot[c, t] == s.plan[c])
            and (s.answer[c, t] == "NONE" or s.answered[c, t] == s.plan[c])
            and (s.answer[c, t] != "ACKNOWLEDGE" or s.snapshot[c, t] == s.plan[c])
            and (not s.acknowledged[c, t] or s.snapshot[c, t] == s.plan[c])
            for t in range(m.tasks)
        )
        for c in m.every
    )


@lemma
def newest_stored(m, s):
    """The store has completed checkpoints only, the latest among them; pending ones are newer."""
    return s.latest <= s.last_id and all(
        (not s.store[c] or s.checkpoint[c] == "COMPLETED")
        and (s.checkpoint[c] != "COMPLETED" or (c <= s.latest and all(s.acknowledged[c, t] for t in range(m.tasks))))
        and (c != s.latest or s.store[c])
        and (s.checkpoint[c] != "PENDING" or c > s.latest)
        and (s.stage not in ("PLANNED", "CREATED") or c != s.last_id or s.checkpoint[c] == "COMPLETED" or c > s.latest)
        and all(not s.notices[c, t] or s.checkpoint[c] == "COMPLETED" for t in range(m.tasks))
        for c in m.every
    )


SPEC = Spec(
    Checkpoints,
    properties=(
        *(consistent, limited, current, published_is_stored),
        *(ends_once, ids_rise, restores_latest, triggers_pending),
        *(ends, recovers, goes_on),
        *(failures_counted, unused_ids, room, planned_attempts, newest_stored),
    ),
    expected={
        "no-timeout": dict.fromkeys(("ends", "goes_on", "deadlock"), "violated"),
        "expires-completed": {"ends_once": "violated"},
        "unlimited": {"limited": "violated"},
        "stuck-trigger": {"goes_on": "violated"},
        "triggers-disposed": {"triggers_pending": "violated"},
        "stale-plan": {"current": "violated"},
        "checks-then-creates": {"current": "violated"},
        "completes-after-failure": {"current": "violated"},
        "unchecked-attempt": {"consistent": "violated", "ends_once": "violated"},
        "waits-for-trigger": dict.fromkeys(("recovers", "goes_on", "deadlock"), "violated"),
        "subsumed-kept": {"ids_rise": "violated", "restores_latest": "violated"},
        "subsumes-first": {"published_is_stored": "violated", "restores_latest": "violated"},
        "notifies-first": {"published_is_stored": "violated"},
    },
    variant_parameters={"subsumed-kept": {"concurrent": 2}, "unchecked-attempt": {"ids": 1, "faults": 0}},
)
