"""Properties of backtracking failover, and the variants that violate them.

Sources: FLIP-1 phase 2 for the restart set and for why every consumer restarts; Flink's versioning of execution
vertices for concurrent failures. Liveness is stated as *termination* and *deadlock*: there are finitely many failures
and losses, every behaviour is finite, and the only terminal states are a finished or a given-up job, so every job ends;
`survives` states that it is never given up, hence it finishes.
"""

from __future__ import annotations

from streamproof import Spec, Sweep, eventually, invariant, reachable, step, temporal
from streamproof_models.failover.executors import LostExecutors  # noqa: F401
from streamproof_models.failover.flink import FlinkRules  # noqa: F401
from streamproof_models.failover.literal import LiteralPseudocode  # noqa: F401
from streamproof_models.failover.machine import Failover
from streamproof_models.failover.named_job_graphs import JOB_GRAPHS
from streamproof_models.failover.variants import (  # noqa: F401  (declaring a variant registers it)
    AttemptReuse,
    EagerDeployment,
    EagerScheduling,
    EarlyRelease,
    Individual,
    KeptResults,
    MergeWithinLogicalRegionOnly,
    NoDownstreamRestart,
    NoFence,
    NoFenceEager,
    NoMerging,
    NoTopologicalOrder,
    NoVersioning,
    ReadersKeep,
    RegionWithoutBacktracking,
    RestartAll,
    StopAtCreated,
    UnnoticedLoss,
)
from streamproof_specs.failover.job_graphs import (
    as_flink,
    cautions,
    graph_of_file,
    infeasible,
    regions_of,
    scheduled_by_flink,
    what_if,
)
from streamproof_specs.failover.lemmas import LEMMAS


@invariant
def no_mixed_versions(m, s):
    """A task attached to a pipelined producer never meets another attempt of it: it would mix two versions of its output."""
    return all(
        s.read[c] is None
        or s.status[reader] not in ("RUNNING", "FINISHED")
        or s.status[producer] not in ("RUNNING", "FINISHED")
        or s.read[c] == s.attempt[producer]
        for c, (producer, reader) in m.channels.items()
        if c not in m.partition_of
    )


@invariant
def consistent_result(m, s):
    """In a finished job all consumers have read the same, last version of every nondeterministic output."""
    return all(
        s.job != "FINISHED" or m.deterministic or s.read[c] == s.attempt[producer]
        for c, (producer, _) in m.channels.items()
    )


@invariant
def complete_result(m, s):
    """In a finished job every task has finished and has read all its inputs, and no restart is pending."""
    return (
        all(s.job != "FINISHED" or s.status[t] == "FINISHED" for t in m.tasks)
        and all(s.job != "FINISHED" or s.read[c] is not None for c in m.channels)
        and (s.job != "FINISHED" or m.is_settled(s))
    )


@step
def inputs_exist(m, s, t):
    """A task is scheduled only when its stored inputs have been produced; who fails no longer produces, and only what is
    stored is lost."""
    return all(
        s.status[reader] in m.active or t.status[reader] not in m.active or t.status[producer] == "FINISHED"
        for reader in m.tasks
        for producer in m.upstream[reader]
    ) and all(
        (t.partition[p] != "GONE" or s.partition[p] in ("GONE", "STORED"))
        and (t.partition[p] != "PRODUCING" or t.status[producer] != "FAILED" or t.job == "FAILED")
        for p, producer in m.partitions.items()
    )


@step
def stops_before_restart(m, s, t):
    """Only an attempt that has ended is replaced: a task never has two attempts at work."""
    return all(
        t.status[u] not in ("CREATED", "SCHEDULED")
        or s.status[u] in ("CREATED", "SCHEDULED", "FINISHED", "FAILED", "CANCELED")
        for u in m.tasks
    )


@step
def fresh_attempts(m, s, t):
    """A task that starts over does so under the next attempt number, and numbers change in no other way."""
    return all(
        t.attempt[u] == s.attempt[u] + 1
        if s.status[u] in ("FINISHED", "FAILED", "CANCELED") and t.status[u] in ("CREATED", "SCHEDULED")
        else t.attempt[u] == s.attempt[u] or s.status[u] not in ("CREATED", "FINISHED", "FAILED", "CANCELED")
        for u in m.tasks
    )


@step
def unrelated_undisturbed(m, s, t):
    """Only a task at work fails, and its failure cancels no task that is not connected to it in the job graph."""
    return all(t.status[u] != "FAILED" or s.status[u] in ("FAILED", *m.active) for u in m.tasks) and all(
        t.status[u] != "FAILED" or s.status[u] == "FAILED" or t.status[v] != "CANCELING" or s.status[v] == "CANCELING"
        for u in m.tasks
        for v in m.tasks
        if m.component_of[u] != m.component_of[v]
    )


@invariant
def survives(m, s):
    """The job is never given up: it takes no more restarts than there are causes."""
    return s.job != "FAILED"


@reachable
def finishes_after_restart(m, s):
    """A job that restarted something, once for each failure and each loss of what is read, can still finish."""
    causes = m.failures + (m.losses if any(len(m.reads[t]) > 0 for t in m.tasks) else 0)
    return s.job == "FINISHED" and s.decided > 0 and s.decided >= min(causes, m.decisions)


@temporal
def ends(m, s):
    """Every job ends: it finishes, or was given up."""
    return eventually(s.job in ("FINISHED", "FAILED"))


SPEC = Spec(
    Failover,
    properties=(
        no_mixed_versions,
        consistent_result,
        complete_result,
        inputs_exist,
        stops_before_restart,
        fresh_attempts,
        unrelated_undisturbed,
        survives,
        finishes_after_restart,
        ends,
        *LEMMAS,
    ),
    termination=True,
    inputs={"job_graph": graph_of_file},
    questions={"what_if": what_if},
    facts=regions_of,
    cautions=cautions,
    beside=as_flink,
    decided=scheduled_by_flink,
    infeasible=infeasible,
    expected={
        "restart-all": {"unrelated_undisturbed": "violated"},
        "individual": {"no_mixed_versions": "violated", "consistent_result": "violated"},
        "region-without-backtracking": {
            "survives": "violated",
            "finishes_after_restart": "violated",
            "ends": "violated",
        },
        "no-downstream-restart": {"consistent_result": "violated", "survives": "violated"},
        "no-downstream-restart-kept": {},
        "no-versioning": {"stops_before_restart": "violated", "fresh_attempts": "violated"},
        "no-fence": {"consistent_result": "violated", "survives": "violated"},
        "early-release": {"survives": "violated", "ends": "violated"},
        "no-merging": {"deadlock": "violated", "finishes_after_restart": "violated", "ends": "violated"},
        "merge-within-logical-region-only": {
            "deadlock": "violated",
            "finishes_after_restart": "violated",
            "ends": "violated",
        },
        "stop-at-created": {},
        "attempt-reuse": {"fresh_attempts": "violated"},
        "no-topological-order": {"inputs_exist": "violated", "survives": "violated"},
        "unnoticed-loss": {"complete_result": "violated", "consistent_result": "violated"},
        "eager-scheduling": {},
        "eager-deployment": {"inputs_exist": "violated"},
        "kept-results": {},
        "no-fence-eager": {"consistent_result": "violated", "survives": "violated"},
        "lost-executors": {},
        "literal-pseudocode": {
            "finishes_after_restart": "violated",
            "ends": "violated",
            "termination": "violated",
        },
        "flink": {"consistent_result": "violated", "survives": "violated"},
    },
    sweeps=Sweep({"topology": tuple(JOB_GRAPHS)}),
)
