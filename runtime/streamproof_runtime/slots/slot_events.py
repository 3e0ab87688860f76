"""The events of the slot protocol: each process numbers its own, and a message names the event that sent it.

An event that receives a message has the arguments `from` and `sent`: the process and the number of the event that sent it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Stamp: TypeAlias = list[Any]
"""The process and the number of the event that sends a message; a list, which every library carries."""
State: TypeAlias = Mapping[str, Any]
"""What a process knows of its slots."""
Record: TypeAlias = Callable[[str, str, Mapping[str, Any], State], None]
"""Records an event: process, event, arguments, state after it."""

POOL, RM = "pool", "rm"
"""The processes in the log: the slot pool of the JobMaster, the ResourceManager. A TaskExecutor has its own name."""


def slot_trace(job: str) -> str:
    """The trace of the slot protocol of a job."""
    return f"{job}/slots"


def process_name(name: str, incarnation: int) -> str:
    """The name in the log of a process that `incarnation` others were before."""
    return f"{name}@{incarnation}" if incarnation else name


class SlotEvents:
    """The events of one process."""

    def __init__(self, name: str, incarnation: int, record: Record) -> None:
        """`incarnation`: how many processes of this name were before."""
        self.process = process_name(name, incarnation)
        self._record, self._next = record, 0

    def __call__(self, event: str, args: Mapping[str, Any], state: State, received: Stamp | None = None) -> Stamp:
        """Records an event, perhaps the receipt of a message. The result is the stamp of what it sends."""
        if received:
            args = {**args, "from": received[0], "sent": received[1]}
        self._record(self.process, event, args, state)
        self._next += 1
        return [self.process, self._next - 1]
