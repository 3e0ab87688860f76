"""The generated function of one instance: the state after its step, for states with values of every sort.

For an instance that counts an item of a queue it reads::

    def step(_state):
     (count, items,) = _state
     if not (count < 2):
      return None
     return ((count + 1), items[1:],)

Terms are total and without effects, so that shared subterms are evaluated first, whether their branch is taken or not.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from streamproof.base.errors import ModelError
from streamproof.explicit.writer import Writer, load, local_names, shared, unpacking
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Instance, State, System
from streamproof.system.sorts import (
    ArraySort,
    BoolSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    Sort,
    Value,
    cardinality,
    default,
    position,
)

Step: TypeAlias = Callable[[State], Any]
"""Returns the state after the step, None if the instance is disabled, and `FAULT` at an evaluation error of the model."""
FAULT = object()
LARGEST = 3_000
"""Largest number of terms of a generated function."""
OFTEN = 16
"""Number of times that the step of an instance is computed before a function is generated for it."""


_SETS = {e.Union: "|", e.Intersection: "&", e.Difference: "-", e.Subset: "<="}


class _Unwritten(Exception):
    """A term that this module does not write."""


def step_of(system: System, instance: Instance) -> Step | None:
    """The function of an instance of a system; None if it would be large, or has a term that is not written here."""
    conditions = [c.condition for c in (*instance.guard_checks, *instance.effect_checks)]
    updates = dict(instance.updates)
    roots = [*conditions, *(c.expr for c in instance.guard), *updates.values()]
    for number, _ in enumerate(e.subterms(*roots)):
        if number >= LARGEST:
            return None
    common = shared(roots)
    names = local_names(system)
    writer = _StepWriter(names)
    try:
        with writer.block("def step(_state):"):
            writer.line(f"{unpacking(system)} = _state")
            for check in instance.guard_checks:
                writer.leave(check.condition, "{}", "_fault", common)
            for conjunct in instance.guard:
                writer.leave(conjunct.expr, "not {}", "None", common)
            for check in instance.effect_checks:
                writer.leave(check.condition, "{}", "_fault", common)
            after = [writer.term(updates[n], common) if n in updates else names[n] for n in system.index]
            writer.line(f"return ({' '.join(text + ',' for text in after)})")
        return load("step", system.name, writer.source, _fault=FAULT, _put=_put, **writer.given)
    except (_Unwritten, ModelError):
        return None


class GeneratedSteps:
    """The functions of a system's instances, each generated once its step has been computed often."""

    def __init__(self) -> None:
        self._uses: Counter[int] = Counter()
        self._functions: dict[int, tuple[Instance, Step | None]] = {}
        """By number of the instance, which is kept with its function, so that no other instance gets this number."""

    @classmethod
    def of(cls, system: System) -> GeneratedSteps:
        """Those of a system, which all its behaviours share."""
        found = _GENERATED.get(id(system))
        if found is None:
            found = _GENERATED[id(system)] = cls()
            weakref.finalize(system, _GENERATED.pop, id(system), None)
        return found

    def get(self, system: System, instance: Instance) -> Step | None:
        """The function of an instance, if it has one by now."""
        number = id(instance)
        known = self._functions.get(number)
        if known is not None:
            return known[1]
        self._uses[number] += 1
        if self._uses[number] <= OFTEN:
            return None
        del self._uses[number]
        self._functions[number] = instance, step_of(system, instance)
        return self._functions[number][1]


_GENERATED: dict[int, GeneratedSteps] = {}
"""By number of a system that exists."""


def _put(array: tuple[Value, ...], at: int, value: Value) -> tuple[Value, ...]:
    """The tuple with another value at a position; unchanged outside."""
    return (*array[:at], value, *array[at + 1 :]) if 0 <= at < len(array) else array


