"""The points of a sweep: every combination of the axes' values, for the model or its variants, small ones first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from typing import Any, Literal, TypeAlias

from streamproof.base.errors import ModelError, UsageError
from streamproof.language.declare.sweeping import Generated, Sweep, Value
from streamproof.model_registry import Target, find, unknown
from streamproof.system.model import Property

MOST_VALUES = 1000


Mark: TypeAlias = Literal["holds", "violated", "inconclusive", "error", "refused", "absent", "open"]
"""The status of a property at a point. ``refused``: the model does not allow the parameters; ``absent``: the model or variant
has no such property there; ``open``: not checked yet."""


@dataclass(frozen=True, slots=True)
class PointVerdict:
    """The result for one property at one point; `length` of its counterexample or witness, `vacuous`: it holds vacuously,
    `within`: the constraint that ends some of the behaviours that it is about."""

    verdict: Mark
    because: str = ""
    length: int | None = None
    vacuous: bool = False
    within: str | None = None


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One configuration, with its results.

    `variant` is the requested variant, `checked_as` the variant that is actually checked.
    """

    variant: str | None
    checked_as: str | None
    parameters: Mapping[str, Any]
    """All parameters."""
    states: int | None = None
    seconds: float = 0.0
    because: str | None = None
    """Why it has no verdict, or the model's error; None: neither."""
    verdicts: Mapping[str, PointVerdict] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The point as text, a unique key."""
        given = ",".join(f"{name}={value}" for name, value in sorted(self.parameters.items()))
        return f"{self.variant or ''}:{given}"


@dataclass(frozen=True, slots=True)
class SampledAxis:
    """A generated axis, with the sizes of its values."""

    about: Generated
    sizes: Mapping[Value, Mapping[str, int]]

    @property
    def parameter(self) -> str:
        """The parameter's name."""
        return self.about.parameter

    def size(self, point: SweepPoint) -> int:
        """The size of a point's value, by the size in which the sweep proceeds."""
        return self.sizes[point.parameters[self.parameter]][self.about.by]


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """The plan of a sweep: axes, `fixed` parameters, `variants` (None: the model itself)."""

    target: Target
    axes: Mapping[str, tuple[Value, ...]]
    """The varying parameters, each with its values in ascending order."""
    fixed: Mapping[str, Any]
    variants: tuple[str | None, ...]
    sampled: SampledAxis | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    """The properties to check, with their kinds."""

    def setting(self, point: SweepPoint) -> tuple[Any, ...]:
        """The variant of a point, and its values of all axes but the generated one."""
        free = None if self.sampled is None else self.sampled.parameter
        return (point.variant, *(point.parameters[name] for name in self.axes if name != free))

    def stages(self) -> tuple[tuple[SweepPoint, ...], ...]:
        """The points in groups of equal size of the generated value, which are checked one after the other."""
        if self.sampled is None:
            return (self.points(),)
        ordered = sorted(self.points(), key=self.sampled.size)
        return tuple(tuple(group) for _, group in groupby(ordered, key=self.sampled.size))

    def points(self) -> tuple[SweepPoint, ...]:
        """Every point; smaller values first, so that cheap results are available early."""
        ranks = product(*(range(len(values)) for values in self.axes.values()))
        # Sorting is stable: ties are in the order of the variants, then that of the axes.
        ordered = sorted(product(self.variants, ranks), key=lambda entry: sum(entry[1]))
        return tuple(self._point(variant, chosen) for variant, chosen in ordered)

    def _point(self, variant: str | None, ranks: Sequence[int]) -> SweepPoint:
        chosen = {name: values[rank] for (name, values), rank in zip(self.axes.items(), ranks, strict=True)}
        parameters = {**self.target.defaults(variant), **self.fixed, **chosen}
        sweep = self.target.spec.sweeps
        checked_as = variant if variant is not None or sweep is None else sweep.variant_at(parameters)
        return SweepPoint(variant, checked_as, parameters)


