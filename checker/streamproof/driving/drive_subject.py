"""What an implementation is compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any

from streamproof.base.errors import StreamproofError
from streamproof.base.records import dataclass
from streamproof.language.declare.spec import Spec
from streamproof.system.model import System


@dataclass(frozen=True, slots=True)
class Subject:
    """What an implementation is compared with: a system, and the specification that it is from, for larger bounds.

    `searched` is the same system with its constraint, which limits searches and no implementation.
    """

    system: System
    spec: Spec | None = None
    variant: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    searched: System | None = None

    def larger(self) -> Iterator[System]:
        """The model with twice its `instance_bounds`, none of which limits an implementation.

        With all of them, since larger ones only add behaviours, or with each alone if that is no instance. Twice is enough,
        because a behaviour exceeds a bound by one first.
        """
        if self.spec is None:
            return
        values = self.system.parameters
        bounds = {
            name: 2 * max(values[name], 1) for name in self.spec.model.instance_bounds if values[name] is not None
        }
        given = {name: value for name, value in self.parameters.items() if name not in bounds}
        for enlarged in (bounds, *({name: bound} for name, bound in bounds.items())) if bounds else ():
            rest = {name: values[name] for name in bounds if name not in enlarged}
            with suppress(StreamproofError):  # no such instance, or one that is too large
                yield self.spec.system(self.variant, **given, **rest, **enlarged).unconstrained
                if enlarged is bounds:
                    return
