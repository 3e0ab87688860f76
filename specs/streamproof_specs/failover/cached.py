"""Failover with cached results: exactly once, and backtracking stops at what is cached since the latest checkpoint."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, reachable, step, temporal
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


def restarts(s, t, u):
    """Whether the step begins a new attempt of task `u`."""
    return t.attempt[u] != s.attempt[u]


@step
def ends_for_good(m, s, t):
    """When the job has ended, nothing is read, checkpointed, lost or decided any more."""
    return s.job == "RUNNING" or (
        t.job == s.job
        and t.pending == s.pending
        and t.decided == s.decided
        and t.losses_left == s.losses_left
        and all(t.position[u] == s.position[u] for u in m.tasks)
    )


@invariant
def finished_with_all(m, s):
    """In a finished job every task has turned every record, and no checkpoint is pending."""
    return s.job != "FINISHED" or (s.pending is None and all(s.position[u] == m.records for u in m.tasks))


@invariant
def made_up_to_position(m, s):
    """The records up to the position of a task have a version, the following ones neither a version nor a reader."""
    return all(
        (s.version[u][k] is not None) == (k <= s.position[u]) for u in m.tasks for k in range(1, m.records + 1)
    ) and all(k <= s.position[c] or s.used[c][k] is None for c in m.producer for k in range(1, m.records + 1))


@step
def read_from_cache(m, s, t):
    """An attempt turns the next record, which its producer has made and the cache still has."""
    return all(
        restarts(s, t, u)
        or t.position[u] == s.position[u]
        or (
            t.position[u] == s.position[u] + 1
            and (
                u not in m.producer
                or (s.cached_after[m.producer[u]] < t.position[u] and t.position[u] <= s.position[m.producer[u]])
            )
        )
        for u in m.tasks
    )


@step
def one_attempt_more(m, s, t):
    """A restart is one decision, for a failure or a record that is missing; it begins the next attempt of the task that has
    failed, and of others."""
    return t.decided == s.decided or (
        t.decided == s.decided + 1
        and t.cause is not None
        and all(t.cause != u or restarts(s, t, u) for u in m.tasks)
        and (
            t.failures_left == s.failures_left - 1
            or any(t.cause == c and s.position[c] < s.cached_after[p] for c, p in m.producer.items())
        )
    )


@step
def attempts_by_decision(m, s, t):
    """Attempts, and the failures that are left, change by decisions alone, one by one."""
    same = t.failures_left == s.failures_left and not any(restarts(s, t, u) for u in m.tasks)
    return same if t.decided == s.decided else all(t.attempt[u] <= s.attempt[u] + 1 for u in m.tasks)


@invariant
def barrier_in_order(m, s):
    """A task takes its snapshot for the pending checkpoint behind its producer, at the barrier."""
    return (s.pending is not None or s.snapshot[m.source] is None) and all(
        (s.snapshot[c] is None or (s.snapshot[p] is not None and s.pending is not None and s.position[c] >= s.pending))
        for c, p in m.producer.items()
    )


@step
def begins_at_source(m, s, t):
    """A checkpoint begins with the snapshot of the source, at its position."""
    begins = s.pending is None and t.pending is not None
    return not begins or (t.pending == s.position[m.source] and t.snapshot[m.source] == s.attempt[m.source])


@step
def kept_since_checkpoint(m, s, t):
    """A cache loses what a complete checkpoint covers, or everything, once, or is that of a new attempt, and empty."""
    return all(
        (t.cached_after[p] == t.checkpoint)
        if restarts(s, t, p)
        else (
            t.cached_after[p] == s.position[p]
            and t.cached_after[p] > s.cached_after[p]
            and t.losses_left < s.losses_left
        )
        or t.cached_after[p] == (s.cached_after[p] if t.checkpoint < s.cached_after[p] else t.checkpoint)
        for p in m.producers
    )


@step
def losses_counted(m, s, t):
    """A loss is that of one cache with records."""
    lost = sum(int(t.cached_after[p] > s.cached_after[p]) for p in m.producers)
    return t.losses_left == s.losses_left or (t.losses_left == s.losses_left - 1 and lost == 1)


@step
def known_by_report(m, s, t):
    """What the JobMaster knows to be missing is what checkpoints cover, and what a failed consumer has missed."""
    return all(
        (t.known_after[p] == t.checkpoint)
        if restarts(s, t, p)
        else (t.decided > s.decided and t.known_after[p] == s.cached_after[p])
        or t.known_after[p] == (s.known_after[p] if t.checkpoint < s.known_after[p] else t.checkpoint)
        for p in m.producers
    )


@temporal
def finishes(m, s):
    """The job finishes."""
    return eventually(s.job == "FINISHED")


@reachable
def all_happens(m, s):
    """A job finishes after all its failures and losses, of which one was missed."""
    return s.job == "FINISHED" and s.failures_left == 0 and s.losses_left == 0 and s.decided == m.decisions


CACHES = ("kept_since_checkpoint", "known_by_report")
"""What caches that drop their records at another time violate."""

SPEC = Spec(
    CachedResults,
    properties=(
        *(one_version, published_once, cached_since_checkpoint, nothing_older, stops_at_cache, from_latest),
        *(snapshots_of_one_run, survives, partial_restart, ends_for_good, finished_with_all, made_up_to_position),
        *(
            read_from_cache,
            one_attempt_more,
            attempts_by_decision,
            barrier_in_order,
            begins_at_source,
            kept_since_checkpoint,
        ),
        *(losses_counted, known_by_report, finishes, all_happens),
    ),
    termination=True,
    expected={
        "no-downstream-restart": {"one_version": "violated", "deadlock": "violated", "finishes": "violated"},
        "no-backtracking": {"survives": "violated", "finishes": "violated"},
        "no-backtracking-unlimited": dict.fromkeys(
            ("termination", "attempts_by_decision", "known_by_report", "finishes", "all_happens"), "violated"
        ),
        "always-backtracks": {"stops_at_cache": "violated", "partial_restart": "violated"},
        "from-the-start": {
            "published_once": "violated",
            "nothing_older": "violated",
            "stops_at_cache": "violated",
            "from_latest": "violated",
            "partial_restart": "violated",
            **dict.fromkeys(CACHES, "violated"),
        },
        "dropped-at-trigger": dict.fromkeys((*CACHES, "cached_since_checkpoint"), "violated"),
        "never-dropped": dict.fromkeys((*CACHES, "nothing_older"), "violated"),
        "memory-only": dict.fromkeys((*CACHES, "cached_since_checkpoint"), "violated"),
        "checkpoint-goes-on": {},
        "stale-snapshots": {
            "one_version": "violated",
            "published_once": "violated",
            "snapshots_of_one_run": "violated",
            "survives": "violated",
            "made_up_to_position": "violated",
            "barrier_in_order": "violated",
            "finishes": "violated",
        },
        "barrier-not-cached": {"deadlock": "violated", "finishes": "violated"},
    },
)
