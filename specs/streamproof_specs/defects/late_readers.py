"""Properties of a batch read: no split is lost, and no finished work is done again."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, step, temporal
from streamproof_models.defects.late_readers import LateReaders


@invariant
def none_orphaned(m, s):
    """No split is assigned to a task that has finished."""
    return all(x != "ORPHAN" for x in s.split)


@invariant
def finished_kept(m, s):
    """No reader that has finished on its TaskManager is failed by an event that it cannot receive."""
    return not any(s.lost)


@invariant
def waits_or_reads(m, s):
    """A reader reads one split at a time, and none while it waits for one or was signalled the end; one that has not
    registered, or has finished, neither waits nor reads."""
    return all(
        sum(int(s.split[x] == "READING" and s.reader_of[x] == r) for x in m.every)
        <= int(s.task[r] == "RUNNING" and not s.waits[r] and not s.signalled[r])
        and (not (s.waits[r] or s.signalled[r]) or s.task[r] != "STARTING")
        and not (s.waits[r] and s.signalled[r])
        for r in m.tasks
    )


@step
def tasks_in_order(m, s, t):
    """A task starts, runs, finishes on its TaskManager when it was signalled the end, and then for the JobManager; another
    attempt starts if it could not be told of an event."""
    return all(
        (t.task[r] == s.task[r] and t.attempt[r] == s.attempt[r])
        or (s.task[r] == "STARTING" and t.task[r] == "RUNNING" and t.attempt[r] == s.attempt[r])
        or (
            s.task[r] == "RUNNING"
            and s.signalled[r]
            and t.task[r] == "FINISHING"
            and t.attempt[r] == s.attempt[r]
            and not any(s.split[x] == "READING" and s.reader_of[x] == r for x in m.every)
        )
        or (s.task[r] == "FINISHING" and t.task[r] == "FINISHED" and t.attempt[r] == s.attempt[r])
        or (s.task[r] == "FINISHING" and s.lost[r] and t.task[r] == "STARTING" and t.attempt[r] == s.attempt[r] + 1)
        for r in m.tasks
    )


@step
def splits_in_order(m, s, t):
    """A split of the pool is assigned to one reader, which emits it while its task runs; it returns to the pool only with
    another attempt."""
    return all(
        (t.split[x] == s.split[x] and (s.split[x] == "POOL" or t.reader_of[x] == s.reader_of[x]))
        or (s.split[x] == "POOL" and t.split[x] in ("READING", "ORPHAN"))
        or (s.split[x] == "READING" and t.split[x] == "EMITTED" and s.task[s.reader_of[x]] == "RUNNING")
        or (s.split[x] == "READING" and t.split[x] == "ORPHAN" and t.task[s.reader_of[x]] == "FINISHED")
        or (t.split[x] == "POOL" and t.attempt[s.reader_of[x]] > s.attempt[s.reader_of[x]])
        for x in m.every
    )


@step
def serves_requests(m, s, t):
    """A reader that has nothing to read and was not signalled the end requests a split; it waits no longer than it takes to
    assign one or signal the end."""
    return all(
        (not t.waits[r] or s.waits[r] or not s.signalled[r])
        and (not s.waits[r] or t.waits[r] or t.signalled[r] or any(t.reader_of[x] == r for x in m.every))
        for r in m.tasks
    )


@temporal
def all_emitted(m, s):
    """Every split is emitted, and every task finishes."""
    return eventually(all(x == "EMITTED" for x in s.split) and all(x == "FINISHED" for x in s.task))


SPEC = Spec(
    LateReaders,
    properties=(
        *(none_orphaned, finished_kept, waits_or_reads, tasks_in_order, splits_in_order),
        *(serves_requests, all_emitted),
    ),
    expected={
        "signals-all": {"finished_kept": "violated"},
        "never-signalled": {"deadlock": "violated", "all_emitted": "violated"},
        "stale-entries": dict.fromkeys(
            ("none_orphaned", "finished_kept", "waits_or_reads", "serves_requests", "all_emitted"), "violated"
        ),
    },
    variant_parameters={
        "signals-all": {"readers": 2, "splits": 0},
        "stale-entries": {"readers": 3, "splits": 1},
    },
)
