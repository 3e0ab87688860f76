"""The second pass of the Python tier as arrays: every known state is expanded once more, and its steps are written down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from streamproof.explicit.graph import StateGraph
from streamproof.explicit.small_graph import batches, judge_of, path
from streamproof.system.expr import Expr
from streamproof.system.model import State, System

if TYPE_CHECKING:
    from streamproof.explicit.search import Search


def state_graph(search: Search) -> StateGraph:
    """Every step between the states that a complete search has found."""
    targets, instances, counts = search.steps()
    offsets = np.zeros(search.known + 1, dtype=np.int64)
    np.cumsum(np.frombuffer(counts, dtype=np.int32), out=offsets[1:])
    return StateGraph(
        initial=search.initial,
        offsets=offsets,
        targets=np.frombuffer(targets, dtype=np.int32),
        instances=np.frombuffer(instances, dtype=np.int32),
        path=lambda number: path(search.parent, number),
        evaluate=lambda conditions: evaluate(search.system, conditions, search.states(), search.known),
    )


def evaluate(system: System, conditions: Sequence[Expr], states: Iterable[State], count: int) -> npt.NDArray[np.bool_]:
    """Boolean terms of one state in each of `count` states: shape (terms, states)."""
    result = np.zeros((len(conditions), count), dtype=np.bool_)
    judge = judge_of(system, conditions)
    at = 0
    for batch in batches(states):
        found = np.frombuffer(judge(batch), dtype=np.bool_)
        result[:, at : at + len(batch)] = found.reshape(len(batch), len(conditions)).T
        at += len(batch)
    return result
