"""Changes of properties: which of their parts have an effect?

A part is a condition in an invariant, a step property or a temporal formula. Put in its place what makes the property
*stronger* (false for a condition that is demanded, true for one that is assumed): if the property still holds, the part has
no effect, and the property holds vacuously in it (I. Beer, S. Ben-David, C. Eisner, Y. Rodeh, 1997). Put in its place what
makes the property *weaker*: if that notices the same mutants of the rules, no mutant needs the part. Conditions that the
unrolling of ``all(...)`` and ``any(...)`` repeats are one part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from streamproof.base.errors import Loc
from streamproof.base.records import dataclass, replace
from streamproof.symbolic.discovery.pretty import pretty
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.formula import (
    FORMULAS,
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
    Until,
    folded,
    mapped,
    parts,
    written,
)
from streamproof.system.model import Conjunct, Kind, Property, System

Place: TypeAlias = tuple[int, ...]
"""Where a condition is: the numbers of the operands on the way there."""
MOST_PARTS = 200
"""Maximum number of parts of one property."""
KINDS = (Kind.INVARIANT, Kind.STEP, Kind.TEMPORAL)
"""The kinds of properties whose parts are changed."""


@dataclass(frozen=True, slots=True)
class PropertyPart:
    """A part of a property, and the property with another one in its place; None where that would say nothing."""

    property: str
    what: str
    """The part, in words."""
    loc: Loc | None
    stronger: Property | None
    weaker: Property | None


def property_parts(system: System, prop: Property) -> Iterator[PropertyPart]:
    """The parts of a property; none of a temporal one within a constraint, whose formula is another one there."""
    if prop.kind not in KINDS or (prop.kind is Kind.TEMPORAL and system.constraint is not None):
        return
    whole: Expr | Formula = prop.expr if prop.formula is None else prop.formula
    groups: dict[Any, list[tuple[Place, bool, Expr | Formula]]] = {}
    for place, wanted, leaf in _leaves(whole, True, ()):
        groups.setdefault((wanted, _shape(leaf), _source(whole, place), _loc(leaf)), []).append((place, wanted, leaf))
    number = 0
    for alike in groups.values():
        number += 1  # the names of the changed properties are no names of the language, and differ
        (_, wanted, leaf), count = alike[0], len(alike)
        text = _text(leaf) + (f" (and {count - 1} alike)" if count > 1 else "")
        stronger, weaker = (_constant(leaf, wanted is not makes) for makes in (True, False))
        yield PropertyPart(
            prop.name,
            text,
            prop.loc,
            _changed(prop, f"{number}s", whole, {place: stronger for place, _, _ in alike}),
            _changed(prop, f"{number}w", whole, {place: weaker for place, _, _ in alike}),
        )
        if number >= MOST_PARTS:
            return
    if isinstance(whole, FORMULAS):
        for place, operator, now in _operators(whole, True, ()):
            number += 1
            text = f"'later' in {written(operator)}"
            yield PropertyPart(prop.name, text, prop.loc, _changed(prop, f"{number}s", whole, {place: now}), None)


def _source(whole: Expr | Formula, place: Place) -> str:
    """The text of the condition of a formula that a place is in."""
    for at in place:
        if not isinstance(whole, FORMULAS) or isinstance(whole, Atom):
            break
        whole = parts(whole)[at]
    return whole.text if isinstance(whole, Atom) else ""


def _loc(leaf: Expr | Formula) -> Loc | None:
    return leaf.loc if isinstance(leaf, e.Node | Atom | Recurs | Happens) else None


def _constant(leaf: Expr | Formula, value: bool) -> Expr | Formula:
    if isinstance(leaf, FORMULAS):
        return AndF(()) if value else OrF(())
    return b.truth(value)


def _changed(prop: Property, mark: str, whole: Expr | Formula, put: Mapping[Place, Expr | Formula]) -> Property | None:
    """The property with other parts; None if it is constant then."""
    made = _rebuilt(whole, put, ())
    name = f"{prop.name} {mark}"
    if isinstance(made, FORMULAS):
        return None if isinstance(folded(made), bool) else replace(prop, name=name, formula=made)
    if made is b.FALSE or made is b.TRUE:
        return None
    return replace(prop, name=name, expr=made, conjuncts=(Conjunct(made, name, prop.loc),))


def _leaves(whole: Expr | Formula, wanted: bool, place: Place) -> Iterator[tuple[Place, bool, Expr | Formula]]:
    """The conditions that are no connectives, with their places, and whether they are demanded, not assumed."""
    match whole:
        case Atom(expr):
            yield from _leaves(expr, wanted, (*place, 0))
        case e.And(args=args) | e.Or(args=args):
            for at, arg in enumerate(args):
                yield from _leaves(arg, wanted, (*place, at))
        case e.Not(arg=e.And() | e.Or() as arg):
            yield from _leaves(arg, not wanted, (*place, 0))
        case NotF(arg):
            yield from _leaves(arg, not wanted, (*place, 0))
        case LeadsTo(left, right):
            yield from _leaves(left, not wanted, (*place, 0))
            yield from _leaves(right, wanted, (*place, 1))
        case e.Const():
            return
        case Recurs() | Happens(arg=AndF(())):
            yield place, wanted, whole
        case _ if isinstance(whole, FORMULAS):
            for at, part in enumerate(parts(whole)):
                yield from _leaves(part, wanted, (*place, at))
        case _:
            yield place, wanted, whole


def _operators(whole: Formula, wanted: bool, place: Place) -> Iterator[tuple[Place, Formula, Formula]]:
    """The operators by which something may come later, with what demands it at once."""
    match whole:
        case Eventually(arg) if wanted:
            yield place, whole, arg
        case LeadsTo(left, right) if wanted and not isinstance(right, Happens):  # which is about later steps itself
            yield place, whole, Always(OrF((NotF(left), right)))
        case Until(_, right) if wanted:
            yield place, whole, right
        case _:
            pass
    for at, arg in enumerate(parts(whole)):
        turned = isinstance(whole, NotF) or (isinstance(whole, LeadsTo) and at == 0)
        yield from _operators(arg, wanted is not turned, (*place, at))


def _rebuilt(whole: Any, put: Mapping[Place, Expr | Formula], place: Place) -> Any:
    if place in put:
        return put[place]
    match whole:
        case Atom(expr, text, loc):
            made = _rebuilt(expr, put, (*place, 0))
            return whole if made is expr else Atom(made, "" if made is not expr else text, loc)
        case e.And(args=args) | e.Or(args=args):
            made = [_rebuilt(arg, put, (*place, at)) for at, arg in enumerate(args)]
            return (b.and_ if isinstance(whole, e.And) else b.or_)(made)
        case e.Not(arg=arg):
            return b.not_(_rebuilt(arg, put, (*place, 0)))
        case _ if isinstance(whole, FORMULAS):
            numbers = iter(range(len(parts(whole))))
            return mapped(whole, lambda part: _rebuilt(part, put, (*place, next(numbers))))
        case _:
            return whole


def _shape(leaf: Any) -> Any:
    """A condition without its constants."""
    match leaf:
        case e.Const():
            return "constant"
        case tuple():
            return tuple(map(_shape, leaf))
        case e.Node():
            names = (f.name for f in fields(leaf) if f.name not in ("loc", "sort"))
            return (type(leaf).__name__, *(_shape(getattr(leaf, name)) for name in names))
        case Recurs(step):
            return ("recurs", _shape(step))
        case Happens(step, arg):
            return ("happens", _shape(step), _shape(arg))
        case _:
            return leaf


def _text(leaf: Expr | Formula) -> str:
    return written(leaf) if isinstance(leaf, FORMULAS) else pretty(leaf)
