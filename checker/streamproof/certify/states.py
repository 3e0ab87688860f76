"""The closed set of states in a certificate: a table of values for each variable, and for each state their numbers."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable
from itertools import accumulate, count, pairwise
from typing import Any

from streamproof.explicit.level_search import LevelSearch
from streamproof.explicit.writer import batches


def closed_set(found: LevelSearch) -> list[tuple[list[Any], list[int]]]:
    """For each variable its values, each as its leaves, and the numbers of its values in every state.

    States are in the order of discovery, level by level.
    """
    scalarised = found.scalarised
    variables = scalarised.original.variables
    spans = list(pairwise(accumulate((len(scalarised.leaves[v.name]) for v in variables), initial=0)))
    numberings = [defaultdict[Any, int](count().__next__) for _ in variables]
    columns = [array("I") for _ in variables]
    for batch in batches(found.states()):
        leaves = list(zip(*batch, strict=True))
        for (begin, end), numbering, column in zip(spans, numberings, columns, strict=True):
            keys: Iterable[Any] = zip(*leaves[begin:end], strict=True) if end > begin else [()] * len(batch)
            column.extend(map(numbering.__getitem__, keys))
    return [(list(numbering), column.tolist()) for numbering, column in zip(numberings, columns, strict=True)]
