"""Flink's identifiers in logs and the REST API, and their components.

An attempt is `<graph>_<vertex>_<subtask>_<number>`: the execution graph, the job vertex, the subtask from 0, and the
number of earlier attempts. A partition is `<dataset>#<number>@<producer>`, where the producer is an attempt, so its
number is the partition's generation. Both forms hold from Flink 1.16 on; older attempts are plain hexadecimal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

HEX: Final = r"[0-9a-f]{32}"
"""A job, graph, vertex, dataset, allocation or request identifier."""

ATTEMPT_TEXT: Final = rf"{HEX}_{HEX}_\d+_\d+"
PARTITION_TEXT: Final = rf"{HEX}#\d+@{ATTEMPT_TEXT}"

_ATTEMPT: Final = re.compile(rf"({HEX})_({HEX})_(\d+)_(\d+)", re.ASCII)
_PARTITION: Final = re.compile(rf"({HEX})#(\d+)@({ATTEMPT_TEXT})", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Attempt:
    """An execution attempt of a subtask. `subtask` and `number` count from 0."""

    graph: str
    vertex: str
    subtask: int
    number: int

    @classmethod
    def parse(cls, text: str) -> Attempt:
        """The attempt in `text`; raises `ValueError` if it is not an attempt."""
        found = _ATTEMPT.fullmatch(text)
        if not found:
            raise ValueError(f"{text!r} is not an attempt: expected graph_vertex_subtask_number")
        return cls(found[1], found[2], int(found[3]), int(found[4]))

    def __str__(self) -> str:
        return f"{self.graph}_{self.vertex}_{self.subtask}_{self.number}"


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """A result partition: the output of one attempt into one dataset. `number` is the producing subtask, from 0."""

    dataset: str
    number: int
    producer: Attempt

    @classmethod
    def parse(cls, text: str) -> Partition:
        """The partition in `text`; raises `ValueError` if it is not a partition."""
        found = _PARTITION.fullmatch(text)
        if not found:
            raise ValueError(f"{text!r} is not a partition: expected dataset#number@attempt")
        return cls(found[1], int(found[2]), Attempt.parse(found[3]))

    def __str__(self) -> str:
        return f"{self.dataset}#{self.number}@{self.producer}"
