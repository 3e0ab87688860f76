"""Failover with cached results: exactly once, and backtracking stops at what is cached since the latest checkpoint."""

from __future__ import annotations

from streamproof import Spec, invariant, reachable, step
from streamproof_models.failover import cached_variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.failover.cached_results import CachedResults


@invariant
def one_version(m, s):
    """What a consumer has read of its producer is what the producer's present attempt, or an earlier one before it, made."""
    return m.deterministic or all(
        k > s.position[c] or s.used[c][k] == s.version[p][k]
        for c, p in m.producer.items()
        for k in range(1, m.records + 1)
    )


@step
def published_once(m, s, t):
    """What a complete checkpoint covers, and sinks have published, is never made again."""
    return all(k > s.checkpoint or s.version[u][k] == t.version[u][k] for u in m.tasks for k in range(1, m.records + 1))


@invariant
def cached_since_checkpoint(m, s):
    """Without a loss, a cache has every record after the latest checkpoint."""
    return s.losses_left < m.losses or all(s.cached_after[p] <= s.checkpoint for p in m.producers)


@invariant
def nothing_older(m, s):
    """A cache has no record that the latest checkpoint covers."""
    return all(s.cached_after[p] >= s.checkpoint for p in m.producers)


@step
def stops_at_cache(m, s, t):
    """A task restarts if it failed, if its cache lacks a record after the checkpoint, or with its producer; else never."""
    return all(
        s.attempt[u] == t.attempt[u]
        or t.cause == u
        or (u in m.producer and t.attempt[m.producer[u]] > s.attempt[m.producer[u]])
        or (u in m.producers and s.cached_after[u] > s.checkpoint)
        for u in m.tasks
    )


@step
def from_latest(m, s, t):
    """A new attempt begins at the latest complete checkpoint."""
    return all(s.attempt[u] == t.attempt[u] or t.position[u] == s.checkpoint for u in m.tasks)


@step
def snapshots_of_one_run(m, s, t):
    """A checkpoint is completed by snapshots of the present attempts."""
    return s.checkpoint == t.checkpoint or all(s.snapshot[u] == s.attempt[u] for u in m.tasks)


@invariant
def survives(m, s):
    """The job is never given up: it takes no more restarts than there are causes."""
    return s.job != "FAILED"


@reachable
def partial_restart(m, s):
    """A job finishes after a restart from a checkpoint that left the source alone."""
    return s.job == "FINISHED" and s.cause is not None and s.attempt[m.source] == 0 and 0 < s.checkpoint < m.records


SPEC = Spec(
    CachedResults,
    properties=(
        *(one_version, published_once, cached_since_checkpoint, nothing_older, stops_at_cache, from_latest),
        *(snapshots_of_one_run, survives, partial_restart),
    ),
    termination=True,
    expected={
        "no-downstream-restart": {"one_version": "violated", "deadlock": "violated"},
        "no-backtracking": {"survives": "violated"},
        "no-backtracking-unlimited": {"termination": "violated"},
        "always-backtracks": {"stops_at_cache": "violated", "partial_restart": "violated"},
        "from-the-start": {
            "published_once": "violated",
            "nothing_older": "violated",
            "stops_at_cache": "violated",
            "from_latest": "violated",
            "partial_restart": "violated",
        },
        "dropped-at-trigger": {"cached_since_checkpoint": "violated"},
        "never-dropped": {"nothing_older": "violated"},
        "memory-only": {"cached_since_checkpoint": "violated"},
        "checkpoint-goes-on": {},
        "stale-snapshots": {
            "one_version": "violated",
            "published_once": "violated",
            "snapshots_of_one_run": "violated",
            "survives": "violated",
        },
        "barrier-not-cached": {"deadlock": "violated"},
    },
)
