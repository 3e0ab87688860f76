"""What a formula says of steps, noted in the states of a small graph: the graph of `system.recurrence` without a search.

The note on a state is a bit for each condition on steps, turned over by every step of the kind. It follows from the steps
that lead there, so the graph with notes is made from the one without, states and steps in the order of a search.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress, pairwise

from streamproof.explicit.liveness.tableau import conditions_of
from streamproof.explicit.small_graph import SmallGraph, Truths, evaluate, is_small, path
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.formula import Formula, recurring
from streamproof.system.model import State, System
from streamproof.system.records import dataclass, replace
from streamproof.system.recurrence import bits, turned
from streamproof.system.substitute import Substitution

TIMES = 4
"""So many times as large as a small graph may be one with notes; what would be done instead is a search for each."""


@dataclass(frozen=True, slots=True)
class Noted:
    """A graph in whose terms `formula` speaks of states only; `original` has for each of its states the one without note."""

    graph: SmallGraph
    formula: Formula
    original: Sequence[int]


class Notes:
    """The steps of a small graph and what some formulas say of them: each condition is evaluated once for each step."""

    def __init__(self, system: System, states: Sequence[State], graph: SmallGraph, formula: Formula) -> None:
        self._system, self._graph = system, graph
        graph.evaluate(tuple(conditions_of(formula)))  # all at once, though each claim asks for its own
        steps = list(dict.fromkeys(recurring(formula)))
        self._made = dict(zip(steps, _made(system, states, graph, [step.step for step in steps]), strict=True))

    def noted(self, claim: Formula, most: int) -> Noted | None:
        """For a part of the formula; None when there are more than `most` states, or many times as many as in a
        small graph."""
        names = bits(self._system, list(dict.fromkeys(recurring(claim))))
        graph, width = self._graph, len(names)
        goals = [target << width for target in graph.targets]
        for at, condition in enumerate(names):
            goals = [goal | made << at for goal, made in zip(goals, self._made[condition], strict=True)]
        nodes = [state << width for state in range(graph.initial)]
        numbers = {node: number for number, node in enumerate(nodes)}
        parents = [-1] * graph.initial
        offsets, targets, instances = [0], list[int](), list[int]()
        for number, node in enumerate(nodes):
            state, note = node >> width, node & (1 << width) - 1
            steps = slice(graph.offsets[state], graph.offsets[state + 1])
            for goal in goals[steps]:
                to = numbers.setdefault(goal ^ note, len(nodes))
                if to == len(nodes):
                    nodes.append(goal ^ note)
                    parents.append(number)
                targets.append(to)
            instances += graph.instances[steps]
            offsets.append(len(targets))
            if len(nodes) > most or not is_small(len(nodes) // TIMES, len(targets) // TIMES):
                return None
        original = [node >> width for node in nodes]
        held = {name: bytes(node >> at & 1 for node in nodes) for at, name in enumerate(names.values())}

        def rows(conditions: Sequence[Expr]) -> list[bytes]:
            others = [term for term in conditions if _bit(term) not in held]
            known = dict(zip(others, graph.evaluate(others), strict=True))
            spread = {term: bytes([row[state] for state in original]) for term, row in known.items()}
            return [spread[term] if term in spread else held[_bit(term)] for term in conditions]

        def way(number: int) -> list[int]:
            return path(lambda node: parents[node], number)

        made = SmallGraph(graph.initial, offsets, targets, instances, way, Truths(rows))
        return Noted(made, turned(claim, names), original)


def _bit(term: Expr) -> str:
    """The name of a bit, which is never a part of a larger condition on one state; empty for other terms."""
    return term.name if isinstance(term, e.Var) else ""


def _made(system: System, states: Sequence[State], graph: SmallGraph, conditions: Sequence[Expr]) -> list[bytes]:
    """For each condition on steps, and each step, whether the step changes the state and makes the condition true."""
    both, later = _twofold(system)
    offsets, targets = graph.offsets, graph.targets
    sources = [state for state, (first, last) in enumerate(pairwise(offsets)) for _ in range(first, last)]
    moving = [step for step, (source, target) in enumerate(zip(sources, targets, strict=True)) if source != target]
    pairs = (states[sources[step]] + states[targets[step]] for step in moving)
    return [
        _mask(graph.steps, compress(moving, row))
        for row in evaluate(both, [later(condition) for condition in conditions], pairs)
    ]


def _mask(steps: int, marked: Iterable[int]) -> bytes:
    mask = bytearray(steps)
    for step in marked:
        mask[step] = 1
    return bytes(mask)


def _twofold(system: System) -> tuple[System, Substitution]:
    """The system with a second copy of its variables, for the values after a step, and what reads these there."""
    mark = "'"
    while any(v.name + mark in system.index for v in system.variables):
        mark += "'"
    then = [replace(v, name=v.name + mark) for v in system.variables]
    later = {b.next_(v.name, v.sort): b.var(t.name, t.sort) for v, t in zip(system.variables, then, strict=True)}
    return replace(system, variables=(*system.variables, *then)), Substitution(later)
