"""Goals: each property as a formula for the event that decides it, in a state or at a step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import assert_never

from streamproof.base.errors import ModelError, UsageError
from streamproof.base.records import dataclass
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.theory import Term
from streamproof.system import build as b
from streamproof.system.model import Kind, Property, System
from streamproof.system.verdict import Finding, Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """A property of the original system (`prop`) with the formula of its deciding event.

    `event` is `decisive`, a violation or a witness of reachability, or an evaluation error of the property. It refers to the
    current state, or, for step properties (`step`), to the current and the following one.
    """

    prop: Property
    event: Term
    decisive: Term

    @property
    def step(self) -> bool:
        """Whether the event occurs at a step rather than in a state."""
        return self.prop.kind is Kind.STEP


def chosen(system: System, names: Sequence[str] | None) -> tuple[Property, ...]:
    """The properties in `names` (all if None), in the system's order. Raises `UsageError` for an unknown name."""
    if names is None:
        return system.properties
    known = {p.name for p in system.properties}
    for name in names:
        if name not in known:
            have = ", ".join(p.name for p in system.properties) or "none"
            raise UsageError(f"{system.name} has no property {name!r}", remedy=f"its properties: {have}")
    return tuple(p for p in system.properties if p.name in names)


def offered(system: System, besides: Iterable[Property]) -> tuple[Property, ...]:
    """The lemmas of the system that do not repeat one of the properties `besides`.

    Raises `ModelError` for a lemma that is neither an invariant nor a step property.
    """
    for lemma in system.lemmas:
        if lemma.kind not in (Kind.INVARIANT, Kind.STEP):
            raise ModelError(
                f"lemma {lemma.name} is of kind {lemma.kind.value}",
                loc=lemma.loc,
                remedy="write a lemma as an invariant of states or as a step property",
            )
    known = {(p.kind, p.expr) for p in besides}
    return tuple(lemma for lemma in system.lemmas if (lemma.kind, lemma.expr) not in known)


def goals(encoding: Encoding, properties: Iterable[Property]) -> tuple[Goal, ...]:
    """A goal for each of these properties and lemmas of the original system; temporal properties have none."""
    original, scalar = encoding.scalarised.original, encoding.system
    twins = dict(zip((*original.properties, *original.lemmas), (*scalar.properties, *scalar.lemmas), strict=True))
    return tuple(_goal(encoding, p, twins[p]) for p in properties if p.kind not in ENDLESS)


def _goal(encoding: Encoding, prop: Property, twin: Property) -> Goal:
    wrong, decisive = encoding.fires(twin.checks), _decisive(encoding, twin)
    return Goal(prop, encoding.any_of([wrong, decisive]), encoding.all_of([encoding.no(wrong), decisive]))


def _decisive(encoding: Encoding, prop: Property) -> Term:
    match prop.kind:
        case Kind.DEADLOCK:
            # An evaluation error of a guard takes precedence over deadlock.
            return encoding.all_of([encoding.stuck, encoding.no(encoding.mistake)])
        case Kind.REACHABLE:
            return encoding.term(prop.expr)
        case Kind.INVARIANT | Kind.STEP:
            return encoding.no(encoding.term(prop.expr))
        case Kind.TERMINATION | Kind.TEMPORAL:
            raise AssertionError(f"{prop.name} is decided by no single state or step")
        case _:
            assert_never(prop.kind)


def finding(prop: Property, verdict: Verdict, because: str) -> Finding:
    """A verdict without a trace."""
    return Finding(prop.name, prop.kind, verdict, None, because)


def candid(system: System, found: Finding) -> Finding:
    """The finding, if it is on deadlocks marked as vacuous where every state is terminal."""
    if found.kind is not Kind.DEADLOCK or found.verdict is not Verdict.HOLDS:
        return found
    if system.terminal is not b.TRUE:
        return replace(found, vacuous=False)
    return replace(found, because="vacuous: every state is terminal, so none is a deadlock", vacuous=True)


ENDLESS = {
    Kind.TERMINATION: "termination is decided on the whole graph of states: use check, which explores it",
    Kind.TEMPORAL: "a temporal property is decided on the whole graph of states: use check, which explores it",
}
"""The kinds of property about infinite behaviours, and the alternative for them."""
