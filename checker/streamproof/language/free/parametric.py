"""Compilation of a model with free parameters to a `Parametric` system, for every value of them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from types import MappingProxyType
from typing import Any, TypeAlias

from streamproof.base.errors import ModelError, UsageError
from streamproof.base.records import replace
from streamproof.language.declare.declarations import parameter_types
from streamproof.language.declare.model import Model
from streamproof.language.declare.variables import Decl
from streamproof.language.free.evaluation import evaluate
from streamproof.language.free.host_values import expect_ordinary
from streamproof.language.free.symbolic_parameters import SymbolicInt, UniformArray, watching
from streamproof.language.lower.conversion import ANY, plain
from streamproof.language.lower.terms import is_expr
from streamproof.system import build as b
from streamproof.system.expr import Expr, LessEq, Node, intern
from streamproof.system.model import System
from streamproof.system.sorts import (
    BOOL,
    INFINITY,
    ArraySort,
    RangeSort,
    RecordSort,
    Sort,
    TermRange,
    Value,
    contains,
    values,
)
from streamproof.system.verdict import Measure
from streamproof.transform.unbounded import Free, Parametric, forall

Compile: TypeAlias = Callable[..., tuple[System, Mapping[str, Decl]]]
"""Compiles a model with free parameters: `spec.compile_unbounded`."""


def compile_parametric(
    compiled: Compile,
    cls: type[Model],
    free: Sequence[str],
    variant: str | None,
    parameters: Mapping[str, Any],
    properties: Sequence[Callable[..., Any]],
    *,
    temporal: bool = False,
    carries: Mapping[str, Any] = MappingProxyType({}),
) -> Parametric:
    """The transition system of a model for every value, within its limits, of the parameters `free`.

    Temporal properties are included only if `temporal`. Raises `UsageError` for a name that is not a numeric parameter
    or also has a value in `parameters`, and `ModelError`.
    """
    own = cls.variants.get(variant or "", cls)
    with _built(cls, free, variant, parameters) as (model, chosen):
        amounts = frozenset(f.name for f in chosen)
        system, declarations = compiled(model, amounts, properties, temporal=temporal, carries=carries)
        numbers = count(1)
        initial = [system.initially]
        for name, decl in declarations.items():
            term = b.var(name, decl.sort)
            initial.append(b.or_(_starts(term, decl.sort, value, numbers) for value in decl.first))
        fixed = {name: plain(getattr(model, name)) for name in own.parameters() if name not in amounts}
        without_starts = replace(
            system,
            variables=tuple(replace(v, initial=()) for v in system.variables),
            initially=b.TRUE,
            parameters={**fixed, **{f.name: "any" for f in chosen}},
        )
        firsts = {n: len(d.first[0].value) for n, d in declarations.items() if isinstance(d.first[0], UniformArray)}
        return Parametric(without_starts, chosen, b.and_(initial), fixed, firsts)


@contextmanager
def _built(
    cls: type[Model], free: Sequence[str], variant: str | None, parameters: Mapping[str, Any]
) -> Iterator[tuple[Model, tuple[Free, ...]]]:
    """An instance of the model whose parameters `free` are symbolic, while it is read."""
    own = cls.variants.get(variant or "", cls)
    chosen = tuple(_free(own, name, parameters) for name in dict.fromkeys(free))
    amounts = {f.name: SymbolicInt(b.var(f.name, f.sort)) for f in chosen}
    if amounts:
        expect_ordinary(own)
    with watching(Model, frozenset(amounts), evaluate) if amounts else nullcontext():
        yield cls.build(variant, **parameters, **amounts), chosen


def quantity(
    read: Callable[[Model, frozenset[str]], Measure | None],
    cls: type[Model],
    free: Sequence[str],
    variant: str | None,
    parameters: Mapping[str, Any],
) -> Measure | None:
    """A quantity for every value of the parameters `free`; raises as `compile_parametric`."""
    with _built(cls, free, variant, parameters) as (model, chosen):
        return read(model, frozenset(f.name for f in chosen))


def _free(cls: type[Model], name: str, parameters: Mapping[str, Any]) -> Free:
    if name not in cls.parameters():
        known = ", ".join(cls.parameters()) or "none"
        raise UsageError(f"{cls.title()} has no parameter {name!r}", remedy=f"its parameters: {known}")
    kind = parameter_types(cls)[name]
    if kind.kind is not int:
        raise UsageError(f"{name} is not a number", remedy="only parameters of type int can be any number")
    if kind.optional:  # None is a value of the parameter that no term has
        raise UsageError(
            f"{name} is of type {kind}, and --any proves for numbers only, not for None",
            remedy=f"declare {name}: int, or leave it out of --any",
        )
    if name in parameters:
        raise UsageError(f"{name} is to be any number and {parameters[name]}", remedy="leave one of the two out")
    least, most = cls.parameter_limits().get(name, (None, None))
    return Free(name, least, most)


def _starts(term: Expr, sort: Sort, value: Value, numbers: Iterator[int]) -> Expr:
    """The condition that `term` has the initial value `value`, which may contain terms, `ANY` and `UniformArray`."""
    if is_expr(value):
        return b.eq(term, value)
    if value is ANY:
        return b.and_(_literally(term, sort))
    match sort:
        case ArraySort(index=TermRange() as index, element=element) if isinstance(value, UniformArray):
            bound = b.var(f"i'{next(numbers)}", index)
            return forall(bound, b.or_(_starts(b.select(term, bound), element, v, numbers) for v in value.value))
        case ArraySort(index, element) if isinstance(value, tuple):
            keys = [b.const(index, k) for k in values(index)]
            pairs = zip(keys, value, strict=True)
            return b.and_(_starts(b.select(term, k), element, v, numbers) for k, v in pairs)
        case RecordSort(fields) if isinstance(value, tuple):
            parts = zip(fields, value, strict=True)
            return b.and_(_starts(b.field(term, n), s, v, numbers) for (n, s), v in parts)
    if contains(sort, value):
        return b.eq(term, b.const(sort, value))
    raise ModelError(f"a first value of {sort} depends on a free parameter", remedy="give the parameter a value")


def _literally(term: Expr, sort: Sort) -> Iterator[Expr]:
    """The condition that a number is in its range; the range of its own sort would be simplified away."""
    assert isinstance(sort, RangeSort)
    low, high = (sort.least, sort.most) if isinstance(sort, TermRange) else (sort.lo, sort.hi)
    if isinstance(low, Node) or low > -INFINITY:
        yield intern(LessEq, BOOL, None, low if isinstance(low, Node) else b.num(low), term)
    if isinstance(high, Node) or high < INFINITY:
        yield intern(LessEq, BOOL, None, term, high if isinstance(high, Node) else b.num(high))
