"""Properties of failovers after a loss of partitions: one failover for each loss, and the job ends."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, reachable, step, temporal
from streamproof_models.defects.partition_states import PartitionStates


@invariant
def one_failover_per_loss(m, s):
    """There are no more failovers than losses."""
    return s.failovers <= s.lost


@invariant
def successful(m, s):
    """No restarted consumer misses a partition that was lost before its restart."""
    return not s.unsuccessful


@invariant
def failure_names_lost(m, s):
    """A failed consumer names a partition, and that is lost; no other consumer names one."""
    return (s.named is not None) == (s.consumer == "FAILED") and all(
        s.named != p or s.partition[p] == "LOST" for p in range(m.inputs)
    )


@invariant
def all_produced(m, s):
    """No producer runs while the consumer does; when that has finished, all partitions are stored."""
    return (s.consumer != "RUNNING" or all(p != "RESTARTED" for p in s.partition)) and (
        s.consumer != "FINISHED" or all(p == "STORED" for p in s.partition)
    )


@invariant
def loss_remains(m, s):
    """What was lost since the last failover is lost until the next."""
    return not s.fresh or all(p == "LOST" for p in s.partition)


@step
def one_at_a_time(m, s, t):
    """The consumer runs, fails and is restarted in order; a failure names one partition, and each failover is counted."""
    return (
        (s.consumer == t.consumer and s.named == t.named and s.failovers == t.failovers)
        or (s.consumer == "SCHEDULED" and t.consumer == "RUNNING")
        or (s.consumer == "RUNNING" and t.consumer in ("FAILED", "FINISHED"))
        or (s.consumer == "FAILED" and t.consumer == "SCHEDULED" and t.failovers == s.failovers + 1)
    )


@step
def produced_or_lost(m, s, t):
    """A lost partition is produced again before it is stored; one is lost with all others, while the consumer reads."""
    return all(s.partition[p] != "LOST" or t.partition[p] != "STORED" for p in range(m.inputs)) and (
        s.lost == t.lost or (s.consumer == "RUNNING" and t.lost == s.lost + 1 and all(p == "LOST" for p in t.partition))
    )


@reachable
def begins(m, s):
    """A consumer waits for its start when nothing was lost."""
    return s.consumer == "SCHEDULED" and s.lost == 0


@reachable
def survives(m, s):
    """A job may finish after all losses."""
    return s.consumer == "FINISHED" and s.lost == m.losses


@temporal
def completed(m, s):
    """The consumer finishes."""
    return eventually(s.consumer == "FINISHED")


SPEC = Spec(
    PartitionStates,
    properties=(
        one_failover_per_loss,
        successful,
        failure_names_lost,
        all_produced,
        loss_remains,
        one_at_a_time,
        produced_or_lost,
        begins,
        survives,
        completed,
    ),
    expected={
        "named-only": {"one_failover_per_loss": "violated", "successful": "violated"},
        "named-only-waiting": {"completed": "violated", "deadlock": "violated", "survives": "violated"},
    },
    variant_parameters={  # the second partition is missed again, or never produced
        "named-only": {"inputs": 2, "losses": 1},
        "named-only-waiting": {"inputs": 2, "losses": 1},
    },
)
