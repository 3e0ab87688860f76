"""Quantifier-free solver queries: universal assumptions are instantiated, negated ones get witnesses.

An assumption for every index is instantiated at the indices in the query: the parameters of the action, the indices in
its rules, and the witnesses. This weakens the assumptions, so "unsat" remains sound: proofs are valid whatever was left
out. "sat" may be due to a missing instance, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import combinations
from typing import cast

from streamproof.any.engine.values import SymbolicView, Universe
from streamproof.symbolic.theory import Term
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.sorts import BOOL, ArraySort, RangeSort, TermRange, cardinality, values
from streamproof.transform.unbounded import Forall, Tabulated, Total, any_length

MOST = 32
"""Number of indices from which witnesses of assumptions are no longer instantiated in turn: with alternating
quantifiers each instance has its own witnesses, and their number would be squared by every condition."""
MOST_INDICES = (96, 32, 12)
"""Maximum number of indices at which a condition is instantiated; fewer for one nested in another, and in two or more
others."""


class Question:
    """Formulas about views of states that share one set of indices. `proceed` is called often, and raises to end the work."""

    def __init__(self, universe: Universe, proceed: Callable[[], object] = lambda: None) -> None:
        self.universe = universe
        self._proceed = proceed
        self._around = 0
        """The nesting depth of assumed universal conditions around the current one."""
        self.indices: list[Term] = []
        self._ranges: dict[int, set[frozenset[str]]] = {}
        """For each index (by its number in the solver) the parameters in the ends of the ranges that it is an index of."""
        self._witnesses: dict[tuple[object, ...], Term] = {}
        self._denied: set[tuple[Expr, int]] = set()
        """The negated universal conditions whose indices have been looked at, with the numbers of their views."""
        self._quantified: dict[Expr, bool] = {}

    def mention(self, index: Term, sort: object) -> None:
        """Adds an index of a range, at which universal assumptions are instantiated."""
        self._ranges.setdefault(index.get_id(), set()).add(_ends(sort))
        if not any(index.eq(known) for known in self.indices):
            self.indices.append(index)

    def _indices_of(self, sort: object) -> list[Term]:
        """The indices of ranges with a parameter in common with `sort`, and of ranges without parameters.

        Others, in a model of several parameters, rarely matter, and their instances are many."""
        mine = _ends(sort)
        found = [t for t in self.indices if any(not r or not mine or r & mine for r in self._ranges[t.get_id()])]
        return found or self.indices

    def mentioned(self, view: SymbolicView, *roots: Expr) -> None:
        """Adds the indices at which `roots` read and write arrays of unbounded length, except bound ones, and those in the
        next state if the view has none."""
        free = set(view.names)
        for term in e.subterms(*roots):
            if not isinstance(term, e.Select | e.Store):
                continue
            known = view.following is not None or not any(isinstance(t, e.Next) for t in e.subterms(term.index))
            if any_length(term.array.sort) and e.variables(term.index) <= free and known:
                self.mention(view.value(term.index), term.array.sort.index)

    # --- conditions

    def assumed(self, view: SymbolicView, condition: Expr) -> Term:
        """A formula implied by `condition`."""
        return self._formula(view, condition, True, ("assumed", view.number, condition))

    def denied(self, view: SymbolicView, condition: Expr, share: Hashable) -> Term:
        """A formula implied by the negation of `condition`.

        At most one of the conditions negated under one name `share` is negated at a time: they share one witness.
        """
        parts = condition.args if isinstance(condition, e.And) else (condition,)
        found = []
        for at, part in enumerate(parts):
            key = ("denied", share) if isinstance(part, Forall) else ("denied", share, condition, at)
            found.append(self._formula(view, part, False, key))
        return self.universe.z3.Not(self.universe.all_of(found))

    def _formula(self, view: SymbolicView, term: Expr, positive: bool, key: tuple[object, ...]) -> Term:
        """A formula that `term` implies, or, if not `positive`, that implies `term`, up to the choice of witnesses."""
        z3 = self.universe.z3
        if not self._speaks_of_all(term):
            return view.value(term)
        match term:
            case e.Not(arg=a):
                return z3.Not(self._formula(view, a, not positive, (*key, 0)))
            case e.And(args=args):
                return z3.And([self._formula(view, a, positive, (*key, n)) for n, a in enumerate(args)])
            case e.Or(args=args):
                return z3.Or([self._formula(view, a, positive, (*key, n)) for n, a in enumerate(args)])
            case e.Ite(cond=c, then=a, other=b) if term.sort == BOOL:
                yes = z3.Implies(
                    self._formula(view, c, not positive, (*key, 0)), self._formula(view, a, positive, (*key, 1))
                )
                no = z3.Or(self._formula(view, c, positive, (*key, 2)), self._formula(view, b, positive, (*key, 3)))
                return z3.And(yes, no)
            case e.Eq(left=a, right=b) if a.sort == BOOL:
                there = z3.Implies(
                    self._formula(view, a, not positive, (*key, 0)), self._formula(view, b, positive, (*key, 1))
                )
                back = z3.Implies(
                    self._formula(view, b, not positive, (*key, 2)), self._formula(view, a, positive, (*key, 3))
                )
                return z3.And(there, back)
            case Forall(bound=e.Var() as bound, body=body) if positive:
                most = MOST_INDICES[min(self._around, len(MOST_INDICES) - 1)]
                self._around += 1
                found = []
                for index in self._indices_of(bound.sort)[:most]:
                    self._proceed()
                    there = self._formula(view.bound(bound.name, index), body, True, (*key, index.get_id()))
                    found.append(z3.Implies(in_range(view, bound.sort, index), there))
                self._around -= 1
                return self.universe.all_of(found)
            case Forall(bound=e.Var() as bound, body=body):
                witness = self._witness((*key, bound.sort), bound)
                there = view.bound(bound.name, witness)
                if (term, view.number) not in self._denied and len(self.indices) < MOST:
                    self._denied.add((term, view.number))
                    self.mentioned(there, body)  # such as the element of an array at the witness
                inside = self._formula(there, body, False, (*key, "in"))
                return z3.Implies(in_range(view, bound.sort, witness), inside)
            case _:
                return view.value(term)

    def _witness(self, key: tuple[object, ...], bound: e.Var) -> Term:
        if key not in self._witnesses:
            name = bound.name.partition("'")[0]
            self._witnesses[key] = self.universe.fresh(name, RangeSort(0, 0))
            if len(self.indices) < MOST or key[0] == "denied":
                self.mention(self._witnesses[key], bound.sort)
        return self._witnesses[key]

    def _speaks_of_all(self, root: Expr) -> bool:
        if root not in self._quantified:
            for term in e.subterms(root):
                if term not in self._quantified:
                    inner = not isinstance(term, Total | Tabulated) and any(
                        self._quantified[c] for c in e.children(term)
                    )
                    self._quantified[term] = isinstance(term, Forall) or inner
        return self._quantified[root]

    def about_conditions(self, *views: SymbolicView) -> list[Term]:
        """The definitions of the names that denote universal conditions inside values."""
        found = []
        for start in views:
            for view, condition, name in start.conditions:  # grows during the iteration
                denied = self.denied(view, cast(Expr, condition), name.get_id())
                found.append(self.universe.z3.Implies(name, self.assumed(view, cast(Expr, condition))))
                found.append(self.universe.z3.Or(name, denied))
        return found

    # --- sums over unbounded index ranges

    def about_sums(self, view: SymbolicView, *, formed: bool) -> Iterator[Term]:
        """Axioms about the sums of a view: an empty sum is 0, and, if every value is in its sort (`formed`), a sum of
        nonnegative parts is at least each part."""
        z3 = self.universe.z3
        for total, value in list(view.totals.items()):
            bound = _index(total)
            yield z3.Implies(z3.Not(_some(view, bound.sort)), value == 0)
            if formed and isinstance(total.body.sort, RangeSort) and total.body.sort.lo >= 0 and _within(total):
                parts = [(t, in_range(view, bound.sort, t), self.part(view, total, t)) for t in self.indices]
                yield value >= 0
                yield from (z3.Implies(there, value >= part) for _, there, part in parts)
                for (t, t_in, t_part), (u, u_in, u_part) in combinations(parts, 2):
                    yield z3.Implies(z3.And(t_in, u_in, t != u), value >= t_part + u_part)

    def part(self, view: SymbolicView, total: Total, index: Term) -> Term:
        """The summand of a sum at one index."""
        return view.bound(_index(total).name, index).value(total.body)


def _ends(sort: object) -> frozenset[str]:
    """The names in the ends of a range."""
    return frozenset(e.variables(sort.least, sort.most)) if isinstance(sort, TermRange) else frozenset()


def _within(total: Total) -> bool:
    """Whether a summand reads the arrays in an array of unbounded length only at variables that are in their range."""
    return all(
        isinstance(term.index, e.Var) and term.index.sort == term.array.sort.index
        for term in e.subterms(total.body)
        if isinstance(term, e.Select) and any_length(term.array.sort) and isinstance(term.array, e.Select)
    )


def _index(total: Total | Forall) -> e.Var:
    assert isinstance(total.bound, e.Var)
    return total.bound


def _some(view: SymbolicView, sort: object) -> Term:
    assert isinstance(sort, TermRange)
    return view.value(sort.least) <= view.value(sort.most)


def in_range(view: SymbolicView, sort: object, index: Term) -> Term:
    """The index is in its range."""
    if isinstance(sort, TermRange):
        least, most = view.value(sort.least), view.value(sort.most)
    else:
        assert isinstance(sort, RangeSort)
        least, most = view.universe.number(sort.lo), view.universe.number(sort.hi)
    return view.universe.z3.And(least <= index, index <= most)


def touched(view: SymbolicView, name: str, update: Expr) -> list[Term] | None:
    """The indices at which an update may write the array called `name`; all of them for a fixed length.

    None if it replaces an array of unbounded length, if there are too many indices, and for a variable of another sort.
    """
    sort = update.sort
    if isinstance(sort, ArraySort) and type(sort.index) is RangeSort:
        return [view.universe.number(k) for k in values(sort.index)] if cardinality(sort.index) <= MOST else None
    if not any_length(sort):
        return None
    found: list[Term] = []
    pending = [update]
    while pending:
        match pending.pop():
            case e.Store(array=inner, index=index):
                found.append(view.value(index))
                pending.append(inner)
            case e.Ite(then=a, other=b):
                pending += [a, b]
            case e.Var(name=same) if same == name:
                pass
            case _:
                return None
    return found
