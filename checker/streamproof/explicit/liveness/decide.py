"""Decision of temporal properties on a state graph: they hold on all fair behaviours, or there is a lasso that violates them.

The product of the state graph and the Büchi automaton of the negated formula is searched; the property is violated if and
only if the product has a reachable fair cycle.

Formulas of one model often have the same operators over different conditions. The automaton is built for a formula with
numbered conditions, cached by the shape of the formula, and the actual conditions are substituted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from streamproof.explicit.level_search import LevelSearch, ReductionPlan, Stop, ended
from streamproof.explicit.liveness.buchi import BuchiAutomaton, buchi_automaton
from streamproof.explicit.liveness.fair_components import fair_components, find_lasso
from streamproof.explicit.liveness.fair_graph import (
    FairGraph,
    Labels,
    Lasso,
    ReachableProduct,
    TemporalAnswer,
    numbered_constraints,
    violated,
)
from streamproof.explicit.liveness.tableau import state_term, tableau
from streamproof.explicit.state_graph import StateGraph
from streamproof.interrupts import TimeUp, alarm
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.errors import TooLarge, UsageError
from streamproof.system.expr import Expr
from streamproof.system.flatten import Rewriter
from streamproof.system.formula import (
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    LeadsTo,
    NotF,
    OrF,
    Recurs,
    Release,
    Until,
    claims,
    recurring,
)
from streamproof.system.model import Property, System
from streamproof.system.records import replace
from streamproof.system.sorts import BOOL
from streamproof.system.verdict import Finding, Verdict, number_of

if TYPE_CHECKING:
    from streamproof.explicit.witness import Witnesses


def negation_automaton(claim: Formula) -> BuchiAutomaton:
    """The automaton that accepts the behaviours on which `claim` is false. Raises `TooLarge` for too many atoms."""
    numbers: dict[Expr, Expr] = {}
    automaton = _of_shape(_shape(claim, numbers))
    given = {number: condition for condition, number in numbers.items()}
    return replace(automaton, conditions=tuple(given[number] for number in automaton.conditions))


@lru_cache(maxsize=64)
def _of_shape(shape: Formula) -> BuchiAutomaton:
    return buchi_automaton(tableau(NotF(shape)))


def _shape(formula: Formula, numbers: dict[Expr, Expr]) -> Formula:
    """The formula with its largest conditions on one state replaced by numbered ones, added to `numbers`; constants stay."""
    term = state_term(formula)
    if term is not None:
        return _numbered(term, numbers)

    def part(inner: Formula) -> Formula:
        return _shape(inner, numbers)

    match formula:
        case NotF(arg):
            return NotF(part(arg))
        case AndF(args):
            return AndF(_all(args, numbers))
        case OrF(args):
            return OrF(_all(args, numbers))
        case Always(arg):
            return Always(part(arg))
        case Eventually(arg):
            return Eventually(part(arg))
        case Until(left, right):
            return Until(part(left), part(right))
        case Release(left, right):
            return Release(part(left), part(right))
        case LeadsTo(left, right):
            return LeadsTo(part(left), part(right))
        case Atom() | Recurs():
            raise AssertionError("an atom is a condition on one state, and those on steps are brought to such before")


def _all(formulas: Iterable[Formula], numbers: dict[Expr, Expr]) -> tuple[Formula, ...]:
    return tuple(_shape(formula, numbers) for formula in formulas)


def _numbered(term: Expr, numbers: dict[Expr, Expr]) -> Formula:
    if isinstance(term, e.Const):
        return Atom(term)
    if isinstance(term, e.Not):
        return NotF(_numbered(term.arg, numbers))
    return Atom(numbers.setdefault(term, b.var(str(len(numbers)), BOOL)))


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


class Temporal:
    """Decides the temporal properties of a complete search. `seconds` is the time used by the temporal check."""

    def __init__(self, search: LevelSearch, plan: ReductionPlan, witnesses: Callable[[], Witnesses]) -> None:
        self._search, self._plan, self._witnesses = search, plan, witnesses
        self.seconds = 0.0

    @cached_property
    def _checker(self) -> TemporalChecker:
        return TemporalChecker(self._search.system, self._search.graph())

    def finding(self, prop: Property, simple: Property) -> Finding:
        """The finding for one property: `prop` of the original system, `simple` of the system that was searched.

        Raises `UsageError` after a reduced search: the states left out may be on the only fair cycle.
        """
        if self._plan.reduces:
            raise UsageError(
                f"{prop.name} is a temporal property, and the search was reduced",
                remedy="leave out --symmetry and --por, or the temporal properties with --property",
            )
        begun = time.perf_counter()
        spent = self._search.budget.spent()
        if spent is not None:
            return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, ended(spent))
        try:
            with alarm():
                return self._decided(prop, simple)
        except TimeUp:
            return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, ended(Stop.TIME))
        except TooLarge as limit:
            return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, str(limit))
        except MemoryError:
            because = "not enough memory for the state graph; choose smaller parameters"
            return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, because)
        finally:
            self.seconds += time.perf_counter() - begun

    def _decided(self, prop: Property, simple: Property) -> Finding:
        assert simple.formula is not None, "a temporal property has a formula"
        if any(recurring(simple.formula)):
            return self._monitored(prop, simple.formula)
        answer = self._checker.decide(simple.formula)
        if answer.lasso is not None:
            return self._violated(prop, answer.lasso)
        states = number_of(self._checker.graph.states, "state")
        because = f"true of every fair behaviour of {states} and {number_of(self._checker.graph.steps, 'step')}"
        if answer.vacuous:
            every = "the only state" if states == "1 state" else f"all {states}"
            return self._holds(prop, f"vacuous: its antecedent is false in {every}", vacuous=True)
        return self._holds(prop, because)

    def _holds(self, prop: Property, because: str, *, vacuous: bool = False) -> Finding:
        """A property without a lasso that violates it. It is vacuous too if every fair behaviour leaves the constraint."""
        if self._all_leave:
            because, vacuous = "vacuous: every fair behaviour leaves the constraint", True
        return Finding(prop.name, prop.kind, Verdict.HOLDS, None, because, vacuous=vacuous)

    @cached_property
    def _all_leave(self) -> bool:
        """Whether there is a constraint, and no fair behaviour stays within it."""
        limit = self._search.scalarised.original.constraint
        if limit is None:
            return False
        outside = b.not_(b.and_(Rewriter().scalar(c.expr) for c in limit.conjuncts))
        return self._checker.decide(Eventually(Atom(outside))).lasso is None

    def _monitored(self, prop: Property, formula: Formula) -> Finding:
        """The finding for a formula with conditions on steps: its conjuncts one by one, usually with one monitor bit each."""
        from streamproof.explicit.liveness.step_monitors import StepMonitors

        search = self._search
        monitors = StepMonitors(search.system, self._checker.graph, formula)
        states = 0
        for claim in claims(formula):
            monitored = monitors.monitored(claim, search.budget)
            answer = TemporalChecker(search.system, monitored.graph).decide(monitored.formula)
            if answer.lasso is not None:
                return self._violated(prop, answer.lasso.renumbered(monitored.original))
            states = max(states, monitored.graph.states)
        return self._holds(prop, f"true of every fair behaviour of {states:,} states, monitor bits included")

    def _violated(self, prop: Property, lasso: Lasso) -> Finding:
        witnesses = self._witnesses()
        trace = witnesses.lasso(lasso.stem, lasso.cycle)
        return violated(prop, trace, witnesses.fair(prop, trace))
