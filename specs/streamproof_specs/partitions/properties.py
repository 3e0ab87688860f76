"""Properties of the life cycle of partitions: none is deleted while it is needed, none stays when its job is gone."""

from __future__ import annotations

from streamproof import Spec, invariant, leads_to, step, temporal
from streamproof_models.partitions import (  # noqa: F401  (declaring a variant registers it)
    cluster_rules,
    flink_repairs,
    runtime_rules,
    types,
)
from streamproof_models.partitions.machine import PartitionLifecycle

ON_DISK = ("PRODUCING", "STORED")
ON_RUNTIME = ("read_where_stored", "lost_with_connection")
"""What does not hold of the runtime, by intention."""


@invariant
def kept_while_needed(m, s):
    """No partition that its JobMaster counts on is deleted before all consumers have finished, unless it is lost."""
    return not any(s.copy[p, a] == "DELETED" and m.is_needed(s, p, a) for p, a in m.ids)


@step
def read_where_stored(m, s, t):
    """A consumer finishes only if the partition is stored."""
    return not any(
        s.consumer[p, c] == "READING"
        and t.consumer[p, c] in m.has_read
        and s.attempt[p] == a + 1
        and s.copy[p, a] != "STORED"
        for p, a in m.ids
        for c in range(m.consumers)
    )


@step
def one_attempt_read(m, s, t):
    """A partition is not produced again while a consumer reads an earlier attempt: the consumer would read of both."""
    return not any(
        s.attempt[p] < t.attempt[p] and s.consumer[p, c] == "READING" and t.consumer[p, c] == "READING"
        for p, c in m.readers
    )


@step
def idle_executors_only(m, s, t):
    """The ResourceManager releases no TaskExecutor that stores a needed partition."""
    return not any(
        s.executor[e] == "UP"
        and t.executor[e] == "RELEASED"
        and s.location[p, a] == e
        and s.copy[p, a] in ON_DISK
        and m.is_needed(s, p, a)
        for e in range(m.executors)
        for p, a in m.ids
    )


@step
def lost_with_connection(m, s, t):
    """A partition is lost only with its TaskExecutor, or with the connection of its own job."""
    return not any(
        s.copy[p, a] in ON_DISK
        and t.copy[p, a] == "LOST"
        and s.location[p, a] == e
        and t.executor[e] == "UP"
        and t.connected[m.job_of[p], e]
        for e in range(m.executors)
        for p, a in m.ids
    )


@temporal
def no_orphan(m, s):
    """When the JobMaster has ended, or does not come back, every partition of the job is deleted eventually."""
    return all(
        leads_to(
            s.master[m.job_of[p]] != "RUNNING" and s.copy[p, a] in ON_DISK,
            s.master[m.job_of[p]] == "RUNNING" or s.copy[p, a] not in ON_DISK,
        )
        for p, a in m.ids
    )


@temporal
def untracked_deleted(m, s):
    """A partition that its JobMaster does not track is deleted eventually."""
    return all(
        leads_to(
            s.copy[p, a] in ON_DISK and not m.is_tracked(s, p, a), s.copy[p, a] not in ON_DISK or m.is_tracked(s, p, a)
        )
        for p, a in m.ids
    )


