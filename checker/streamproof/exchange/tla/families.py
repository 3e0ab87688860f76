"""Families: ground terms that differ in constants only, written as one term with bound names (anti-unification).

A system is ground: an action has one instance for each choice of its parameters. If the terms of the instances have the
same shape, the differing constants are written as a parameter (``p``), an offset from it (``p + 1``), a position in a
ring (``(p + 1) % 4``), or the value of a table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import field
from itertools import combinations
from typing import Any, cast

from streamproof.base.errors import ModelError
from streamproof.base.records import dataclass, replace
from streamproof.exchange.tla.layout import Bind, Text, atom, beside, closed, packed, separated
from streamproof.exchange.tla.names import TlaNames, string
from streamproof.exchange.tla.values import (
    LARGEST,
    accesses,
    alike,
    case_fields,
    integer,
    key_text,
    literal,
    message,
    structure,
)
from streamproof.system import expr as e
from streamproof.system.build import const, join
from streamproof.system.expr import Expr, children
from streamproof.system.sorts import (
    BOOL,
    ArraySort,
    EnumSort,
    KeySort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    UnionSort,
    Value,
    ValueKeys,
    default,
    key_sort,
)

Terms = tuple[Expr, ...]
"""One term for each row of a family, all of one shape."""


def parts(terms: Terms) -> list[Terms]:
    """The direct subterms of terms of one shape, from left to right."""
    return list(zip(*(children(t) for t in terms), strict=True))


def walked(roots: Iterable[Terms]) -> Iterator[tuple[Terms, list[Terms]]]:
    """Terms of one shape and their subterms, each once, with their direct subterms."""
    stack = list(roots)
    seen = set(stack)
    while stack:
        terms = stack.pop()
        inner = parts(terms)
        yield terms, inner
        for part in inner:
            if part not in seen:
                seen.add(part)
                stack.append(part)


Known = int | tuple[Any, ...] | dict[str, str] | None
"""The value of a parameter if it is a number or a tuple, or the texts of a record's values by its fields."""


@dataclass(frozen=True, slots=True)
class Family:
    """The binding where terms are written: names, and their rows of values, as text.

    Numbers are kept beside their texts, for offsets, and tuples for their elements.
    """

    names: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ((),)
    numbers: tuple[tuple[Known, ...], ...] = ((),)

    def column(self, at: int) -> tuple[str, ...]:
        """The texts of one name's values, row by row."""
        return tuple(row[at] for row in self.rows)

    def widened(self, name: str, values: Sequence[tuple[str, Known]]) -> Family:
        """Adds a name that takes all of `values` in every row; the rows of one old row are adjacent."""
        return Family(
            (*self.names, name),
            tuple((*row, text) for row in self.rows for text, _ in values),
            tuple((*row, number) for row in self.numbers for _, number in values),
        )


GROUND = Family()
"""The empty binding, with one row."""


def parameter_texts(values: Sequence[Any], sorts: Sequence[Sort | None]) -> list[tuple[str, Known]]:
    """The values of a parameter as TLA+ text, all of one kind; each with what is known of its parts."""
    return _record_texts(values, sorts) or _plain_texts(values)


def _record_texts(values: Sequence[Any], sorts: Sequence[Sort | None]) -> list[tuple[str, Known]] | None:
    """The values as records, if they are records or cases of a union."""
    given = [sort for sort in sorts if isinstance(sort, RecordSort | UnionSort)]
    sort = _least(given) if len(given) == len(values) and None not in values else None
    if sort is None:
        return None
    found: list[tuple[str, Known]] = []
    for value in values:
        text = literal(sort, value)
        if isinstance(sort, RecordSort):
            given_parts = zip(accesses(sort), (s for _, s in sort.fields), value, strict=True)
        else:
            own = case_fields(sort, value[0])
            given_parts = zip((f".{name}" for name, _ in own), (s for _, s in own), value[1], strict=True)
        texts = {access: literal(s, part).lines[0] for access, s, part in given_parts}
        if len(text.lines) > 1:
            return None
        found.append((text.lines[0], texts))
    return found


