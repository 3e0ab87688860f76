"""From records to the report on a sweep: a mark per point and property, and the formula of where each property holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamproof.language.model import Model
from streamproof.pipeline.sweeps.deciding import Record
from streamproof.pipeline.sweeps.points import Plan, Point
from streamproof.report.sweep import Answer, Boundary, Mark, PointReport
from streamproof.system.model import Kind

PROVABLE = (Kind.INVARIANT.value, Kind.STEP.value, Kind.DEADLOCK.value)
"""Kinds that ``prove --any`` proves."""


def properties_of(plan: Plan) -> dict[str, str]:
    """The properties that are asked about with their kinds, in the model's order; those of variants follow."""
    points = plan.points()
    found: dict[str, str] = {}
    for variant in plan.variants:
        first = next(point for point in points if point.variant == variant)
        listed = plan.target.properties(first.checked_as, first.parameters)
        found |= {p.name: p.kind.value for p in listed if plan.properties is None or p.name in plan.properties}
    return found


def point_reports(plan: Plan, records: Mapping[str, Record], properties: Sequence[str]) -> tuple[PointReport, ...]:
    """What is known of every point."""
    return tuple(_reported(point, records.get(point.key), properties) for point in plan.points())


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


def boundaries(
    plan: Plan,
    points: Sequence[PointReport],
    properties: Mapping[str, str],
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[Boundary, ...]:
    """Where each property holds, of the model and of each variant, with a formula where that changes."""
    found = []
    for variant in plan.variants:
        for name, kind in properties.items():
            marks = [(point, point.answers[name].mark) for point in points if point.variant == variant]
            if any(mark != "refused" for _, mark in marks):
                progress(f"looking for a formula of {name}")
                found.append(_boundary(plan, variant, name, kind, marks))
    return tuple(found)


def _boundary(
    plan: Plan, variant: str | None, name: str, kind: str, marks: Sequence[tuple[PointReport, Mark]]
) -> Boundary:
    holds = sum(mark == "holds" for _, mark in marks)
    violated = sum(mark == "violated" for _, mark in marks)
    undecided = sum(mark in ("inconclusive", "error", "open") for _, mark in marks)
    proof = _proof(plan, variant, name, kind) if holds and not violated else None
    if not (holds and violated):
        return Boundary(variant, name, kind, holds, violated, undecided, None, proof=proof)
    from streamproof.symbolic.boundary import separate

    decided = [(_named(plan, point), mark == "holds") for point, mark in marks if mark in ("holds", "violated")]
    found = separate(decided)
    return Boundary(
        variant,
        name,
        kind,
        holds,
        violated,
        undecided,
        None if found.formula is None else str(found.formula),
        tuple(map(str, found.others)),
        found.smallest,
        found.because,
        proof,
    )


def _named(plan: Plan, point: PointReport) -> dict[str, Any]:
    """The values of the axes by name; True and False are words, there is nothing between them."""
    named = zip(plan.axes, point.values, strict=True)
    return {axis.name: str(value).lower() if isinstance(value, bool) else value for axis, value in named}


def _proof(plan: Plan, variant: str | None, name: str, kind: str) -> str | None:
    """The command that tries to prove for every size what holds at all points explored; None: not of this kind."""
    model: type[Model] = plan.target.variant(variant)
    limits = model.parameter_limits()
    free = [axis.name for axis in plan.axes if axis.name in limits and type(axis.values[0]) is int]
    if kind not in PROVABLE or not free:
        return None
    which = f" --variant {variant}" if variant else ""
    return f"streamproof prove {plan.target.text}{which} --any {','.join(free)} --property {name}"
