"""Formulas with conditions on steps, such as the fairness of an abstract system: one monitor bit per condition.

Every step that changes the state and satisfies the condition flips the bit, so "infinitely many such steps" is a formula
about states. Each bit at most doubles the number of states. The monitored graph is built from the state graph; its states and
steps have the order of a search of the system with bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from streamproof.base.errors import TooLarge
from streamproof.base.options import either
from streamproof.explicit.level_search import Budget, path_to
from streamproof.explicit.liveness.fair_graph import Numbers, gather, refuse_more_steps
from streamproof.explicit.state_graph import Digraph, StateGraph, Truths
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.formula import AndF, Formula, Happens, NotF, Recurs, recurring
from streamproof.system.model import System
from streamproof.transform.constraint import bits, turned


class StepMonitors:
    """The conditions on steps of a formula, each evaluated once in every step of the state graph."""

    def __init__(self, system: System, graph: StateGraph, formula: Formula) -> None:
        self._system, self._graph = system, graph
        conditions = list(dict.fromkeys(recurring(formula)))
        made = graph.evaluate_steps([condition.step for condition in conditions])
        self._made: dict[Recurs, Truths] = dict(zip(conditions, made & (graph.sources != graph.targets), strict=True))

    def never_begins(self, claim: Formula) -> bool:
        """Whether a claim is about what follows steps that no behaviour makes."""
        step = begins(claim)
        return step is not None and not self._made[step].any()

    def monitored(self, claim: Formula, budget: Budget) -> tuple[StateGraph, Formula, Numbers]:
        """The state graph with monitor bits for a part of the formula, that part as a formula over its states, and for each
        state the one without bits.

        Raises `TooLarge` if it has more states or levels than the budget of the search allows.
        """
        names = bits(self._system, list(dict.fromkeys(recurring(claim))))
        graph, width = self._graph, len(names)
        refuse_more_steps(max(graph.steps, graph.states) << width)
        needed = 24 * (graph.steps + graph.states) << width
        if not budget.allows(needed):
            raise TooLarge(
                f"the graph with monitors of steps needs {needed / 2**30:.1f} GiB",
                remedy=either("raise --memory", "choose smaller parameters"),
            )
        goals = graph.targets << width
        for at, condition in enumerate(names):
            goals |= self._made[condition].astype(np.int32) << at
        # A node is a state and its bits (the lower digits): all nodes and their edges, reachable or not.
        every = np.arange(graph.states << width, dtype=np.int32)
        offsets, steps = _edges(graph.offsets, every >> width)
        targets = gather(goals, steps) ^ np.repeat(every & (1 << width) - 1, np.diff(offsets))
        order, before = Digraph(offsets, targets, graph.tuning.few_edges).reached(
            every[: graph.initial << width : 1 << width]
        )
        number = np.full(len(every), -1, dtype=np.int32)
        number[order] = np.arange(len(order), dtype=np.int32)
        parents = np.where(before[order] < 0, -1, number[before[order]])
        _refuse_beyond(budget, parents, graph.initial)
        original = order >> width
        own, steps = _edges(graph.offsets, original)
        notes = order & (1 << width) - 1
        held = {name: (notes >> at & 1).astype(np.bool_) for at, name in enumerate(names.values())}

        def evaluate(conditions: Sequence[Expr]) -> Truths:
            others = [term for term in conditions if bit_name(term) not in held]
            known = dict(zip(others, graph.evaluate(others) if others else (), strict=True))
            return np.array([known[term][original] if term in known else held[bit_name(term)] for term in conditions])

        made = StateGraph(
            graph.initial,
            own,
            gather(number, gather(goals, steps) ^ np.repeat(notes, np.diff(own))),
            gather(graph.instances, steps),
            lambda node: path_to(lambda at: int(parents[at]), node),
            evaluate,
            graph.evaluate_steps,
            graph.tuning,
        )
        return made, turned(claim, names), original


def _edges(offsets: npt.NDArray[np.int64], states: Numbers) -> tuple[npt.NDArray[np.int64], Numbers]:
    """The edges of nodes that copy these states: the offset of each node's edges, and the original edge of each."""
    degrees = np.diff(offsets)[states]
    own = np.zeros(len(states) + 1, dtype=np.int64)
    np.cumsum(degrees, out=own[1:])
    steps = np.arange(own[-1], dtype=np.int32)
    steps += np.repeat((offsets[states] - own[:-1]).astype(np.int32), degrees)
    return own, steps


def _refuse_beyond(budget: Budget, parents: Numbers, initial: int) -> None:
    """Raises `TooLarge` if the graph exceeds the limits; they count states with their bits."""
    states = len(parents)
    if states > budget.max_states:
        raise TooLarge(
            f"{states:,} states with monitors of steps; max_states is {budget.max_states:,}",
            remedy="raise it, or choose smaller parameters",
        )
    levels, end = 1, initial
    while end < states:
        levels, end = levels + 1, int(np.searchsorted(parents, end))
    deepest = budget.options.max_depth
    if deepest is not None and levels >= deepest:
        raise TooLarge(
            f"{levels} levels of states with monitors of steps; max_depth is {deepest}",
            remedy="raise it or leave it out",
        )


def begins(claim: Formula) -> Recurs | None:
    """The condition on the steps of which a claim says what follows; None for another claim."""
    match claim:
        case NotF(Happens(step, arg)) if arg != AndF(()):
            return Recurs(step)
        case _:
            return None


def bit_name(term: Expr) -> str:
    """The name of a monitor bit; empty for other terms. A bit is never part of a larger condition on one state."""
    return term.name if isinstance(term, e.Var) else ""
