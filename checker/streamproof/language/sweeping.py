"""`Sweep`: what a model says of its own configurations, so that a sweep over them needs no options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from streamproof.system.records import dataclass

Value: TypeAlias = int | str
"""A parameter's value on an axis; True and False are numbers too."""


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

    def variant_at(self, parameters: Mapping[str, Value]) -> str | None:
        """The variant that stands for the model at these parameters; None: the model itself."""
        for variant, values in self.instead.items():
            if all(parameters.get(name) == value for name, value in values.items()):
                return variant
        return None
