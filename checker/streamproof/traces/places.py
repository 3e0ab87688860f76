"""Places: a variable of a state, or a component of it by array keys and record fields.

Steps are shown by the places they change, and failures by the places they read: ``status[A]``, ``job.epoch``,
``wire[0]``. Queues, sets and scalars are leaves; arrays, records and present options have components.

`reads` lists the places on which the value of a term depends in a state. It follows the evaluation: of a false conjunction it
visits the first false conjunct only, of a conditional the condition and the branch taken, of a read from an updated array the
update or the array below. So the places explain the actual value; the term may mention more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import assert_never

from streamproof.base.records import dataclass
from streamproof.system import expr as e
from streamproof.system.expr import Expr, children
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import State, System
from streamproof.system.sorts import (
    ArraySort,
    BagSort,
    BoolSort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    UnionSort,
    Value,
    index_keys,
    position,
    show,
    values,
)


@dataclass(frozen=True, slots=True)
class Place:
    """A component of a state: `variable`, then one array key or record field name per level.

    A present option is transparent: the place of ``job.epoch`` is the same whether ``job`` is a record or an option of
    one.
    """

    variable: str
    keys: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """A place in one state: its displayed name, and its value."""

    text: str
    sort: Sort
    value: Value

    @property
    def shown(self) -> str:
        """The value as text."""
        return show(self.sort, self.value)


@dataclass(frozen=True, slots=True)
class Change:
    """A leaf changed by a step. `difference`: for sets with common elements, the added and removed elements."""

    place: Place
    text: str
    old: str
    new: str
    difference: str = ""

    def __str__(self) -> str:
        return f"{self.text}: {self.difference or f'{self.old} -> {self.new}'}"


def look(system: System, place: Place, state: State, prefix: str = "") -> Seen:
    """`place` in `state`, with `prefix` before the name.

    If an option on the path is absent, the option itself is returned. Raises `KeyError` for an unknown variable.
    """
    at = system.index[place.variable]
    sort, value, text = system.variables[at].sort, state[at], prefix + place.variable
    for key in place.keys:
        while isinstance(sort, OptionSort):
            if value is None:
                return Seen(text, sort, None)
            sort = sort.element
        match sort:
            case BagSort():
                return Seen(text, sort, value)
            case ArraySort(index, element):
                where = position(index, key)
                if where is None:
                    return Seen(text, sort, value)
                sort, value, text = element, value[where], f"{text}[{key}]"
            case UnionSort() if key in [n for n, _ in sort.payload(value[0]).fields]:
                own, value = sort.payload(value[0]), value[1]
                where = own.index(key)
                sort, value, text = own.fields[where][1], value[where], f"{text}.{key}"
            case RecordSort(fields) as record:
                where = record.index(key)
                sort, value, text = fields[where][1], value[where], text + record.part(key)
            case BoolSort() | RangeSort() | EnumSort() | UnionSort() | QueueSort() | SetSort():
                return Seen(text, sort, value)
            case _:
                assert_never(sort)
    return Seen(text, sort, value)


def changes(system: System, before: State, after: State) -> tuple[Change, ...]:
    """The leaves that differ between two states, in the order of the variables."""
    found = []
    for variable, old, new in zip(system.variables, before, after, strict=True):
        for keys, text, sort, a, b in _differences(variable.sort, old, new, (), variable.name):
            place = Place(variable.name, keys)
            found.append(Change(place, text, show(sort, a), show(sort, b), _difference(sort, a, b)))
    return tuple(found)


def _difference(sort: Sort, old: Value, new: Value) -> str:
    if isinstance(sort, BagSort):
        parts = zip((show(sort.item, v) for v in index_keys(sort.index)), old, new, strict=True)
        return " ".join(f"{'+-'[b < a]} {text}" for text, a, b in parts for _ in range(abs(b - a)))
    if not isinstance(sort, SetSort) or not old & new:
        return ""
    sides = (("+", new - old), ("-", old - new))
    return " ".join(f"{sign} {show(sort, elements)}" for sign, elements in sides if elements)


_Difference = tuple[tuple[Value, ...], str, Sort, Value, Value]


def _differences(sort: Sort, old: Value, new: Value, keys: tuple[Value, ...], text: str) -> Iterator[_Difference]:
    if old == new:
        return
    match sort:
        case OptionSort(element) if old is not None and new is not None:
            yield from _differences(element, old, new, keys, text)
        case UnionSort() if old[0] == new[0]:
            yield from _differences(sort.payload(old[0]), old[1], new[1], keys, text)
        case ArraySort(index, element) if not isinstance(sort, BagSort):
            for key, a, b in zip(values(index), old, new, strict=True):
                yield from _differences(element, a, b, (*keys, key), f"{text}[{key}]")
        case RecordSort(fields):
            for (name, inner), a, b in zip(fields, old, new, strict=True):
                yield from _differences(inner, a, b, (*keys, name), text + sort.part(name))
        case BoolSort() | RangeSort() | EnumSort() | QueueSort() | SetSort() | OptionSort() | UnionSort() | ArraySort():
            yield keys, text, sort, old, new
        case _:
            assert_never(sort)


def leaves(system: System, state: State) -> Iterator[tuple[Place, Seen]]:
    """Every leaf of `state`, in the order of the variables."""
    for variable, value in system.named(state):
        for keys, text, sort, v in _leaves(variable.sort, value, (), variable.name):
            yield Place(variable.name, keys), Seen(text, sort, v)


_Leaf = tuple[tuple[Value, ...], str, Sort, Value]


def _leaves(sort: Sort, value: Value, keys: tuple[Value, ...], text: str) -> Iterator[_Leaf]:
    match sort:
        case OptionSort(ArraySort() | RecordSort() as element) if value is not None:
            yield from _leaves(element, value, keys, text)
        case ArraySort(index, element) if not isinstance(sort, BagSort):
            for key, v in zip(values(index), value, strict=True):
                yield from _leaves(element, v, (*keys, key), f"{text}[{key}]")
        case RecordSort(fields):
            for (name, inner), v in zip(fields, value, strict=True):
                yield from _leaves(inner, v, (*keys, name), text + sort.part(name))
        case BoolSort() | RangeSort() | EnumSort() | QueueSort() | SetSort() | OptionSort() | UnionSort() | ArraySort():
            yield keys, text, sort, value
        case _:
            assert_never(sort)


@dataclass(frozen=True, slots=True)
class Read:
    """A place that was read; `after` if it was read in the state after the step."""

    place: Place
    after: bool = False


def reads(
    interpreter: Interpreter, term: Expr, state: State, after: State | None = None, keys: tuple[Value, ...] = ()
) -> tuple[Read, ...]:
    """The places that determine `term` (or its component at `keys`) in `state`, in the order of reading."""
    walk = _Walk(lambda t: interpreter.value(t, state, after))
    walk.visit(term, keys)
    return tuple(walk.found)


class _Walk:
    """One traversal of a term; shared subterms are visited once per requested component."""

    def __init__(self, value: Callable[[Expr], Value]) -> None:
        self._evaluate = value
        self._values: dict[Expr, Value] = {}
        self._visited: set[tuple[Expr, tuple[Value, ...]]] = set()
        self.found: dict[Read, None] = {}

    def _value(self, term: Expr) -> Value:
        if term not in self._values:
            self._values[term] = self._evaluate(term)
        return self._values[term]

    def visit(self, term: Expr, keys: tuple[Value, ...] = ()) -> None:
        if (term, keys) in self._visited:
            return
        self._visited.add((term, keys))
        match term:
            case e.Const():
                return
            case e.Var(name=name):
                self.found[Read(Place(name, keys))] = None
            case e.Next(name=name):
                self.found[Read(Place(name, keys), after=True)] = None
            case e.And(args=args) | e.Or(args=args):
                # The first operand that decides the value is the reason; if none does, all operands together are.
                decisive = isinstance(term, e.Or)
                deciding = next((a for a in args if self._value(a) is decisive), None)
                for part in args if deciding is None else (deciding,):
                    self.visit(part)
            case e.Ite(cond=cond, then=then, other=other):
                self.visit(cond)
                self.visit(then if self._value(cond) else other, keys)
            case e.Select(array=array, index=index):
                self.visit(index)
                sort = array.sort
                assert isinstance(sort, ArraySort)
                key = self._value(index)
                if isinstance(sort, BagSort):
                    self.visit(array)
                elif position(sort.index, key) is not None:
                    self.visit(array, (key, *keys))
            case e.Store(array=array, index=index, value=value):
                self.visit(index)
                self._updated(array, self._value(index), value, keys)
            case e.MakeArray(elements=elements) if keys:
                sort = term.sort
                assert isinstance(sort, ArraySort)
                at = position(sort.index, keys[0])
                if at is not None:
                    self.visit(elements[at], keys[1:])
            case e.Field(record=record, name=name):
                self.visit(record, (name, *keys))
            case e.WithField(record=record, name=name, value=value):
                self._updated(record, name, value, keys)
            case e.MakeRecord(values=parts) if keys:
                record_sort = term.sort
                assert isinstance(record_sort, RecordSort)
                self.visit(parts[record_sort.index(keys[0])], keys[1:])
            case e.Some(arg=arg) | e.Unwrap(arg=arg):
                self.visit(arg, keys)
            case _:
                for child in children(term):
                    self.visit(child)

    def _updated(self, whole: Expr, key: Value, value: Expr, keys: tuple[Value, ...]) -> None:
        """Visit `whole` with another `value` at `key`."""
        if not keys:
            self.visit(whole)
            self.visit(value)
        elif keys[0] == key:
            self.visit(value, keys[1:])
        else:
            self.visit(whole, keys)
