"""Lemmas for the failover properties: auxiliary invariants for the induction.

In order: which decision restarts a task, what is stored, what has been read, and how many decisions can still be taken.
They are invariants like any other, and are proved together with the properties.
"""

from __future__ import annotations

from streamproof import lemma

ENDED = ("FINISHED", "FAILED", "CANCELING", "CANCELED")


@lemma
def decisions_in_order(m, s):
    """Decisions not taken yet are empty."""
    return all(k < s.decided or (m.is_carried_out(s, k) and not m.is_awaiting(s, k)) for k in range(m.places))


@lemma
def awaited_are_being_cancelled(m, s):
    """A decision awaits tasks that are being cancelled, and all those of which it is the newest."""
    return all(
        (not m.awaits(s, k, t) or (m.includes(s, k, t) and s.status[t] == "CANCELING"))
        and (not m.includes(s, k, t) or s.version[t] != k or s.status[t] != "CANCELING" or m.awaits(s, k, t))
        for k in range(m.places)
        for t in m.tasks
    )


@lemma
def versions_are_the_newest(m, s):
    """The version of a task is the newest decision that restarts it, and has been taken."""
    return all(
        not m.includes(s, k, t) or (s.version[t] >= k and s.version[t] < s.decided)
        for k in range(m.places)
        for t in m.tasks
    )


@lemma
def ended_attempts_restart(m, s):
    """While the job runs, whatever failed or is cancelled will be restarted."""
    return s.job == "FAILED" or all(
        s.status[t] not in ("FAILED", "CANCELING", "CANCELED") or m.will_restart(s, t) for t in m.tasks
    )


@lemma
def restarting_attempts_have_ended(m, s):
    """A task that will be restarted is not active."""
    return all(not m.will_restart(s, t) or s.status[t] in ENDED for t in m.tasks)


@lemma
def attempts_are_counted(m, s):
    """Every attempt after the first was decided: an attempt number is left for the next."""
    return all(s.attempt[t] + (1 if m.will_restart(s, t) else 0) <= s.decided for t in m.tasks)


@lemma
def consumers_follow_their_producers(m, s):
    """A consumer of a task that will be restarted is itself restarted, no earlier, or has not started."""
    return all(
        not m.will_restart(s, a) or s.status[z] == "CREATED" or (m.will_restart(s, z) and s.version[z] >= s.version[a])
        for a, z in dict.fromkeys(m.channels.values())
    )


@lemma
def regions_share_their_fate(m, s):
    """The tasks of a region are restarted by the same decision, and are CREATED all or none."""
    return all(
        (not m.will_restart(s, a) or (m.will_restart(s, z) and s.version[z] == s.version[a]))
        and ((s.status[a] == "CREATED") == (s.status[z] == "CREATED"))
        for tasks in m.regions.values()
        for a in tasks
        for z in tasks
        if a != z
    )


@lemma
def stored_means_finished(m, s):
    """A partition is stored, lost or released exactly when its producer has finished."""
    return all(
        (s.status[t] == "FINISHED") == (s.partition[p] in ("STORED", "GONE", "RELEASED"))
        for p, t in m.partitions.items()
    )


@lemma
def started_on_finished_inputs(m, s):
    """A task active or finished, and not to be restarted, has its stored inputs finished."""
    return all(
        s.status[z] not in (*m.active, "FINISHED") or m.will_restart(s, z) or s.status[a] == "FINISHED"
        for z in m.tasks
        for a in m.upstream[z]
    )


@lemma
def reads_are_present(m, s):
    """The output read is that of the producer's current attempt, unless the reader will be restarted; none before running."""
    return all(
        (s.read[c] is None or s.status[z] not in ("CREATED", "SCHEDULED"))
        and (s.read[c] is None or m.will_restart(s, z) or s.read[c] == s.attempt[a])
        and (
            s.status[z] not in (("FINISHED",) if c in m.partition_of else ("RUNNING", "FINISHED"))
            or s.read[c] is not None
        )
        for c, (a, z) in m.channels.items()
    )


@lemma
def released_when_read(m, s):
    """The readers of a released partition have finished, and restart only together with its producer."""
    return all(
        s.partition[p] != "RELEASED"
        or all(
            s.status[u] == "FINISHED"
            and (not m.will_restart(s, u) or (m.will_restart(s, t) and s.version[t] == s.version[u]))
            for r in m.consuming_regions[p]
            for u in m.regions[r]
        )
        for p, t in m.partitions.items()
    )


@lemma
def decisions_are_within_the_budget(m, s):
    """Decisions taken, failures and losses still to come, and unnoticed losses are within the budget."""
    if not m.lost_singly:
        return True
    unnoticed = sum(s.partition[p] == "GONE" and not m.will_restart(s, t) for p, t in m.partitions.items())
    return s.decided + s.failures_left + s.losses_left + unnoticed <= m.decisions


@lemma
def finished_jobs_are_done(m, s):
    """When the job has finished so has every task, and no task is to be restarted."""
    return s.job != "FINISHED" or (
        all(s.status[t] == "FINISHED" for t in m.tasks) and all(m.is_carried_out(s, k) for k in range(m.places))
    )


@lemma
def producers_have_not_failed(m, s):
    """A partition is being produced by a task that has not failed, unless the job has."""
    return all(
        s.partition[p] != "PRODUCING" or s.status[t] != "FAILED" or s.job == "FAILED" for p, t in m.partitions.items()
    )


LEMMAS = (
    decisions_in_order,
    awaited_are_being_cancelled,
    versions_are_the_newest,
    ended_attempts_restart,
    restarting_attempts_have_ended,
    attempts_are_counted,
    consumers_follow_their_producers,
    regions_share_their_fate,
    stored_means_finished,
    started_on_finished_inputs,
    reads_are_present,
    released_when_read,
    decisions_are_within_the_budget,
    finished_jobs_are_done,
    producers_have_not_failed,
)
