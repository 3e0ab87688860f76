"""The fingerprint of a system: equal for equal systems, in every process, to match stored results with a system."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from streamproof.system import expr as e
from streamproof.system.formula import atoms, recurring, written
from streamproof.system.model import Check, Fairness, Property, System


def fingerprint(system: System, *more: str) -> str:
    """The SHA-256, in hexadecimal, of everything that a verdict depends on, and of `more`.

    This covers variables with their sorts and initial values, instances with guards, updates and checks, fairness, and
    properties. Source positions, documentation and lemmas are excluded.
    """
    digest = hashlib.sha256()
    numbers: dict[e.Expr, int] = {}
    for line in (*_lines(system, numbers), *(f"more {text}" for text in more)):
        data = line.encode()
        digest.update(b"%d " % len(data) + data)  # line breaks inside a text are escaped
    return digest.hexdigest()


def _lines(system: System, numbers: dict[e.Expr, int]) -> Iterator[str]:
    yield f"system {system.name} {system.variant}"
    for v in system.variables:
        yield f"variable {v.name} {v.sort!r} {[_stable(value) for value in v.initial]}"
    yield from _terms(numbers, "initially", system.initially)
    if system.terminal is not None:
        yield from _terms(numbers, "terminal", system.terminal)
    if system.progress is not Fairness.NONE:
        yield f"progress {system.progress.value}"
    for action in system.actions:
        yield f"action {action.name} {action.fairness.value}"
        yield from (f"fairness {one.fairness.value}{one.part}" for one in action.several)
        for instance in action.instances:
            yield f"instance {instance.label}{'' if instance.fair else ' without fairness'}"
            yield from (f"fairness {number}" for number in instance.listed)
            yield from _terms(numbers, "guard", *(c.expr for c in instance.guard))
            yield from _checks(numbers, (*instance.guard_checks, *instance.effect_checks))
            for name, term in instance.updates:
                yield from _terms(numbers, f"update {name}", term)
    for prop in system.properties:
        yield from _property(numbers, prop)


def _property(numbers: dict[e.Expr, int], prop: Property) -> Iterator[str]:
    formula = prop.formula
    yield f"property {prop.name} {prop.kind.value} {'' if formula is None else written(formula)}"
    if formula is not None:
        yield from _terms(numbers, "atoms", *(atom.expr for atom in atoms(formula)))
        yield from _terms(numbers, "steps", *(part.step for part in recurring(formula)))
    yield from _terms(numbers, "expression", prop.expr)
    for conjunct in prop.conjuncts:
        yield from _terms(numbers, f"conjunct {conjunct.text}", conjunct.expr)
    yield from _checks(numbers, prop.checks)


def _checks(numbers: dict[e.Expr, int], checks: Iterable[Check]) -> Iterator[str]:
    for check in checks:
        yield from _terms(numbers, f"check {check.message}", check.condition)


def _terms(numbers: dict[e.Expr, int], what: str, *roots: e.Expr) -> Iterator[str]:
    """One line per new subterm, with the numbers of its operands, and one line for the roots: shared terms appear once."""
    for term in e.subterms(*roots):
        if term not in numbers:
            numbers[term] = len(numbers)
            parts = [_part_text(numbers, getattr(term, f.name)) for f in fields(term) if f.name not in ("sort", "loc")]
            yield f"{numbers[term]} {type(term).__name__} {term.sort!r} {' '.join(parts)}"
    yield f"{what} {' '.join(str(numbers[root]) for root in roots)}"


def _part_text(numbers: dict[e.Expr, int], part: Any) -> str:
    if isinstance(part, e.Node):
        return str(numbers[part])  # type: ignore[index]
    if isinstance(part, tuple) and part and all(isinstance(item, e.Node) for item in part):
        return ",".join(str(numbers[item]) for item in part)
    return _stable(part)


def _stable(value: Any) -> str:
    """A text of a value that is independent of set order."""
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(_stable, value)))}}}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_stable, value))})"
    return repr(value)