SPEC = Spec(
    PartitionLifecycle,
    properties=(
        kept_while_needed,
        read_where_stored,
        one_attempt_read,
        idle_executors_only,
        lost_with_connection,
        no_orphan,
        untracked_deleted,
    ),
    expected={
        "release-on-consumption": {"kept_while_needed": "violated"},
        "release-when-read": {"kept_while_needed": "violated"},
        "close-connection-early": {"kept_while_needed": "violated"},
        "rm-ignores-partitions": {"idle_executors_only": "violated"},
        "stale-report": {"idle_executors_only": "violated"},
        "no-heartbeat-cleanup": {"no_orphan": "violated", "untracked_deleted": "violated"},
        "no-shutdown-hook": {"no_orphan": "violated", "untracked_deleted": "violated"},
        "fire-and-forget": {"untracked_deleted": "violated"},
        "unfenced-deployment": {"no_orphan": "violated", "untracked_deleted": "violated"},
        "unnoticed-loss": {"read_where_stored": "violated"},
        "readers-kept": {"one_attempt_read": "violated"},
        "cleanup-of-all-jobs": {"lost_with_connection": "violated"},
        "runtime": dict.fromkeys(ON_RUNTIME, "violated"),
        "runtime-cluster": dict.fromkeys(ON_RUNTIME, "violated"),
        "released-with-job": dict.fromkeys((*ON_RUNTIME, "promoted_kept", "kept_while_needed"), "violated"),
        "runtime-unanswered-promotion": dict.fromkeys((*ON_RUNTIME, "promoted_kept"), "violated"),
        "unpromoted-read": dict.fromkeys((*ON_RUNTIME, "promoted_kept", "cluster_partitions_only"), "violated"),
        "grace-without-fencing": {"kept_while_needed": "violated", "grace_kept": "violated"},
        "unfenced-grace": {"kept_while_needed": "violated"},
        "released-taken-back": {"kept_while_needed": "violated"},
        "pipelined-unreleased": {"untracked_deleted": "violated"},
        "unanswered-promotion": {"promoted_kept": "violated"},
        "reported-once": {"cluster_known": "violated"},
        "flink": dict.fromkeys(("kept_while_needed", "grace_kept", "untracked_deleted"), "violated"),
        "flink-default": {"kept_while_needed": "violated", "untracked_deleted": "violated"},
        "flink-timer": dict.fromkeys(("kept_while_needed", "grace_kept", "untracked_deleted"), "violated"),
        "flink-cleanup-set": dict.fromkeys(("kept_while_needed", "grace_kept", "untracked_deleted"), "violated"),
        "flink-lost-request": dict.fromkeys(("kept_while_needed", "grace_kept", "untracked_deleted"), "violated"),
        "flink-repaired": {"untracked_deleted": "violated"},
        "flink-default-repaired": {"untracked_deleted": "violated"},
        "flink-no-timer": {"no_orphan": "violated", "untracked_deleted": "violated"},
        "flink-listed-early": {"kept_while_needed": "violated"},
        "flink-endless-recovery": {"untracked_deleted": "violated"},
    },
    variant_parameters={  # the smallest that show what breaks
        "release-when-read": {"attempts": 1, "failures": 0, "crashes": 0},
        "close-connection-early": {"attempts": 1, "failures": 0, "crashes": 0},
        "rm-ignores-partitions": {"attempts": 1, "failures": 0, "crashes": 0},
        "stale-report": {"attempts": 1, "failures": 0, "crashes": 0},
        "no-heartbeat-cleanup": {"attempts": 1, "failures": 0, "crashes": 0},
        "no-shutdown-hook": {"attempts": 1, "failures": 0, "crashes": 0},
        "fire-and-forget": {"attempts": 1, "failures": 0, "crashes": 0},
        "unfenced-deployment": {"attempts": 1, "failures": 0, "crashes": 0},
        "unnoticed-loss": {"attempts": 1, "failures": 0, "crashes": 0},
        "readers-kept": {"failures": 0, "crashes": 0},
        "cleanup-of-all-jobs": {"attempts": 1, "failures": 0, "crashes": 0},
        "runtime": {"failures": 0, "crashes": 0, "room": 2},
        "runtime-cluster": {"attempts": 1, "failures": 0, "crashes": 0, "room": 2},
        "released-with-job": {"attempts": 1, "failures": 0, "crashes": 0, "room": 2},
        "runtime-unanswered-promotion": {"attempts": 1, "failures": 0, "crashes": 0, "room": 2},
        "unpromoted-read": {"attempts": 1, "failures": 0, "crashes": 0, "room": 2},
        "grace-without-fencing": {"attempts": 1, "failures": 0, "crashes": 0},
        "unfenced-grace": {"attempts": 1, "failures": 0, "crashes": 0},
        "pipelined-unreleased": {"attempts": 1, "crashes": 0},
        "unanswered-promotion": {"attempts": 1, "failures": 0, "crashes": 0},
        "reported-once": {"attempts": 1, "failures": 0, "crashes": 0},
        "flink": {"failures": 0, "crashes": 0},
        "flink-default": {"failures": 0, "crashes": 0},
        "flink-timer": {"attempts": 1, "failures": 0, "crashes": 0},
        "flink-cleanup-set": {"attempts": 1, "failures": 0, "crashes": 0},
        "flink-lost-request": {"attempts": 1, "failures": 0},
        "flink-no-timer": {"attempts": 1, "failures": 0, "crashes": 0},
        "flink-listed-early": {"attempts": 1, "failures": 0},
        "flink-endless-recovery": {"attempts": 1, "failures": 0},
    },
)
