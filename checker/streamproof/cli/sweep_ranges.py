"""``-p NAME=VALUES`` of a sweep: ranges and lists of values, and the plan that they and the model's own axes make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from streamproof.language.sweeping import Generated, Sample, Sweep, Value
from streamproof.pipeline.sweeps.points import Axis, Plan
from streamproof.registry import Target, find, unknown
from streamproof.system.errors import ModelError, UsageError

MOST_VALUES = 1000


def plan_of(
    model: str,
    variants: Sequence[str],
    size: str | None,
    parameters: Sequence[str],
    properties: Sequence[str],
    bounds: Mapping[str, int] = MappingProxyType({}),
) -> Plan:
    """What a command line asks to explore: the model's own axes, unless it names others.

    `bounds` are those of the axis that the model generates. Raises `UsageError` for a name that does not exist, for values
    that are none, and where nothing varies.
    """
    target = find(model)
    cls = target.spec.model
    if "all" in variants:
        variants = tuple(cls.variants)
    for name in variants:
        target.variant(name)
    fixed: dict[str, Any] = {}
    if size is not None:
        if size not in cls.sizes:
            raise unknown(f"{target.name} has no size", size, cls.sizes, "its sizes")
        fixed.update(cls.sizes[size])
    sweep = target.spec.sweeps
    axes = _declared(target, sweep)
    for text in parameters:
        name, equals, words = text.partition("=")
        if not equals or not words:
            raise UsageError(f"-p {text}: no value", remedy="write -p name=value, -p name=0..3 or -p name=a,b")
        if name not in cls.parameters():
            raise unknown(f"{target.name} has no parameter", name, cls.parameters(), "its parameters")
        axes[name] = _values(target, name, words)
    generated = sweep.generated if sweep is not None else None
    if generated is not None and generated.parameter in axes:
        generated = None
    if bounds and generated is None:
        given = " ".join(f"--max-{name}" for name in bounds)
        raise UsageError(
            f"{given}: {target.name} has no axis that is generated", remedy="give a parameter values with -p"
        )
    samples = () if generated is None else _samples(generated, bounds)
    if generated is not None:
        axes[generated.parameter] = tuple(sample.value for sample in samples)
    free = generated.parameter if generated is not None else None
    fixed.update({name: values[0] for name, values in axes.items() if len(values) == 1 and name != free})
    kept = tuple(Axis(name, values) for name, values in axes.items() if len(values) > 1 or name == free)
    if not kept and not variants:
        raise UsageError(
            f"nothing varies: {target.name} has no axes of its own" if sweep is None else "nothing varies",
            remedy="give a parameter several values: -p name=0..3 or -p name=a,b",
        )
    chosen = _properties(target, (None, *variants), properties)
    fixed = {name: value for name, value in fixed.items() if all(axis.name != name for axis in kept)}
    sizes: dict[Value, Mapping[str, int]] = {sample.value: sample.size for sample in samples}
    told = ("", "") if generated is None else (generated.things, generated.by)
    return Plan(target, kept, fixed, (None, *dict.fromkeys(variants)), chosen, sizes, *told)


def _samples(generated: Generated, bounds: Mapping[str, int]) -> tuple[Sample, ...]:
    """The values of an axis that is generated. Raises `UsageError` for bounds that it does not have or that make none."""
    for name in bounds:
        if name not in generated.bounds:
            known = ", ".join(f"--max-{option}" for option in generated.bounds)
            raise UsageError(f"--max-{name}: what is generated has no such bound", remedy=f"its bounds: {known}")
    try:
        return tuple(generated.make(**{**generated.bounds, **bounds}))
    except ValueError as refusal:
        raise UsageError(str(refusal), remedy="give another bound") from refusal


def _declared(target: Target, sweep: Sweep | None) -> dict[str, tuple[Any, ...]]:
    """The axes that the specification names. Raises `ModelError` where they are of something else."""
    if sweep is None:
        return {}
    known = target.spec.model.parameters()
    wrong = [name for values in (sweep.axes, *sweep.instead.values()) for name in values if name not in known]
    wrong += [name for name in sweep.instead if name not in target.spec.model.variants]
    if wrong:
        raise ModelError(f"the sweep of {target.name} speaks of {wrong[0]!r}, which it does not have")
    return {name: tuple(values) for name, values in sweep.axes.items()}


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
            raise UsageError(f"-p {name}={words}: {word} is no range of numbers", remedy=f"write -p {name}=a,b")
        if ends[1] < ends[0] or ends[1] - ends[0] >= MOST_VALUES:
            raise UsageError(
                f"-p {name}={words}: {word} has no values, or too many", remedy="from small to large: 0..3"
            )
        found += range(ends[0], ends[1] + 1)
    return tuple(dict.fromkeys(found))


def _properties(target: Target, variants: Sequence[str | None], asked: Sequence[str]) -> tuple[str, ...] | None:
    """The properties to decide. Raises `UsageError` for one that neither the model nor a variant asked about has."""
    sweep = target.spec.sweeps
    wanted = asked or (sweep.properties if sweep is not None else ())
    if not wanted:
        return None
    every: dict[str, None] = {}
    for variant in variants:
        every |= dict.fromkeys(p.name for p in target.properties(variant))
    for name in wanted:
        if name not in every:
            raise unknown(f"{target.name} has no property", name, every, "its properties")
    return tuple(name for name in every if name in wanted)
