"""Properties of offloaded task descriptors: none is missing or stale, caches are bounded, nothing is left of a job."""

from __future__ import annotations

from streamproof import Spec, invariant, leads_to, lemma, temporal
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
        *(fetchable, current, bounded, in_use, deployed, cleaned),
        *(kept_while_used, keyed_by_content, read_while_active, all_ended),
    ),
    expected={
        "deleted-when-fetched": {"fetchable": "violated", "deployed": "violated", "deadlock": "violated"},
        "deleted-with-first": {"fetchable": "violated", "deployed": "violated", "deadlock": "violated"},
        "keyed-by-region": {"current": "violated"},
        "no-eviction": {"bounded": "violated"},
        "never-deleted": {"in_use": "violated"},
        "kept-after-job": {"cleaned": "violated"},
    },
)
