"""The API of jobs: a job makes its first streams, the operations of streams (`streams`) make everything else.

Scopes are inferred. The graph that is made (`job_graph`) consists of operators and edges (`operators`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from streamproof_runtime.errors import JobError
from streamproof_runtime.jobs.functions import forward
from streamproof_runtime.jobs.job_graph import JobGraph
from streamproof_runtime.jobs.operators import BLOCKING, CACHING, MEMORY_ONLY, PIPELINED, Exchange, Operator, Unbounded
from streamproof_runtime.jobs.scopes import Scope
from streamproof_runtime.jobs.streams import Connected, Stream

__all__ = [
    "BLOCKING",
    "CACHING",
    "MEMORY_ONLY",
    "PIPELINED",
    "Connected",
    "Exchange",
    "Job",
    "Operator",
    "Stream",
]


@dataclass
class Job(JobGraph):
    """A job under construction."""

    def source(self, name: str, items: Sequence[Any], parallelism: int = 1) -> Stream:
        """A stream of the items; subtask i of n emits every n-th item from the i-th on.

        Raises `JobError` for items that are not a sequence: an attempt that is repeated reads them again.
        """
        if not isinstance(items, Sequence):
            raise JobError(f"the items of source {name} are a {type(items).__name__}; give a sequence, such as a list")
        return self._source(Operator(name, Scope(), parallelism, items=items))

    def unbounded_source(self, name: str, function: Callable[[int], Any], parallelism: int = 1) -> Stream:
        """A stream without end, until it is stopped: `function` makes each record from its number, from 0 on; subtask i of n
        makes every n-th from the i-th on. An attempt that is repeated makes the same ones again.

        Raises `JobError` for a function that cannot be called.
        """
        if not callable(function):
            raise JobError(f"the function of source {name} is a {type(function).__name__}; give one of a number")
        return self._source(Operator(name, Scope(), parallelism, items=Unbounded(function)))

    def cluster_source(self, name: str, parallelism: int = 1) -> Stream:
        """The stream that an earlier job of the session has stored by `Stream.promote`, with as many subtasks."""
        return self._source(Operator(name, Scope(), parallelism, ((forward, None),), takes=name))

    @property
    def unbounded(self) -> list[str]:
        """The sources without end."""
        return [operator.name for operator in self.operators.values() if operator.is_unbounded]

    def _source(self, operator: Operator) -> Stream:
        self.add(operator)
        return Stream(self, Scope(), ((operator, ()),))
