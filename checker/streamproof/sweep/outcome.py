"""From records to the report on a sweep: a verdict per point and property, and the formula of where each property holds."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace

from streamproof.sweep.deciding import Record
from streamproof.sweep.plan import Mark, PointVerdict, SweepPlan, SweepPoint
from streamproof.sweep.result import UNDECIDED, Boundary, assignments, shown
from streamproof.system.model import Kind

MISSING: dict[str, Mark] = {"decided": "absent", "refused": "refused"}
"""The status of a property without a verdict in a record with this outcome."""
PROVABLE = (Kind.INVARIANT.value, Kind.STEP.value, Kind.DEADLOCK.value)
"""Kinds supported by ``prove --any``."""


def known(point: SweepPoint, record: Record | None, properties: Iterable[str]) -> SweepPoint:
    """The point with the results in its record; None: not checked."""
    if record is None:
        return replace(point, verdicts=dict.fromkeys(properties, PointVerdict("open")))
    lost = record["outcome"] == "lost"
    missing = (
        PointVerdict("inconclusive", record["because"])
        if lost
        else PointVerdict(MISSING.get(record["outcome"], "open"))
    )
    verdicts = {
        name: PointVerdict(found["verdict"], found["because"], found["length"], found["vacuous"], found["within"])
        for name, found in record["properties"].items()
    }
    states = None if record["states"] is None else record["states"]["distinct"]
    answers = {name: verdicts.get(name, missing) for name in properties}
    return replace(point, states=states, seconds=record["seconds"], because=record["because"], verdicts=answers)


def boundaries(plan: SweepPlan, points: Sequence[SweepPoint]) -> tuple[Boundary, ...]:
    """Where each property holds, for the model and each variant; without the formulas. Empty for generated values."""
    variants = plan.variants if plan.sampled is None else ()
    return tuple(b for variant in variants for b in _of_variant(plan, points, variant))


def _of_variant(plan: SweepPlan, points: Sequence[SweepPoint], variant: str | None) -> list[Boundary]:
    found = []
    for name, kind in plan.properties.items():
        answers = [point.verdicts[name] for point in points if point.variant == variant]
        marks = [answer.verdict for answer in answers]
        holds, violated = marks.count("holds"), marks.count("violated")
        undecided = sum(map(marks.count, UNDECIDED))
        vacuous = sum(answer.verdict == "holds" and answer.vacuous for answer in answers)
        because = "no formula was looked for, the sweep was ended" if holds and violated else ""
        if holds or violated or undecided:
            found.append(Boundary(variant, name, kind, holds, violated, undecided, vacuous, because=because))
    # A property that holds at every explored point comes with the command that tries to prove it for every size.
    provable = [b for b in found if b.kind in PROVABLE and b.holds and not b.uneven]
    limited = plan.target.variant(variant).parameter_limits()
    every = ",".join(name for name, values in plan.axes.items() if type(values[0]) is int and name in limited)
    words = ["streamproof", "prove", plan.target.text, *(["--variant", variant] if variant else []), "--any", every]
    words += [word for text in assignments(plan.fixed.items()) for word in ("-p", text)]
    command = shlex.join([*words, *(word for b in provable for word in ("--property", b.name))])
    return [replace(b, proof=command) if every and b in provable else b for b in found]


def with_formula(plan: SweepPlan, points: Sequence[SweepPoint], boundary: Boundary) -> Boundary:
    """The same with a formula, if the property holds at some points and is violated at others."""
    if not boundary.changes:
        return boundary
    from streamproof.sweep.boundary import separate

    decided = []
    for point in points:
        mark = point.verdicts[boundary.name].verdict
        if point.variant == boundary.variant and mark in ("holds", "violated"):
            values = {name: point.parameters[name] for name in plan.axes}
            # True and False are categories without values between them.
            words = {name: shown(value) if isinstance(value, bool) else value for name, value in values.items()}
            decided.append((words, mark == "holds"))
    found = separate(decided)
    return replace(
        boundary,
        formula=None if found.formula is None else str(found.formula),
        others=tuple(map(str, found.others)),
        smallest=found.smallest,
        because=found.because,
    )
