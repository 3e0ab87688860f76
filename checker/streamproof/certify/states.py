"""The closed set of states in a certificate: a table of values for each variable, and for each state their numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from streamproof.explicit.level_search import LevelSearch
from streamproof.system.model import State

CHUNK = 1 << 15
"""Number of states that are converted to columns at once."""


class _Numbering(dict[Any, int]):
    """Numbers for keys, in the order of their first request."""

    def __missing__(self, key: Any) -> int:
        self[key] = len(self)
        return self[key]


def closed_set(found: LevelSearch) -> list[tuple[list[Any], list[int]]]:
    """For each variable its values, each as its leaves, and the numbers of its values in every state.

    States are in the order of discovery, level by level.
    """
    scalarised = found.scalarised
    variables = scalarised.original.variables
    ends, last = [], 0
    for variable in variables:
        last += len(scalarised.leaves[variable.name])
        ends.append(last)
    numberings = [_Numbering() for _ in variables]
    columns = [array("I") for _ in variables]
    for chunk in _chunks(found.states()):
        leaves = list(zip(*chunk, strict=True))
        begin = 0
        for end, numbering, column in zip(ends, numberings, columns, strict=True):
            keys: Iterable[Any] = zip(*leaves[begin:end], strict=True) if end > begin else [()] * len(chunk)
            column.extend(map(numbering.__getitem__, keys))
            begin = end
    return [(list(numbering), column.tolist()) for numbering, column in zip(numberings, columns, strict=True)]


def _chunks(states: Iterator[State]) -> Iterator[list[State]]:
    while chunk := list(islice(states, CHUNK)):
        yield chunk
