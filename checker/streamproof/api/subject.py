"""What a function of the API is about: a model of which a system is read, or a system as it is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from streamproof import interrupts
from streamproof.base.errors import UsageError
from streamproof.base.options import SearchOptions
from streamproof.base.records import dataclass, replace
from streamproof.language.declare.model import Model
from streamproof.language.declare.spec import Spec
from streamproof.model_registry import unknown
from streamproof.selection import Selection, selected
from streamproof.system.model import Kind, System
from streamproof.system.verdict import CheckResult, Measure

Subject: TypeAlias = str | type[Model] | Model | Spec | System
"""A model by its name or file, its class, an instance with its parameters, its specification, or a transition system."""
NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({})


class KnownProperty(Protocol):
    """A property by name and kind."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def kind(self) -> Kind:
        """Its kind."""


@dataclass(frozen=True, slots=True)
class ChosenSystem:
    """A model or a system, and the chosen properties in its order; None: all."""

    selection: Selection | None
    given: System | None
    properties: tuple[str, ...] | None
    listed: tuple[KnownProperty, ...]
    """The chosen properties; all if none are chosen."""

    @property
    def name(self) -> str:
        """The name of the model or system."""
        if self.selection is not None:
            return self.selection.name
        assert self.given is not None, "one of the two is given"
        return self.given.name

    def model(self, what: str) -> Selection:
        """The selection. Raises `UsageError` for a system: `what` needs the model."""
        if self.selection is None:
            raise UsageError(f"{what} needs a model, not a System", remedy="give the class, its Spec or its name")
        return self.selection

    def read(self) -> tuple[System, Mapping[str, int] | None]:
        """The system, and the extent of its comparison with plain Python; None for a system without its model.

        Raises `ReadingDiffers`, `TooLarge`, and `ModelError`.
        """
        if self.given is not None:
            return self.given, None
        assert self.selection is not None, "one of the two is given"
        system, compared = self.selection.compared()
        return system, compared.to_json()

    def expect_feasible(self, options: SearchOptions) -> None:
        """Raises `TooLarge` if the specification says that the rules, or a search without a limit, would be too large."""
        if self.selection is not None:
            limits = (options.time_limit, options.max_states, options.max_depth, options.max_violations)
            search = all(limit is None for limit in limits)
            self.selection.target.expect_feasible(self.selection.variant, self.selection.given, search=search)

    def measures(self) -> tuple[Measure, ...]:
        """The quantities of the model; none if single properties are chosen."""
        return () if self.selection is None else self.selection.measures()

    def beside(self, options: SearchOptions) -> Iterator[tuple[str, ChosenSystem, SearchOptions]]:
        """The variants that are judged beside the model, by name, each with its options."""
        for other in () if self.selection is None else self.selection.beside():
            chosen = replace(self, selection=other, properties=other.properties, listed=other.listed())
            alone = options if other.properties is None else replace(options, properties=other.properties)
            yield other.variant or "", chosen, alone

    def decided(self) -> Mapping[str, CheckResult]:
        """The deadlock verdicts that the model's instance alone decides, by the name of what decides them."""
        found = () if self.selection is None else tuple(self.selection.decided())
        return {"the instance": CheckResult(findings=found)} if found else {}

    def not_selected(self, result: CheckResult) -> tuple[str, ...]:
        """The names of the listed properties of which a result has no finding."""
        found = {finding.property for finding in result.findings}
        return tuple(p.name for p in self.listed if p.name not in found)


def choose_system(
    model: Subject,
    properties: Iterable[str] | None,
    variant: str | None,
    size: str | None,
    parameters: Mapping[str, Any],
    options: SearchOptions,
) -> ChosenSystem:
    """The choose_system of the arguments that all functions share. Raises `UsageError`."""
    if properties is not None and options.properties is not None:
        raise UsageError("properties are given twice", remedy="leave them out of the options")
    names = options.properties if properties is None else properties
    if isinstance(model, System):
        if variant is not None or size is not None or parameters:
            raise UsageError("a System has its variant and parameters", remedy="give the model instead")
        wanted = None if names is None else [names] if isinstance(names, str) else list(names)
        every = [p.name for p in model.properties]
        for name in wanted or ():
            if name not in every:
                raise unknown(f"{model.name} has no property", name, every, "its properties")
        chosen = None if wanted is None else tuple(name for name in every if name in wanted)
        return ChosenSystem(
            None, model, chosen, tuple(p for p in model.properties if chosen is None or p.name in chosen)
        )
    selection = selected(model, variant, size, parameters, names)
    return ChosenSystem(selection, None, selection.properties, selection.listed())


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Inside, reading the model and all that follows ends after `seconds`; None and infinity: never."""
    with interrupts.limited(None if seconds is None or math.isinf(seconds) else seconds):
        yield
