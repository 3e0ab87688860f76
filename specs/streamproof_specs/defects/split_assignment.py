"""Properties of the assignment of splits: none is lost, checkpoints have what was assigned, and the reader ends."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, reachable, step, temporal
from streamproof_models.defects.split_assignment import SplitAssignment

EVENT = ("SENT", "LOST", "FAILED")
"""A split that is in an event without an acknowledgement."""


@invariant
def none_is_lost(m, s):
    """No split is assigned to a reader that does not have it after a failover."""
    return all(x != "ORPHAN" for x in s.split)


@invariant
def one_event(m, s):
    """One event with a split is on its way at a time, to a reader that waits for it, and no end beside it."""
    events = sum(x in EVENT for x in s.split)
    return events <= 1 and (events == 0 or (s.reader == "WAITS" and not s.end))


@invariant
def end_is_last(m, s):
    """No more splits are signalled only if all are assigned; the reader finishes after the signal, with all splits that no
    other reader took."""
    return (
        (not s.signalled or all(x != "UNASSIGNED" for x in s.split))
        and (not s.end or s.signalled)
        and (s.reader != "FINISHED" or (s.signalled and not s.end and all(x not in EVENT for x in s.split)))
    )


@invariant
def starts_from_checkpoint(m, s):
    """A new reader has the splits of the latest checkpoint; nothing is on its way to it, and no checkpoint is pending."""
    return s.reader != "STARTED" or (
        all((s.split[x] == "READ") == s.restored[x] and s.split[x] not in EVENT for x in m.every)
        and not s.end
        and s.stage == "IDLE"
    )


@invariant
def pending_only(m, s):
    """Splits are noted for a pending checkpoint only; what the reader has stored, the coordinator has."""
    return all((s.stage == "COORDINATOR" or not s.pending[x]) and (s.assigned[x] or not s.restored[x]) for x in m.every)


@step
def gateway_closed(m, s, t):
    """Between the two parts of a checkpoint, coordinator and reader do not communicate, unless the reader fails."""
    return (
        s.stage == "IDLE"
        or t.stage == "IDLE"
        or (s.reader == t.reader and s.end == t.end and s.signalled == t.signalled and s.begun == t.begun)
    )


@step
def stored_by_checkpoints(m, s, t):
    """The latest checkpoint is replaced when one completes, which began with the coordinator; each is counted."""
    began, completed = s.stage == "IDLE" and t.stage == "COORDINATOR", s.stage == "COORDINATOR" and t.stage == "IDLE"
    return t.begun == s.begun + (1 if began else 0) and all(
        (completed and t.reader != "STARTED") or (s.assigned[x] == t.assigned[x] and s.restored[x] == t.restored[x])
        for x in m.every
    )


@step
def goes_its_way(m, s, t):
    """A split that is assigned is sent, and read or lost; the reader asks, waits, and asks again with a split; only a
    failover takes them back."""
    restarts = t.reader == "STARTED"
    return all(
        s.split[x] == t.split[x]
        or restarts
        or (s.split[x] == "UNASSIGNED" and t.split[x] == "SENT" and s.reader == "WAITS")
        or (s.split[x] == "UNASSIGNED" and t.split[x] == "ELSEWHERE" and s.reader != "WAITS")
        or (s.split[x] == "SENT" and t.split[x] == "READ" and t.reader == "ASKS")
        or (s.split[x] == "SENT" and t.split[x] == "LOST")
        or (s.split[x] == "LOST" and t.split[x] == "FAILED")
        for x in m.every
    ) and (
        s.reader == t.reader
        or (restarts and s.reader != "FINISHED")
        or (s.reader == "STARTED" and t.reader == "ASKS")
        or (s.reader == "ASKS" and t.reader == "WAITS")
        or (
            s.reader == "WAITS"
            and t.reader == "ASKS"
            and any(s.split[x] == "SENT" and t.split[x] == "READ" for x in m.every)
        )
        or (s.reader == "WAITS" and t.reader == "FINISHED" and s.end)
    )


@step
def faults_counted(m, s, t):
    """Each fault is counted: a lost event, or a reader that fails of itself. A reader restarts after a fault only."""
    lost = any(s.split[x] != "LOST" and t.split[x] == "LOST" for x in m.every)
    restarts = s.reader != "STARTED" and t.reader == "STARTED"
    if s.faults_left == t.faults_left:
        return not lost and (not restarts or any(x == "FAILED" for x in s.split))
    return t.faults_left == s.faults_left - 1 and (lost or restarts)


@temporal
def ends(m, s):
    """At first nothing is assigned or signalled, and no checkpoint is begun; in the end the reader finishes."""
    return (
        (s.reader == "STARTED" and not s.signalled and not s.end and s.stage == "IDLE")
        and (s.begun == 0 and s.faults_left == m.faults)
        and eventually(s.reader == "FINISHED")
    )


@reachable
def fails_at_the_end(m, s):
    """A reader that has all splits in the last checkpoint fails, and another one reads on."""
    return (m.checkpoints == 0 or m.faults == 0) or (
        s.reader == "STARTED" and s.signalled and all(s.restored) and s.begun == m.checkpoints
    )


@reachable
def fails_after_loss(m, s):
    """Events are lost, up to the last fault; another reader has taken the other splits."""
    return m.faults == 0 or (
        s.faults_left == 0
        and all(x in ("FAILED", "ELSEWHERE") for x in s.split)
        and any(x == "FAILED" for x in s.split)
    )


SPEC = Spec(
    SplitAssignment,
    properties=(
        *(none_is_lost, one_event, end_is_last, starts_from_checkpoint, pending_only),
        *(
            gateway_closed,
            stored_by_checkpoints,
            goes_its_way,
            faults_counted,
            ends,
            fails_at_the_end,
            fails_after_loss,
        ),
    ),
    expected={
        "ignores-events": {"none_is_lost": "violated", "gateway_closed": "violated"},
        "forgets-failed": {"none_is_lost": "violated"},
        "end-with-splits": {"deadlock": "violated", "ends": "violated"},
    },
    variant_parameters={
        "ignores-events": {"splits": 1, "checkpoints": 1, "faults": 1},
        "forgets-failed": {"splits": 1, "checkpoints": 1, "faults": 1},
        "end-with-splits": {"splits": 1, "checkpoints": 0, "faults": 1},
    },
)
