"""A sweep over everything up to a size, summed up: how much was explored, and the smallest that refutes each variant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from streamproof.report.sweep import Mark, PointReport, SweepReport
from streamproof.system.records import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """What was explored of one size: `samples`, their states together and those of the largest, verdicts by property."""

    size: int
    samples: int
    states: int
    largest: int
    verdicts: Mapping[str, Mapping[Mark, int]]


@dataclass(frozen=True, slots=True)
class Refutation:
    """The smallest sample that violates a property, and how many of its size do."""

    name: str
    value: Any
    size: Mapping[str, int]
    length: int | None
    alike: int
    of: int


@dataclass(frozen=True, slots=True)
class Swept:
    """The model or a variant: `parameters` other than the generated one, and what came of it."""

    variant: str | None
    parameters: Mapping[str, Any]
    stages: tuple[Stage, ...]
    refutations: tuple[Refutation, ...]

    @property
    def samples(self) -> int:
        """How many were looked at."""
        return sum(stage.samples for stage in self.stages)

    @property
    def states(self) -> int:
        """The states of all of them."""
        return sum(stage.states for stage in self.stages)

    @property
    def undecided(self) -> int:
        """Verdicts that are neither ``holds`` nor ``violated``, where the model allows the sample."""
        return sum(
            count
            for stage in self.stages
            for marks in stage.verdicts.values()
            for mark, count in marks.items()
            if mark in ("inconclusive", "error", "open")
        )


def swept(report: SweepReport) -> tuple[Swept, ...]:
    """The model and each variant, with each combination of the other axes' values, in their order."""
    grouped: dict[tuple[Any, ...], list[PointReport]] = {}
    for point in report.points:
        grouped.setdefault(setting_of(report, point), []).append(point)
    ordered = sorted(grouped, key=lambda setting: report.variants.index(setting[0]))
    return tuple(_swept(report, grouped[setting]) for setting in ordered)


def _swept(report: SweepReport, points: Sequence[PointReport]) -> Swept:
    grouped: dict[int, list[PointReport]] = {}
    for point in points:
        grouped.setdefault(report.sizes[value_of(report, point)][report.by], []).append(point)
    found = [_refutation(report, points, name) for name in report.properties]
    return Swept(
        points[0].variant,
        {name: value for name, value in points[0].parameters.items() if name != report.sampled},
        tuple(_stage(size, group, report.properties) for size, group in sorted(grouped.items())),
        tuple(one for one in found if one is not None),
    )


def setting_of(report: SweepReport, point: PointReport) -> tuple[Any, ...]:
    """The variant of a point, and its values of the axes that are not generated."""
    return (point.variant, *(point.parameters[name] for name in report.axes if name != report.sampled))


def value_of(report: SweepReport, point: PointReport) -> Any:
    """The generated value of a point."""
    return point.parameters[report.sampled]


def _stage(size: int, points: Sequence[PointReport], names: Mapping[str, str]) -> Stage:
    states = [point.distinct or 0 for point in points]
    verdicts = {name: dict(Counter(point.answers[name].mark for point in points)) for name in names}
    return Stage(size, len(points), sum(states), max(states), verdicts)


def _refutation(report: SweepReport, points: Sequence[PointReport], name: str) -> Refutation | None:
    violated = [point for point in points if point.answers[name].mark == "violated"]
    if not violated:
        return None

    def size(point: PointReport) -> int:
        return report.sizes[value_of(report, point)][report.by]

    # Of one size, points come in the order in which samples are made: simple ones first.
    first = min(violated, key=size)
    same = [point for point in points if size(point) == size(first)]
    alike = sum(point.answers[name].mark == "violated" for point in same)
    value = value_of(report, first)
    return Refutation(name, value, report.sizes[value], first.answers[name].length, alike, len(same))
