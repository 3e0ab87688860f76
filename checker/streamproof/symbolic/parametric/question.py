"""One question to the solver, without quantifiers: what is assumed is instantiated, what is denied gets a witness.

A condition that holds for every index is assumed for the indices that the question speaks of: the parameters of the action,
the indices that its rules name, and the witnesses. That assumes less than was said, so "impossible" stays impossible: what is
proved is proved, whatever was left out. "Possible" may be owed to what was left out, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import combinations
from typing import cast

from streamproof.symbolic.parametric.values import SymbolicView, Universe
from streamproof.symbolic.theory import Term
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.sorts import BOOL, ArraySort, RangeSort, TermRange, cardinality, values
from streamproof.system.unbounded import Forall, Total, any_length

MOST = 32
"""Indices from which on witnesses of what is assumed are not instantiated for in turn: with alternating quantifiers each
instance has witnesses of its own, and their number would be squared with every condition."""
MOST_INDICES = (96, 32, 12)
"""How many of the indices a condition is assumed for; fewer for one inside another, and inside two or more others."""


class Question:
    """Formulas about views of states that share one set of indices. `proceed` is called often, and raises to end it."""

    def __init__(self, universe: Universe, proceed: Callable[[], object] = lambda: None) -> None:
        self.universe = universe
        self._proceed = proceed
        self._around = 0
        """How many conditions on every index, all assumed, there are around the present one."""
        self.indices: list[Term] = []
        self._witnesses: dict[tuple[object, ...], Term] = {}
        self._quantified: dict[Expr, bool] = {}

    def mention(self, index: Term) -> None:
        """Conditions on every index are assumed for this one too."""
        if not any(index.eq(known) for known in self.indices):
            self.indices.append(index)

    def mentioned(self, view: SymbolicView, *roots: Expr) -> None:
        """Mentions the indices at which `roots` read and write arrays of any length, those that loops bind excepted."""
        free = set(view.names)
        for term in e.subterms(*roots):
            if not isinstance(term, e.Select | e.Store):
                continue
            if any_length(term.array.sort) and e.variables(term.index) <= free:
                self.mention(view.value(term.index))

    # --- conditions

    def assumed(self, view: SymbolicView, condition: Expr) -> Term:
        """A formula that follows from `condition`."""
        return self._formula(view, condition, True, ("assumed", view.number, condition))

    def denied(self, view: SymbolicView, condition: Expr, share: Hashable) -> Term:
        """A formula that follows from the negation of `condition`.

        Of the conditions denied under one name `share`, no two may have to be denied at once: they have one witness.
        """
        parts = condition.args if isinstance(condition, e.And) else (condition,)
        found = []
        for at, part in enumerate(parts):
            key = ("denied", share) if isinstance(part, Forall) else ("denied", share, condition, at)
            found.append(self._formula(view, part, False, key))
        return self.universe.z3.Not(self.universe.all_of(found))

    def _formula(self, view: SymbolicView, term: Expr, positive: bool, key: tuple[object, ...]) -> Term:
        """A formula that `term` implies, or for not `positive` that implies `term`, up to the choice of witnesses."""
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
                for at, index in enumerate(self.indices[:most]):
                    self._proceed()
                    there = self._formula(view.bound(bound.name, index), body, True, (*key, at))
                    found.append(z3.Implies(in_range(view, bound.sort, index), there))
                self._around -= 1
                return self.universe.all_of(found)
            case Forall(bound=e.Var() as bound, body=body):
                witness = self._witness((*key, bound.sort), bound)
                inside = self._formula(view.bound(bound.name, witness), body, False, (*key, "in"))
                return z3.Implies(in_range(view, bound.sort, witness), inside)
            case _:
                return view.value(term)

    def _witness(self, key: tuple[object, ...], bound: e.Var) -> Term:
        if key not in self._witnesses:
            name = bound.name.partition("'")[0]
            self._witnesses[key] = self.universe.fresh(name, RangeSort(0, 0))
            if len(self.indices) < MOST or key[0] == "denied":
                self.mention(self._witnesses[key])
        return self._witnesses[key]

    def _speaks_of_all(self, root: Expr) -> bool:
        if root not in self._quantified:
            for term in e.subterms(root):
                if term not in self._quantified:
                    inner = not isinstance(term, Total) and any(self._quantified[c] for c in e.children(term))
                    self._quantified[term] = isinstance(term, Forall) or inner
        return self._quantified[root]

    def about_conditions(self, *views: SymbolicView) -> list[Term]:
        """What the names mean that conditions on every index have where values hang on them."""
        found = []
        for start in views:
            for view, condition, name in start.conditions:  # which grows meanwhile
                denied = self.denied(view, cast(Expr, condition), name.get_id())
                found.append(self.universe.z3.Implies(name, self.assumed(view, cast(Expr, condition))))
                found.append(self.universe.z3.Or(name, denied))
        return found

    # --- sums over any number of indices

    def about_sums(self, view: SymbolicView, *, formed: bool) -> Iterator[Term]:
        """What is true of the sums of a view: no parts, no sum. Where every value is of its sort (`formed`), sums of
        what is not negative are no less than their parts."""
        z3 = self.universe.z3
        for total, value in list(view.totals.items()):
            bound = _index(total)
            yield z3.Implies(z3.Not(_some(view, bound.sort)), value == 0)
            if formed and isinstance(total.body.sort, RangeSort) and total.body.sort.lo >= 0:
                parts = [(t, in_range(view, bound.sort, t), self.part(view, total, t)) for t in self.indices]
                yield value >= 0
                yield from (z3.Implies(there, value >= part) for _, there, part in parts)
                for (t, t_in, t_part), (u, u_in, u_part) in combinations(parts, 2):
                    yield z3.Implies(z3.And(t_in, u_in, t != u), value >= t_part + u_part)

    def part(self, view: SymbolicView, total: Total, index: Term) -> Term:
        """What one index contributes to a sum."""
        return view.bound(_index(total).name, index).value(total.body)


def _index(total: Total | Forall) -> e.Var:
    assert isinstance(total.bound, e.Var)
    return total.bound


def _some(view: SymbolicView, sort: object) -> Term:
    assert isinstance(sort, TermRange)
    return view.value(sort.least) <= view.value(sort.most)


def in_range(view: SymbolicView, sort: object, index: Term) -> Term:
    """That an index lies in its range."""
    if isinstance(sort, TermRange):
        least, most = view.value(sort.least), view.value(sort.most)
    else:
        assert isinstance(sort, RangeSort)
        least, most = view.universe.number(sort.lo), view.universe.number(sort.hi)
    return view.universe.z3.And(least <= index, index <= most)


def touched(view: SymbolicView, name: str, update: Expr) -> list[Term] | None:
    """The indices at which an update may write the array called `name`; all of them where its length is fixed.

    None where it replaces an array of any length as a whole, where these are too many, and for a variable of another sort.
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
