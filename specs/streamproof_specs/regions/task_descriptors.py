"""Properties of offloaded task descriptors: none is missing or stale, caches are bounded, nothing is left of a job."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, leads_to, lemma, reachable, step, temporal
from streamproof_models.regions.task_descriptors import TaskDescriptors


@invariant
def fetchable(m, s):
    """A descriptor that a TaskExecutor still has to read is in its cache or at the JobMaster."""
    return all(
        s.status[d] != "ACTIVE"
        or s.read[x][d] is not None
        or s.place[x][m.key(s, d)] > 0
        or s.server[m.key(s, d)] is not None
        for d in m.every
        for x in m.executors_of(d)
    )


@invariant
def current(m, s):
    """What a TaskExecutor has read is the descriptor of the attempt."""
    return all(s.read[x][d] is None or s.read[x][d] == s.content[d] for x in range(m.executors) for d in m.every)


@invariant
def bounded(m, s):
    """No cache exceeds its limit."""
    return all(sum(s.place[x][k] > 0 for k in m.keys) <= m.cache for x in range(m.executors))


@invariant
def in_use(m, s):
    """A blob at the JobMaster is that of a deployment."""
    return all(s.server[k] is None or m.is_used(s, k) for k in m.keys)


@temporal
def deployed(m, s):
    """A TaskExecutor reads each descriptor, unless the attempt ends before."""
    return all(
        leads_to(s.status[d] == "ACTIVE", s.read[x][d] is not None or s.status[d] != "ACTIVE")
        for d in m.every
        for x in m.executors_of(d)
    )


@temporal
def cleaned(m, s):
    """When the job is over, every cache is eventually empty."""
    return all(leads_to(s.is_over, s.place[x][k] == 0) for x in range(m.executors) for k in m.keys)


@invariant
def cached_after_reading(m, s):
    """A TaskExecutor has the descriptor that it used last in its cache; what is not in use or not cached has no content."""
    return all(
        all(s.status[d] == "ACTIVE" or s.content[d] == 0 for d in m.every)
        and all(s.place[x][k] > 0 or s.copy[x][k] == 0 for k in m.keys)
        and (all(s.read[x][d] is None for d in m.every) or sum(s.place[x][k] == 1 for k in m.keys) == 1)
        for x in range(m.executors)
    )


@step
def ends_for_cause(m, s, t):
    """An attempt ends after all its TaskExecutors have read its descriptor, or with a failure, which is counted; one
    that was not deployed does not end."""
    failed = s.failures_left != t.failures_left
    return (
        t.failures_left == s.failures_left - (1 if failed else 0)
        and all(s.status[d] != "NEW" or t.status[d] != "OVER" for d in m.every)
        and all(
            failed
            or s.status[d] != "ACTIVE"
            or t.status[d] == "ACTIVE"
            or all(s.read[x][d] is not None for x in m.executors_of(d))
            for d in m.every
        )
        and not (failed and s.is_over)
    )


@step
def cached_until_the_end(m, s, t):
    """A cache becomes empty only with a failure, or when the job is over, which it is after all attempts; a blob becomes
    the one used last when a descriptor is read."""
    return (
        (not t.is_over or all(s.status[d] == "OVER" for d in m.every))
        and all(
            s.is_over
            or s.failures_left != t.failures_left
            or all(s.place[x][k] == 0 for k in m.keys)
            or any(t.place[x][k] > 0 for k in m.keys)
            for x in range(m.executors)
        )
        and all(
            any(s.read[x][d] is None and t.read[x][d] is not None and m.key(t, d) == k for d in m.every)
            for x in range(m.executors)
            for k in m.keys
            if t.place[x][k] == 1 and s.place[x][k] != 1
        )
        and all(
            s.read[x][d] is not None or t.read[x][d] is None or t.place[x][m.key(t, d)] == 1
            for x in range(m.executors)
            for d in m.every
        )
    )


@temporal
def ends(m, s):
    """A job without failures so far ends, whatever fails later."""
    return not s.is_over and s.failures_left == m.failures and eventually(s.is_over)


@reachable
def cancelled(m, s):
    """An attempt is cancelled, and the TaskExecutors that have its descriptor keep it."""
    return m.failures == 0 or (
        all(s.status[d] == "OVER" for d in m.every)
        and s.failures_left < m.failures
        and all(any(s.place[x][k] > 0 for k in m.keys) for x in range(m.executors))
    )


@reachable
def lost(m, s):
    """The connection to a TaskExecutor is lost before the first deployment."""
    return m.failures == 0 or (s.failures_left < m.failures and all(s.status[d] == "NEW" for d in m.every))


@lemma
def kept_while_used(m, s):
    """The blob of an attempt that has not ended is at the JobMaster."""
    return all(s.status[d] != "ACTIVE" or s.server[m.key(s, d)] is not None for d in m.every)


@lemma
def keyed_by_content(m, s):
    """Each blob has the content that its key names, at the JobMaster and in caches."""
    return all(
        (s.server[k] is None or s.server[k] == k)
        and all(s.place[x][k] == 0 or s.copy[x][k] == k for x in range(m.executors))
        for k in m.keys
    )


@lemma
def read_while_active(m, s):
    """Only the descriptor of an attempt that has not ended has been read."""
    return all(s.read[x][d] is None or s.status[d] == "ACTIVE" for x in range(m.executors) for d in m.every)


@lemma
def all_ended(m, s):
    """When the job is over, all attempts are."""
    return not s.is_over or all(s.status[d] == "OVER" for d in m.every)


SPEC = Spec(
    TaskDescriptors,
    properties=(
        *(fetchable, current, bounded, in_use, deployed, cleaned, cached_after_reading, ends_for_cause),
        *(cached_until_the_end, ends, cancelled, lost),
        *(kept_while_used, keyed_by_content, read_while_active, all_ended),
    ),
    expected={
        "deleted-when-fetched": dict.fromkeys(("fetchable", "deployed", "ends", "deadlock"), "violated"),
        "deleted-with-first": dict.fromkeys(("fetchable", "deployed", "ends", "deadlock"), "violated"),
        "keyed-by-region": {"current": "violated"},
        "no-eviction": {"bounded": "violated"},
        "never-deleted": {"in_use": "violated"},
        "kept-after-job": {"cleaned": "violated"},
    },
)
