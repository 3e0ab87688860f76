"""Temporal properties on a stored graph: true of every fair behaviour, or a lasso on which they are false."""

from __future__ import annotations

from streamproof.explicit.graph import StateGraph
from streamproof.explicit.liveness.arena import Arena, Labels
from streamproof.explicit.liveness.automaton import automaton
from streamproof.explicit.liveness.fair import fair_components
from streamproof.explicit.liveness.lasso import Lasso, find_lasso
from streamproof.explicit.liveness.reach import Reach
from streamproof.explicit.liveness.tableau import state_term, tableau
from streamproof.system.formula import Always, Formula, LeadsTo, NotF
from streamproof.system.formula import claims as parts_of
from streamproof.system.model import System
from streamproof.system.records import dataclass
from streamproof.system.temporal import obligations


@dataclass(frozen=True, slots=True)
class Decided:
    """The answer on one formula: a fair lasso on which it is false, or None, and whether nothing was put to the test."""

    lasso: Lasso | None
    vacuous: bool = False


class Liveness:
    """Decides formulas on the graph of one system, whose terms are the ones that the graph can evaluate."""

    def __init__(self, system: System, graph: StateGraph) -> None:
        self._arena = Arena.of(graph, obligations(system), len(system.instances))

    @property
    def states(self) -> int:
        """How many states the graph has."""
        return self._arena.states

    @property
    def steps(self) -> int:
        """How many steps the graph has, those that change nothing included."""
        return self._arena.graph.steps

    def decide(self, formula: Formula) -> Decided:
        """Whether `formula` is true of every fair behaviour. Raises `TooLarge` when it has too many atoms.

        The parts of a conjunction are decided one by one, so that each of them has a small automaton.
        """
        claims = tuple(parts_of(formula))
        for claim in claims:
            lasso = self._refute(claim)
            if lasso is not None:
                return Decided(lasso)
        return Decided(None, bool(claims) and all(self._untested(claim) for claim in claims))

    def _refute(self, claim: Formula) -> Lasso | None:
        machine = automaton(tableau(NotF(claim)))
        labels = Labels.of(self._arena.graph, machine)
        reach = Reach(self._arena, machine, labels)
        for part in machine.parts:
            region = reach.enter(part)
            if region is None or part.marks is None:
                continue
            fair = fair_components(self._arena, machine, part, labels, region)
            if fair:
                return find_lasso(self._arena, machine, part, labels, reach, fair)
        return None

    def _untested(self, claim: Formula) -> bool:
        """Whether the claim says what follows on something that never happens."""
        inner = claim.arg if isinstance(claim, Always) else claim
        condition = state_term(inner.left) if isinstance(inner, LeadsTo) else None
        return condition is not None and not bool(self._arena.graph.evaluate([condition]).any())
