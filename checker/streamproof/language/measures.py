"""`@measure`: quantities of a model as expressions over its state."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streamproof.language.declarations import check_module
from streamproof.language.lowering import Lowering
from streamproof.language.lowering_context import Context
from streamproof.language.model import Model, marked
from streamproof.language.mutation_guard import MutationGuard
from streamproof.language.primitives import MARK, MeasureMark
from streamproof.language.reader import Reader, deep
from streamproof.language.sources import place
from streamproof.language.terms import StateRef, describe, is_expr
from streamproof.system import build as b
from streamproof.system.errors import ModelError
from streamproof.system.sorts import RangeSort
from streamproof.system.verdict import Measure


def measures_of(model: Model, outside: Iterable[Callable[..., Any]] = ()) -> tuple[Measure, ...]:
    """The quantities of a model: its own, and external functions ``(m, s)``. Raises `ModelError`.

    A quantity that is None in every state is omitted. The quantities of the parts of a composite are not included.
    """
    found = named(type(model), outside)
    if not found:
        return ()
    with deep():
        reader = _reader(model)
        unchanged = MutationGuard(reader.model, found.values())
        read = (_measure(reader, name, function, unchanged) for name, function in found.items())
        return tuple(measure for measure in read if measure is not None)


def named(cls: type[Model], outside: Iterable[Callable[..., Any]] = ()) -> Mapping[str, Callable[..., Any]]:
    """The quantity functions of a model class by name, including external ones. Raises `ModelError`."""
    own = marked(cls)
    outside = tuple(outside)
    check_module(f for f in outside if isinstance(f, types.FunctionType))
    found = {name: function for name, (mark, function) in own.items() if isinstance(mark, MeasureMark)}
    for function in outside:
        name = function.__name__
        if not isinstance(getattr(function, MARK, None), MeasureMark):
            raise ModelError(
                f"{name} is not marked as a measure", loc=place(function), remedy="decorate it with @measure"
            )
        if name in found or name in own:
            raise ModelError(f"{name!r} is the name of two things", loc=place(function), remedy="rename one of them")
        found[name] = function
    return found


def _reader(model: Model) -> Reader:
    if type(model).parts is Model.parts:
        return Reader(model, without_properties=True)
    from streamproof.language.composite import CompositeReader

    return CompositeReader(model, True, None, {}).outermost()


def _measure(reader: Reader, name: str, function: Callable[..., Any], unchanged: MutationGuard) -> Measure | None:
    got = list(inspect.signature(function, follow_wrapped=False).parameters)
    if len(got) != 2:
        raise ModelError(
            f"{name}({', '.join(got)}) is a number for every state",
            loc=place(function),
            remedy=f"write def {name}(self, s)",
        )
    state = {n: b.var(n, s) for n, s in reader.sorts.items()}
    context = Context(sorts=reader.sorts, state=state, label=f"{name}()", in_action=False)
    value, loc = Lowering(context).returned(function, [reader.model, StateRef(names=reader.names)])
    if context.outside.impure:
        unchanged.check(function)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        value = b.num(value)
    if not is_expr(value) or not isinstance(value.sort, RangeSort):
        raise ModelError(
            f"{name}() returns {describe(value)}", loc=loc, remedy="return an integer: len(s.queue), sum(...), max(...)"
        )
    checks = tuple(p.check for p in context.checks)
    return Measure(name, value, checks, place(function), inspect.getdoc(function) or "")
