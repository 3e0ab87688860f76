"""Properties of the life cycle of partitions for any number of TaskExecutors, partitions, consumers and attempts."""

from __future__ import annotations

from streamproof import Spec, invariant, leads_to, lemma, step, temporal
from streamproof_models.partitions import counts_variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.partitions.counts import ON_DISK, PartitionCounts
from streamproof_specs.partitions.counts_steps import STEPS


@invariant
def kept_while_needed(m, s):
    """No partition that the JobMaster counts on is deleted before all consumers have finished, unless it is lost."""
    return not any(s.copy[p] == "DELETED" and m.is_needed(s, p) for p in range(m.partitions))


@step
def read_where_stored(m, s, t):
    """A consumer finishes only if the partition is stored."""
    return all(m.has_read(t, p) <= m.has_read(s, p) or s.copy[p] == "STORED" for p in range(m.partitions))


@step
def one_attempt_read(m, s, t):
    """A partition is not produced again while a consumer reads an earlier attempt: the consumer would read of both."""
    return all(s.attempt[p] == t.attempt[p] or s.reading[p] == 0 or t.reading[p] == 0 for p in range(m.partitions))


@step
def idle_executors_only(m, s, t):
    """The ResourceManager releases no TaskExecutor that stores a needed partition."""
    return not any(
        s.executor[s.location[p]] == "UP"
        and t.executor[s.location[p]] == "RELEASED"
        and s.copy[p] in ON_DISK
        and m.is_needed(s, p)
        for p in range(m.partitions)
    )


@step
def lost_with_connection(m, s, t):
    """A partition is lost only with its TaskExecutor, or with the connection of its job."""
    return not any(
        (
            s.copy[p] in ON_DISK
            and t.copy[p] == "LOST"
            and t.executor[s.location[p]] == "UP"
            and t.connected[s.location[p]]
        )
        or (
            s.attempt[p] == t.attempt[p]  # the earlier attempt is the same
            and s.old_copy[p] in ON_DISK
            and t.old_copy[p] == "LOST"
            and t.executor[s.old_location[p]] == "UP"
            and t.connected[s.old_location[p]]
        )
        for p in range(m.partitions)
    )


@temporal
def no_orphan(m, s):
    """When the JobMaster has ended, or does not come back, each TaskExecutor deletes all partitions of the job eventually."""
    return all(
        leads_to(s.master != "RUNNING" and m.stores(s, e), s.master == "RUNNING" or not m.stores(s, e))
        for e in range(m.executors)
    )


@lemma
def connected_while_up(m, s):
    """A TaskExecutor that is gone has no connection."""
    return all(not s.connected[e] or s.executor[e] == "UP" for e in range(m.executors))


@lemma
def stored_with_connection(m, s):
    """A TaskExecutor without connection stores nothing of the job, unless in a grace period."""
    return all(
        (s.copy[p] not in ON_DISK or m.may_store(s, s.location[p]))
        and (s.old_copy[p] not in ON_DISK or m.may_store(s, s.old_location[p]))
        for p in range(m.partitions)
    )


@lemma
def tracked_is_registered(m, s):
    """The JobMaster counts on partitions of TaskExecutors that it knows, while it runs."""
    return all(not m.is_tracked(s, p) or s.registered[s.location[p]] for p in range(m.partitions)) and all(
        not s.registered[e] or s.master == "RUNNING" for e in range(m.executors)
    )


@lemma
def closed_is_unknown(m, s):
    """The JobMaster does not know a TaskExecutor whose connection it closes."""
    return all(not s.registered[e] or not s.closing[e] for e in range(m.executors))


@lemma
def released_is_untracked(m, s):
    """The JobMaster does not count on what it releases, or what was deleted."""
    return all(
        not m.is_tracked(s, p) or (s.order[p] != "RELEASE" and s.copy[p] != "DELETED") for p in range(m.partitions)
    )


@lemma
def reported_empty(m, s):
    """A TaskExecutor whose answer is on its way has no partition, and gets none."""
    return all(
        not s.empty[e] or s.location[p] != e or (s.copy[p] not in ON_DISK and s.order[p] != "DEPLOY")
        for p in range(m.partitions)
        for e in range(m.executors)
    )


@lemma
def read_is_tracked(m, s):
    """A consumer reads what the JobMaster takes for stored, and is reading or has finished."""
    return all(
        s.reading[p] + m.has_read(s, p) <= m.consumers and (s.reading[p] == 0 or s.tracked[p] == "STORED")
        for p in range(m.partitions)
    )


SPEC = Spec(
    PartitionCounts,
    properties=(
        kept_while_needed,
        read_where_stored,
        one_attempt_read,
        idle_executors_only,
        lost_with_connection,
        no_orphan,
        *STEPS,
        connected_while_up,
        stored_with_connection,
        tracked_is_registered,
        closed_is_unknown,
        released_is_untracked,
        reported_empty,
        read_is_tracked,
    ),
    expected={
        "release-on-consumption": {"kept_while_needed": "violated", "deleted_for_reason": "violated"},
        "release-when-read": {"kept_while_needed": "violated", "deleted_for_reason": "violated"},
        "close-connection-early": {"kept_while_needed": "violated", "counted_is_known": "violated"},
        "rm-ignores-partitions": {"idle_executors_only": "violated"},
        "stale-report": {"idle_executors_only": "violated"},
        "no-heartbeat-cleanup": {"no_orphan": "violated", "lives_where_connected": "violated"},
        "no-shutdown-hook": {"no_orphan": "violated", "lives_where_connected": "violated"},
        "unfenced-deployment": dict.fromkeys(("no_orphan", "lives_where_connected", "executed_once"), "violated"),
        "unnoticed-loss": {"read_where_stored": "violated"},
        "readers-kept": {"one_attempt_read": "violated", "counted_is_known": "violated"},
        "cleanup-of-all-jobs": {"lost_with_connection": "violated"},
        "grace-without-fencing": dict.fromkeys(("kept_while_needed", "grace_kept", "deleted_for_reason"), "violated"),
        "unfenced-grace": {"kept_while_needed": "violated", "connected_by_registration": "violated"},
        "released-taken-back": dict.fromkeys(("kept_while_needed", "executed_once", "deleted_for_reason"), "violated"),
    },
)
