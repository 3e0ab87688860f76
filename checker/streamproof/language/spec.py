"""`Spec`: a model with its properties and the expected verdicts of its variants; compiles to the transition system."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from streamproof.language.comparison import Comparison
from streamproof.language.compile import compile_model
from streamproof.language.declarations import known_names, parameter_types, wrong_values
from streamproof.language.frames import caller
from streamproof.language.model import Model
from streamproof.language.sweeping import Sweep
from streamproof.system.errors import Loc, ModelError
from streamproof.system.measure import Measure
from streamproof.system.model import System
from streamproof.system.records import dataclass
from streamproof.system.unbounded import Parametric

VERDICTS = ("holds", "violated")
"""Possible expected verdicts."""
PropertyFunction = Callable[..., Any]


@dataclass(frozen=True)
class Spec:
    """A model, the properties stated outside it, and the expected verdicts.

    `expected` maps a variant's name (or ``None`` for the model itself) to ``{property: "holds" | "violated"}``;
    unlisted properties are expected to hold. `variant_parameters` are the parameter values at which a variant is
    refuted, if the defaults do not refute it; `sizes` override the model's.
    """

    model: type[Model]
    properties: tuple[PropertyFunction, ...] = ()
    expected: Mapping[str | None, Mapping[str, str]] = field(default_factory=dict)
    variant_parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    termination: bool = False
    """Also require termination: every behaviour is finite."""
    carries: Mapping[str, Spec | Sequence[PropertyFunction]] = field(default_factory=dict)
    """For parts of a composite, by name: further properties, those of a `Spec` or a list of functions."""
    measures: tuple[PropertyFunction, ...] = ()
    """Quantities in addition to the model's own: functions ``(m, s)`` marked ``@measure``."""
    sweeps: Sweep | None = None
    """The default configurations of ``streamproof sweep``."""
    comparison: Comparison | None = None
    """Designs to compare, and claims about them: `streamproof compare`."""
    loc: Loc | None = field(default=None, compare=False, repr=False)
    """The source position of the specification."""

    def __post_init__(self) -> None:
        if self.loc is None:
            object.__setattr__(self, "loc", caller())
        check_spec(self, self.loc)

    def system(self, variant: str | None = None, **parameters: Any) -> System:
        """The transition system with every property; raises `ModelError` or `UsageError`."""
        if variant is not None:
            parameters = {**self.variant_parameters.get(variant, {}), **parameters}
        model = self.model.build(variant, **parameters)
        return compile_model(model, self.properties, termination=self.termination, carries=self.carries)

    def measured(self, variant: str | None = None, **parameters: Any) -> tuple[Measure, ...]:
        """The quantities of the model as expressions over the variables of its system; raises as `system`."""
        from streamproof.language.measures import measures_of

        if variant is not None:
            parameters = {**self.variant_parameters.get(variant, {}), **parameters}
        return measures_of(self.model.build(variant, **parameters), self.measures)

    def parametric(self, free: Sequence[str], variant: str | None = None, **parameters: Any) -> Parametric:
        """The transition system in which the parameters `free` range over every number within their limits, without
        temporal properties.

        Raises `UsageError` for a name that is not a numeric parameter, and `ModelError`.
        """
        return self._parametric(free, variant, parameters, temporal=False)

    def endless(self, free: Sequence[str], variant: str | None = None, **parameters: Any) -> Parametric:
        """Like `parametric`, with temporal properties, for proofs by ranking functions."""
        return self._parametric(free, variant, parameters, temporal=True)

    def _parametric(
        self, free: Sequence[str], variant: str | None, parameters: Mapping[str, Any], *, temporal: bool
    ) -> Parametric:
        from streamproof.language.parametric import compile_parametric

        if variant is not None:
            own = {n: v for n, v in self.variant_parameters.get(variant, {}).items() if n not in free}
            parameters = {**own, **parameters}
        return compile_parametric(
            self.model, tuple(free), variant, parameters, self.properties, temporal=temporal, carries=self.carries
        )

    def expectation(self, variant: str | None, prop: str) -> str:
        """The expected verdict of a property: ``holds`` or ``violated``."""
        return self.expected.get(variant, {}).get(prop, "holds")


def _system(cls: type[Model], /, variant: str | None = None, **parameters: Any) -> System:
    """The transition system of the model with its own properties."""
    return Spec(cls).system(variant, **parameters)


Model.system = classmethod(_system)  # type: ignore[assignment]


def check_spec(spec: Spec, loc: Loc | None) -> None:
    """Raises `ModelError`, at the line that creates the `Spec`, for an invalid specification."""
    for what, remedy in _of_spec(spec):
        raise ModelError(what, loc=loc, remedy=remedy)


def _of_spec(spec: Spec) -> Iterator[tuple[str, str]]:
    if not (isinstance(spec.model, type) and issubclass(spec.model, Model)):
        yield f"the model of a Spec is {spec.model!r}", "give the class: Spec(MyModel, ...)"
        return
    for part in ("properties", "measures"):
        given = getattr(spec, part)
        if not isinstance(given, Sequence) or isinstance(given, str):
            yield f"{part} of a Spec is {given!r}", f"give a tuple of functions: {part}=(my_property,)"
            return
        for one in given:
            if not inspect.isfunction(one):
                yield f"{part} of a Spec holds {one!r}", "give functions marked @invariant, @step and so on"
    if not isinstance(spec.termination, bool):
        yield f"termination of a Spec is {spec.termination!r}", "give True or False"
    for part, kind in (("sweeps", Sweep), ("comparison", Comparison)):
        if not isinstance(getattr(spec, part), kind | None):
            yield f"{part} of a Spec is {getattr(spec, part)!r}", f"give a {kind.__name__}(...)"
    if not isinstance(spec.carries, Mapping):
        yield f"carries of a Spec is {spec.carries!r}", "give a dict, part by part"
    variants = list(spec.model.variants)
    for part in ("expected", "variant_parameters"):
        given = getattr(spec, part)
        if not isinstance(given, Mapping) or not all(isinstance(one, Mapping) for one in given.values()):
            yield f"{part} of a Spec is {given!r}", f"give a dict of dicts: {part}={{VARIANT: {{...}}}}"
            return
        for variant in given:
            if variant not in variants and not (variant is None and part == "expected"):
                yield (
                    f"{part} names {variant!r}, which is not a variant",
                    known_names(variant, variants, "its variants"),
                )
    for verdicts in spec.expected.values():
        for name, verdict in verdicts.items():
            if verdict not in VERDICTS:
                yield (
                    f"{verdict!r} is expected of {name}, which is not a verdict",
                    f"expect one of {', '.join(VERDICTS)}",
                )
    for variant, values in spec.variant_parameters.items():
        if wrong := wrong_values(values, parameter_types(spec.model.variants[variant])):
            yield f"variant_parameters sets, for {variant!r}, {wrong[0]}", wrong[1]


def check_expected(spec: Spec, variant: str | None, names: Collection[str]) -> None:
    """Raises `ModelError` for an expected verdict of a property that the model or variant does not have."""
    for name in spec.expected.get(variant, {}):
        if name not in names:
            raise ModelError(
                f"a verdict is expected of {name!r}, which is not a property",
                loc=spec.loc,
                remedy=known_names(name, names, "its properties"),
            )
