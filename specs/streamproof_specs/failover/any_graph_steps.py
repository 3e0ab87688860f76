"""What each step of failover may change, and what it must be able to do, for every job graph."""

from __future__ import annotations

from streamproof import invariant, reachable, step
from streamproof_models.failover.any_graph import ACTIVE


def fails(s, t, u):
    """Whether the attempt of task `u` fails."""
    return s.status[u] in ACTIVE and t.status[u] == "FAILED"


@step
def ends_for_good(m, s, t):
    """When the job has ended, no task, partition or decision changes."""
    return s.job == "RUNNING" or (
        t.job == s.job
        and t.decided == s.decided
        and all(t.status[u] == s.status[u] and t.attempt[u] == s.attempt[u] for u in range(m.tasks))
        and all(t.partition[p] == s.partition[p] for p in range(m.partitions))
        and all(t.read[p][z] == s.read[p][z] for p in range(m.partitions) for z in range(m.tasks))
        and all(
            t.restarting[k][u] == s.restarting[k][u] and t.awaiting[k][u] == s.awaiting[k][u]
            for k in range(m.decisions + 1)
            for u in range(m.tasks)
        )
    )


@step
def fails_without_decisions(m, s, t):
    """A failure ends the job if and only if no decision to restart is left."""
    return all(
        not fails(s, t, u)
        or (t.job == "FAILED" if s.decided == m.decisions else t.job == "RUNNING" and t.decided == s.decided + 1)
        for u in range(m.tasks)
    ) and (t.job != "FAILED" or s.job == "FAILED" or any(fails(s, t, u) for u in range(m.tasks)))


@step
def decided_by_failure(m, s, t):
    """Each decision is the answer to one failure."""
    return t.decided == s.decided or (t.decided == s.decided + 1 and any(fails(s, t, u) for u in range(m.tasks)))


@step
def attempts_go_on(m, s, t):
    """An attempt is scheduled, runs and finishes, or fails, or is cancelled and stops; then the task is created anew."""
    return all(
        t.status[u] == s.status[u]
        or (s.status[u] == "CREATED" and t.status[u] == "SCHEDULED")
        or (s.status[u] == "SCHEDULED" and t.status[u] == "RUNNING")
        or (s.status[u] == "RUNNING" and t.status[u] == "FINISHED")
        or (s.status[u] in ACTIVE and t.status[u] in ("FAILED", "CANCELING"))
        or (s.status[u] == "CANCELING" and t.status[u] == "CANCELED")
        or (s.status[u] in ("FINISHED", "FAILED", "CANCELED") and t.status[u] == "CREATED")
        for u in range(m.tasks)
    )


@invariant
def ended_attempts_restart(m, s):
    """While the job runs, a decision restarts each task whose attempt has failed, or is or was cancelled."""
    return all(
        s.job != "RUNNING" or s.status[u] not in ("FAILED", "CANCELING", "CANCELED") or m.will_restart(s, u)
        for u in range(m.tasks)
    )


@invariant
def output_follows_attempt(m, s):
    """The output of an attempt at work is being produced; that of a finished one is stored, or was lost or released; others
    have none."""
    return all(
        s.job == "FAILED"
        or (
            (s.partition[p] == "NONE") == (s.status[s.producer[p]] in ("CREATED", "FAILED", "CANCELED"))
            and (s.partition[p] == "PRODUCING") == (s.status[s.producer[p]] in (*ACTIVE, "CANCELING"))
        )
        for p in range(m.partitions)
    )


@step
def output_kept(m, s, t):
    """A stored partition is lost or released only if it can be read again, and released only when the regions that read it
    have finished and no decision restarts them."""
    return all(
        t.partition[p] == s.partition[p]
        or t.partition[p] not in ("GONE", "RELEASED")
        or (
            s.rereadable[p]
            and s.partition[p] in ("STORED", "GONE")
            and (t.partition[p] == "GONE" or is_read_out(m, s, p))
        )
        for p in range(m.partitions)
    )


def is_read_out(m, s, p):
    """Whether the regions that read a partition have finished for good."""
    return all(
        not s.reads[p][z] or s.region[u] != s.region[z] or m.has_finished(s, u)
        for z in range(m.tasks)
        for u in range(m.tasks)
    )


