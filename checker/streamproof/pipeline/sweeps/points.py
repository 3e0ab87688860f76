"""The points of a sweep: every combination of the axes' values, for the model or its variants, the small ones first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import groupby, product
from typing import Any

from streamproof.language.sweeping import Sweep, Value
from streamproof.registry import Target
from streamproof.system.records import dataclass

Job = dict[str, Any]
"""One point to decide, as JSON data: what a process of its own, or a Spark task, is sent."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A parameter and the values that it takes, from small to large."""

    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One configuration. `variant` is what is asked about, `checked_as` the variant whose machine is searched for it."""

    variant: str | None
    values: tuple[Value, ...]
    """One for each axis."""
    checked_as: str | None
    parameters: Mapping[str, Any]
    """All of them."""

    @property
    def key(self) -> str:
        """The point as text: the same for the same question."""
        given = ",".join(f"{name}={value}" for name, value in sorted(self.parameters.items()))
        return f"{self.variant or ''}:{given}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is explored: a model over axes, `fixed` parameters beside them, `variants` (None: the model itself)."""

    target: Target
    axes: tuple[Axis, ...]
    fixed: Mapping[str, Any]
    variants: tuple[str | None, ...]
    properties: tuple[str, ...] | None
    """Those asked about; None: all."""
    sizes: Mapping[Value, Mapping[str, int]] = field(default_factory=dict)
    """Of each value of an axis that was generated, how large it is; without such an axis, nothing."""
    things: str = ""
    """What the generated values are called: graphs."""
    by: str = ""
    """The size by which a sweep over generated values proceeds."""

    def stages(self) -> tuple[tuple[Point, ...], ...]:
        """The points in the groups that are decided one after the other: by the size of what was generated."""
        if not self.sizes:
            return (self.points(),)
        at = next(number for number, axis in enumerate(self.axes) if axis.values[0] in self.sizes)
        ordered = sorted(self.points(), key=lambda point: self.sizes[point.values[at]][self.by])
        return tuple(
            tuple(group) for _, group in groupby(ordered, key=lambda point: self.sizes[point.values[at]][self.by])
        )

    def points(self) -> tuple[Point, ...]:
        """Every point; smaller values first, so that what is cheap is known early."""
        ranks = product(*(range(len(axis.values)) for axis in self.axes))
        # Sorting keeps the order of equals: that of the variants, then that of the axes.
        ordered = sorted(product(self.variants, ranks), key=lambda entry: sum(entry[1]))
        return tuple(self._point(variant, chosen) for variant, chosen in ordered)

    def _point(self, variant: str | None, ranks: Sequence[int]) -> Point:
        values = tuple(axis.values[rank] for axis, rank in zip(self.axes, ranks, strict=True))
        chosen = {axis.name: value for axis, value in zip(self.axes, values, strict=True)}
        parameters = {**self.target.defaults(variant), **self.fixed, **chosen}
        sweep: Sweep | None = self.target.spec.sweeps
        checked_as = variant if variant is not None or sweep is None else sweep.variant_at(parameters)
        return Point(variant, values, checked_as, parameters)