def _least(sorts: Sequence[RecordSort | UnionSort]) -> RecordSort | UnionSort | None:
    """The least sort of all values: for unions, with every case that occurs; None if fields have different kinds."""
    cases: dict[str, Sort] = {}
    try:
        for sort in sorts:
            for name, own in sort.cases if isinstance(sort, UnionSort) else (("", sort),):
                cases[name] = _either(cases[name], own) if name in cases else own
    except ModelError:
        return None
    found = tuple((name, own) for name, own in cases.items() if isinstance(own, RecordSort))
    return cast(RecordSort, cases[""]) if "" in cases and len(cases) == 1 else UnionSort(found) if found else None


def _either(one: Sort, other: Sort) -> Sort:
    """The least sort of the values of both, names being of one kind. Raises `ModelError` if there is none."""
    match one, other:
        case EnumSort(), EnumSort() if type(one) is type(other) is EnumSort:
            return EnumSort(tuple(dict.fromkeys((*one.members, *other.members))))
        case RecordSort(parts), RecordSort(others) if accesses(one) == accesses(other):
            pairs = zip(parts, others, strict=True)
            return replace(one, fields=tuple((name, _either(own, more)) for (name, own), (_, more) in pairs))
    return join(one, other)


def _plain_texts(values: Sequence[Any]) -> list[tuple[str, Known]]:
    """The values as numbers, truth values, tuples or strings."""
    kinds = {type(v) for v in values}
    if kinds == {bool}:
        return [("TRUE" if v else "FALSE", None) for v in values]
    if kinds == {int} and all(abs(v) <= LARGEST for v in values):
        return [(integer(v).lines[0], v) for v in values]
    if kinds == {tuple} and alike(values) and all(map(_is_key, values)):
        return [(key_text(v), v) for v in values]
    plain = len({str(v) for v in values}) == len({(type(v), repr(v)) for v in values})
    return [(string(str(v) if plain else f"{type(v).__name__} {v!r}"), None) for v in values]


def known(sort: Sort, value: Value) -> Known:
    """The constant if it is a number or a tuple."""
    if isinstance(sort, ValueKeys):
        return None
    if isinstance(sort, KeySort) and alike(sort.keys) and type(sort.keys[0]) in (int, tuple):
        return cast(Known, sort.keys[sort.places[value]])
    return value if isinstance(sort, RangeSort) else None


def is_product(rows: Sequence[Sequence[Hashable]]) -> bool:
    """Whether the rows are the product of the values in their columns, each once."""
    columns = [list(dict.fromkeys(column)) for column in zip(*rows, strict=True)]
    size = 1
    for column in columns:
        size *= len(column)
    return size == len(rows) == len(set(map(tuple, rows)))


class Shapes:
    """Numbers for the shapes of terms: terms of one shape differ in constants only."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[Expr, int] = {}

    def __call__(self, term: Expr) -> int:
        """The number of the term's shape."""
        for part in e.unfinished(term, self._known):
            key = (type(part), *_fixed(part), *(self._known[c] for c in children(part)))
            self._known[part] = self._numbers.setdefault(key, len(self._numbers))
        return self._known[term]


def _fixed(term: Expr) -> Iterator[Hashable]:
    """The attributes that terms of one shape share, in addition to their operands."""
    match term:
        case e.Const(sort=sort):
            yield kind(sort)
        case e.Var(name=name) | e.Next(name=name) | e.Field(name=name) | e.WithField(name=name):
            yield name
        case e.Select(array=whole) | e.Store(array=whole):
            assert isinstance(whole.sort, ArraySort)
            yield whole.sort.index
            yield default(whole.sort.element)
        case e.MakeArray(sort=sort):
            assert isinstance(sort, ArraySort)
            yield sort.index
            yield kind(sort)
        case e.MakeRecord(sort=sort):
            yield kind(sort)
        case e.MakeCase(sort=sort, case=case) | e.Payload(sort=sort, case=case):
            yield case
            yield kind(sort)
            yield default(sort)
        case e.IsCase(case=case):
            yield case
        case e.Unwrap(arg=arg):
            assert isinstance(arg.sort, OptionSort)
            yield default(arg.sort.element)
        case e.Peek(queue=queue) | e.Push(queue=queue) | e.Pop(queue=queue):
            assert isinstance(queue.sort, QueueSort)
            yield queue.sort.capacity
            yield default(queue.sort.element)
        case _:
            pass


