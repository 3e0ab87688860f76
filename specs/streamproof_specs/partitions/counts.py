"""Safety of the life cycle of partitions for any number of TaskExecutors, partitions and consumers."""

from __future__ import annotations

from streamproof import Spec, invariant, lemma, step
from streamproof_models.partitions.counts import PartitionCounts


@invariant
def kept_while_needed(m, s):
    """No partition that the JobMaster counts on is deleted before all consumers have finished, unless it is lost."""
    return all(s.copy[p] != "DELETED" or s.tracked[p] == "NONE" or m.is_consumed(s, p) for p in range(m.partitions))


@step
def read_where_stored(m, s, t):
    """A consumer finishes only if the partition is stored."""
    return all(t.unfinished[p] >= s.unfinished[p] or s.copy[p] == "STORED" for p in range(m.partitions))


@step
def idle_executors_only(m, s, t):
    """The ResourceManager releases no TaskExecutor that stores a partition that the JobMaster counts on."""
    return all(
        s.executor[s.location[p]] != "UP"
        or t.executor[s.location[p]] != "RELEASED"
        or s.tracked[p] == "NONE"
        or not m.on_disk(s, p)
        for p in range(m.partitions)
    )


@step
def lost_with_connection(m, s, t):
    """A partition is lost only without connection."""
    return all(not m.on_disk(s, p) or t.copy[p] != "LOST" or s.link[s.location[p]] != "UP" for p in range(m.partitions))


@lemma
def closed_is_empty(m, s):
    """The JobMaster counts on nothing where it closes the connection."""
    return all(
        s.tracked[p] == "NONE" or (not s.closing[s.location[p]] and s.link[s.location[p]] != "CLOSED")
        for p in range(m.partitions)
    )


@lemma
def closed_is_unknown(m, s):
    """The JobMaster does not know a TaskExecutor whose connection it closes."""
    return all(not s.registered[e] or (not s.closing[e] and s.link[e] != "CLOSED") for e in range(m.executors))


@lemma
def released_is_untracked(m, s):
    """The JobMaster does not count on what it releases, or what was deleted."""
    return all(
        s.tracked[p] == "NONE" or (s.order[p] != "RELEASE" and s.copy[p] != "DELETED") for p in range(m.partitions)
    )


@lemma
def reported_empty(m, s):
    """A TaskExecutor whose answer is on its way has no partition, and gets none."""
    return all(
        not s.empty[s.location[p]] or (not m.on_disk(s, p) and s.order[p] != "DEPLOY") for p in range(m.partitions)
    )


SPEC = Spec(
    PartitionCounts,
    properties=(
        kept_while_needed,
        read_where_stored,
        idle_executors_only,
        lost_with_connection,
        closed_is_empty,
        closed_is_unknown,
        released_is_untracked,
        reported_empty,
    ),
    expected={
        "close-connection-early": {"kept_while_needed": "violated"},
        "release-on-consumption": {"kept_while_needed": "violated"},
        "rm-ignores-partitions": {"idle_executors_only": "violated"},
        "stale-report": {"idle_executors_only": "violated"},
        "unnoticed-loss": {"read_where_stored": "violated"},
        "cleanup-of-all-jobs": {"lost_with_connection": "violated"},
    },
)
