"""Decision of temporal properties on a state graph: they hold on all fair behaviours, or there is a lasso that violates them.

The product of the state graph and the Büchi automaton of the negated formula is searched; the property is violated if and
only if the product has a reachable fair cycle.
"""

from __future__ import annotations

from streamproof.explicit.liveness.buchi import BuchiAutomaton
from streamproof.explicit.liveness.fair_components import fair_components
from streamproof.explicit.liveness.fair_graph import FairGraph, Labels
from streamproof.explicit.liveness.lasso import find_lasso
from streamproof.explicit.liveness.negation import negation_automaton
from streamproof.explicit.liveness.outcome import Lasso, TemporalAnswer, numbered_constraints
from streamproof.explicit.liveness.reachable import ReachableProduct
from streamproof.explicit.liveness.tableau import state_term
from streamproof.explicit.state_graph import StateGraph
from streamproof.system.formula import Always, Eventually, Formula, LeadsTo, OrF, claims
from streamproof.system.model import System


class TemporalChecker:
    """Decides formulas, over terms of one system, on the state graph of that system.

    Raises `TooLarge` for more steps or more fairness constraints than can be numbered.
    """

    def __init__(self, system: System, graph: StateGraph) -> None:
        self.graph = graph
        self._fair = FairGraph.of(graph, numbered_constraints(system), len(system.instances))

    def decide(self, formula: Formula) -> TemporalAnswer:
        """Whether `formula` is true of every fair behaviour. Raises `TooLarge` for too many atoms.

        The conjuncts of a conjunction are decided one by one, with a small automaton each.
        """
        parts = tuple(claims(formula))
        for part in parts:
            lasso = self.accepted(negation_automaton(part))
            if lasso is not None:
                return TemporalAnswer(lasso)
        return TemporalAnswer(None, bool(parts) and all(map(self._vacuous, parts)))

    def accepted(self, automaton: BuchiAutomaton) -> Lasso | None:
        """A fair lasso that the automaton accepts, or None."""
        labels = Labels.of(self.graph, automaton)
        reachable = ReachableProduct(self._fair, automaton, labels)
        for scc in automaton.sccs:
            product = reachable.enter(scc)
            if product is None or not scc.accepting:
                continue
            found = fair_components(self._fair, automaton, scc, labels, product)
            if found:
                return find_lasso(self._fair, automaton, scc, labels, reachable, found)
        return None

    def _vacuous(self, claim: Formula) -> bool:
        """Whether the claim is an implication whose antecedent is never true."""
        if isinstance(claim, OrF) and isinstance(claim.args[0], Eventually):
            claim = claim.args[-1]  # under a constraint; see `system.constraint`
        inner = claim.arg if isinstance(claim, Always) else claim
        condition = state_term(inner.left) if isinstance(inner, LeadsTo) else None
        return condition is not None and not self.graph.evaluate([condition]).any()
