"""The API of jobs: a job makes its first streams, the operations of streams (`streams`) make everything else.

Scopes are inferred. The graph that is made (`job_graph`) consists of operators and edges (`operators`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamproof_runtime.errors import JobError
from streamproof_runtime.jobs.job_graph import JobGraph
from streamproof_runtime.jobs.operators import BLOCKING, CACHING, MEMORY_ONLY, PIPELINED, Exchange, Operator
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
        self.add(Operator(name, Scope(), parallelism, items=items))
        return Stream(self, Scope(), ((name, ()),))
