"""Properties of failover over stored partitions: those of both machines, and what a restart may contain."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, reachable, step, temporal
from streamproof_models.compositions import lifecycle_failover_variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.compositions.lifecycle_failover import LifecycleFailover
from streamproof_specs.failover import properties as failover
from streamproof_specs.partitions import properties as partition_lifecycle


@step
def no_needless_restart(m, s, t):
    """A finished region restarts only if its partition was lost with its TaskExecutor, or its input is produced again."""
    return all(
        any(s.job.status[v] != "FINISHED" for v in tasks)
        or not any(restarts(m, s, t, v) for v in tasks)
        or any(was_lost(m, s, t, p) for v in tasks for p in m.outputs[v])
        or any(restarts(m, s, t, producer) for v in tasks for producer in m.job.upstream[v])
        for tasks in m.regions.values()
    )


def restarts(m, s, t, u):
    """Whether a decision of this step restarts task `u`."""
    return any(k >= s.job.decided and k < t.job.decided and u in t.job.restarting[k] for k in range(m.decisions))


def was_lost(m, s, t, p):
    """Whether the newest attempt of a partition is gone with its TaskExecutor or connection, or would be if it was kept."""
    i = m.number[p]
    gone = s.store.tracked[i] == "GONE" or t.store.tracked[i] == "GONE"
    return gone or any(
        s.store.attempt[i] == a + 1
        and (
            s.store.copy[i, a] == "LOST" or (s.store.tracked[i] == "RELEASED" and lost_at(m, s, s.store.location[i, a]))
        )
        for a in range(m.attempts)
    )


def lost_at(m, s, e):
    """Whether a partition was lost at TaskExecutor `e`."""
    return any(
        s.store.location[q, b] == e
        and (s.store.copy[q, b] == "LOST" or (s.store.tracked[q] == "GONE" and s.store.attempt[q] == b + 1))
        for q, b in m.store.ids
    )


@invariant
def views_agree(m, s):
    """The scheduler takes a partition for available exactly if the JobMaster tracks it as stored."""
    return s.job.job != "RUNNING" or all(
        (s.job.partition[p] == "STORED") == (s.store.tracked[i] == "STORED") for p, i in m.number.items()
    )


@temporal
def job_ends(m, s):
    """The job finishes, whatever is lost."""
    return eventually(s.job.job == "FINISHED")


@reachable
def backtracks(m, s):
    """A decision can restart a producer that has finished."""
    return any(t in s.job.restarting[k] and s.job.status[t] == "FINISHED" for k in range(m.decisions) for t in m.tasks)


SPEC = Spec(
    LifecycleFailover,
    properties=(no_needless_restart, views_agree, job_ends, backtracks),
    carries={
        "job": (failover.survives,),
        "store": (
            partition_lifecycle.kept_while_needed,
            partition_lifecycle.read_where_stored,
            partition_lifecycle.idle_executors_only,
            partition_lifecycle.no_orphan,
            partition_lifecycle.untracked_deleted,
        ),
    },
    expected={
        "released-when-read": {"no_needless_restart": "violated"},
        "release-on-consumption": {"store.kept_while_needed": "violated", "no_needless_restart": "violated"},
        "close-connection-early": {"store.kept_while_needed": "violated", "no_needless_restart": "violated"},
        "rm-ignores-partitions": {"store.idle_executors_only": "violated"},
        "unnoticed-loss": {"store.read_where_stored": "violated"},
        "no-heartbeat-cleanup": {"store.no_orphan": "violated", "store.untracked_deleted": "violated"},
        "region-without-backtracking": dict.fromkeys(("job.survives", "job_ends", "backtracks"), "violated"),
        "unreported-loss": {"views_agree": "violated", "job_ends": "violated"},
    },
    variant_parameters={
        "release-on-consumption": {"executors": 1},
        "close-connection-early": {"topology": "pair", "executors": 1},
        "rm-ignores-partitions": {"topology": "pair", "executors": 1},
        "unnoticed-loss": {"topology": "pair", "executors": 1},
        "no-heartbeat-cleanup": {"topology": "pair", "executors": 1},
        "region-without-backtracking": {"topology": "pair", "executors": 1},
        "unreported-loss": {"topology": "pair", "executors": 1},
    },
)
