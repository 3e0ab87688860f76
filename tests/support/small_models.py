"""Parameters at which each bundled model is small enough for the interpreter, and for engines that take long."""

from __future__ import annotations

from typing import Any

from streamproof.model_registry import find
from streamproof.system import System

SMALL: dict[str, dict[str, Any]] = {
    "baton": {"topology": "self-loop"},
    "baton_channels": {"work": 1},
    "baton_counts": {"topology": "self-loop"},
    "credit": {"channels": 1},
    "credit_barriers": {"channels": 1},
    "credit_channel": {"produced": 1},
    "credit_connection": {"channels": 1, "depth": 2},
    "credit_flush": {"records": 2, "events": 0},
    "credit_locks": {"jobs": "release0 recycle1"},
    "checkpoints": {"ids": 1},
    "reference.coffee_can": {"beans": 20},
    "reference.dining_philosophers": {"philosophers": 3},
    "cyclic": {"buffers": 1, "records": 2},
    "lifecycle_failover": {"topology": "pair", "executors": 1},
    "loop_checkpoints": {"records": 1, "checkpoints": 1},
    "loop_checkpoint_counts": {"records": 2, "failures": 1},
    "main_thread": {"executors": 2, "crashes": 1, "parallelism": 2},
    "partition_counts": {"executors": 1},
    "partition_lifecycle": {"attempts": 1, "failures": 0, "crashes": 0},
    "reference.token_ring": {"n": 3, "values": 3},
    "regions": {"topology": "mixed", "parallelism": 1},
    "region_slots": {"topology": "pair", "instances": 1},
    "slot_owners": {"instances": 1, "slots": 1},
    "slot_pool": {"failures": 0},
    "slots": {"instances": 1, "slots": 2, "tasks": "A Q"},
    "reference.ewd998": {"n": 2, "most": 2},
    "reference.three_way_handshake": {"connections": 1},
}
"""The parameters of a model whose size `small`, if it has one, is larger than that."""


def small_system(name: str, variant: str | None = None) -> System:
    """A bundled model or variant at the parameters above, else at its size `small` (a variant: at its own parameters)."""
    target = find(name)
    size = target.variant(variant).sizes.get("small", {}) if variant is None else {}
    return target.system(variant, SMALL.get(name, size))
