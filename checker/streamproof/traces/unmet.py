"""Why a temporal formula is false of a behaviour: the conditions on which that depends, and where they are false or true."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from streamproof.base.records import dataclass
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
)
from streamproof.system.temporal import LassoTruth


@dataclass(frozen=True, slots=True)
class Unmet:
    """A condition that is `not wanted` at position `at` of a behaviour or, if `forever`, from there on.

    With the others of a formula it suffices: the formula is false of every behaviour in which they are so.
    """

    atom: Atom | Recurs | Happens
    wanted: bool
    at: int
    forever: bool = False


def unmet(lasso: LassoTruth, formula: Formula) -> tuple[Unmet, ...]:
    """The conditions that make a formula false, which it is in the first state of the behaviour."""
    return tuple(dict.fromkeys(_Why(lasso).of(formula, 0, wanted=True)))


@dataclass(frozen=True, slots=True)
class _Why:
    lasso: LassoTruth

    def of(self, formula: Formula, at: int, *, wanted: bool) -> Iterator[Unmet]:
        """Why a formula does not have the truth value `wanted` at a position."""
        match formula:
            case Atom() | Recurs():
                yield Unmet(formula, wanted, at, isinstance(formula, Recurs))
            case Happens(arg=arg):
                made = [*self.lasso.made(formula, at)]
                if not wanted:
                    made = [step for step in made if self.lasso.true(arg, step[1])][:1]
                if not wanted or not made:
                    yield Unmet(formula, wanted, made[0][0] if made else at)
                for _, then in made:
                    yield from self.of(arg, then, wanted=wanted)
            case NotF(arg):
                yield from self.of(arg, at, wanted=not wanted)
            case AndF(args) | OrF(args):
                # All arguments have the other value, or one that has it suffices.
                others = (arg for arg in args if self.lasso.true(arg, at) is not wanted)
                for arg in others if isinstance(formula, OrF) is wanted else (next(others),):
                    yield from self.of(arg, at, wanted=wanted)
            case Always(arg) | Eventually(arg):
                if isinstance(formula, Always) is wanted:
                    yield from self.of(arg, self.first(arg, at, value=not wanted), wanted=wanted)
                else:
                    yield from self.throughout(arg, at, wanted=wanted)
            case LeadsTo(left, right):
                if wanted:
                    ways = (k for k in self.lasso.future(at) if self.lasso.true(left, k))
                    start = next(k for k in ways if not self.lasso.true(Eventually(right), k))
                    yield from self.of(left, start, wanted=False)
                    yield from self.throughout(right, start, wanted=True)
                else:
                    yield from self.of(Always(OrF((NotF(left), Eventually(right)))), at, wanted=False)
            case Release(left, right):
                yield from self.of(NotF(Until(NotF(left), NotF(right))), at, wanted=wanted)
            case Until(left, right):
                yield from self.until(left, right, at, wanted=wanted)
            case _:
                assert_never(formula)

    def until(self, left: Formula, right: Formula, at: int, *, wanted: bool) -> Iterator[Unmet]:
        """Why an until is false: `right` is false up to a position where `left` is, too, or forever; or why it is true."""
        true, future = self.lasso.true, list(self.lasso.future(at))
        if not wanted:
            ends = next(k for k in future if true(right, k))
            yield from self.of(right, ends, wanted=False)
            for k in future[: future.index(ends)]:
                yield from self.of(left, k, wanted=False)
            return
        ends_wrongly = next((k for k in future if not true(left, k)), None)
        if ends_wrongly is None:
            yield from self.throughout(right, at, wanted=True)
            return
        yield from self.of(left, ends_wrongly, wanted=True)
        for k in future[: future.index(ends_wrongly) + 1]:
            yield from self.of(right, k, wanted=True)

    def throughout(self, formula: Formula, at: int, *, wanted: bool) -> Iterator[Unmet]:
        """Why a formula has the other value at every position from one on."""
        match formula:
            case Atom():
                yield Unmet(formula, wanted, at, forever=True)
            case Happens() if wanted:
                yield from self.of(formula, at, wanted=True)
            case NotF(arg):
                yield from self.throughout(arg, at, wanted=not wanted)
            case AndF(args) | OrF(args) if isinstance(formula, OrF) is wanted:
                for arg in args:
                    yield from self.throughout(arg, at, wanted=wanted)
            case AndF(args) | OrF(args) if any(self.is_constant(arg, at, value=not wanted) for arg in args):
                one = next(arg for arg in args if self.is_constant(arg, at, value=not wanted))
                yield from self.throughout(one, at, wanted=wanted)
            case _:
                for k in self.lasso.future(at):
                    yield from self.of(formula, k, wanted=wanted)

    def is_constant(self, formula: Formula, at: int, *, value: bool) -> bool:
        """Whether a formula has a value at every position from one on."""
        return all(self.lasso.true(formula, k) is value for k in self.lasso.future(at))

    def first(self, formula: Formula, at: int, *, value: bool) -> int:
        """The first position from one on where a formula has a value."""
        return next(k for k in self.lasso.future(at) if self.lasso.true(formula, k) is value)


def sentence(one: Unmet) -> str:
    """Where a condition is false or true."""
    value = "false" if one.wanted else "true"
    if isinstance(one.atom, Recurs):
        return "happens only finitely often" if one.wanted else "happens infinitely often"
    if isinstance(one.atom, Happens):
        never = "never happens" if one.at == 0 else f"does not happen from state {one.at} on"
        return never if one.wanted else f"happens in step {one.at + 1}"
    if one.forever:
        return f"{value} in every state" if one.at == 0 else f"{value} in every state from state {one.at} on"
    return f"{value} in state {one.at}"
