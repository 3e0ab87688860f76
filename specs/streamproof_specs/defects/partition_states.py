"""Properties of failovers after a loss of partitions: one failover for each loss, and the job ends."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, temporal
from streamproof_models.defects.partition_states import PartitionStates


@invariant
def one_failover_per_loss(m, s):
    """There are no more failovers than losses."""
    return s.failovers <= s.lost


@invariant
def successful(m, s):
    """No restarted consumer misses a partition that was lost before its restart."""
    return not s.unsuccessful


@temporal
def completed(m, s):
    """The consumer finishes."""
    return eventually(s.consumer == "FINISHED")


SPEC = Spec(
    PartitionStates,
    properties=(one_failover_per_loss, successful, completed),
    expected={
        "named-only": {"one_failover_per_loss": "violated", "successful": "violated"},
        "named-only-waiting": {"completed": "violated", "deadlock": "violated"},
    },
    variant_parameters={  # the second partition is missed again, or never produced
        "named-only": {"inputs": 2, "losses": 1},
        "named-only-waiting": {"inputs": 2, "losses": 1},
    },
)
