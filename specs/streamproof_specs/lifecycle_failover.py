"""Properties of failover over stored partitions: those of both machines, and what a restart may contain."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, reachable, step, temporal
from streamproof_models import lifecycle_failover_variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.lifecycle_failover import LifecycleFailover
from streamproof_specs import failover, partition_lifecycle


@step
def no_needless_restart(m, s, t):
    """A finished task restarts only if its partition was lost with its TaskExecutor, or its input is produced again."""
    return all(
        s.job.status[u] != "FINISHED"
        or not restarts(m, s, t, u)
        or any(was_lost(m, s, t, p) for p in m.outputs[u])
        or any(restarts(m, s, t, producer) for producer in m.job.upstream[u])
        for u in m.tasks
    )


def restarts(m, s, t, u):
    """Whether a decision of this step restarts task `u`."""
    return any(k >= s.job.decided and k < t.job.decided and u in t.job.restarting[k] for k in range(m.decisions))


def was_lost(m, s, t, p):
    """Whether the newest attempt of a partition is gone with its TaskExecutor or with the connection."""
    i = m.number[p]
    lost = any(s.store.attempt[i] == a + 1 and s.store.copy[i, a] == "LOST" for a in range(m.attempts))
    return lost or s.store.tracked[i] == "GONE" or t.store.tracked[i] == "GONE"


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
)
