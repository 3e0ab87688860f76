"""Lemmas for the failover properties: auxiliary invariants for the induction.

In order: which recovery claims a task, what is stored, what has been read, and how many decisions are still pending.
They are invariants like any other, and are proved together with the properties.
"""

from __future__ import annotations

from streamproof import lemma

ENDED = ("FINISHED", "FAILED", "CANCELING", "CANCELED")


@lemma
def recoveries_in_order(m, s):
    """Recoveries not decided yet are empty."""
    return all(k < s.decided or (len(s.restarting[k]) == 0 and len(s.awaiting[k]) == 0) for k in range(m.decisions))


@lemma
def awaited_are_being_cancelled(m, s):
    """A recovery awaits tasks that are being cancelled, and all of those that it claims."""
    return all(
        (t not in s.awaiting[k] or (t in s.restarting[k] and s.status[t] == "CANCELING"))
        and (t not in s.restarting[k] or s.claim[t] != k or s.status[t] != "CANCELING" or t in s.awaiting[k])
        for k in range(m.decisions)
        for t in m.tasks
    )


@lemma
def claims_are_the_newest(m, s):
    """A task's claim is the last recovery that chose it, and has been decided."""
    return all(
        t not in s.restarting[k] or (s.claim[t] >= k and s.claim[t] < s.decided)
        for k in range(m.decisions)
        for t in m.tasks
    )


@lemma
def ended_attempts_are_claimed(m, s):
    """While the job runs, whatever failed or is cancelled will be restarted."""
    return s.job == "FAILED" or all(
        s.status[t] not in ("FAILED", "CANCELING", "CANCELED") or m.doomed(s, t) for t in m.tasks
    )


@lemma
def claimed_attempts_have_ended(m, s):
    """A task that will be restarted is not active."""
    return all(not m.doomed(s, t) or s.status[t] in ENDED for t in m.tasks)


@lemma
def attempts_are_counted(m, s):
    """Every attempt after the first was decided: an attempt number is left for the next."""
    return all(s.attempt[t] + (1 if m.doomed(s, t) else 0) <= s.decided for t in m.tasks)


@lemma
def readers_follow_their_producers(m, s):
    """A consumer of a task that will be restarted is itself restarted, no earlier, or has not started."""
    return all(
        not m.doomed(s, a) or s.status[z] == "CREATED" or (m.doomed(s, z) and s.claim[z] >= s.claim[a])
        for a, z in dict.fromkeys(m.channel_ends.values())
    )


@lemma
def regions_share_their_fate(m, s):
    """The tasks of a region are restarted by the same recovery, and are CREATED all or none."""
    return all(
        (not m.doomed(s, a) or (m.doomed(s, z) and s.claim[z] == s.claim[a]))
        and ((s.status[a] == "CREATED") == (s.status[z] == "CREATED"))
        for tasks in m.regions
        for a in tasks
        for z in tasks
        if a != z
    )


@lemma
def stored_means_finished(m, s):
    """A partition is stored, lost or released exactly when its producer has finished."""
    return all(
        (s.status[t] == "FINISHED") == (s.partition[p] in ("STORED", "GONE", "RELEASED"))
        for p, t in m.producer_of.items()
    )


@lemma
def started_on_finished_inputs(m, s):
    """A task active or finished, and not to be restarted, has its stored inputs finished."""
    return all(
        s.status[z] not in (*m.stages, "FINISHED") or m.doomed(s, z) or s.status[a] == "FINISHED"
        for c, (a, z) in m.channel_ends.items()
        if c in m.partition_of and m.region_of[a] != m.region_of[z]
    )


@lemma
def reads_are_present(m, s):
    """The output read is that of the producer's current attempt, unless the reader will be restarted; none before running."""
    return all(
        (s.read[c] == 0 or s.status[z] not in ("CREATED", "SCHEDULED"))
        and (s.read[c] == 0 or m.doomed(s, z) or s.read[c] == s.attempt[a] + 1)
        and (s.status[z] not in (("FINISHED",) if c in m.partition_of else ("RUNNING", "FINISHED")) or s.read[c] > 0)
        for c, (a, z) in m.channel_ends.items()
    )


@lemma
def released_when_read(m, s):
    """The readers of a released partition have finished, and restart only together with its producer."""
    return all(
        s.partition[p] != "RELEASED"
        or all(
            s.status[u] == "FINISHED" and (not m.doomed(s, u) or (m.doomed(s, t) and s.claim[t] == s.claim[u]))
            for u in m.near[p]
        )
        for p, t in m.producer_of.items()
    )


@lemma
def decisions_are_owed(m, s):
    """Decisions taken, failures and losses still to come, and unnoticed losses are within the budget."""
    if m.lenient or m.nodes:
        return True
    unnoticed = sum(s.partition[p] == "GONE" and not m.doomed(s, t) for p, t in m.producer_of.items())
    return s.decided + s.failures_left + s.losses_left + unnoticed <= m.decisions


@lemma
def finished_jobs_are_done(m, s):
    """When the job has finished so has every task, and no task is to be restarted."""
    return s.job != "FINISHED" or (
        all(s.status[t] == "FINISHED" for t in m.tasks) and all(len(s.restarting[k]) == 0 for k in range(m.decisions))
    )


LEMMAS = (
    recoveries_in_order,
    awaited_are_being_cancelled,
    claims_are_the_newest,
    ended_attempts_are_claimed,
    claimed_attempts_have_ended,
    attempts_are_counted,
    readers_follow_their_producers,
    regions_share_their_fate,
    stored_means_finished,
    started_on_finished_inputs,
    reads_are_present,
    released_when_read,
    decisions_are_owed,
    finished_jobs_are_done,
)
