"""Safety of backtracking failover for every job graph, with the lemmas of `failover` in the form of relations."""

from __future__ import annotations

from streamproof import Spec, invariant, lemma, step
from streamproof_models.failover.any_graph import ACTIVE, FailoverAnyGraph
from streamproof_specs.failover.any_graph_steps import STEPS
from streamproof_specs.failover.lemmas import ENDED

# --- properties: those of `failover`


@invariant
def no_mixed_versions(m, s):
    """A task attached to a pipelined producer never meets another attempt of it: it would mix two versions of its output."""
    return all(
        s.rereadable[p]
        or s.read[p][z] is None
        or s.status[z] not in ("RUNNING", "FINISHED")
        or s.status[s.producer[p]] not in ("RUNNING", "FINISHED")
        or s.read[p][z] == s.attempt[s.producer[p]]
        for p in range(m.partitions)
        for z in range(m.tasks)
    )


@invariant
def consistent_result(m, s):
    """In a finished job all consumers have read the same, last version of every output."""
    return all(
        s.job != "FINISHED" or not s.reads[p][z] or s.read[p][z] == s.attempt[s.producer[p]]
        for p in range(m.partitions)
        for z in range(m.tasks)
    )


@invariant
def complete_result(m, s):
    """In a finished job every task has finished and has read all its inputs."""
    return all(s.job != "FINISHED" or s.status[t] == "FINISHED" for t in range(m.tasks)) and all(
        s.job != "FINISHED" or not s.reads[p][z] or s.read[p][z] is not None
        for p in range(m.partitions)
        for z in range(m.tasks)
    )


@step
def inputs_exist(m, s, t):
    """A task is scheduled only when its stored inputs have been produced."""
    return all(
        not s.reads[p][z]
        or s.region[z] == s.region[s.producer[p]]
        or s.status[z] in ACTIVE
        or t.status[z] not in ACTIVE
        or t.status[s.producer[p]] == "FINISHED"
        for p in range(m.partitions)
        for z in range(m.tasks)
    )


@step
def stops_before_restart(m, s, t):
    """Only an attempt that has ended is replaced: a task never has two attempts at work."""
    return all(
        t.status[u] not in ("CREATED", "SCHEDULED")
        or s.status[u] in ("CREATED", "SCHEDULED", "FINISHED", "FAILED", "CANCELED")
        for u in range(m.tasks)
    )


@step
def fresh_attempts(m, s, t):
    """A task that starts over does so under the next attempt number, and numbers change in no other way."""
    return all(
        t.attempt[u] == s.attempt[u] + 1
        if s.status[u] in ("FINISHED", "FAILED", "CANCELED") and t.status[u] in ("CREATED", "SCHEDULED")
        else t.attempt[u] == s.attempt[u] or s.status[u] not in ("CREATED", "FINISHED", "FAILED", "CANCELED")
        for u in range(m.tasks)
    )


# --- lemmas


@lemma
def stays_a_job_graph(m, s):
    """The job graph stays what it is."""
    return m.is_job_graph(s)


@lemma
def decisions_in_order(m, s):
    """Decisions not taken yet are empty."""
    return all(
        k < s.decided or (not s.restarting[k][t] and not s.awaiting[k][t])
        for k in range(m.decisions + 1)
        for t in range(m.tasks)
    )


@lemma
def awaited_are_being_cancelled(m, s):
    """A decision awaits tasks that are being cancelled, and all those of which it is the newest."""
    return all(
        (not s.awaiting[k][t] or (s.restarting[k][t] and s.status[t] == "CANCELING"))
        and (not s.restarting[k][t] or s.version[t] != k or s.status[t] != "CANCELING" or s.awaiting[k][t])
        for k in range(m.decisions + 1)
        for t in range(m.tasks)
    )