def plan_of(
    model: str,
    variants: Sequence[str],
    size: str | None,
    parameters: Sequence[str],
    properties: Sequence[str],
    bounds: Mapping[str, int],
) -> SweepPlan:
    """The plan for a command line: the model's own axes, unless it names others.

    `bounds` are those of the generated axis. Raises `UsageError` for an unknown name, an invalid value, and a plan
    without a varying parameter.
    """
    target = find(model)
    cls = target.spec.model
    variants = tuple(cls.variants) if "all" in variants else variants
    for name in variants:
        target.variant(name)
    if size is not None and size not in cls.sizes:
        raise unknown(f"{target.name} has no size", size, cls.sizes, "its sizes")
    sweep = target.spec.sweeps
    axes = {} if sweep is None else _declared(target, sweep)
    for text in parameters:
        name, _, words = text.partition("=")
        if not words:
            raise UsageError(f"-p {text}: no value", remedy="write -p name=value, -p name=0..3 or -p name=a,b")
        if name in {*target.spec.inputs, *target.spec.questions}:
            option = name.replace("_", "-")
            raise UsageError(
                f"a sweep varies parameters and has no --{option}",
                remedy=f"leave it out and give values with -p, or use streamproof check {target.text} --{option}",
            )
        if name not in cls.parameters():
            raise unknown(f"{target.name} has no parameter", name, cls.parameters(), "its parameters")
        axes[name] = _values(target, name, words)
    sampled = _sampled(target, axes, bounds)
    free = None
    if sampled is not None:
        free = sampled.parameter
        axes[free] = tuple(sampled.sizes)
    kept = {name: values for name, values in axes.items() if len(values) > 1 or name == free}
    if not kept and not variants:
        raise UsageError(
            f"no parameter varies: {target.name} declares no axes" if sweep is None else "nothing varies",
            remedy="give a parameter several values: -p name=0..3 or -p name=a,b",
        )
    fixed = {} if size is None else dict(cls.sizes[size])
    fixed |= {name: values[0] for name, values in axes.items()}
    fixed = {name: value for name, value in fixed.items() if name not in kept}
    wanted = properties or (sweep.properties if sweep is not None else ())
    plan = SweepPlan(target, kept, fixed, (None, *dict.fromkeys(variants)), sampled)
    plan = replace(plan, properties=_properties(plan, wanted))
    if not plan.properties:
        raise UsageError(f"{target.name} has no property to check", remedy="mark one, as @invariant")
    return plan


def _declared(target: Target, sweep: Sweep) -> dict[str, tuple[Any, ...]]:
    """The axes of the specification. Raises `ModelError` for an invalid one."""
    known = target.spec.model.parameters()
    wrong = [name for values in (sweep.axes, *sweep.instead.values()) for name in values if name not in known]
    wrong += [name for name in sweep.instead if name not in target.spec.model.variants]
    if wrong:
        raise ModelError(f"the sweep of {target.name} speaks of {wrong[0]!r}, which it does not have")
    return {name: tuple(values) for name, values in sweep.axes.items()}


def _sampled(target: Target, axes: Mapping[str, Any], bounds: Mapping[str, int]) -> SampledAxis | None:
    """The generated axis, unless its parameter is given values. Raises `UsageError` for wrong bounds."""
    sweep = target.spec.sweeps
    generated = sweep.generated if sweep is not None else None
    if generated is None or generated.parameter in axes:
        if bounds:
            given = " ".join(f"--max-{name}" for name in bounds)
            raise UsageError(
                f"{given}: {target.name} has no axis that is generated", remedy="give a parameter values with -p"
            )
        return None
    try:
        samples = tuple(generated.make(**{**generated.bounds, **bounds}))
    except ValueError as refusal:
        raise UsageError(str(refusal), remedy="give another bound") from refusal
    return SampledAxis(generated, {sample.value: sample.size for sample in samples})


def _values(target: Target, name: str, words: str) -> tuple[Any, ...]:
    """The values in ``0..2,5`` or ``fair,forward-first``, each once."""
    cls = target.spec.model
    found: list[Any] = []
    for word in words.split(","):
        first, dots, last = word.partition("..")
        if not dots:
            found.append(cls.parse(name, word))
            continue
        ends = cls.parse(name, first), cls.parse(name, last)
        if not all(type(end) is int for end in ends):
            raise UsageError(f"-p {name}={words}: {word} is not a range of numbers", remedy=f"write -p {name}=a,b")
        if ends[1] < ends[0] or ends[1] - ends[0] >= MOST_VALUES:
            raise UsageError(
                f"-p {name}={words}: {word} has no values, or too many", remedy="from small to large: 0..3"
            )
        found += range(ends[0], ends[1] + 1)
    return tuple(dict.fromkeys(found))


def _properties(plan: SweepPlan, wanted: Sequence[str]) -> dict[str, str]:
    """The properties to check with their kinds, all if none is `wanted`: those of the model in its order, then of variants.

    Raises `UsageError` for one that neither the model nor a requested variant has, and if the model allows no point.
    """
    every = dict.fromkeys(p.name for v in plan.variants for p in plan.target.properties(v)) if wanted else {}
    for name in wanted:
        if name not in every:
            raise unknown(f"{plan.target.name} has no property", name, every, "its properties")
    listed = (p for variant in plan.variants for p in _listed(plan, variant))
    return {p.name: p.kind.value for p in listed if not wanted or p.name in wanted}


def _listed(plan: SweepPlan, variant: str | None) -> tuple[Property, ...]:
    """The properties at the first point that the model allows."""
    refused: UsageError | None = None
    for point in plan.points():
        if point.variant == variant:
            try:
                return plan.target.system(point.checked_as, point.parameters).properties
            except UsageError as refusal:
                refused = refusal
    assert refused is not None, "a sweep has points"
    raise UsageError(f"the model allows none of the points: {refused.message}", remedy=refused.remedy)
