"""The second pass of the Python tier: every known state is expanded once more, and its steps are written down as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from streamproof.explicit.graph import StateGraph
from streamproof.explicit.loader import load
from streamproof.explicit.watch import LARGEST_BATCH, unpacking
from streamproof.explicit.writer import Writer, local_names, shared
from streamproof.system.expr import Expr
from streamproof.system.model import State, System

if TYPE_CHECKING:
    from streamproof.explicit.search import Search

Judge: TypeAlias = Callable[[Sequence[State]], bytearray]
"""Called with states; gives a byte, 0 or 1, per state and condition, state by state."""


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
        state=search.state,
        path=lambda number: _path(search, number),
        evaluate=lambda conditions: evaluate(search.system, conditions, search.states(), search.known),
    )


def evaluate(system: System, conditions: Sequence[Expr], states: Iterable[State], count: int) -> npt.NDArray[np.bool_]:
    """Boolean terms of one state in each of `count` states: shape (terms, states)."""
    result = np.zeros((len(conditions), count), dtype=np.bool_)
    judge = _judge(system, conditions)
    at = 0
    for batch in _batches(states):
        found = np.frombuffer(judge(batch), dtype=np.bool_)
        result[:, at : at + len(batch)] = found.reshape(len(batch), len(conditions)).T
        at += len(batch)
    return result


def _batches(states: Iterable[State]) -> Iterable[list[State]]:
    remaining = iter(states)
    while batch := list(islice(remaining, LARGEST_BATCH)):
        yield batch


def _path(search: Search, number: int) -> list[int]:
    way = [number]
    while (before := search.parent(way[-1])) >= 0:
        way.append(before)
    return way[::-1]


def _judge(system: System, conditions: Sequence[Expr]) -> Judge:
    writer = Writer(local_names(system))
    common = shared(conditions)
    with writer.block("def judge(_states):"):
        writer.line("_found = bytearray(); _add = _found.append")
        with writer.block(f"for {unpacking(system)} in _states:"):
            writer.line("pass")
            for condition in conditions:
                writer.line(f"_add(1 if {writer.term(condition, common)} else 0)")
        writer.line("return _found")
    return cast(Judge, load("judge", system.name, writer.source))