@step
def finished_with_inputs(m, s, t):
    """A task finishes when it has read its inputs to the end, and what it reads is there."""
    return all(
        not s.reads[p][z]
        or s.status[z] == "FINISHED"
        or t.status[z] != "FINISHED"
        or (t.read[p][z] is not None and (s.rereadable[p] or s.status[s.producer[p]] == "FINISHED"))
        for p in range(m.partitions)
        for z in range(m.tasks)
    )


@invariant
def awaits_the_cancelled(m, s):
    """A decision awaits the tasks that it restarts and that are being cancelled: no others, and, as the newest, all of
    them."""
    return all(
        (not s.awaiting[k][u] or (s.restarting[k][u] and s.status[u] == "CANCELING"))
        and (not s.restarting[k][u] or s.version[u] != k or s.status[u] != "CANCELING" or s.awaiting[k][u])
        for k in range(m.decisions + 1)
        for u in range(m.tasks)
    )


@invariant
def consumers_restart(m, s):
    """If a decision restarts a task, its consumers restart with it or later, or have not started."""
    return all(
        not s.reads[p][z]
        or not m.will_restart(s, s.producer[p])
        or s.status[z] == "CREATED"
        or (m.will_restart(s, z) and s.version[z] >= s.version[s.producer[p]])
        for p in range(m.partitions)
        for z in range(m.tasks)
    )


@invariant
def regions_restart(m, s):
    """The tasks of a region are restarted by the same decision."""
    return all(
        s.region[a] != s.region[z]
        or not m.will_restart(s, a)
        or (m.will_restart(s, z) and s.version[z] == s.version[a])
        for a in range(m.tasks)
        for z in range(m.tasks)
    )


@step
def lost_inputs_restart(m, s, t):
    """A decision restarts, with a task that reads a lost input, the producer of that input."""
    return t.decided == s.decided or all(
        not s.reads[p][z]
        or not s.rereadable[p]
        or t.partition[p] not in ("NONE", "RELEASED")
        or not t.restarting[s.decided][z]
        or t.status[s.producer[p]] == "CREATED"
        or m.will_restart(t, s.producer[p])
        for p in range(m.partitions)
        for z in range(m.tasks)
    )


@step
def failure_of_an_attempt(m, s, t):
    """A decision cancels no task but those that it restarts, and makes no other fail."""
    return all(
        t.status[u] not in ("FAILED", "CANCELING")
        or s.status[u] == t.status[u]
        or t.job == "FAILED"
        or t.restarting[s.decided][u]
        for u in range(m.tasks)
    )


# --- what must be possible


@reachable
def finishes_after_failure(m, s):
    """A job finishes after a failure, and what its tasks read was released before."""
    return (
        s.job == "FINISHED"
        and s.decided == m.decisions
        and any(
            s.partition[p] == "RELEASED" and any(s.reads[p][z] for z in range(m.tasks)) for p in range(m.partitions)
        )
    )


@reachable
def first_task_reads(m, s):
    """What the first task reads again is released when its region has finished."""
    return m.tasks == 1 or (s.partition[0] == "RELEASED" and s.reads[0][0])


@reachable
def last_task_reads(m, s):
    """What the last task reads again is released when its region has finished."""
    return m.tasks == 1 or (s.partition[0] == "RELEASED" and s.reads[0][m.tasks - 1])


@reachable
def fails_at_last(m, s):
    """A job fails while a partition that a task reads is lost."""
    return m.tasks == 1 or (
        s.job == "FAILED" and any(s.partition[p] == "GONE" and s.reads[p][0] for p in range(m.partitions))
    )


@reachable
def cancelled(m, s):
    """A task was cancelled with another that has failed."""
    return m.tasks == 1 or m.decisions == 0 or any(s.status[u] == "CANCELED" for u in range(m.tasks))


@reachable
def exchanged_in_one_region(m, s):
    """Tasks that exchange what cannot be read again have finished."""
    return m.tasks == 1 or (
        s.job == "FINISHED" and any(not s.rereadable[p] and s.reads[p][0] for p in range(m.partitions))
    )


STEPS = (
    ends_for_good,
    fails_without_decisions,
    decided_by_failure,
    attempts_go_on,
    ended_attempts_restart,
    output_follows_attempt,
    output_kept,
    finished_with_inputs,
    awaits_the_cancelled,
    consumers_restart,
    regions_restart,
    lost_inputs_restart,
    failure_of_an_attempt,
    finishes_after_failure,
    first_task_reads,
    last_task_reads,
    fails_at_last,
    cancelled,
    exchanged_in_one_region,
)
"""The properties of this module."""