class _StepWriter(Writer):
    """Writes terms of every sort."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__(names)
        self.given: dict[str, Any] = {}
        """Values of the free names of the source."""
        self._asides = 0

    def leave(self, term: Expr, condition: str, result: str, common: set[Expr]) -> None:
        """Returns a result if a condition on a term is true."""
        text = self.term(term, common)
        with self.block(f"if {condition.format(text)}:"):
            self.line(f"return {result}")

    def _format(self, term: Expr, texts: Mapping[Expr, tuple[str, int]]) -> tuple[str, int]:
        if term in self._held:
            return super()._format(term, texts)
        if isinstance(term, e.Const):
            return self._constant(term.value), 0
        parts = e.children(term)
        text = self._composite(term, {part: texts[part][0] for part in parts})
        if text is None:
            if isinstance(term, e.Next):
                raise _Unwritten
            return super()._format(term, texts)
        return text, 1 + max((texts[part][1] for part in parts), default=0)

    def _constant(self, value: Value) -> str:
        """A literal, or the name of a given value."""
        if value is None or isinstance(value, bool | str):
            return repr(value)
        if isinstance(value, int):
            return f"({value})"
        return self._named(value)

    def _named(self, value: Any) -> str:
        name = f"_g{len(self.given)}"
        self.given[name] = value
        return name

    def _aside(self) -> str:
        """A new local variable for a part of an expression."""
        self._asides += 1
        return f"_w{self._asides}"

    def _composite(self, term: Expr, t: Mapping[Expr, str]) -> str | None:
        """The text of a term that has a composite sort, or one in it; None for the others."""
        match term:
            case e.MakeArray(elements=parts) | e.MakeRecord(values=parts):
                return f"({''.join(t[part] + ', ' for part in parts)})"
            case e.Select(array=array, index=index):
                return self._selected(array, index, t)
            case e.Store(array=array, index=index, value=value):
                at = self._position(array.sort, index, t)
                return t[array] if at is None else f"_put({t[array]}, {at}, {t[value]})"
            case e.Field(record=record, name=name):
                return f"{t[record]}[{_record(record).index(name)}]"
            case e.WithField(record=record, name=name, value=value):
                return f"_put({t[record]}, {_record(record).index(name)}, {t[value]})"
            case e.MakeCase(case=case, payload=payload):
                return f"({case!r}, {t[payload]})"
            case e.IsCase(arg=a, case=case):
                return f"({t[a]}[0] == {case!r})"
            case e.Payload(sort=sort, arg=a, case=case):
                w = self._aside()
                return f"({w}[1] if ({w} := {t[a]})[0] == {case!r} else {self._default(sort)})"
            case e.Some(arg=a):
                return t[a]
            case e.IsNone(arg=a):
                return f"({t[a]} is None)"
            case e.Unwrap(arg=a):
                assert isinstance(a.sort, OptionSort)
                w = self._aside()
                return f"({self._default(a.sort.element)} if ({w} := {t[a]}) is None else {w})"
            case e.Length(queue=q):
                return f"len({t[q]})"
            case e.Peek(queue=q, index=index):
                assert isinstance(q.sort, QueueSort)
                w, at = self._aside(), self._aside()
                inside = f"0 <= ({at} := {t[index]}) < len({w} := {t[q]})"
                return f"({w}[{at}] if {inside} else {self._default(q.sort.element)})"
            case e.Push(queue=q, value=value):
                assert isinstance(q.sort, QueueSort)
                w = self._aside()
                return f"((*{w}, {t[value]}) if len({w} := {t[q]}) < {q.sort.capacity} else {w})"
            case e.Pop(queue=q):
                return f"{t[q]}[1:]"
            case e.Member(set_=s, value=value):
                return f"({t[value]} in {t[s]})"
            case e.Insert(set_=s, value=value):
                return f"({t[s]} | {{{t[value]}}})"
            case e.Remove(set_=s, value=value):
                return f"({t[s]} - {{{t[value]}}})"
            case e.Union() | e.Intersection() | e.Difference() | e.Subset():
                return f"({t[term.left]} {_SETS[type(term)]} {t[term.right]})"
            case e.Size(set_=s):
                return f"len({t[s]})"
            case _:
                return None

    def _default(self, sort: Sort) -> str:
        return self._constant(default(sort))

    def _selected(self, array: Expr, index: Expr, t: Mapping[Expr, str]) -> str:
        sort = array.sort
        assert isinstance(sort, ArraySort)
        at = self._position(sort, index, t)
        if at is None:
            return self._default(sort.element)
        if isinstance(index, e.Const) or isinstance(sort.index, BoolSort):
            return f"{t[array]}[{at}]"
        w = self._aside()
        return f"({t[array]}[{w}] if 0 <= ({w} := {at}) < {cardinality(sort.index)} else {self._default(sort.element)})"

    def _position(self, sort: Sort, index: Expr, t: Mapping[Expr, str]) -> str | None:
        """The position of an index in an array, none if it is outside for certain; in the text it may be outside."""
        assert isinstance(sort, ArraySort)
        if isinstance(index, e.Const):
            at = position(sort.index, index.value)
            return None if at is None else str(at)
        if type(index.sort) is not type(sort.index):
            raise _Unwritten
        if isinstance(sort.index, BoolSort):
            return t[index]
        if isinstance(sort.index, RangeSort):
            cardinality(sort.index)  # a finite one
            return f"{t[index]} - {self._constant(sort.index.lo)}"
        return f"{self._named(sort.index.places)}.get({t[index]}, -1)"


def _record(term: Expr) -> RecordSort:
    assert isinstance(term.sort, RecordSort)
    return term.sort
