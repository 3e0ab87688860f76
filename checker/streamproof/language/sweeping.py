"""`Sweep`: the configurations of a model, so that a sweep over them needs no options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from streamproof.system.records import dataclass

Value: TypeAlias = int | str
"""A parameter's value on an axis; True and False are also numbers."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a generated axis with its sizes, such as ``{"operators": 3, "loops": 1}``."""

    value: str
    size: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Generated:
    """An axis with all `things` up to a given size, such as every job graph up to a number of operators.

    `make` is called with bounds by name, by default those in `bounds`, and yields the samples in ascending size; it
    raises `ValueError` for invalid bounds. The sweep proceeds by the size `by`: a variant refuted at one size is
    skipped at the next.
    """

    parameter: str
    things: str
    make: Callable[..., Iterable[Sample]]
    bounds: Mapping[str, int | None]
    by: str
    about: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of the bounds for the help of ``streamproof sweep MODEL``, where each is an option ``--max-NAME``."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The default configurations of ``streamproof sweep``.

    `axes` maps parameters to their values, in ascending order. `properties` are the properties to check, all of the
    model if empty. `instead` maps a variant to parameter values that the model does not allow: at these, the variant is
    checked in place of the model.
    """

    axes: Mapping[str, Sequence[Value]]
    properties: tuple[str, ...] = ()
    instead: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    generated: Generated | None = None
    """An additional generated axis, used unless its parameter is given values."""

    def variant_at(self, parameters: Mapping[str, Value]) -> str | None:
        """The variant that replaces the model at these parameters; None: the model itself."""
        for variant, values in self.instead.items():
            if all(parameters.get(name) == value for name, value in values.items()):
                return variant
        return None
