"""The variants of all protocols by name: which machines a run is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.jobmaster.jobmaster import JobMaster
from streamproof_runtime.jobs.input_policies import ANY
from streamproof_runtime.slots.slot_rules import SlotRules
from streamproof_runtime.subtasks.flow import FlowRules
from streamproof_runtime.subtasks.termination import BatonSubtask
from streamproof_runtime.taskexecutor.blob_cache import BlobCache
from streamproof_runtime.taskexecutor.ledger import Ledger
from streamproof_runtime.variants import blob_variants as blobs
from streamproof_runtime.variants import checkpoint_variants as checkpoints
from streamproof_runtime.variants import failover_variants as failover
from streamproof_runtime.variants import loop_checkpoint_variants as loop_checkpoints
from streamproof_runtime.variants import partition_variants as partitions
from streamproof_runtime.variants import span_variants as spans
from streamproof_runtime.variants import stop_variants as stops
from streamproof_runtime.variants.baton_variants import VARIANTS
from streamproof_runtime.variants.flow_variants import FLOWS
from streamproof_runtime.variants.flush_variants import FLUSHES
from streamproof_runtime.variants.loop_variants import LOOPS, loop_rules
from streamproof_runtime.variants.partition_variants import ASKS_NOTHING, CLUSTER_LEDGERS, LEDGERS
from streamproof_runtime.variants.slot_variants import RESOURCES, SLOTS

SUBTASKS = (
    VARIANTS
    | FLUSHES
    | checkpoints.SUBTASKS
    | checkpoints.UNALIGNED
    | loop_checkpoints.SUBTASKS
    | spans.SUBTASKS
    | stops.SUBTASKS
)
MASTERS = (
    failover.MASTERS
    | failover.BUDGETS
    | failover.PIPELINES
    | checkpoints.MASTERS
    | partitions.MASTERS
    | partitions.CLUSTER_MASTERS
    | stops.MASTERS
    | blobs.MASTERS
)
FAMILIES: dict[str, Mapping[str, Any]] = {
    "baton": VARIANTS,
    "flush rules": FLUSHES,
    "credit": FLOWS,
    "pools of senders": spans.POOLS,
    "records that span buffers": spans.SUBTASKS | spans.FLOWS,
    "loops": LOOPS,
    "regions and failover": failover.MASTERS,
    "failure budgets": failover.BUDGETS,
    "regions of subtasks": failover.PIPELINES,
    "partitions": {**LEDGERS, **partitions.MASTERS, ASKS_NOTHING: False},
    "cluster partitions": {**CLUSTER_LEDGERS, **partitions.CLUSTER_MASTERS},
    "checkpoints": checkpoints.SUBTASKS | checkpoints.MASTERS,
    "unaligned checkpoints": checkpoints.UNALIGNED,
    "loop checkpoints": loop_checkpoints.SUBTASKS,
    "slots": SLOTS,
    "resource profiles": RESOURCES,
    "unbounded sources": stops.SUBTASKS | stops.MASTERS,
    "offloaded descriptors": {**blobs.MASTERS, **blobs.CACHES},
}
"""All variants by what they are of. Whatever has to know all of them, or of which kind one is, goes by this."""
NAMES = tuple(name for family in FAMILIES.values() for name in family)
"""All variants."""


def subtask_type(variant: str | None) -> type[BatonSubtask]:
    """The subtasks of a run with a variant; those by the rules if it is of something else."""
    return SUBTASKS.get(variant or "", BatonSubtask)


def master_type(variant: str | None) -> type[JobMaster]:
    """The JobMaster of such a run."""
    return MASTERS.get(variant or "", JobMaster)


def flow_rules(variant: str | None) -> FlowRules:
    """The rules of flow control in such a run."""
    return (FLOWS | spans.POOLS | spans.FLOWS).get(variant or "", FlowRules())


def ledger_type(variant: str | None) -> type[Ledger]:
    """What TaskExecutors do with partitions in such a run."""
    return (LEDGERS | CLUSTER_LEDGERS).get(variant or "", Ledger)


def blob_cache(variant: str | None) -> type[BlobCache]:
    """What TaskExecutors do with blobs in such a run."""
    return blobs.CACHES.get(variant or "", BlobCache)


def asks(variant: str | None) -> bool:
    """Whether the ResourceManager keeps TaskExecutors that store partitions."""
    return variant != ASKS_NOTHING


def slot_rules(variant: str | None) -> SlotRules:
    """The rules of the slot protocol in such a run."""
    return (SLOTS | RESOURCES).get(variant or "", SlotRules())


def simulated(variant: str | None, input_policy: str = ANY) -> dict[str, Any]:
    """The arguments of `Simulation` for such a run."""
    return {
        "subtask_type": subtask_type(variant),
        "master_type": master_type(variant),
        "flow": flow_rules(variant),
        "loops": loop_rules(variant, input_policy),
        "ledger": ledger_type(variant),
        "blobs": blob_cache(variant),
        "slot_rules": slot_rules(variant),
        "asks": asks(variant),
        "idle": 0 if asks(variant) else 5 * MILLISECOND,
    }
