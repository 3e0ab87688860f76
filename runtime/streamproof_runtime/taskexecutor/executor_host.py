"""What a TaskExecutor needs of the process that runs it, its settings, and what its regions share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from streamproof_runtime import messages as m
from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.slots.slot_events import SlotEvents
from streamproof_runtime.slots.slot_rules import SlotRules
from streamproof_runtime.slots.slot_table import SlotTable
from streamproof_runtime.subtasks.buffers import BYTES
from streamproof_runtime.subtasks.flow import BUFFERS, FLOATING, FlowRules
from streamproof_runtime.subtasks.loop_heads import LoopRules
from streamproof_runtime.subtasks.subtask import Subtask, TaskPlan
from streamproof_runtime.taskexecutor.blob_cache import CACHED, BlobCache
from streamproof_runtime.taskexecutor.ledger import Ledger


class ExecutorHost(Protocol):
    """What a TaskExecutor may do to the world."""

    slot_events: SlotEvents

    def call_later(self, delay: int, timer: str, number: int) -> None:
        """Calls `SlotTable.on_timer` after a delay in nanoseconds."""

    def send(self, target: str, message: m.Message) -> None:
        """Sends a message."""

    def is_congested(self, target: str) -> bool:
        """Whether the connection to a TaskExecutor takes no more."""

    def woken(self, subtask: Subtask) -> None:
        """A subtask may have something to do."""

    def stopped(self, subtasks: Iterable[Subtask]) -> None:
        """These subtasks are gone."""

    def create(self, plan: TaskPlan, trace: str) -> Subtask:
        """A new subtask, with its trace."""

    def flush_later(self, subtask: Subtask, delay: float) -> None:
        """Calls `flush` after a delay in milliseconds."""

    def returned(self) -> None:
        """A user function has returned or raised an error."""

    def is_of_job(self, error: BaseException) -> bool:
        """Whether a user function has raised an error, and not an interrupt of the program."""

    def event(self, event: str, args: Mapping[str, Any]) -> None:
        """Records an event of the TaskExecutor itself."""

    def dismissed(self) -> None:
        """The TaskExecutor is released: the process ends."""


@dataclass(frozen=True, slots=True)
class ExecutorSettings:
    """Buffers, times and rules of a TaskExecutor."""

    buffers: int = BUFFERS
    """Exclusive buffers of a channel."""
    floating: int = FLOATING
    """Floating buffers of a gate."""
    flow: FlowRules = field(default_factory=FlowRules)
    loops: LoopRules = field(default_factory=LoopRules)
    ledger: type[Ledger] = Ledger
    slot_timeout: int = 5 * MILLISECOND
    """Nanoseconds that a slot waits for a JobMaster."""
    slot_rules: SlotRules = field(default_factory=SlotRules)
    unaligned: bool = False
    """Whether the barriers of checkpoints overtake buffers."""
    buffer_size: int = BYTES
    """Bytes of a buffer."""
    sender_buffers: int | None = None
    """Buffers of a subtask for what it sends; None: as many as it needs."""
    blobs: type[BlobCache] = BlobCache
    cached_blobs: int = CACHED
    """Blobs that it keeps."""


@dataclass(frozen=True, slots=True)
class SharedParts:
    """What the regions on a TaskExecutor share."""

    name: str
    host: ExecutorHost
    settings: ExecutorSettings
    ledger: Ledger
    table: SlotTable
    blobs: BlobCache
    connection: Callable[[], int]
    """The number of the connection to the JobMaster."""
    longest: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    """Largest number of items in an input queue, without and with feedback."""