def kind(sort: Sort) -> Hashable:
    """The common kind of two comparable sorts: all ranges are alike."""
    match sort:
        case RangeSort():
            return "integer"
        case RecordSort(fields):
            return (type(sort), *((n, kind(s)) for n, s in fields))
        case UnionSort(cases):
            return ("union", *((case, kind(own)) for case, own in cases))
        case OptionSort(element):
            return ("option", kind(element))
        case ArraySort(index, element):
            return ("array", index, kind(element))
        case QueueSort(element, _):
            return ("queue", kind(element))
        case SetSort(element):
            return ("set", kind(element))
        case _:
            return sort


@dataclass
class Tables:
    """Constant functions (tables) for constants of families without an arithmetic form."""

    names: TlaNames
    found: dict[tuple[str, ...], tuple[str, Text]] = field(default_factory=dict)

    def constant(self, terms: Terms, family: Family) -> Text:
        """The text for constants that may differ from row to row."""
        return self.simple(terms, family) or self._in_parts(terms, family) or self._looked_up(terms, family)

    def simple(self, terms: Terms, family: Family) -> Text | None:
        """The same, if no table is needed."""
        texts = [_constant_text(t) for t in terms]
        if len(set(texts)) == 1:
            return texts[0]
        lines = [text.lines for text in texts]
        for at, name in enumerate(family.names):
            if lines == [(value,) for value in family.column(at)]:
                return atom(name)
        values = [_number(t) for t in terms]
        for at, name in enumerate(family.names):
            given = [row[at] for row in family.numbers]
            near = _offset(name, given, values)
            if near is not None:
                return near
            records = [v for v in given if isinstance(v, dict)]
            for part in records[0] if len(records) == len(lines) else ():
                if lines == [(v.get(part, ""),) for v in records]:
                    return atom(f"{name}{part}")
            for place in range(min(len(v) if isinstance(v, tuple) else 0 for v in given)):
                if lines == [(key_text(v[place]),) for v in given if isinstance(v, tuple)]:
                    return atom(f"{name}[{place + 1}]")
        return None

    def _in_parts(self, terms: Terms, family: Family) -> Text | None:
        """Records by their fields, tuples by their elements, options by their values, if all are present."""
        if all(isinstance(t.sort, ValueKeys) for t in terms):
            return self.constant(tuple(map(_item, terms)), family)
        sorts = [t.sort for t in terms]
        values = [t.value for t in terms if isinstance(t, e.Const)]
        if all(isinstance(s, OptionSort) for s in sorts) and None not in values:
            inner = tuple(const(s.element, v) for s, v in zip(sorts, values, strict=True) if isinstance(s, OptionSort))
            return beside("Some(", self.constant(inner, family), ")")
        keys = [
            s.keys[s.places[v]] for s, v in zip(sorts, values, strict=True) if isinstance(s, KeySort) and alike(s.keys)
        ]
        if len(keys) == len(terms) and isinstance(keys[0], tuple) and alike(keys):
            columns = [tuple(_key_part(key[at]) for key in keys) for at in range(len(keys[0]))]
            return separated("<<", [self.constant(column, family) for column in columns], ">>")
        if all(isinstance(s, UnionSort) for s in sorts) and len({v[0] for v in values}) == 1:
            unions, case = [s for s in sorts if isinstance(s, UnionSort)], values[0][0]
            columns = [
                tuple(const(s.payload(case).fields[at][1], v[1][at]) for s, v in zip(unions, values, strict=True))
                for at in range(len(values[0][1]))
            ]
            return message(unions[0], case, [self.constant(column, family) for column in columns])
        if all(isinstance(s, RecordSort) and s.fields for s in sorts):
            records = [s for s in sorts if isinstance(s, RecordSort)]
            columns = [
                tuple(const(s.fields[at][1], v[at]) for s, v in zip(records, values, strict=True))
                for at in range(len(records[0].fields))
            ]
            return structure(records[0], [self.constant(column, family) for column in columns])
        return None

    def _looked_up(self, terms: Terms, family: Family) -> Text:
        texts = [_constant_text(t) for t in terms]
        for size in range(1, len(family.names) + 1):
            for chosen in combinations(range(len(family.names)), size):
                known: dict[tuple[str, ...], Text] = {}
                keys = [tuple(row[at] for at in chosen) for row in family.rows]
                if all(known.setdefault(k, t) == t for k, t in zip(keys, texts, strict=True)):
                    name = self._table(known)
                    return atom(f"{name}{''.join(f'[{family.names[at]}]' for at in chosen)}")
        raise AssertionError("rows of a family are different")

    def _table(self, known: dict[tuple[str, ...], Text]) -> str:
        """The name of a function with these values. With several arguments, it is defined for all combinations."""
        columns = [list(dict.fromkeys(column)) for column in zip(*known, strict=True)]
        body = _nested((), columns, known, next(iter(known.values())))
        if body.lines not in self.found:
            self.found[body.lines] = (self.names.new(f"table{len(self.found) + 1}"), body)
        return self.found[body.lines][0]


