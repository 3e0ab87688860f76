"""Summary of a sweep over all samples up to a size: numbers explored, and the smallest refutation of each variant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar

from streamproof.sweep.plan import Mark, SampledAxis, SweepPoint
from streamproof.sweep.result import UNDECIDED, SweepReport
from streamproof.system.model import parameter_json
from streamproof.version import VERSION

SCHEMA = "streamproof.sweep/1"
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class SizeSummary:
    """Results for one size: number of `samples`, states in total and of the largest sample, verdicts by property."""

    size: int
    samples: int
    states: int
    largest: int
    verdicts: Mapping[str, Mapping[Mark, int]]


@dataclass(frozen=True, slots=True)
class Refutation:
    """The smallest sample that violates a property, and the number of such samples of its size."""

    property: str
    value: Any
    size: Mapping[str, int]
    length: int | None
    alike: int
    of: int


@dataclass(frozen=True, slots=True)
class SweptVariant:
    """The results of the model or a variant; `parameters` are those other than the generated one."""

    variant: str | None
    parameters: Mapping[str, Any]
    stages: tuple[SizeSummary, ...]
    refutations: tuple[Refutation, ...]

    @property
    def undecided(self) -> int:
        """Number of verdicts other than ``holds`` and ``violated`` at allowed samples."""
        every = (marks for stage in self.stages for marks in stage.verdicts.values())
        return sum(marks.get(mark, 0) for marks in every for mark in UNDECIDED)


def grouped(points: Sequence[SweepPoint], key: Callable[[SweepPoint], Key]) -> dict[Key, list[SweepPoint]]:
    """The points grouped by a key, in the order of their first points."""
    found: dict[Key, list[SweepPoint]] = {}
    for point in points:
        found.setdefault(key(point), []).append(point)
    return found


def settings_of(report: SweepReport) -> dict[tuple[Any, ...], list[SweepPoint]]:
    """The points of the model and of each variant, with each combination of the other axes' values, in their order."""
    found = grouped(report.points, report.plan.setting)
    return {key: found[key] for key in sorted(found, key=lambda setting: report.plan.variants.index(setting[0]))}


def swept(report: SweepReport) -> tuple[SweptVariant, ...]:
    """The results of the model and each variant; empty without generated values."""
    axis = report.plan.sampled
    return () if axis is None else tuple(_swept(report, axis, points) for points in settings_of(report).values())


def _swept(report: SweepReport, axis: SampledAxis, points: Sequence[SweepPoint]) -> SweptVariant:
    stages = sorted(grouped(points, axis.size).items())
    refutations = []
    for name in report.plan.properties:
        for _, group in stages:
            violated = [point for point in group if point.verdicts[name].verdict == "violated"]
            if violated:
                # Samples of one size are in the order of generation: simple ones first.
                value, length = violated[0].parameters[axis.parameter], violated[0].verdicts[name].length
                refutations.append(Refutation(name, value, axis.sizes[value], length, len(violated), len(group)))
                break
    return SweptVariant(
        points[0].variant,
        {name: value for name, value in points[0].parameters.items() if name != axis.parameter},
        tuple(_summary(size, group, report.plan.properties) for size, group in stages),
        tuple(refutations),
    )


def _summary(size: int, points: Sequence[SweepPoint], names: Mapping[str, str]) -> SizeSummary:
    states = [point.states or 0 for point in points]
    verdicts = {name: dict(Counter(point.verdicts[name].verdict for point in points)) for name in names}
    return SizeSummary(size, len(points), sum(states), max(states), verdicts)


def to_json(report: SweepReport) -> dict[str, Any]:
    """The report as JSON data, schema ``streamproof.sweep/1``."""
    sampled = None
    if (axis := report.plan.sampled) is not None:
        about = axis.about
        sampled = {"parameter": axis.parameter, "things": about.things, "by": about.by, "rows": swept(report)}
    document = {
        "schema": SCHEMA,
        "version": VERSION,
        "model": report.model,
        "axes": report.plan.axes,
        "fixed": report.plan.fixed,
        "variants": report.plan.variants,
        "limits": report.limits,
        "exit_code": int(report.exit_code),
        "properties": report.boundaries,
        "points": report.points,
        "generated": sampled,
        "files": report.files,
        "reused": report.reused,
        "seconds": round(report.seconds, 3),
        "reproduce": report.reproduce,
    }
    found: dict[str, Any] = _json(document)
    return found


def _json(value: Any) -> Any:
    """JSON data; dataclasses become objects."""
    match value:
        case Mapping():
            return {str(name): _json(one) for name, one in value.items()}
        case tuple():
            return [_json(one) for one in value]
        case _ if is_dataclass(value):
            return {one.name: _json(getattr(value, one.name)) for one in fields(value)}
        case _:
            return parameter_json(value)
