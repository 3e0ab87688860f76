"""Places: a variable of a state, or a component of it by array keys and record fields.

Steps are shown by the places they change, and failures by the places they read: ``status[A]``, ``job.epoch``,
``wire[0]``. Queues, sets and scalars are leaves; arrays, records and present options have components.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamproof.system.model import State, System
from streamproof.system.records import dataclass
from streamproof.system.sorts import (
    ArraySort,
    BagSort,
    OptionSort,
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
            case RecordSort(fields):
                where = sort.index(key)
                sort, value, text = fields[where][1], value[where], f"{text}.{key}"
            case _:
                return Seen(text, sort, value)
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
                yield from _differences(inner, a, b, (*keys, name), f"{text}.{name}")
        case _:
            yield keys, text, sort, old, new


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
                yield from _leaves(inner, v, (*keys, name), f"{text}.{name}")
        case _:
            yield keys, text, sort, value