def _nested(
    key: tuple[str, ...], columns: Sequence[Sequence[str]], known: dict[tuple[str, ...], Text], filler: Text
) -> Text:
    """A function of the arguments that `key` has no values for; `filler` is the value where there is none."""
    if not columns:
        return known.get(key, filler)
    pairs = [
        beside(f"{value} :> ", closed(_nested((*key, value), columns[1:], known, filler), Bind.ATOM))
        for value in columns[0]
    ]
    return Text(packed(" @@", pairs).lines, Bind.COMPUTED)


def _constant_text(term: Expr) -> Text:
    assert isinstance(term, e.Const), "constants"
    return literal(term.sort, term.value)


def _is_key(value: Any) -> bool:
    """Whether a value is written by `key_text`."""
    return all(map(_is_key, value)) if type(value) is tuple else type(value) in (bool, int, str)


def _item(term: Expr) -> Expr:
    """The value that a constant key of a bag is."""
    assert isinstance(term, e.Const)
    assert isinstance(term.sort, ValueKeys)
    return const(term.sort.item, term.sort.keys[term.sort.places[term.value]])


def _key_part(value: Any) -> Expr:
    """An element of a key as a constant."""
    if type(value) is tuple:
        return const(key_sort((value,)), key_sort((value,)).members[0])
    return const(BOOL if type(value) is bool else EnumSort((value,)) if type(value) is str else RangeSort(0, 0), value)


def _number(term: Expr) -> int | None:
    assert isinstance(term, e.Const), "constants"
    return number if isinstance(number := known(term.sort, term.value), int) else None


def _offset(name: str, given: Sequence[Known], wanted: Sequence[int | None]) -> Text | None:
    """Numbers at a constant offset from a parameter, linear or modulo a ring that begins with 0."""
    pairs = [(g, w) for g, w in zip(given, wanted, strict=True) if isinstance(g, int) and w is not None]
    if len(pairs) < len(given):
        return None
    distance = pairs[0][1] - pairs[0][0]
    if all(w - g == distance for g, w in pairs):
        sign = "+" if distance > 0 else "-"
        return Text((f"{name} {sign} {abs(distance)}",), Bind.COMPUTED)
    size = len({g for g, _ in pairs})
    if {g for g, _ in pairs} == set(range(size)) and size > 1:
        distance %= size
        if all((g + distance) % size == w for g, w in pairs):
            return Text((f"({name} + {distance}) % {size}",), Bind.COMPUTED)
    return None
