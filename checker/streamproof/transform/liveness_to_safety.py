"""Liveness to safety: a temporal property as an invariant of a larger system, for engines without temporal properties.

A finite system violates a temporal property by a lasso. The larger system guesses the start of the cycle and saves a
copy of the state; the invariant states that it never returns to the copy after seeing everything that a violation
requires of the cycle (A. Biere, C. Artho, V. Schuppan, "Liveness checking as safety checking", 2002). A violation
requires that:

* rounds of fairness have ended (`fair_scheduler`, which also adds stuttering);
* for every *until* of the formula, the guess whether it is true from here on is consistent with each step
  (O. Lichtenstein, A. Pnueli, 1985), and no *until* guessed true is postponed around the whole cycle; the same for every
  step that must happen now or later, which the step taken and the guesses after it bear out;
* for every condition on states or steps that must hold infinitely often, one guess for the whole behaviour is correct
  on the cycle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeAlias

from streamproof.base.errors import UsageError
from streamproof.base.records import dataclass
from streamproof.system import build as b
from streamproof.system.expr import Expr
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
    happenings,
    mapped,
    of_state,
    parts,
    untils,
)
from streamproof.system.model import (
    Action,
    Conjunct,
    Fairness,
    Instance,
    Kind,
    Property,
    State,
    System,
    Variable,
    fresh,
)
from streamproof.system.sorts import BOOL
from streamproof.system.temporal import fairness_of, true_of
from streamproof.system.verdict import Trace
from streamproof.transform.assume import Substitution
from streamproof.transform.constraint import after, changing
from streamproof.transform.fair_scheduler import Scheduled, scheduled

SAVE = "begin_cycle"
"""The action that guesses the start of the cycle."""

Again: TypeAlias = Expr | Recurs
"""A condition that holds infinitely often, or not: on states, or on steps that change the state."""


@dataclass(frozen=True)
class Safety:
    """`system` has one property, an invariant with the name of the temporal property, and the same verdict."""

    original: System
    prop: Property
    system: System
    scheduled: Scheduled
    guesses: int
    """Number of guesses among the picks of an instance."""

    def lasso(self, trace: Trace) -> Trace:
        """The lasso of the original for a violation of the invariant.

        Raises `AssertionError` if it is not a fair violation of the property, according to the interpreter.
        """
        width = len(self.scheduled.system.variables)
        by_label = {(i.action, i.args, i.picks): i for i in self.scheduled.system.instances}
        begun = next(at for at, i in enumerate(trace.steps) if i.action == self.system.actions[-1].name)
        states: list[State] = []
        steps: list[Instance] = []
        for at, state in enumerate(trace.states):
            if at != begun + 1:
                states.append(state[:width])
            if at < len(trace.steps) and at != begun:
                taken = trace.steps[at]
                steps.append(by_label[taken.action, taken.args, taken.picks[: len(taken.picks) - self.guesses]])
        found = self.scheduled.trace(Trace(tuple(states[:-1]), tuple(steps), begun))
        assert self.prop.formula is not None, "a temporal property has a formula"
        assert not true_of(self.original, self.prop.formula, found), "the lasso makes the formula false"
        assert all(evidence.satisfied for evidence in fairness_of(self.original, found)), "the lasso is fair"
        return found


def to_safety(system: System, name: str) -> Safety:
    """The temporal property called `name` as an invariant of a larger system.

    Raises `UsageError` for a property of another kind.
    """
    prop = system.property(name)
    if prop.formula is None:
        raise UsageError(f"{name} is not a temporal property", remedy="it can be proved as it is")
    form = scheduled(replace(system, properties=(), lemmas=()), Atom(b.TRUE), name)
    saving = _Saving(form, _plain(prop.formula), prop)
    return Safety(system, prop, saving.system(), form, len(saving.promises))


# --- the formula in core form: conditions, *not*, *and*, *until*, *happens*, and *infinitely often*
# -----------------------------------


def _plain(formula: Formula) -> Formula:
    match formula:
        case NotF(arg):
            return _not(_plain(arg))
        case OrF(args):
            return _not(AndF(tuple(_not(_plain(arg)) for arg in args)))
        case Always(Eventually(arg)) if of_state(arg):
            return _again(_term(arg))
        case Eventually(Always(arg)) if of_state(arg):
            return _not(_again(b.not_(_term(arg))))
        case Eventually(Happens() as arg):
            return _plain(arg)
        case Eventually(arg):
            return Until(AndF(()), _plain(arg))
        case Always(arg):
            return _not(Until(AndF(()), _not(_plain(arg))))
        case Release(left, right):
            return _not(Until(_not(_plain(left)), _not(_plain(right))))
        case LeadsTo(left, right):
            return _plain(Always(OrF((NotF(left), Eventually(right)))))
        case _:
            return mapped(formula, _plain)


def _again(term: Expr) -> Formula:
    return Always(Eventually(Atom(term)))


def _not(formula: Formula) -> Formula:
    return formula.arg if isinstance(formula, NotF) else NotF(formula)


def _term(formula: Formula) -> Expr:
    match formula:
        case Atom(expr):
            return expr
        case NotF(arg):
            return b.not_(_term(arg))
        case AndF(args):
            return b.and_(map(_term, args))
        case OrF(args):
            return b.or_(map(_term, args))
        case _:
            raise AssertionError("a condition on one state")


def _agains(formula: Formula) -> Iterator[Again]:
    """The conditions that a formula in core form requires infinitely often."""
    match formula:
        case Recurs():
            yield formula
        case Always(Eventually(Atom(term))):
            yield term
        case _:
            for part in parts(formula):
                yield from _agains(part)


# --- the larger system ----------------------------------------------------------------------------------------------------


class _Saving:
    def __init__(self, form: Scheduled, formula: Formula, prop: Property) -> None:
        self._form, self._base, self._prop = form, form.system, prop
        self._formula = formula
        self._taken = set(self._base.index)
        self.promises: tuple[Until | Happens, ...] = tuple(dict.fromkeys((*untils(formula), *happenings(formula))))
        self._agains = tuple(dict.fromkeys(_agains(formula)))
        self._promised = [self._name(f"promised_{k + 1}") for k in range(len(self.promises))]
        self._guessed = [self._name(f"again_{k + 1}") for k in range(len(self._agains))]
        self._kept = [self._name(f"kept_{k + 1}") for k in range(len(self.promises))]
        self._seen = [self._name(f"seen_{k + 1}") for k in range(len(self._agains))]
        self._ended = self._name("round_ended")
        self._cycling = self._name("cycling")
        self._moved = self._name("moved")
        own = [(v.name, v.sort, v.initial) for v in self._base.variables]
        own += [(name, BOOL, (False,)) for name in (*self._promised, *self._guessed)]
        self._copies = [(name, self._name(f"saved {name}"), sort, initial) for name, sort, initial in own]

    def system(self) -> System:
        first = [Variable(name, BOOL, (False, True)) for name in (*self._promised, *self._guessed)]
        later = [*self._kept, *self._seen, self._ended, self._cycling, self._moved]
        copies = [Variable(copy, sort, initial[:1]) for _, copy, sort, initial in self._copies]
        variables = (*self._base.variables, *first, *(Variable(n, BOOL, (False,)) for n in later), *copies)
        actions = tuple(
            replace(a, instances=tuple(i for one in a.instances for i in self._steps(one))) for a in self._base.actions
        )
        name = fresh(SAVE, [a.name for a in actions])
        save = Action(name, (), Fairness.NONE, (self._save(name),))
        claim = Property(
            self._prop.name,
            Kind.INVARIANT,
            b.not_(self._closed()),
            (),
            self._prop.checks,
            self._prop.loc,
            self._prop.doc,
        )
        return replace(
            self._base,
            variables=variables,
            actions=(*actions, save),
            properties=(claim,),
            initially=b.and_((self._base.initially, b.not_(self._true(self._formula)))),
            terminal=None,
        )

    # --- truth values, as guessed ---

    def _true(self, formula: Formula) -> Expr:
        match formula:
            case Atom(expr):
                return expr
            case NotF(arg):
                return b.not_(self._true(arg))
            case AndF(args):
                return b.and_(self._true(arg) for arg in args)
            case Until() | Happens():
                return b.var(self._promised[self.promises.index(formula)], BOOL)
            case Recurs():
                return b.var(self._guessed[self._agains.index(formula)], BOOL)
            case Always(Eventually(Atom(term))):
                return b.var(self._guessed[self._agains.index(term)], BOOL)
            case _:
                raise AssertionError("only plain formulas are left")

    def _steps(self, instance: Instance) -> Iterator[Instance]:
        """The steps of an instance, one for each combination of next guesses."""
        for guess in product((False, True), repeat=len(self.promises)):
            now = [self._fulfilled(promise, instance, guess) for promise in self.promises]
            borne_out = []
            for promise, name, then, right in zip(self.promises, self._promised, guess, now, strict=True):
                left = self._true(promise.left) if isinstance(promise, Until) else b.TRUE
                goes_on = left if then else b.FALSE
                borne_out.append(_equivalent(b.var(name, BOOL), b.or_((right, goes_on))))
            fits = b.and_(borne_out)
            if fits is b.FALSE:
                continue
            guard = () if fits is b.TRUE else (Conjunct(fits, "the guess is borne out", None),)
            updates = (
                *instance.updates,
                *((name, b.truth(then)) for name, then in zip(self._promised, guess, strict=True)),
                *self._watched(instance, now),
            )
            picks = (*instance.picks, *zip(self._promised, guess, strict=True))
            yield replace(instance, guard=(*instance.guard, *guard), updates=updates, picks=picks)

    def _fulfilled(self, promise: Until | Happens, instance: Instance, guess: Sequence[bool]) -> Expr:
        """Whether what must come now or later comes now: in this state, or by this step and with these guesses after it."""
        if isinstance(promise, Until):
            return self._true(promise.right)
        here, index = after(self._form.original, instance), self._base.index
        then: dict[Expr, Expr] = {b.var(n, BOOL): b.truth(g) for n, g in zip(self._promised, guess, strict=True)}
        then |= {b.var(n, self._base.variables[index[n]].sort): term for n, term in instance.updates}
        arg = Substitution(then)(self._true(promise.arg))
        return b.and_((here(changing(self._form.original)), here(promise.step), arg))

    def _watched(self, instance: Instance, now: Sequence[Expr]) -> Iterator[tuple[str, Expr]]:
        """The bookkeeping for a step on the cycle."""
        cycling = b.var(self._cycling, BOOL)
        yield self._moved, b.or_((b.var(self._moved, BOOL), cycling))
        if self._form.round_ends is not None:
            yield self._ended, self._noted(self._ended, self._form.round_ends)
        for fulfilled, promised, kept in zip(now, self._promised, self._kept, strict=True):
            fine = b.or_((b.not_(b.var(promised, BOOL)), fulfilled))
            yield kept, self._noted(kept, fine)
        for what, seen in zip(self._agains, self._seen, strict=True):
            if isinstance(what, Recurs):
                here = after(self._form.original, instance)
                yield seen, self._noted(seen, b.and_((here(changing(self._form.original)), here(what.step))))
            else:
                yield seen, self._noted(seen, what)

    def _noted(self, name: str, now: Expr) -> Expr:
        return b.or_((b.var(name, BOOL), b.and_((b.var(self._cycling, BOOL), now))))

    def _save(self, name: str) -> Instance:
        free = Conjunct(b.not_(b.var(self._cycling, BOOL)), "no cycle has begun", None)
        updates = [(copy, b.var(own, sort)) for own, copy, sort, _ in self._copies]
        return Instance(name, (), (), (free,), ((self._cycling, b.TRUE), *updates))

    def _closed(self) -> Expr:
        """The cycle is closed, and it satisfied everything that a violation requires."""
        back = (b.eq(b.var(own, sort), b.var(copy, sort)) for own, copy, sort, _ in self._copies)
        ended = b.TRUE if self._form.round_ends is None else b.var(self._ended, BOOL)
        kept = (b.var(name, BOOL) for name in self._kept)
        as_guessed = (
            _equivalent(b.var(seen, BOOL), b.var(guessed, BOOL))
            for seen, guessed in zip(self._seen, self._guessed, strict=True)
        )
        return b.and_((b.var(self._cycling, BOOL), b.var(self._moved, BOOL), ended, *kept, *as_guessed, *back))

    # --- names ---

    def _name(self, name: str) -> str:
        found = fresh(name, self._taken)
        self._taken.add(found)
        return found


def _equivalent(one: Expr, other: Expr) -> Expr:
    return b.or_((b.and_((one, other)), b.and_((b.not_(one), b.not_(other)))))
