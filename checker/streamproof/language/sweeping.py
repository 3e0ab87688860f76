"""`Sweep`: what a model says of its own configurations, so that a sweep over them needs no options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from streamproof.system.records import dataclass

Value: TypeAlias = int | str
"""A parameter's value on an axis; True and False are numbers too."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a generated axis, and how large it is, as ``{"operators": 3, "loops": 1}``."""

    value: str
    size: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Generated:
    """An axis whose values are all `things` up to a given size, as every job graph with at most so many operators.

    `make` is called with bounds by name, those of `bounds` unless others are asked for, and gives the samples, small ones
    first; it raises `ValueError` for bounds that make no sense. `by` is the size by which the sweep proceeds: a variant
    that is refuted at one is not asked about at the next.
    """

    parameter: str
    things: str
    make: Callable[..., Iterable[Sample]]
    bounds: Mapping[str, int | None]
    by: str
    about: Mapping[str, str] = field(default_factory=dict)
    """What bounds mean, for the help of ``streamproof sweep MODEL``, where each is an option ``--max-NAME``."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The configurations that ``streamproof sweep`` explores unless others are asked for.

    `axes` maps parameters to their values, from small to large. `properties` are the ones that are decided, all of the
    model when empty. `instead` maps a variant to values of parameters: where the parameters have these values, that variant
    is checked in place of the model, which does not allow them.
    """

    axes: Mapping[str, Sequence[Value]]
    properties: tuple[str, ...] = ()
    instead: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    generated: Generated | None = None
    """An axis beside them, which is used unless its parameter is given values."""

    def variant_at(self, parameters: Mapping[str, Value]) -> str | None:
        """The variant that stands for the model at these parameters; None: the model itself."""
        for variant, values in self.instead.items():
            if all(parameters.get(name) == value for name, value in values.items()):
                return variant
        return None
