"""Safety of the checkpoints of a loop as counts, proved for any number of records and failures."""

from __future__ import annotations

from streamproof import Spec, invariant, lemma, reachable, step
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


@invariant
def nothing_kept(m, s):
    """Without a checkpoint there are no snapshots; without a barrier in the loop there is no log, and none is pending."""
    return (s.checkpoint != "NONE" or s.taken_emitted + s.taken_log + s.taken_out == 0) and (
        s.barrier != "NONE" or (s.log == 0 and s.checkpoint != "PENDING")
    )


@step
def barrier_goes_round(m, s, t):
    """The barrier goes from the head to the body and back, behind the records that were before it. A checkpoint begins when
    it departs and is acknowledged when it returns; the next barrier departs when that checkpoint is stored or aborted."""
    departs = s.barrier == "NONE" and t.barrier == "INNER"
    returns = s.barrier == "BACK" and t.barrier == "NONE" and s.back == 0
    return t.failures_left < s.failures_left or (
        (
            t.barrier == s.barrier
            or departs
            or returns
            or (s.barrier == "INNER" and t.barrier == "BACK" and s.inner == 0)
        )
        and (not departs or s.checkpoint == "NONE")
        and (not returns or t.checkpoint == ("NONE" if s.checkpoint == "NONE" else "ACKNOWLEDGED"))
        and (
            t.checkpoint in (s.checkpoint, "NONE")
            or (t.checkpoint == "PENDING" and departs)
            or (t.checkpoint == "ACKNOWLEDGED" and returns)
        )
    )


@step
def ends_once(m, s, t):
    """Only an acknowledged checkpoint is stored, as its snapshots are, and then or when it is aborted it is over."""
    stored = t.stored_emitted == s.stored_emitted and t.stored_log == s.stored_log and t.stored_out == s.stored_out
    return stored or (
        s.checkpoint == "ACKNOWLEDGED"
        and t.checkpoint == "NONE"
        and t.stored_emitted == s.taken_emitted
        and t.stored_log == s.taken_log
        and t.stored_out == s.taken_out
    )


@step
def one_by_one(m, s, t):
    """Each step moves a record, the barrier or the checkpoint, or restarts the loop from the latest checkpoint."""
    moved = t.emitted > s.emitted or t.out > s.out or t.inner != s.inner or t.back != s.back
    return (
        (t.failures_left == s.failures_left and (moved or t.barrier != s.barrier or t.checkpoint != s.checkpoint))
        and t.emitted <= m.records
    ) or (
        t.failures_left == s.failures_left - 1
        and t.barrier == "NONE"
        and t.checkpoint == "NONE"
        and t.log == 0
        and t.emitted == s.stored_emitted
        and t.out == s.stored_out
        and t.inner + t.inner_behind + t.back_behind == 0
    )


@reachable
def published_after_restarts(m, s):
    """After every failure all records can be read again, leave the loop and be published."""
    return s.published == m.records and s.failures_left == 0 and s.emitted == m.records


@reachable
def logged_records_stored(m, s):
    """A checkpoint with a record in its log can be stored, and an aborted checkpoint leave its barrier in the loop."""
    return s.stored_log > 0 and s.barrier == "BACK" and s.checkpoint == "NONE" and s.failures_left < m.failures


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
    properties=(
        conserved,
        consistent,
        published_kept,
        nothing_kept,
        barrier_goes_round,
        ends_once,
        one_by_one,
        published_after_restarts,
        logged_records_stored,
        cut,
    ),
    expected={
        "not-replayed": {"conserved": "violated", "consistent": "violated"},
        "replayed-twice": {"conserved": "violated", "consistent": "violated"},
        "ends-early": {"conserved": "violated", "consistent": "violated"},
        "begins-late": {"conserved": "violated", "consistent": "violated"},
        "published-at-snapshot": {"published_kept": "violated"},
    },
)
