"""Safety of the checkpoints of a loop as counts, proved for any number of records and failures."""

from __future__ import annotations

from streamproof import Spec, invariant, lemma
from streamproof_models.checkpoints.loop_counts import LoopCheckpointCounts


@invariant
def conserved(m, s):
    """Each record that was read from the source is on an edge, or has left the loop."""
    return s.emitted == s.inner + s.inner_behind + s.back + s.back_behind + s.out


@invariant
def consistent(m, s):
    """In the latest checkpoint, each record that was read from the source is in the log, or has left the loop."""
    return s.stored_emitted == s.stored_log + s.stored_out


@invariant
def published_kept(m, s):
    """No restart undoes what is published: it is in the latest checkpoint."""
    return s.published == s.stored_out


@lemma
def cut(m, s):
    """Records of the head's snapshot: before the barrier, in the log, or out of the loop when the body has its own."""
    pending = s.checkpoint == "PENDING"
    return (
        s.emitted <= m.records
        and s.stored_emitted <= m.records
        and s.taken_emitted <= m.records
        and (s.barrier == "INNER" or s.inner_behind == 0)
        and (s.barrier == "BACK" or s.back_behind == 0)
        and (s.barrier != "NONE" or (s.log == 0 and not pending))
        and (s.barrier == "NONE" or s.checkpoint != "ACKNOWLEDGED")
        and (s.barrier != "INNER" or s.log <= s.inner_behind)
        and (s.barrier != "BACK" or s.log + s.back <= s.emitted)
        and (not pending or s.barrier != "INNER" or s.taken_emitted == s.inner + s.back + s.log + s.out)
        and (not pending or s.barrier != "BACK" or s.taken_emitted == s.back + s.log + s.taken_out)
        and (s.checkpoint != "ACKNOWLEDGED" or s.taken_emitted == s.taken_log + s.taken_out)
    )


SPEC = Spec(
    LoopCheckpointCounts,
    properties=(conserved, consistent, published_kept, cut),
    expected={
        "not-replayed": {"conserved": "violated", "consistent": "violated"},
        "replayed-twice": {"conserved": "violated", "consistent": "violated"},
        "ends-early": {"conserved": "violated", "consistent": "violated"},
        "begins-late": {"conserved": "violated", "consistent": "violated"},
        "published-at-snapshot": {"published_kept": "violated"},
    },
)
