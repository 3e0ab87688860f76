"""What a job graph consists of: operators, and the edges between them with their exchanges and chained functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from streamproof_runtime.jobs.functions import Key, Process, Transform
from streamproof_runtime.jobs.scopes import Scope

PIPELINED, BLOCKING, CACHING, MEMORY_ONLY = EXCHANGE_TYPES = ("pipelined", "blocking", "caching", "memory-only caching")
"""Whether the reader of a stream runs while it is made, or starts when the whole stream is stored."""


class Exchange(Enum):
    """How the records of an edge are distributed to the subtasks of its target."""

    FORWARD = "forward"
    """To the subtask of the same number."""
    HASH = "hash"
    """By the key of the record."""
    REBALANCE = "rebalance"
    """To each subtask in turn."""
    BROADCAST = "broadcast"
    """To every subtask."""


@dataclass(frozen=True, slots=True)
class Pipe:
    """A chain of stateless functions on the way from one operator to an input of another."""

    transforms: tuple[Transform, ...]
    side: int = 0


@dataclass(slots=True)
class Edge:
    """A stream between two operators: several pipes, if the target reads several streams of the source."""

    source: str
    target: str
    scope: Scope
    exchange: Exchange
    key: Key | None
    pipes: list[Pipe]
    feedback: bool = False
    exchange_type: str = PIPELINED

    @property
    def is_stored(self) -> bool:
        """Whether the source finishes before the target starts; its output is stored."""
        return self.exchange_type != PIPELINED


@dataclass(slots=True)
class Operator:
    """An operator: a source has `items`, every other one a process for each input."""

    name: str
    scope: Scope
    parallelism: int
    inputs: tuple[tuple[Process, Key | None], ...] = ()
    items: Sequence[Any] | None = None
    is_sink: bool = False
    reads: str = ""
    """A source of stored partitions: their dataset."""
    writes: str = ""
    """A sink that stores partitions: their dataset."""
    input_policy: str = ""
    """A head: which input it reads first, one of `input_policies.POLICIES`; empty: that of the run."""
    slot_sharing_group: str = ""
    """Empty: that of its inputs."""
    co_location: str = ""
    """The operators of a co-location group share slots, subtask by subtask; empty: none."""


def subtask_names(operator: Operator) -> tuple[str, ...]:
    """The subtasks of an operator: its name, with a number if there are several."""
    n = operator.parallelism
    return (operator.name,) if n == 1 else tuple(f"{operator.name}{i}" for i in range(n))
