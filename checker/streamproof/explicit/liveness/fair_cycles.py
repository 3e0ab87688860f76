"""Decision of temporal properties on a state graph: they hold on all fair behaviours, or there is a lasso that violates them.

The product of the state graph and the Büchi automaton of the negated formula is searched; the property is violated if and
only if the product has a fair component: an SCC in which an infinite fair and accepted run exists. A lasso is a path to a
fair component, and a cycle in it that satisfies every fairness constraint.

Acceptance sets and weak fairness are decided on a whole SCC. Strong fairness is not: a fair cycle must avoid the states in
which a constraint is enabled that no edge of the SCC takes. These states are removed and the rest is decomposed again
(A. Pnueli, O. Lichtenstein 1985; E. A. Emerson, C.-L. Lei 1987).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from streamproof.base.errors import TooLarge, UsageError
from streamproof.base.options import given_of
from streamproof.base.records import dataclass, replace
from streamproof.explicit.level_search import LevelSearch, ReductionPlan, Stop, ended, undecided
from streamproof.explicit.liveness.buchi import BuchiAutomaton, Scc, negation_automaton
from streamproof.explicit.liveness.fair_graph import (
    FairGraph,
    Labels,
    Lasso,
    Mask,
    Numbers,
    Product,
    ReachableProduct,
    TemporalAnswer,
    without_stutter,
)
from streamproof.explicit.liveness.shortest import ShortestLasso, normal
from streamproof.explicit.liveness.step_monitors import StepMonitors
from streamproof.explicit.liveness.tableau import triggers
from streamproof.explicit.state_graph import StateGraph
from streamproof.interrupts import TimeUp, alarm
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.formula import Atom, Eventually, Formula, claims, recurring, refutable
from streamproof.system.model import Property, System
from streamproof.system.verdict import Finding, Verdict, number_of
from streamproof.transform.constraint import bits
from streamproof.transform.flatten import Rewriter

if TYPE_CHECKING:
    from streamproof.explicit.liveness.stored import StoredChecker
    from streamproof.explicit.mapped_graph import StoredGraph
    from streamproof.explicit.witness import Witnesses


def fair_components(
    fair: FairGraph, automaton: BuchiAutomaton, scc: Scc, labels: Labels, start: Product
) -> list[tuple[Product, Numbers]]:
    """All fair components of a product over `scc`, without duplicates: subgraphs, each with the number of the component of
    every node, -1 for nodes outside of them."""
    found: list[tuple[Product, Numbers]] = []
    todo = [start]
    # Invariant: every fair component that was not found lies within one subgraph of `todo`. A node is removed only if a
    # constraint is enabled there that no edge of its component takes: no strongly fair cycle in the component visits
    # it.
    while todo:
        product = todo.pop()
        if not product.nodes:
            continue
        of = np.asarray(product.digraph.components()[1])
        sizes = np.bincount(of)
        met = acceptance(scc, labels, product)
        good = (sizes[of] == 1) & resting(fair, automaton, product, met)
        component = np.where(good, of, np.int32(-1))
        larger = sizes > 1
        if larger.any():
            wins, split, removed = _judge(fair, product, of, larger, met)
            component = np.where(wins[of], of, component)
            if split.any():
                todo.append(product.only(split[of] & ~removed))
        if (component >= 0).any():
            found.append((product, component))
    return found


def acceptance(scc: Scc, labels: Labels, product: Product) -> list[Mask]:
    """For each acceptance set of the SCC, the nodes in it."""
    found: list[Mask] = []
    for tables in scc.acceptance_sets or ():
        met = np.zeros(product.nodes, dtype=np.bool_)
        for member, table in zip(scc.members, tables, strict=True):
            at = product.reader == member if len(scc.members) > 1 else slice(None)
            met[at] = labels.mask(table, product.state[at])
        found.append(met)
    return found


def resting(fair: FairGraph, automaton: BuchiAutomaton, product: Product, met: Sequence[Mask]) -> Mask:
    """The nodes in which infinite stuttering is fair and accepted."""
    can_stay = np.array([k in one.after for k, one in enumerate(automaton.states)], dtype=np.bool_)
    good = can_stay[product.reader]
    for mask in met:
        good &= mask
    if fair.constraints:
        good &= ~fair.restless[product.state]
    return good


def _judge(
    fair: FairGraph, product: Product, of: Numbers, larger: Mask, met: Sequence[Mask]
) -> tuple[Mask, Mask, Mask]:
    """Of the SCCs with several nodes: those that are fair, those to be decomposed again, and the nodes to remove."""
    alive = larger.copy()
    for mask in met:
        has = np.zeros(len(larger), dtype=np.bool_)
        has[of[mask]] = True
        alive &= has
    removed = np.zeros(product.nodes, dtype=np.bool_)
    split = np.zeros(len(larger), dtype=np.bool_)
    # Invariant: `alive` are the components that satisfy every acceptance set and every weak constraint seen so far.
    for constraint, taken in _taken(fair, product, of, larger):
        open_ = alive & ~taken
        if not open_.any():
            continue
        nodes = np.flatnonzero(open_[of])
        enabled = fair.enabled(constraint)[product.state[nodes]]
        if fair.is_weak(constraint):
            rests = np.zeros(len(larger), dtype=np.bool_)
            rests[of[nodes[~enabled]]] = True
            alive &= taken | rests
        else:
            removed[nodes[enabled]] = True
            split[of[nodes[enabled]]] = True
    split &= alive
    return alive & ~split, split, removed


def _taken(fair: FairGraph, product: Product, of: Numbers, larger: Mask) -> list[tuple[int, Mask]]:
    """For each constraint, the SCCs with an inner edge that takes it."""
    count = len(fair.sets)
    if not count:
        return []
    names = np.cumsum(larger, dtype=np.int32) - np.int32(1)
    size = int(names[-1]) + 1
    found = [np.zeros(len(larger), dtype=np.bool_) for _ in fair.constraints]
    rows, piece = max(1, fair.graph.tuning.table_cells // size), fair.graph.tuning.node_slice
    for first in range(0, count, rows):
        table = np.zeros((min(rows, count - first), size), dtype=np.bool_)
        # Invariant: the table has True for each set of constraints and component with an inner edge among the nodes before.
        for node in range(0, product.nodes, piece):
            offsets = product.offsets[node : node + piece + 1]
            edges = slice(offsets[0], offsets[-1])
            homes, taken = np.repeat(of[node : node + piece], np.diff(offsets)), product.taken[edges]
            inside = homes == of[product.targets[edges]]
            inside &= (taken >= first) & (taken < first + len(table))
            table[taken[inside] - first, names[homes[inside]]] = True
            if table.all():
                break
        for at, row in enumerate(table):
            for constraint in fair.sets[first + at]:
                found[constraint][larger] |= row
    return list(enumerate(found))


def find_lasso(
    fair: FairGraph,
    automaton: BuchiAutomaton,
    scc: Scc,
    labels: Labels,
    reachable: ReachableProduct,
    found: Sequence[tuple[Product, Numbers]],
) -> Lasso:
    """A lasso on one of the fair components over an SCC, with a short stem (not always the shortest)."""
    for product, component in found:
        rest = resting(fair, automaton, product, acceptance(scc, labels, product)) & (component >= 0)
        if rest.any():
            node = _nearest(reachable, product, rest)[1]
            state = int(product.state[node])
            return Lasso(tuple(without_stutter(reachable.stem(int(product.reader[node]), state))), (state,))
    _, node, at = min((*_nearest(reachable, some, of >= 0), at) for at, (some, of) in enumerate(found))
    product, component = found[at]
    members = component == component[node]
    inner = product.only(members)
    node = int(np.count_nonzero(members[:node]))
    stem = without_stutter(reachable.stem(int(inner.reader[node]), int(inner.state[node])))
    cycle = _Cycle(fair, inner, acceptance(scc, labels, inner), node).run()
    states = without_stutter([int(inner.state[k]) for k in cycle])
    return Lasso(tuple(stem), tuple(states[:-1]) if len(states) > 1 else tuple(states))


def _nearest(reachable: ReachableProduct, product: Product, among: Mask) -> tuple[int, int]:
    """A marked node with a short stem, and the length of the stem; states are in the order of discovery."""
    found = np.flatnonzero(among)
    stems = []
    for reader in np.unique(product.reader[found]):
        mine = found[product.reader[found] == reader]
        node = int(mine[np.argmin(product.state[mine])])
        stems.append((len(reachable.stem(int(reader), int(product.state[node]))), node))
    return min(stems)


class _Cycle:
    """A closed walk through one component that meets every acceptance set and satisfies every fairness constraint."""

    def __init__(self, fair: FairGraph, inner: Product, met: Sequence[Mask], start: int) -> None:
        self.fair, self.inner, self.met = fair, inner, met
        self.sources, self.digraph = inner.sources, inner.digraph
        self.walk = [start]

    def run(self) -> list[int]:
        """The nodes of the walk; the last is the first."""
        # Invariant: the walk stays within the component, so that it can always be continued to any node of it, and back
        # to its start.
        for mask in self.met:
            if not any(mask[node] for node in self.walk):
                self._extend(mask)
        for constraint in range(len(self.fair.constraints)):
            self._satisfy(constraint)
        start = np.zeros(self.inner.nodes, dtype=np.bool_)
        start[self.walk[0]] = True
        self._extend(start)
        return self.walk

    def _satisfy(self, constraint: int) -> None:
        """Extend the walk, if needed, so that it takes the constraint or, for weak fairness, visits a node that disables
        it."""
        fair, inner = self.fair, self.inner
        states = [int(inner.state[node]) for node in self.walk]
        if any(fair.takes(constraint, a, b) for a, b in pairwise(states) if a != b):
            return
        weak = fair.is_weak(constraint)
        if weak and not all(fair.is_enabled(constraint, state) for state in states):
            return
        enabled = fair.enabled(constraint)[inner.state]
        if not enabled.any():
            return
        taking = np.flatnonzero(fair.among(inner.taken, constraint))
        goal = np.zeros(inner.nodes, dtype=np.bool_)
        goal[self.sources[taking]] = True
        if weak:
            goal |= ~enabled
        self._extend(goal)
        here = self.walk[-1]
        if weak and not enabled[here]:
            return
        mine = taking[self.sources[taking] == here]
        self.walk.append(int(inner.targets[mine[0]]))

    def _extend(self, goal: Mask) -> None:
        """Extend the walk to a nearest marked node, unless it ends at one."""
        here = self.walk[-1]
        if not goal[here]:
            self.walk += self.digraph.path(here, goal)


class TemporalChecker:
    """Decides formulas, over terms of one system, on the state graph of that system.

    Raises `TooLarge` for more steps or more fairness constraints than can be numbered.
    """

    def __init__(self, system: System, graph: StateGraph) -> None:
        self.graph = graph
        self._fair = FairGraph(system, graph)
        self._first: tuple[BuchiAutomaton, Labels, Sequence[tuple[Product, Numbers]]] | None = None
        """The fair components in which the last lasso was found."""

    def decide(self, formula: Formula) -> TemporalAnswer:
        """Whether `formula` is true of every fair behaviour. Raises `TooLarge` for too many atoms.

        The conjuncts of a conjunction are decided one by one, with a small automaton each.
        """
        parts = tuple(claims(formula))
        for part in parts:
            lasso = self.accepted(negation_automaton(part))
            if lasso is not None:
                return TemporalAnswer(lasso)
        return TemporalAnswer(None, self.vacuous(formula))

    def accepted(self, automaton: BuchiAutomaton) -> Lasso | None:
        """A fair lasso that the automaton accepts, or None."""
        for scc, reachable, found in self._fair_components(automaton):
            self._first = automaton, reachable.labels, found
            return find_lasso(self._fair, automaton, scc, reachable.labels, reachable, found)
        return None

    def _fair_components(
        self, automaton: BuchiAutomaton
    ) -> Iterator[tuple[Scc, ReachableProduct, list[tuple[Product, Numbers]]]]:
        """The components of the automaton with fair components of the product over them, and these."""
        labels = Labels(self.graph, automaton)
        reachable = ReachableProduct(self._fair, automaton, labels)
        for scc in automaton.sccs:
            product = reachable.enter(scc)
            if product is None or not scc.accepting:
                continue
            found = fair_components(self._fair, automaton, scc, labels, product)
            if found:
                yield scc, reachable, found

    def shortened(self, formula: Formula, known: Lasso, is_over: Callable[[], bool]) -> ShortestLasso:
        """The search for a lasso with fewer steps than the `known` one, on which `formula` is false, until `is_over`.

        On a graph with more steps than the work of the search, it is among the components in which the known one was found.
        """
        work = self.graph.tuning.cycle_work
        search = ShortestLasso(self._fair, known, work, is_over)
        if self.graph.steps > work:
            assert self._first is not None, "a lasso was found"
            search.among(*self._first)
            search.proved = False
            return search
        for claim in claims(formula):
            try:
                automaton = negation_automaton(claim)
            except TooLarge:
                search.proved = False
                break
            found = list(self._fair_components(automaton))
            if found:
                search.among(automaton, found[0][1].labels, [one for _, _, some in found for one in some])
        return search

    def vacuous(self, formula: Formula) -> bool:
        """Whether the formula consists of implications whose antecedents are never true."""
        conditions = triggers(formula)
        return bool(conditions) and not self.graph.evaluate(conditions).any()


class Temporal:
    """Decides the temporal properties of a complete search. `seconds` is the time used by the temporal check."""

    def __init__(self, search: LevelSearch, plan: ReductionPlan, witnesses: Callable[[], Witnesses]) -> None:
        self._search, self._plan, self._witnesses = search, plan, witnesses
        self.seconds = 0.0

    @cached_property
    def _checker(self) -> TemporalChecker | StoredChecker:
        search = self._search
        divided = search.divided_graph()
        stored = search.stored_graph() if divided is None else None
        if divided is None and stored is None:
            return TemporalChecker(search.system, search.graph())
        from streamproof.explicit.liveness.stored import StoredChecker

        def in_files() -> StoredGraph:
            found = stored or search.stored_graph()
            assert found is not None, "states are in files"
            return found

        return StoredChecker(search.system, in_files, search.ever_true, divided)

    @property
    def _size(self) -> tuple[int, int]:
        """Number of states, and of steps."""
        checker, search = self._checker, self._search
        if isinstance(checker, TemporalChecker):
            return checker.graph.states, checker.graph.steps
        return search.known, sum(search.generated)

    def finding(self, prop: Property, simple: Property) -> Finding:
        """The finding for one property: `prop` of the original system, `simple` of the system that was searched.

        Raises `UsageError` after a reduced search: the states left out may be on the only fair cycle.
        """
        if self._plan.reduces and self._plan.view is None:
            raise UsageError(
                f"{prop.name} is a temporal property, and the search was reduced",
                remedy=f"leave out {given_of('--symmetry', '--por')}, or choose other properties with --property",
            )
        begun = time.perf_counter()
        spent = self._search.budget.spent()
        if spent is not None:
            return undecided(prop, ended(spent))
        try:
            with alarm():
                found = self._decided(prop, simple)
            return found if isinstance(found, Finding) else self._violated(prop, found)
        except TimeUp:
            return undecided(prop, ended(Stop.TIME))
        except TooLarge as limit:
            return undecided(prop, str(limit))
        except MemoryError:
            return undecided(prop, "not enough memory for the state graph; choose smaller parameters")
        finally:
            self.seconds += time.perf_counter() - begun

    def _decided(self, prop: Property, simple: Property) -> Finding | _Violation:
        assert simple.formula is not None, "a temporal property has a formula"
        if any(recurring(simple.formula)):
            return self._monitored(prop, simple.formula)
        checker = self._checker
        answer = checker.decide(simple.formula)
        if answer.lasso is not None:
            return _Violation(checker, simple.formula, answer.lasso)
        states, steps = self._size
        because = f"true of every fair behaviour of {number_of(states, 'state')} and {number_of(steps, 'step')}"
        return self._holds(prop, because, vacuous=answer.vacuous)

    def _holds(self, prop: Property, because: str, *, vacuous: bool) -> Finding:
        """A property without a behaviour that violates it. If every fair behaviour leaves the constraint, only prefixes were
        judged, and a formula that no prefix can refute is vacuous. A view does not show whether its antecedent is true."""
        if vacuous:
            known, outside = self._size[0], self._outside
            states = known if outside is None else known - sum(self._search.count(outside))
            every = "the only state" if states == 1 else f"all {number_of(states, 'state')}"
            because = f"vacuous: its antecedent is false in {every}"
            because += "" if states == known else " within the constraint"
        if self._all_leave:
            assert prop.formula is not None, "a temporal property has a formula"
            if refutable(prop.formula):
                because += (
                    "; every fair behaviour leaves the constraint, and no prefix of one within it refutes the formula"
                )
            else:
                because, vacuous = "vacuous: every fair behaviour leaves the constraint", True
        examined = self._plan.view is None
        return Finding(prop.name, prop.kind, Verdict.HOLDS, None, because, vacuous=vacuous if examined else None)

    @cached_property
    def _all_leave(self) -> bool:
        """Whether there is a constraint, and no fair behaviour stays within it."""
        return self._outside is not None and self._checker.decide(Eventually(Atom(self._outside))).lasso is None

    @cached_property
    def _outside(self) -> Expr | None:
        """The condition of the states outside the constraint, if there is one."""
        limit = self._search.scalarised.original.constraint
        return None if limit is None else b.not_(b.and_(Rewriter().scalar(c.expr) for c in limit.conjuncts))

    def _monitored(self, prop: Property, formula: Formula) -> Finding | _Violation:
        """The finding for a formula with conditions on steps: its conjuncts one by one, usually with one monitor bit each."""
        search = self._search
        if not isinstance(self._checker, TemporalChecker):
            return self._monitored_on_disk(self._checker, prop, formula)
        monitors = StepMonitors(search.system, self._checker.graph, formula)
        states = 0
        for claim in claims(formula):
            graph, over_states, original = monitors.monitored(claim, search.budget)
            checker = TemporalChecker(search.system, graph)
            answer = checker.decide(over_states)
            if answer.lasso is not None:
                return _Violation(checker, over_states, answer.lasso, original)
            states = max(states, graph.states)
        because = f"true of every fair behaviour of {states:,} states, monitor bits included"
        return self._holds_of_steps(prop, formula, because, monitors.never_begins)

    def _holds_of_steps(
        self, prop: Property, formula: Formula, because: str, never_begins: Callable[[Formula], bool]
    ) -> Finding:
        """A property with conditions on steps that nothing violates; vacuous if no claim's antecedent is true or happens."""
        idle = [claim for claim in claims(formula) if never_begins(claim)]
        if idle and all(claim in idle or self._checker.vacuous(claim) for claim in claims(formula)):
            because = f"vacuous: its antecedent never happens in {number_of(self._size[0], 'state')}"
            return Finding(prop.name, prop.kind, Verdict.HOLDS, None, because, vacuous=True)
        return self._holds(prop, because, vacuous=self._checker.vacuous(formula))

    def _monitored_on_disk(self, checker: StoredChecker, prop: Property, formula: Formula) -> Finding | _Violation:
        search, most = self._search, 0
        for claim in claims(formula):
            names = bits(search.system, list(dict.fromkeys(recurring(claim))))
            lasso = checker.monitored(claim, names, search.budget.max_states)
            if lasso is not None:
                return _Violation(checker, formula, lasso)
            most = max(most, len(names))
        states, monitors = number_of(self._size[0], "state"), number_of(most, "monitor bit")
        because = f"true of every fair behaviour of {states}, with {monitors}"
        return self._holds_of_steps(prop, formula, because, checker.never_begins)

    def _violated(self, prop: Property, found: _Violation) -> Finding:
        lasso, proved = found.lasso, False
        if isinstance(found.checker, TemporalChecker):
            shortest = found.checker.shortened(found.formula, lasso, lambda: self._search.budget.spent() is not None)
            lasso, proved = shortest.best, shortest.proved
        if found.original is not None:  # its states have the bits of a monitor, which may differ after each round
            both = (normal(one.renumbered(found.original)) for one in (lasso, found.lasso))
            lasso, proved = min(both, key=lambda one: one.steps), False
        witnesses = self._witnesses()
        violation = witnesses.violation(prop, witnesses.lasso(lasso.stem, lasso.cycle))
        assert violation.trace is not None, "a violation has a trace"
        proved = proved and violation.trace.loop is not None and not self._plan.reduces
        return replace(violation, shortest=proved)


@dataclass(frozen=True, slots=True)
class _Violation:
    """A lasso on which a formula is false; with monitors, `original` has the state of the system of each state."""

    checker: TemporalChecker | StoredChecker
    formula: Formula
    lasso: Lasso
    original: Numbers | None = None