@lemma
def versions_are_the_newest(m, s):
    """The version of a task is the newest decision that restarts it, and has been taken."""
    return all(
        not s.restarting[k][t] or (s.version[t] >= k and s.version[t] < s.decided)
        for k in range(m.decisions + 1)
        for t in range(m.tasks)
    )


@lemma
def restarting_attempts_have_ended(m, s):
    """A task that will be restarted is not active."""
    return all(not m.will_restart(s, t) or s.status[t] in ENDED for t in range(m.tasks))


@lemma
def attempts_are_counted(m, s):
    """Every attempt after the first was decided: an attempt number is left for the next."""
    return all(s.attempt[t] + (1 if m.will_restart(s, t) else 0) <= s.decided for t in range(m.tasks))


@lemma
def consumers_follow_their_producers(m, s):
    """A consumer of a task that will be restarted is itself restarted, no earlier, or has not started."""
    return all(
        not s.reads[p][z]
        or not m.will_restart(s, s.producer[p])
        or s.status[z] == "CREATED"
        or (m.will_restart(s, z) and s.version[z] >= s.version[s.producer[p]])
        for p in range(m.partitions)
        for z in range(m.tasks)
    )


@lemma
def regions_share_their_fate(m, s):
    """The tasks of a region are restarted by the same decision, and are CREATED all or none."""
    return all(
        s.region[a] != s.region[z]
        or (
            (not m.will_restart(s, a) or (m.will_restart(s, z) and s.version[z] == s.version[a]))
            and ((s.status[a] == "CREATED") == (s.status[z] == "CREATED"))
        )
        for a in range(m.tasks)
        for z in range(m.tasks)
    )


@lemma
def stored_means_finished(m, s):
    """A partition that can be read again is stored, lost or released exactly when its producer has finished."""
    return all(
        not s.rereadable[p]
        or (s.status[s.producer[p]] == "FINISHED") == (s.partition[p] in ("STORED", "GONE", "RELEASED"))
        for p in range(m.partitions)
    )


@lemma
def reads_are_present(m, s):
    """The output read is that of the producer's current attempt, unless the reader will be restarted; none before running."""
    return all(
        (s.read[p][z] is None or (s.reads[p][z] and s.status[z] not in ("CREATED", "SCHEDULED")))
        and (s.read[p][z] is None or m.will_restart(s, z) or s.read[p][z] == s.attempt[s.producer[p]])
        and (
            not s.reads[p][z]
            or s.read[p][z] is not None
            or s.status[z] not in (("FINISHED",) if s.rereadable[p] else ("RUNNING", "FINISHED"))
        )
        for p in range(m.partitions)
        for z in range(m.tasks)
    )


LEMMAS = (
    stays_a_job_graph,
    decisions_in_order,
    awaited_are_being_cancelled,
    versions_are_the_newest,
    restarting_attempts_have_ended,
    attempts_are_counted,
    consumers_follow_their_producers,
    regions_share_their_fate,
    stored_means_finished,
    reads_are_present,
)

SPEC = Spec(
    FailoverAnyGraph,
    properties=(
        no_mixed_versions,
        consistent_result,
        complete_result,
        inputs_exist,
        stops_before_restart,
        fresh_attempts,
        *STEPS,
        *LEMMAS,
    ),
    expected={
        "no-downstream-restart": {"consistent_result": "violated", "consumers_restart": "violated"},
        "individual": dict.fromkeys(
            ("no_mixed_versions", "consistent_result", "consumers_restart", "regions_restart"), "violated"
        ),
        "no-fence": {"consistent_result": "violated", "consumers_restart": "violated"},
        "no-versioning": dict.fromkeys(("stops_before_restart", "fresh_attempts", "attempts_go_on"), "violated"),
        "attempt-reuse": {"fresh_attempts": "violated"},
        "no-topological-order": {"inputs_exist": "violated", "consumers_restart": "violated"},
        "unnoticed-loss": dict.fromkeys(("complete_result", "consistent_result", "finished_with_inputs"), "violated"),
    },
)
