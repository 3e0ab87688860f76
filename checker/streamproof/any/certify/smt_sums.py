"""Axioms for sums over unbounded index ranges: one constant for each sum in each state.

Each axiom is true of the sums of every state, or step, that the other formulas describe:

* *empty*: a sum over an empty range is 0.
* *parts*: if every value is in its sort, and the sort of the summand is nonnegative, a sum is at least 0, at least each
  summand, and at least the sum of two summands at different indices. The summand may read arrays of unbounded length only
  at the index of the sum, whose range must be the index range of the array: elsewhere an array has no value of its sort.
* *change*: let the summand depend, among the variables that a rule writes, only on elements of arrays of unbounded length
  at the index of the sum. Then only the summands at written indices change, and the sum changes by their differences,
  each index counted once.
* *next*: a sum that reads only the next state is a sum of that state.
* *first*: the initial condition may give a term, such as an element of an array or a field of it, the same value at all
  indices. If a summand depends on its index in such terms only, it is the same at every index: the sum is the summand
  times the count.

The range of a sum depends on the free parameters only (`Conditions.ends`), so it is the same in every state of a
behaviour.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import combinations
from typing import Any

from streamproof.any.certify.smt_conditions import Conditions
from streamproof.any.certify.smt_script import INT, TRUTH, SmtTerm, number
from streamproof.any.certify.smt_terms import SmtView
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.sorts import RangeSort, TermRange
from streamproof.transform.assume import Substitution
from streamproof.transform.unbounded import Forall, Total, any_length
from streamproof.transform.unbounded import total as sum_of


class Sums:
    """The axioms about the sums in the given views."""

    def __init__(self, conditions: Conditions) -> None:
        self.conditions, self.script = conditions, conditions.script

    def empty(self, view: SmtView) -> Iterator[SmtTerm]:
        """The sum over an empty range is 0."""
        for total, value in list(view.totals.items()):
            least, most = self.conditions.ends(view, total.bound.sort)
            some = self.script.op("<=", TRUTH, least, most)
            yield self.script.any_of([some, self.script.same(value, number(0))])

    def parts(self, view: SmtView) -> Iterator[SmtTerm]:
        """Sums of nonnegative summands, in a state where every value is in its sort."""
        s = self.script
        for total, value in list(view.totals.items()):
            if not (isinstance(total.body.sort, RangeSort) and total.body.sort.lo >= 0 and _own(total)):
                continue
            yield s.op("<=", TRUTH, number(0), value)
            found = []
            for index in self.conditions.instantiated:
                outside = s.negation(self.conditions.in_range(view, total.bound.sort, index))
                found.append((index, outside, self.part(view, total, index)))
            for _, outside, part in found:
                yield s.any_of([outside, s.op("<=", TRUTH, part, value)])
            for (i, i_out, i_part), (j, j_out, j_part) in combinations(found, 2):
                both = s.op("<=", TRUTH, s.op("+", INT, i_part, j_part), value)
                yield s.any_of([i_out, j_out, s.same(i, j), both])

    def change(self, before: SmtView, after: SmtView, updates: Iterable[tuple[str, e.Expr]]) -> Iterator[SmtTerm]:
        """The change of sums by a rule."""
        s = self.script
        updates = tuple(updates)
        written = {name for name, _ in updates}
        indices = _written_indices(before, updates)
        for total in {**before.totals, **after.totals}:
            if any(isinstance(t, e.Next) for t in e.subterms(total.body)):
                continue
            if not e.variables(total.body) & written:
                yield s.same(before.total(total), after.total(total))
            elif indices is not None and _local(total, written):
                differences = []
                for at, index in enumerate(indices):
                    repeated = [s.same(index, other) for other in indices[:at]]
                    there = self.conditions.in_range(before, total.bound.sort, index)
                    counted = s.all_of([there, *map(s.negation, repeated)])
                    difference = s.op("-", INT, self.part(after, total, index), self.part(before, total, index))
                    differences.append(s.choice(counted, difference, number(0)))
                yield s.same(after.total(total), s.op("+", INT, before.total(total), *differences))

    def next(self, before: SmtView, after: SmtView, variables: Collection[str]) -> Iterator[SmtTerm]:
        """Sums of the next state."""
        for total, value in list(before.totals.items()):
            terms = list(e.subterms(total.body))
            if any(isinstance(t, Forall | Total) or (isinstance(t, e.Var) and t.name in variables) for t in terms):
                continue
            now: dict[e.Expr, e.Expr] = {t: b.var(t.name, t.sort) for t in terms if isinstance(t, e.Next)}
            if now:
                yield self.script.same(value, after.scalar(sum_of(total.bound, Substitution(now)(total.body))))

    def first(self, view: SmtView, initial: e.Expr) -> Iterator[SmtTerm]:
        """Sums of equal summands, in an initial state."""
        s = self.script
        starts = _equal_terms(initial)
        for total, value in list(view.totals.items()):
            sort = total.bound.sort
            if not isinstance(sort, TermRange) or not _own(total):
                continue
            known: dict[e.Expr, e.Expr] = {}
            for bound, term, start in starts:
                if bound.sort == sort:
                    known[Substitution({bound: total.bound})(term)] = start
            body = Substitution(known)(total.body)
            if not e.variables(body) & e.variables(total.bound):
                least, most = self.conditions.ends(view, sort)
                count = s.op("+", INT, s.op("-", INT, most, least), number(1))
                many = s.choice(s.op("<=", TRUTH, least, most), count, number(0))
                part = view.scalar(body)
                if part == number(0):
                    yield s.same(value, part)
                else:
                    s.nonlinear |= not isinstance(body, e.Const)
                    yield s.same(value, s.op("*", INT, many, part))

    def part(self, view: SmtView, total: Total, index: SmtTerm) -> SmtTerm:
        """The summand at one index."""
        assert isinstance(total.bound, e.Var)
        return view.bound(total.bound.name, index).scalar(total.body)


def _at_bound(term: Any, total: Total) -> bool:
    """Whether a term is an element of a variable, an array of unbounded length, at the index of the sum."""
    return (
        isinstance(term, e.Select)
        and isinstance(term.array, e.Var)
        and term.index is total.bound
        and any_length(term.array.sort)
    )


def _own(total: Total) -> bool:
    """Whether a summand reads arrays of unbounded length only at the index of the sum, with the same range, and not
    under a quantifier."""
    terms = list(e.subterms(total.body))
    if any(isinstance(t, Forall | Total | e.Next) for t in terms):
        return False
    arrays: list[Any] = [t for t in terms if isinstance(t, e.Select | e.Store) and any_length(t.array.sort)]
    return all(_at_bound(t, total) and t.array.sort.index == total.bound.sort for t in arrays)


def _local(total: Total, written: Collection[str]) -> bool:
    """Whether a summand reads, among written variables, only elements of arrays of unbounded length at the index of the
    sum."""
    terms = list(e.subterms(total.body))
    if any(isinstance(t, Forall | Total) for t in terms) or isinstance(total.body, e.Var):
        return False
    others = (child for t in terms if not _at_bound(t, total) for child in e.children(t))
    return not any(isinstance(child, e.Var) and child.name in written for child in others)


def _written_indices(view: SmtView, updates: Iterable[tuple[str, e.Expr]]) -> list[SmtTerm] | None:
    """Every index at which an array of unbounded length may be written; None if an array is replaced as a whole."""
    found: list[SmtTerm] = []
    for name, update in updates:
        if not any_length(update.sort):
            continue
        pending = [update]
        while pending:
            match pending.pop():
                case e.Store(array=array, index=index):
                    found.append(view.scalar(index))
                    pending.append(array)
                case e.Ite(then=a, other=b):
                    pending += [a, b]
                case e.Var(name=same) if same == name:
                    pass
                case _:
                    return None
    return list(dict.fromkeys(found))


def _equal_terms(initial: e.Expr) -> list[tuple[e.Expr, e.Expr, e.Expr]]:
    """Terms with the same initial value at all indices: the index, the term, and the value.

    A universal condition is the value "true" of its body; its conjuncts are processed separately.
    """
    found: list[tuple[e.Expr, e.Expr, e.Expr]] = []
    for part in initial.args if isinstance(initial, e.And) else (initial,):
        if not isinstance(part, Forall):
            continue
        index = e.variables(part.bound)
        for conjunct in part.body.args if isinstance(part.body, e.And) else (part.body,):
            if any(isinstance(t, Forall | Total) for t in e.subterms(conjunct)):
                continue
            if isinstance(conjunct, e.Not):
                found.append((part.bound, conjunct.arg, b.FALSE))
            elif not isinstance(conjunct, e.Eq):
                found.append((part.bound, conjunct, b.TRUE))
            elif not e.variables(conjunct.right) & index:
                found.append((part.bound, conjunct.left, conjunct.right))
            elif not e.variables(conjunct.left) & index:
                found.append((part.bound, conjunct.right, conjunct.left))
    return found
