"""Axioms for sums over unbounded index ranges: one constant for each sum in each state.

Each axiom is true of the sums of every state, or step, that the other formulas describe:

* *empty*: a sum over an empty range is 0.
* *parts*: if every value is in its sort, and the sort of the summand is nonnegative, a sum is at least 0, at least each
  summand, and at least the sum of two summands at different indices. The summand may read arrays of unbounded length only
  at the index of the sum, whose range must be the index range of the array: elsewhere an array has no value of its sort.
* *change*: for any indices, the summand changes at another one in the range, or the sum changes by the differences at these
  indices, each counted once. The other one has a witness. So the indices at which a rule seems to write are a guess, and
  the solver shows for the witness that there are no more.
* *whole*: a sum over arrays that a rule writes as a whole is the sum of the elements that it writes.
* *next*: a sum that reads only the next state is a sum of that state.
* *first*: for any value, the initial summand differs from it at an index in the range, which has a witness, or the sum is the
  value times the count. The value is a guess from the initial condition.

The range of a sum depends on the free parameters only (`Conditions.ends`), so it is the same in every state of a
behaviour.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from streamproof.any.certify.smt_conditions import Conditions, indices_in
from streamproof.any.certify.smt_script import INT, TRUTH, SmtTerm, number
from streamproof.any.certify.smt_terms import SmtView
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.sorts import RangeSort
from streamproof.transform.assume import Substitution
from streamproof.transform.unbounded import BINDING, Forall, Tabulated, Total, any_length, conjuncts
from streamproof.transform.unbounded import total as sum_of


class Sums:
    """The axioms about the sums in the given views."""

    def __init__(self, conditions: Conditions) -> None:
        self.conditions, self.script = conditions, conditions.script
        self._witnesses: dict[Total, SmtTerm] = {}

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
        written = dict(updates)
        for total in {**before.totals, **after.totals}:
            if any(isinstance(t, e.Next) for t in e.subterms(total.body)):
                continue
            changed = e.variables(total.body) & written.keys()
            if not changed:
                yield s.same(before.total(total), after.total(total))
            elif (whole := _retabulated(total, written, changed)) is not None:
                yield s.same(after.total(total), before.scalar(whole))
            elif not any(isinstance(t, Forall | Total) for t in e.subterms(total.body)):
                terms = (term for name, term in written.items() if name in changed)
                yield self._changed(before, after, total, [*dict(indices_in(before, (e.Store,), *terms))])

    def _changed(self, before: SmtView, after: SmtView, total: Total, indices: Sequence[SmtTerm]) -> SmtTerm:
        """The summand changes at an index that is not in `indices`, or the sum changes by the differences at these."""
        s, whole = self.script, before.total(total)
        for at, index in enumerate(indices):
            difference = s.op("-", INT, self.part(after, total, index), self.part(before, total, index))
            counted = self._counted(before, total, index, indices[:at])
            whole = s.op("+", INT, whole, s.choice(counted, difference, number(0)))
        witness = s.fresh("w", INT)
        kept = s.same(self.part(after, total, witness), self.part(before, total, witness))
        return self._unless(self._counted(before, total, witness, indices), kept, s.same(after.total(total), whole))

    def _unless(self, counted: SmtTerm, kept: SmtTerm, equation: SmtTerm) -> SmtTerm:
        """A witness is counted and its summand not kept, or the equation holds."""
        return self.script.any_of([self.script.all_of([counted, self.script.negation(kept)]), equation])

    def _counted(self, view: SmtView, total: Total, index: SmtTerm, others: Sequence[SmtTerm]) -> SmtTerm:
        """An index is in the range of a sum, and none of the others."""
        apart = (self.script.negation(self.script.same(index, other)) for other in others)
        return self.script.all_of([self.conditions.in_range(view, total.bound.sort, index), *apart])

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
        for total, value in list(view.totals.items()):
            guess = _guess(total, initial)
            if not _own(total) or not e.variables(guess) <= view.names.keys():
                continue
            if total not in self._witnesses:
                self._witnesses[total] = s.fresh("w", INT)
                self.conditions.mention(self._witnesses[total], total.bound.sort)
            witness, part = self._witnesses[total], view.scalar(guess)
            least, most = self.conditions.ends(view, total.bound.sort)
            many = s.op("+", INT, s.op("-", INT, most, least), number(1))
            whole = part
            if part != number(0):
                s.nonlinear |= not isinstance(guess, e.Const)
                whole = s.op("*", INT, s.choice(s.op("<=", TRUTH, least, most), many, number(0)), part)
            kept = s.same(self.part(view, total, witness), part)
            yield self._unless(self._counted(view, total, witness, ()), kept, s.same(value, whole))

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


def _retabulated(total: Total, written: Mapping[str, e.Expr], changed: Collection[str]) -> e.Expr | None:
    """A sum after a rule that writes each array in it as a whole, as a sum of the state before; None for other rules."""
    terms: list[Any] = list(e.subterms(total.body))
    elements: dict[e.Expr, e.Expr] = {}
    for read in (t for t in terms if _at_bound(t, total) and t.array.name in changed):
        table = written[read.array.name]
        if isinstance(table, Tabulated) and table.bound.sort == total.bound.sort:
            elements[read] = Substitution({table.bound: total.bound})(table.body)
    bodies: list[Any] = [*terms, *e.subterms(*elements.values())]
    reading = sum(isinstance(part, e.Var) and part.name in changed for t in terms for part in e.children(t))
    if len(elements) < len(changed) or reading != len(elements) or any(isinstance(t, BINDING) for t in bodies):
        return None
    return sum_of(total.bound, Substitution(elements)(total.body))


def _own(total: Total) -> bool:
    """Whether a summand reads arrays of unbounded length only at the index of the sum, with the same range, and not
    under a quantifier."""
    terms = list(e.subterms(total.body))
    if any(isinstance(t, Forall | Total | e.Next) for t in terms):
        return False
    arrays: list[Any] = [t for t in terms if isinstance(t, e.Select | e.Store) and any_length(t.array.sort)]
    return all(_at_bound(t, total) and t.array.sort.index == total.bound.sort for t in arrays)


def _guess(total: Total, initial: e.Expr) -> e.Expr:
    """The summand after the equations of the initial condition at the index of the sum; a condition is the value true."""
    known: dict[e.Expr, e.Expr] = {}
    for part in e.subterms(initial):
        if (
            isinstance(part, Forall)
            and part.bound.sort == total.bound.sort
            and not any(isinstance(t, BINDING) for t in e.subterms(part.body))
        ):
            for fact in conjuncts(Substitution({part.bound: total.bound})(part.body)):
                match fact:
                    case e.Not(arg=term):
                        known[term] = b.FALSE
                    case e.Eq(left=left, right=right) if e.variables(left) & e.variables(total.bound):
                        known[left] = right
                    case e.Eq(left=left, right=right):
                        known[right] = left
                    case _:
                        known[fact] = b.TRUE
    return Substitution(known)(total.body)
