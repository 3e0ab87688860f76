"""Properties of a batch read: no split is lost, and no finished work is done again."""

from __future__ import annotations

from streamproof import Spec, invariant
from streamproof_models.defects.late_readers import LateReaders


@invariant
def none_orphaned(m, s):
    """No split is assigned to a task that has finished."""
    return all(x != "ORPHAN" for x in s.split)


@invariant
def finished_kept(m, s):
    """No reader that has finished on its TaskManager is failed by an event that it cannot receive."""
    return not any(s.lost)


SPEC = Spec(
    LateReaders,
    properties=(none_orphaned, finished_kept),
    expected={
        "signals-all": {"finished_kept": "violated"},
        "never-signalled": {"deadlock": "violated"},
        "stale-entries": {"none_orphaned": "violated", "finished_kept": "violated"},
    },
    variant_parameters={
        "signals-all": {"readers": 2, "splits": 0},
        "stale-entries": {"readers": 3, "splits": 1},
    },
)
