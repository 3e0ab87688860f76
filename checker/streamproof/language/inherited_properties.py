"""Inherited properties: those of the parts of a composite, as properties of the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from streamproof.language.layout import instantiate
from streamproof.language.machines import Machine, below
from streamproof.language.model import Model
from streamproof.system import build as b
from streamproof.system.errors import ModelError, suggest
from streamproof.system.expr import Expr
from streamproof.system.formula import AndF, Formula
from streamproof.system.model import Conjunct, Kind, Property, System, Variable
from streamproof.system.records import replace


class Stated(Protocol):
    """The properties and lemmas that a `Spec` states for a machine."""

    model: type[Model]
    properties: Sequence[Callable[..., Any]]
    carries: Mapping[str, Any]


Carried = Mapping[str, Any]
"""Properties stated outside the models of the parts: a `Spec`, or functions, by part."""


def inherited(model: Model, carries: Carried) -> Iterator[tuple[str, Model, tuple[Callable[..., Any], ...], Carried]]:
    """The parts of a composite, each with its name, its external properties, and those for its own parts."""
    machine = instantiate(model)
    wanted = by_part(machine, carries)
    for name, child in below(machine):
        functions, deeper = stated(child, wanted.get(name))
        yield name, child.model, functions, deeper


def by_part(machine: Machine, carries: Carried) -> dict[str, Any]:
    """External properties by part; entries with a longer path are kept for that part."""
    found: dict[str, Any] = {}
    for path, what in carries.items():
        name, _, deeper = path.partition(".")
        if name not in machine.below:
            owner = machine.path or type(machine.model).title()
            known = list(machine.below)
            raise ModelError(
                f"carries={{{path!r}: ...}} of a Spec: {owner} has no part {name!r}",
                loc=machine.parts.loc if machine.parts else machine.loc,
                remedy=suggest(name, known, f"its parts: {', '.join(known) or 'none'}"),
            )
        before = found.get(name, ((), {}))
        found[name] = (before[0], {**before[1], deeper: what}) if deeper else ((*before[0], what), before[1])
    return found


def stated(child: Machine, carried: Any) -> tuple[tuple[Callable[..., Any], ...], Carried]:
    """The external properties of a part, and the entries for its own parts."""
    if carried is None:
        return (), {}
    functions: list[Callable[..., Any]] = []
    deeper = dict(carried[1])
    for what in carried[0]:
        if callable(what):
            functions.append(what)
            continue
        if isinstance(what, Iterable):
            functions += what
            continue
        spec: Stated = what
        if not isinstance(child.model, spec.model):
            raise ModelError(
                f"{child.path} is a {type(child.model).__name__}, and the Spec that is carried for it is "
                f"about {spec.model.__name__}",
                loc=child.loc,
                remedy=f"give the Spec of {type(child.model).__name__}",
            )
        functions += spec.properties
        deeper = {**spec.carries, **deeper}
    return tuple(functions), deeper


def carried_over(
    below: Sequence[tuple[str, Machine, System]], of: Callable[[System], Iterable[Property]]
) -> Iterator[tuple[str, Property]]:
    """The properties of the parts as properties of the whole; those of several parts of one name are joined."""
    families: dict[str, list[tuple[str, Property]]] = {}
    for name, child, system in below:
        note = child.path[child.path.rindex(name) :] if child.path.endswith("]") else ""
        for prop in of(system):
            families.setdefault(f"{name}.{prop.name}", []).append((note, _stuttering(prop, system)))
    for name, members in families.items():
        yield name, _merged(name, members)


def _stuttering(prop: Property, system: System) -> Property:
    """A step property of a part: it ranges over the steps that change a variable of the part."""
    if prop.kind is not Kind.STEP:
        return prop
    same = b.and_(_same(v) for v in system.variables)
    return replace(
        prop,
        expr=b.or_((same, prop.expr)),
        conjuncts=tuple(replace(c, expr=b.or_((same, c.expr))) for c in prop.conjuncts),
    )


def _same(variable: Variable) -> Expr:
    return b.eq(b.next_(variable.name, variable.sort), b.var(variable.name, variable.sort))


def _merged(name: str, members: Sequence[tuple[str, Property]]) -> Property:
    first = members[0][1]
    if len(members) == 1 and not members[0][0]:
        return replace(first, name=name)
    noted = [
        replace(p, conjuncts=tuple(replace(c, text=_noted(c.text, note)) for c in p.conjuncts)) for note, p in members
    ]
    conjuncts = tuple(c for p in noted for c in p.conjuncts)
    formulas: list[Formula] = [p.formula for p in noted if p.formula is not None]
    expr = b.and_(p.expr for p in noted)
    if first.kind is Kind.REACHABLE:
        expr = b.or_(p.expr for p in noted)
        conjuncts = (Conjunct(expr, name, first.loc),)
    return replace(
        first,
        name=name,
        expr=expr,
        conjuncts=conjuncts,
        checks=tuple(c for p in noted for c in p.checks),
        formula=AndF(tuple(formulas)) if formulas else None,
        views=tuple(
            (f"{note}: {text}", term) for (note, _), p in zip(members, noted, strict=True) for text, term in p.views
        ),
    )


def _noted(text: str, note: str) -> str:
    return f"{text}  [{note}]"
