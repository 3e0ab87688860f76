"""Finite prefixes that refute a formula, by the expansion of its operators: what must be true after each state.

The obligation after a prefix is a disjunction of *cases*, sets of formulas with the truth value that each must have from the
next position on (F. Bacchus, F. Kabanza 1998). An *informative* prefix leaves no case (O. Kupferman, M. Vardi, "Model
Checking of Safety Properties", 2001). A prefix may be bad although it is not informative: if no behaviour satisfies any of
the cases, because parts of the formula contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import TypeAlias, assert_never

from streamproof.system.expr import Expr, Not
from streamproof.system.formula import (
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    Happens,
    LeadsTo,
    NotF,
    OrF,
    Recurs,
    Release,
    Until,
    atoms,
    claims,
    folded,
    parts,
)
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import State, System

Case: TypeAlias = frozenset[tuple[Formula, bool]]
Cases: TypeAlias = frozenset[Case]
"""A disjunction; without cases it is false."""

MOST_CONDITIONS = 8
MOST_OBLIGATIONS = 500
"""The size of a formula up to which `may_contradict` finds out."""


def obligation(formula: Formula) -> Cases:
    """What a formula demands before the first state."""
    return frozenset([frozenset([(formula, True)])])


def progressed(cases: Cases, true: Callable[[Expr], bool]) -> Cases:
    """The obligation after a state in which these conditions are `true`."""
    return _any(_after_case(case, true) for case in cases)


def _after_case(case: Case, true: Callable[[Expr], bool]) -> Cases:
    return _conjunction(_after(formula, wanted, true) for formula, wanted in case)


def _after(formula: Formula, wanted: bool, true: Callable[[Expr], bool]) -> Cases:
    def then(part: Formula) -> Cases:
        return _after(part, wanted, true)

    again = frozenset([frozenset([(formula, wanted)])])
    match formula:
        case Atom(expr):
            return frozenset([frozenset()]) if true(expr) is wanted else frozenset()
        case NotF(arg):
            return _after(arg, not wanted, true)
        case AndF(args) | OrF(args):
            return (_conjunction if isinstance(formula, AndF) is wanted else _any)(map(then, args))
        case Always(arg) | Eventually(arg):
            return (_conjunction if isinstance(formula, Always) is wanted else _any)((then(arg), again))
        case Until(left, right) | Release(left, right):
            if isinstance(formula, Until) is wanted:
                return _any((then(right), _conjunction((then(left), again))))
            return _conjunction((then(right), _any((then(left), again))))
        case LeadsTo(left, right):
            return then(Always(OrF((NotF(left), Eventually(right)))))
        case Recurs() | Happens():  # a formula with Happens is not judged within a constraint
            return again
        case _:
            assert_never(formula)


def _any(several: Iterable[Cases]) -> Cases:
    """The disjunction, without cases that demand more than another."""
    cases = {case for some in several for case in some}
    return frozenset(case for case in cases if not any(other < case for other in cases))


def _conjunction(several: Iterable[Cases]) -> Cases:
    """The conjunction."""
    found: Cases = frozenset([frozenset()])
    for some in several:
        found = _any(frozenset([one | other]) for one, other in product(found, some))
    return found


def may_contradict(formula: Formula) -> bool:
    """Whether a prefix may be bad without being informative; also true if the formula is too large to find out.

    Conditions count as independent. If each occurs either negated or not, all cases are satisfied where all literals are
    true, and every bad prefix is informative: only a condition that occurs in both ways can make parts contradict each other.
    """
    kept = folded(formula)
    if isinstance(kept, bool):
        return False
    groups: list[tuple[list[Formula], set[Expr]]] = []
    literals = set(_literals(kept, wanted=True))
    both = {expr for expr, wanted in literals if (expr, not wanted) in literals}
    for claim in claims(kept):  # conjuncts without a common condition in `both` do not contradict each other
        own = {expr for expr, _ in _literals(claim, wanted=True)} & both
        near = [group for group in groups if group[1] & own]
        groups = [group for group in groups if group not in near]
        groups.append(([claim, *(c for some, _ in near for c in some)], own.union(*(some for _, some in near))))
    return any(shared and _contradicts(AndF(tuple(some))) for some, shared in groups)


def _contradicts(formula: Formula) -> bool:
    conditions = list(dict.fromkeys(_positive(atom.expr) for atom in atoms(formula)))
    if len(conditions) > MOST_CONDITIONS:
        return True
    words = _Words(conditions)
    todo = [obligation(formula)]
    known = {*todo}
    for cases in todo:  # which grows
        if len(known) > MOST_OBLIGATIONS or (cases and not any(map(words.satisfiable, cases))):
            return True
        new = {progressed(cases, letter) for letter in words.letters} - known
        known |= new
        todo += new
    return False


def may_leave_open(system: System, name: str, states: Iterable[State]) -> bool:
    """Whether some of these states are outside the constraint of `system`, and the temporal property called `name`
    `may_contradict` itself before, so that its weak semantics does not decide it."""
    limit = system.constraint
    if limit is None:
        return False
    value = Interpreter(system).value
    outside = any(not value(c.expr, state) for state in states for c in limit.conjuncts)
    return outside and may_contradict(limit.own_formula(name))


def _positive(condition: Expr) -> Expr:
    return condition.arg if isinstance(condition, Not) else condition


class _Words:
    """The infinite words over all valuations of some conditions."""

    def __init__(self, conditions: Sequence[Expr]) -> None:
        rows = (dict(zip(conditions, row, strict=True)) for row in product((False, True), repeat=len(conditions)))
        self.letters = [partial(self._true, row) for row in rows]
        self._known: dict[Case, bool] = {}

    @staticmethod
    def _true(row: Mapping[Expr, bool], condition: Expr) -> bool:
        return row[_positive(condition)] is not isinstance(condition, Not)

    def satisfiable(self, case: Case) -> bool:
        """Whether some word makes everything in the case true: a path on which every eventuality is fulfilled."""
        if case in self._known:
            return self._known[case]
        follow: dict[Case, set[Case]] = {}
        todo = [case]
        for one in todo:  # which grows
            if one not in follow:
                follow[one] = (
                    set() if self._torn(one) else {c for letter in self.letters for c in _after_case(one, letter)}
                )
                todo += follow[one]
        promises = [*{part for one in follow for part in one if _is_promise(*part)}]
        live, before = set(follow), 0
        while len(live) != before:
            before = len(live)
            for kept in ({one for one in live if part not in one} for part in promises or [(OrF(()), True)]):
                reach = set(kept)
                while more := {one for one in live - reach if follow[one] & reach}:
                    reach |= more
                live = {one for one in live if follow[one] & reach}
        self._known.update((one, one in live) for one in follow)
        return self._known[case]

    @staticmethod
    def _torn(case: Case) -> bool:
        """Whether the case demands a condition on steps and its negation."""
        return any(isinstance(formula, Recurs) and (formula, not wanted) in case for formula, wanted in case)


def _is_promise(formula: Formula, wanted: bool) -> bool:
    """Whether something must happen: a formula that may not remain in the cases forever."""
    return isinstance(formula, Eventually | Until) if wanted else isinstance(formula, Always | Release)


def _literals(formula: Formula, *, wanted: bool) -> Iterator[tuple[Expr, bool]]:
    match formula:
        case Atom(expr) | Recurs(expr):
            yield _positive(expr), wanted is not isinstance(expr, Not)
        case NotF(arg):
            yield from _literals(arg, wanted=not wanted)
        case LeadsTo(left, right):
            yield from _literals(left, wanted=not wanted)
            yield from _literals(right, wanted=wanted)
        case _:
            for part in parts(formula):
                yield from _literals(part, wanted=wanted)
