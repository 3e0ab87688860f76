"""From records to the report on a sweep: a mark per point and property, and the formula of where each property holds."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from streamproof.pipeline.sweeps.deciding import Record
from streamproof.pipeline.sweeps.points import Plan, Point
from streamproof.report.sweep import Answer, Boundary, Mark, PointReport
from streamproof.report.sweep_maps import shown
from streamproof.system.errors import UsageError
from streamproof.system.model import Kind, Property

PROVABLE = (Kind.INVARIANT.value, Kind.STEP.value, Kind.DEADLOCK.value)
"""Kinds that ``prove --any`` proves."""


def properties_of(plan: Plan) -> dict[str, str]:
    """The properties that are asked about with their kinds, in the model's order; those of variants follow.

    Raises `UsageError` where the model allows none of the points.
    """
    found: dict[str, str] = {}
    for variant in plan.variants:
        listed = _listed(plan, [point for point in plan.points() if point.variant == variant])
        found |= {p.name: p.kind.value for p in listed if plan.properties is None or p.name in plan.properties}
    return found


def _listed(plan: Plan, points: Sequence[Point]) -> tuple[Property, ...]:
    """The properties at the first point that the model allows."""
    refused: UsageError | None = None
    for point in points:
        try:
            return plan.target.system(point.checked_as, point.parameters).properties
        except UsageError as refusal:
            refused = refusal
    assert refused is not None, "a sweep has points"
    raise UsageError(f"the model allows none of the points: {refused.message}", remedy=refused.remedy)


def point_reports(
    points: Sequence[Point], records: Mapping[str, Record], properties: Sequence[str]
) -> tuple[PointReport, ...]:
    """What is known of every point."""
    return tuple(_reported(point, records.get(point.key), properties) for point in points)


def _reported(point: Point, record: Record | None, properties: Sequence[str]) -> PointReport:
    answers = {name: _answer(record, name) for name in properties}
    states = record["states"] if record is not None else None
    return PointReport(
        point.variant,
        point.values,
        point.checked_as,
        point.parameters,
        answers,
        None if record is None else record["because"],
        None if states is None else states["distinct"],
        0.0 if record is None else record["seconds"],
    )


def _answer(record: Record | None, name: str) -> Answer:
    if record is None:
        return Answer("open")
    if record["outcome"] == "lost":
        return Answer("inconclusive", record["because"])
    if record["outcome"] == "refused" or name not in record["properties"]:
        return Answer("refused")
    found = record["properties"][name]
    return Answer(found["verdict"], found["because"], found["length"], found["vacuous"])


def boundaries(plan: Plan, points: Sequence[PointReport], properties: Mapping[str, str]) -> tuple[Boundary, ...]:
    """Where each property holds, of the model and of each variant; without the formulas."""
    found = []
    for variant in plan.variants:
        for name, kind in properties.items():
            marks = _marks(points, variant, name)
            if any(mark != "refused" for _, mark in marks):
                found.append(_boundary(variant, name, kind, marks))
    return _with_proofs(plan, found)


def _marks(points: Sequence[PointReport], variant: str | None, name: str) -> list[tuple[PointReport, Mark]]:
    return [(point, point.answers[name].mark) for point in points if point.variant == variant]


def _boundary(variant: str | None, name: str, kind: str, marks: Sequence[tuple[PointReport, Mark]]) -> Boundary:
    holds = sum(mark == "holds" for _, mark in marks)
    violated = sum(mark == "violated" for _, mark in marks)
    vacuous = sum(mark == "holds" and point.answers[name].vacuous for point, mark in marks)
    undecided = sum(mark in ("inconclusive", "error", "open") for _, mark in marks)
    because = "no formula was looked for, the sweep was ended" if holds and violated else ""
    return Boundary(variant, name, kind, holds, violated, undecided, None, because=because, vacuous=vacuous)


def with_formula(plan: Plan, points: Sequence[PointReport], boundary: Boundary) -> Boundary:
    """The same with a formula, where the property holds at some points and is violated at others."""
    if not boundary.changes:
        return boundary
    from streamproof.symbolic.boundary import separate

    marks = _marks(points, boundary.variant, boundary.name)
    decided = [(_named(plan, point), mark == "holds") for point, mark in marks if mark in ("holds", "violated")]
    found = separate(decided)
    return replace(
        boundary,
        formula=None if found.formula is None else str(found.formula),
        others=tuple(map(str, found.others)),
        smallest=found.smallest,
        because=found.because,
    )


def _named(plan: Plan, point: PointReport) -> dict[str, Any]:
    """The values of the axes by name; True and False are words, there is nothing between them."""
    named = zip(plan.axes, point.values, strict=True)
    return {axis.name: shown(value) if isinstance(value, bool) else value for axis, value in named}


def _with_proofs(plan: Plan, found: Sequence[Boundary]) -> tuple[Boundary, ...]:
    """The same with the command that tries to prove for every size what holds at every point explored."""
    free = [axis.name for axis in plan.axes if type(axis.values[0]) is int]
    told = []
    for variant in plan.variants:
        known = plan.target.variant(variant).parameter_limits()
        every = ",".join(name for name in free if name in known)
        names = [b.name for b in found if b.variant == variant and _could_be_proved(b)]
        words = ["streamproof", "prove", plan.target.text, *(["--variant", variant] if variant else []), "--any", every]
        words += [word for name, value in plan.fixed.items() for word in ("-p", f"{name}={shown(value)}")]
        command = shlex.join([*words, *(word for name in names for word in ("--property", name))])
        told += [
            replace(b, proof=command) if every and _could_be_proved(b) else b for b in found if b.variant == variant
        ]
    return tuple(told)


def _could_be_proved(boundary: Boundary) -> bool:
    return boundary.kind in PROVABLE and boundary.holds > 0 and not (boundary.violated or boundary.undecided)
