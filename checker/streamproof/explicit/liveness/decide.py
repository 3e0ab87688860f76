"""Temporal properties on a stored graph: true of every fair behaviour, or a lasso on which they are false."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from streamproof.explicit.liveness.automaton import Automaton
from streamproof.explicit.liveness.outcome import Decided, Lasso
from streamproof.explicit.liveness.refuting import refuter
from streamproof.explicit.liveness.tableau import conditions_of, state_term
from streamproof.explicit.small_graph import SmallGraph
from streamproof.system.expr import Expr
from streamproof.system.formula import Always, Formula, LeadsTo
from streamproof.system.formula import claims as parts_of
from streamproof.system.model import System

if TYPE_CHECKING:
    from streamproof.explicit.graph import StateGraph


MOST_EDGES = 500_000
"""Edges of the product of a small graph and an automaton; with more of them arrays are faster, though they must be loaded."""


class FairSearch(Protocol):
    """What both procedures, in plain Python and on arrays, are asked."""

    def expect(self, conditions: Iterable[Expr]) -> None:
        """Told of the conditions that the next automata have, so that they can be evaluated together."""

    def accepted(self, machine: Automaton) -> Lasso | None:
        """A fair lasso that the automaton accepts, or None."""

    def is_ever(self, condition: Expr) -> bool:
        """Whether a condition on one state is true in some state."""


class Liveness:
    """Decides formulas on the graph of one system, whose terms are the ones that the graph can evaluate.

    Raises `TooLarge` when there are more steps, or more is owed, than can be numbered.
    """

    def __init__(self, system: System, graph: StateGraph | SmallGraph) -> None:
        self._system, self._graph = system, graph
        self._search = _search(system, graph)

    @property
    def states(self) -> int:
        """How many states the graph has."""
        return self._graph.states

    @property
    def steps(self) -> int:
        """How many steps the graph has, those that change nothing included."""
        return self._graph.steps

    def decide(self, formula: Formula) -> Decided:
        """Whether `formula` is true of every fair behaviour. Raises `TooLarge` when it has too many atoms.

        The parts of a conjunction are decided one by one, so that each of them has a small automaton.
        """
        claims = tuple(parts_of(formula))
        self._search.expect(condition for claim in claims for condition in conditions_of(claim))
        for claim in claims:
            lasso = self._accepted(refuter(claim))
            if lasso is not None:
                return Decided(lasso)
        return Decided(None, bool(claims) and all(self._untested(claim) for claim in claims))

    def _accepted(self, machine: Automaton) -> Lasso | None:
        """A fair lasso that the automaton accepts, or None; small graphs multiplied by a large one are done as arrays."""
        if (
            isinstance(self._graph, SmallGraph)
            and _pairs(machine) * (self._graph.states + self._graph.steps) > MOST_EDGES
        ):
            from streamproof.explicit.graph import StateGraph

            return _search(self._system, StateGraph.of(self._graph)).accepted(machine)
        return self._search.accepted(machine)

    def _untested(self, claim: Formula) -> bool:
        """Whether the claim says what follows on something that never happens."""
        inner = claim.arg if isinstance(claim, Always) else claim
        condition = state_term(inner.left) if isinstance(inner, LeadsTo) else None
        return condition is not None and not self._search.is_ever(condition)


def _pairs(machine: Automaton) -> int:
    """How many places may follow one another in the parts in which a run can stay."""
    return sum(
        len(set(machine.places[place].after).intersection(part.places))
        for part in machine.parts
        if part.cyclic
        for place in part.places
    )


def _search(system: System, graph: StateGraph | SmallGraph) -> FairSearch:
    if isinstance(graph, SmallGraph):
        from streamproof.explicit.liveness.small.search import SmallSearch

        return SmallSearch(system, graph)
    from streamproof.explicit.liveness.arrays import ArraySearch

    return ArraySearch(system, graph)
