"""Counterexamples to induction as text: parameter values, the state before, and the rule that breaks a claim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamproof.any.engine.question import in_range
from streamproof.any.engine.steps import SAFE, SwitchedSolver
from streamproof.any.engine.values import Computed, Lanes, Shape, SymbolicView, element_at
from streamproof.base.records import dataclass
from streamproof.system.expr import Var
from streamproof.system.sorts import ArraySort, BoolSort, EnumSort, OptionSort, RecordSort, Sort, TermRange, values
from streamproof.transform.unbounded import Parametric


@dataclass(frozen=True, slots=True)
class ParametricCti:
    """Why the claim `of` is not inductive: at these `parameters`, `step` leads from the state `before` to `after`.

    Names and values are texts; an array of unbounded length is shown at the relevant indices. The state before
    satisfies all assumptions and **may be unreachable**. Without a `step`, the claim is false in an initial state.
    """

    of: str
    because: str
    parameters: tuple[tuple[str, str], ...]
    step: str | None
    before: tuple[tuple[str, str], ...]
    after: tuple[tuple[str, str], ...]


def shown(parametric: Parametric, query: SwitchedSolver, name: str) -> ParametricCti:
    """The counterexample in the model of the last query."""
    model = query.solver.model
    free = tuple((f.name, str(_number(query.before, model, query.before.names[f.name]))) for f in parametric.free)
    arguments = []
    indices: list[Any] = []
    if query.instance is not None:
        for parameter, value in query.instance.args:
            if isinstance(value, Var):
                term = model.eval(query.before.names[value.name], model_completion=True)
                indices.append(term)
                value = term
            arguments.append(f"{parameter}={value}")
        arguments += [f"{n}={v}" for n, v in query.instance.picks]
    step = None if query.instance is None else f"{query.instance.action}({', '.join(arguments)})"
    for term in query.indices:
        value = model.eval(term, model_completion=True)
        if not any(value.eq(known) for known in indices):
            indices.append(value)
    before = tuple(_state(parametric, query.before, model, indices))
    after = () if query.after is None else tuple(_state(parametric, query.after, model, indices))
    because = "false" if step is None else "false after the step"
    if name == SAFE:
        because = next((why for formula, why in query.reasons if query.solver.true(formula)), "a value leaves its sort")
    return ParametricCti(name, because, free, step, before, after)


def _number(view: SymbolicView, model: Any, term: Any) -> int:
    return int(model.eval(term, model_completion=True).as_long())


def _state(parametric: Parametric, view: SymbolicView, model: Any, indices: list[Any]) -> Iterator[tuple[str, str]]:
    for v in parametric.system.variables:
        yield from _parts(v.name, v.sort, view, view.names[v.name], model, indices)


def _parts(
    name: str, sort: Sort, view: SymbolicView, shape: Shape, model: Any, indices: list[Any]
) -> Iterator[tuple[str, str]]:
    z3 = view.universe.z3
    match sort:
        case ArraySort(index=TermRange() as own, element=element):
            assert isinstance(shape, Lanes | Computed)
            for index in indices:
                if not z3.is_true(model.eval(in_range(view, own, index), model_completion=True)):
                    continue
                there = element_at(shape, index)
                yield from _parts(f"{name}[{index}]", element, view, there, model, indices)
        case ArraySort(index, element):
            for key, part in zip(values(index), shape, strict=True):
                yield from _parts(f"{name}[{key}]", element, view, part, model, indices)
        case RecordSort(fields):
            for (field, inner), part in zip(fields, shape, strict=True):
                yield from _parts(name + sort.part(field), inner, view, part, model, indices)
        case OptionSort(element):
            if z3.is_true(model.eval(shape[0], model_completion=True)):
                yield from _parts(name, element, view, shape[1], model, indices)
            else:
                yield name, "None"
        case BoolSort():
            yield name, str(z3.is_true(model.eval(shape, model_completion=True)))
        case EnumSort(members):
            at = _number(view, model, shape)
            yield name, members[at] if 0 <= at < len(members) else f"no member ({at})"
        case _:
            yield name, str(_number(view, model, shape))
