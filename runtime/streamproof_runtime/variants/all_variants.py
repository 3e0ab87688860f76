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
from streamproof_runtime.taskexecutor.ledger import Ledger
from streamproof_runtime.variants import checkpoint_variants as checkpoints
from streamproof_runtime.variants import failover_variants as failover
from streamproof_runtime.variants import partition_variants as partitions
from streamproof_runtime.variants.baton_variants import VARIANTS
from streamproof_runtime.variants.flow_variants import FLOWS
from streamproof_runtime.variants.flush_variants import FLUSHES
from streamproof_runtime.variants.loop_variants import LOOPS, loop_rules
from streamproof_runtime.variants.partition_variants import ASKS_NOTHING, LEDGERS
from streamproof_runtime.variants.slot_variants import SLOTS

SUBTASKS = VARIANTS | FLUSHES | checkpoints.SUBTASKS
MASTERS = failover.MASTERS | checkpoints.MASTERS | partitions.MASTERS
FAMILIES: dict[str, Mapping[str, Any]] = {
    "baton": VARIANTS,
    "flush rules": FLUSHES,
    "credit": FLOWS,
    "loops": LOOPS,
    "regions and failover": failover.MASTERS,
    "partitions": {**LEDGERS, **partitions.MASTERS, ASKS_NOTHING: False},
    "checkpoints": checkpoints.SUBTASKS | checkpoints.MASTERS,
    "slots": SLOTS,
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
    return FLOWS.get(variant or "", FlowRules())


def ledger_type(variant: str | None) -> type[Ledger]:
    """What TaskExecutors do with partitions in such a run."""
    return LEDGERS.get(variant or "", Ledger)


def asks(variant: str | None) -> bool:
    """Whether the ResourceManager keeps TaskExecutors that store partitions."""
    return variant != ASKS_NOTHING


def slot_rules(variant: str | None) -> SlotRules:
    """The rules of the slot protocol in such a run."""
    return SLOTS.get(variant or "", SlotRules())


def simulated(variant: str | None, input_policy: str = ANY) -> dict[str, Any]:
    """The arguments of `Simulation` for such a run."""
    return {
        "subtask_type": subtask_type(variant),
        "master_type": master_type(variant),
        "flow": flow_rules(variant),
        "loops": loop_rules(variant, input_policy),
        "ledger": ledger_type(variant),
        "slot_rules": slot_rules(variant),
        "asks": asks(variant),
        "idle": 0 if asks(variant) else 5 * MILLISECOND,
    }
