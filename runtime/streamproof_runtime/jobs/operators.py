"""What a job graph consists of: operators, and the edges between them with their exchanges and chained functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from streamproof_runtime.jobs.functions import Key, Process, Transform
from streamproof_runtime.jobs.scopes import Scope

PIPELINED, BLOCKING, CACHING, MEMORY_ONLY = EXCHANGE_TYPES = ("pipelined", "blocking", "caching", "memory-only caching")
"""Whether the reader of a stream runs while it is made, or starts when the whole stream is stored."""


ENDLESS = 1 << 62
"""The length of an unbounded sequence."""


@dataclass(frozen=True, slots=True)
class Unbounded(Sequence[Any]):
    """The records of an unbounded source: `function` makes each from its number."""

    function: Callable[[int], Any]
    numbers: range = range(ENDLESS)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, at: Any) -> Any:
        found = self.numbers[at]
        return Unbounded(self.function, found) if isinstance(found, range) else self.function(found)

    def __iter__(self) -> Iterator[Any]:
        return map(self.function, self.numbers)


class Exchange(Enum):
    """How the records of an edge are distributed to the subtasks of its target."""

    FORWARD = "forward"
    """To the subtask of the same number."""
    HASH = "hash"
    """By the key of the record."""
    RESCALE = "rescale"
    """In turn to a share of the subtasks, or, from a share of the subtasks, to one."""
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
    is_named_by_loop: bool = False
    """Whether it is a head whose name gives way to that of another operator."""
    slot_sharing_group: str = ""
    """Empty: that of its inputs."""
    co_location: str = ""
    """The operators of a co-location group share slots, subtask by subtask; empty: none."""
    promotes: str = ""
    """The cluster partition that it becomes when the job is over; empty: none."""
    takes: str = ""
    """The cluster partition of an earlier job that it reads; empty: none."""
    part_of: str = ""
    """The operator of which it is one of several pipelines; empty: it is whole."""
    first: int = 0
    """The number of its first subtask in that operator."""
    of: int = 0
    """The parallelism of that operator; 0: it is whole."""

    @property
    def is_unbounded(self) -> bool:
        """Whether it is a source that ends only when it is stopped."""
        return isinstance(self.items, Unbounded)


def cluster_dataset(name: str) -> str:
    """The dataset of a cluster partition of this name."""
    return f"{name}>cluster"


def subtask_names(operator: Operator) -> tuple[str, ...]:
    """The subtasks of an operator: its name, with a number if there are several."""
    n = operator.parallelism
    return (operator.name,) if n == 1 else tuple(f"{operator.name}{i}" for i in range(n))
