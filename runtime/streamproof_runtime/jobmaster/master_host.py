"""What the state machine of a JobMaster needs of the process that runs it, and the settings of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from streamproof_runtime import messages as m
from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.jobmaster.checkpoint_store import CheckpointStore
from streamproof_runtime.jobmaster.failure_budgets import FailureBudget
from streamproof_runtime.slots.resources import Resources
from streamproof_runtime.slots.slot_events import SlotEvents
from streamproof_runtime.slots.slot_rules import SlotRules

OFFLOAD = 1 << 20
"""Bytes from which the descriptor of a deployment is a blob: the default of Flink's `blob.offload.minsize`."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Heartbeats, the restart strategy, a fixed delay before each restart, and when regions are scheduled. Times are in
    nanoseconds."""

    heartbeat_interval: int = 5 * MILLISECOND
    heartbeat_timeout: int = 20 * MILLISECOND
    restart_delay: int = 2 * MILLISECOND
    restarts: int | None = None
    """Largest number of restarts; None: no limit."""
    budget: FailureBudget = field(default_factory=FailureBudget)
    """Failures that the job survives."""
    slots: int = 0
    """Slots that a deployment waits for, if it wants as many, so that subtasks are spread over all of them."""
    patience: int = 0
    """How long it waits for them; after that, enough slots are enough."""
    slot_rules: SlotRules = field(default_factory=SlotRules)
    eager: bool = False
    """Whether a region is scheduled as soon as its producers are; its readers wait for the partitions."""
    checkpoint_interval: int = 0
    """Time between two checkpoints; 0: there are none."""
    unaligned: bool = False
    """Whether the barriers of checkpoints overtake buffers."""
    checkpoint_timeout: int = 10 * MILLISECOND
    """Time after which a checkpoint is aborted."""
    resources: Mapping[str, Resources] = field(default_factory=dict)
    """What the slots of TaskExecutors have."""
    job: str = ""
    """The name of the job, if it is one of a session."""
    cluster: Mapping[str, int] = field(default_factory=dict)
    """The attempt of each cluster partition that earlier jobs have made."""
    slot_beats: int = 0
    """Heartbeats after which an attempt of a region fails for want of slots, while nothing runs; 0: it waits."""
    offload: int = OFFLOAD
    """Bytes from which the descriptor of a deployment is a blob, which TaskExecutors fetch."""


class Host(Protocol):
    """What a machine may do to the world."""

    slot_events: SlotEvents
    checkpoint_store: CheckpointStore

    def send(self, target: str, message: m.Message) -> None:
        """Sends a message."""

    def close(self, target: str) -> None:
        """Closes a connection; both ends learn of it."""

    def give_up(self, target: str) -> None:
        """Closes a connection; if the other process does not end by itself, it is ended."""

    def call_later(self, delay: int, timer: str, number: int) -> None:
        """Calls `on_timer` after a delay in nanoseconds."""

    def event(self, event: str, args: Mapping[str, Any], trace: str = "") -> None:
        """Records an event: of the job, or of the attempt of a region whose trace has this ending."""
