"""Safety of checkpoints as far as logs show them: an accepted log has these properties."""

from __future__ import annotations

from streamproof import Spec, invariant, lemma, step
from streamproof_models.checkpoints import views_variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.checkpoints.views import CheckpointViews


@invariant
def newest_pending(m, s):
    """A pending checkpoint is newer than the latest completed one: from the beginning of the job, unless savepoints count
    (Flink before 1.15)."""
    return (
        m.savepoints
        or m.late
        or all(s.checkpoint[p] != "PENDING" or s.savepoint[p] or s.pending[p] > s.latest for p in m.keys)
    )


@invariant
def current(m, s):
    """What was pending before a restart, or the end of the job, is aborted."""
    return all(not s.stray[p] or s.checkpoint[p] == "ABORTED" for p in m.keys)


@step
def begins_once(m, s, t):
    """A checkpoint gets an id that no earlier one had."""
    return all(s.checkpoint[p] != "NONE" or t.checkpoint[p] == "NONE" or t.pending[p] > s.last for p in m.keys)


@step
def ids_rise(m, s, t):
    """A checkpoint completes only after all with lower ids: likewise."""
    return m.savepoints or m.late or t.latest >= s.latest


@step
def restores_latest(m, s, t):
    """A restart goes on from the checkpoint that was completed last."""
    return t.restored == s.restored or t.restored == t.latest


@lemma
def placed(m, s):
    """A place has an id of its own, up to the last one, exactly if it is in use; so has the latest checkpoint."""
    return (m.late or s.latest <= s.last) and all(
        (s.pending[p] == 0) == (s.checkpoint[p] == "NONE")
        and s.pending[p] <= s.last
        and (s.checkpoint[p] != "NONE" or (not s.stray[p] and not s.savepoint[p]))
        and all(p == q or s.pending[p] == 0 or s.pending[p] != s.pending[q] for q in m.keys)
        for p in m.keys
    )


SPEC = Spec(
    CheckpointViews,
    properties=(newest_pending, current, begins_once, ids_rise, restores_latest, placed),
    expected={
        "subsumed-kept": {"newest_pending": "violated", "ids_rise": "violated"},
        "completes-after-failure": dict.fromkeys(("newest_pending", "current", "ids_rise"), "violated"),
        "used-ids": {"newest_pending": "violated", "begins_once": "violated", "ids_rise": "violated"},
        "earlier-restored": {"restores_latest": "violated"},
    },
    variant_parameters={"used-ids": {"ids": 2}},
)
