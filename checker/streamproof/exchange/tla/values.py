"""Sorts and values in TLA+: sets of values, Apalache's types, literals.

======  ===================================================================
sort    value
======  ===================================================================
Bool    ``TRUE``, ``FALSE``
Range   an integer
Enum    a string
Record  a record
Option  ``[tag |-> "Some", value |-> v]``; ``"None"`` beside a value that is the same for every option of the kind
Array   a function
Queue   a sequence
Set     a set
======  ===================================================================

An option is a record in both cases because TLC refuses to compare values of different kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, assert_never

from streamproof.base.errors import TooLarge
from streamproof.exchange.itf.writing import key_type_text
from streamproof.exchange.tla.layout import Bind, Text, atom, beside, bulleted, closed, packed, separated
from streamproof.exchange.tla.names import field_name, string
from streamproof.system.sorts import (
    ArraySort,
    BagSort,
    BoolSort,
    EnumSort,
    KeySort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    TupleSort,
    UnionSort,
    Value,
    ValueKeys,
    cardinality,
    compatible,
    default,
    key_type,
    ordered,
    values,
)

LARGEST = 2**31 - 1
"""TLC's largest integer; an overflow stops TLC."""
CHOICES = 20_000
"""Maximum number of initial values of one variable that are enumerated."""
UNIT = "unit"
"""The only value of a record without fields."""


def fields(sort: RecordSort) -> tuple[tuple[str, Sort], ...]:
    """The fields of a record under TLA+'s identifiers."""
    names = [n for n, _ in sort.fields]
    return tuple((field_name(n, names), s) for n, s in sort.fields)


def accesses(sort: RecordSort) -> tuple[str, ...]:
    """What selects each part of a record, ``.name``, or of a tuple, ``[1]``, behind a value or in EXCEPT."""
    if isinstance(sort, TupleSort):
        return tuple(f"[{at}]" for at in range(1, len(sort.fields) + 1))
    return tuple(f".{name}" for name, _ in fields(sort))


def structure(sort: RecordSort, parts: Sequence[Text]) -> Text:
    """A record or tuple from its parts."""
    if isinstance(sort, TupleSort):
        return separated("<<", parts, ">>")
    return record([(name, part) for (name, _), part in zip(fields(sort), parts, strict=True)])


def structures(sort: RecordSort, sets: Sequence[Text]) -> Text:
    """The set of the records or tuples whose parts are in the given sets."""
    if isinstance(sort, TupleSort):
        each = [closed(one, Bind.ATOM) for one in sets]
        return separated_by(" \\X", each) if len(each) > 1 else beside("[1..1 -> ", *each, "]")
    parts = [beside(f"{name}: ", one) for (name, _), one in zip(fields(sort), sets, strict=True)]
    return separated("[", parts, "]") if parts else atom(f'{{"{UNIT}"}}')


def case_fields(sort: UnionSort, case: str) -> tuple[tuple[str, Sort], ...]:
    """The fields of a case under TLA+'s identifiers, without the tag.

    TLC compares the fields of two records one by one, so fields of one name but incomparable sorts get different names.
    """
    every = [(c, n, s) for c, own in sort.cases for n, s in own.fields]
    clashing = {n for _, n, s in every if not all(compatible(s, t) for _, other, t in every if other == n)}
    wanted = {(c, n): f"{c}_{n}" if n in clashing else n for c, n, _ in every}
    names = list(dict.fromkeys(wanted.values()))
    return tuple((field_name(wanted[case, n], names), s) for n, s in sort.payload(case).fields)


def tag_field(sort: UnionSort) -> str:
    """The field that holds the name of the case: the first of some names that is not a field of a case."""
    taken = {n for case in sort.tag.members for n, _ in case_fields(sort, case)}
    return next(
        n for n in ("type", "kind", "case_of", *(f"type{k}" for k in range(1, len(taken) + 2))) if n not in taken
    )


def message(sort: UnionSort, case: str, parts: Sequence[Text]) -> Text:
    """The value of a union as a record: its tag, and the fields of its case."""
    names = [n for n, _ in case_fields(sort, case)]
    return record([(tag_field(sort), atom(string(case))), *zip(names, parts, strict=True)])


def integer(value: int) -> Text:
    """A number; raises `TooLarge` above TLC's largest."""
    if abs(value) > LARGEST:
        raise TooLarge(f"{value} does not fit TLC's 32-bit integers", remedy="choose smaller parameters")
    return atom(str(value)) if value >= 0 else atom(f"(-{-value})")


def resting(sort: Sort) -> Value:
    """The value beside ``"None"``: the same for all sorts whose values may be compared."""
    match sort:
        case RangeSort():
            return 0
        case RecordSort(parts):
            return tuple(resting(s) for _, s in parts)
        case UnionSort(cases):
            return (cases[0][0], resting(cases[0][1]))
        case ArraySort(index, element):
            return (resting(element),) * cardinality(index)
        case _:
            return default(sort)


def literal(sort: Sort, value: Value, depth: int = 0) -> Text:
    """A value as a constant expression; bound names in it are ``any``, ``any1``, ..., by depth."""
    match sort:
        case BoolSort():
            return atom("TRUE" if value else "FALSE")
        case RangeSort():
            return integer(value)
        case ValueKeys(item=item):
            return literal(item, sort.keys[sort.places[value]], depth)
        case KeySort():
            return atom(key_texts(sort)[sort.places[value]])
        case EnumSort():
            return atom(string(value))
        case RecordSort():
            return structure(sort, [literal(s, v, depth) for (_, s), v in zip(sort.fields, value, strict=True)])
        case UnionSort():
            parts = zip(sort.payload(value[0]).fields, value[1], strict=True)
            return message(sort, value[0], [literal(s, v, depth) for (_, s), v in parts])
        case OptionSort(element):
            return absent(sort, depth) if value is None else beside("Some(", literal(element, value, depth), ")")
        case ArraySort(index, element):
            elements = value or (resting(element),)  # of an empty function, any expression of the type
            return function(index, [literal(element, v, depth + 1) for v in elements], numbered("any", depth))
        case QueueSort(element, _):
            return separated("<<", [literal(element, v, depth) for v in value], ">>")
        case SetSort(element):
            return separated("{", [literal(element, v, depth) for v in ordered(element, value)], "}")
        case _:
            assert_never(sort)


def alike(keys: Sequence[Any]) -> bool:
    """Whether keys have one type, so that TLC compares them."""
    return len(set(map(key_type, keys))) == 1


def key_texts(sort: KeySort) -> list[str]:
    """The keys in their order: numbers, strings and tuples as such; their texts as strings if the types differ."""
    return list(map(key_text, sort.keys)) if alike(sort.keys) else list(map(string, sort.members))


def key_text(key: Any) -> str:
    """A number, truth value, string or tuple of these."""
    if isinstance(key, tuple):
        return f"<<{', '.join(map(key_text, key))}>>"
    if isinstance(key, str):
        return string(key)
    return ("TRUE" if key else "FALSE") if isinstance(key, bool) else integer(key).lines[0]


def absent(sort: OptionSort, depth: int = 0) -> Text:
    """The absent option."""
    return beside("None(", literal(sort.element, resting(sort.element), depth), ")")


def numbered(name: str, depth: int) -> str:
    """A bound name of the export itself, different at each depth."""
    return f"{name}{depth}" if depth else name


def record(parts: Sequence[tuple[str, Text]]) -> Text:
    """A record from its fields."""
    return separated("[", [beside(f"{n} |-> ", t) for n, t in parts], "]") if parts else atom(f'"{UNIT}"')


def function(index: RangeSort | EnumSort | BoolSort, elements: Sequence[Text], variable: str) -> Text:
    """A function from its elements in the order of the index; `variable` is a name for the index."""
    if len(set(elements)) == 1:
        return beside(f"[{variable} \\in ", domain(index), " |-> ", elements[0], "]")
    keys = [literal(index, k) for k in values(index)]
    pairs = [beside(k, " :> ", closed(t, Bind.ATOM)) for k, t in zip(keys, elements, strict=True)]
    return separated_by(" @@", pairs)


def separated_by(operator: str, items: Sequence[Text]) -> Text:
    """Items with an operator between them, in parentheses."""
    return beside("(", packed(operator, items), ")")


def domain(sort: Sort) -> Text:
    """The set of the values of a sort that is made of scalars, records, arrays and sets."""
    match sort:
        case BoolSort():
            return atom("BOOLEAN")
        case RangeSort(lo, hi):
            return beside(integer(lo), "..", integer(hi), bind=Bind.COMPUTED)
        case ValueKeys(item=item):
            return domain(item) if is_plain(item) else separated("{", [literal(item, v) for v in sort.keys], "}")
        case KeySort():
            return separated("{", list(map(atom, key_texts(sort))), "}")
        case EnumSort(members):
            return separated("{", [atom(string(m)) for m in members], "}")
        case RecordSort():
            return structures(sort, [domain(s) for _, s in sort.fields])
        case UnionSort(cases):
            return separated_by(" \\cup", [_case_domain(sort, case) for case, _ in cases])
        case ArraySort(index, element):
            return beside("[", domain(index), " -> ", domain(element), "]")
        case SetSort(element):
            return beside("SUBSET ", closed(domain(element), Bind.ATOM), bind=Bind.COMPUTED)
        case OptionSort() | QueueSort():
            raise AssertionError(f"{sort} is not a plain set")
        case _:
            assert_never(sort)


def _case_domain(sort: UnionSort, case: str) -> Text:
    """The set of the values of one case."""
    parts = [beside(f"{n}: ", domain(s)) for n, s in case_fields(sort, case)]
    return separated("[", [beside(f"{tag_field(sort)}: {{{string(case)}}}"), *parts], "]")


def is_plain(sort: Sort) -> bool:
    """Whether `domain` supports the sort."""
    match sort:
        case RecordSort(parts):
            return all(is_plain(s) for _, s in parts)
        case UnionSort(cases):
            return all(is_plain(own) for _, own in cases)
        case BagSort():
            return False
        case ArraySort(_, element) | SetSort(element):
            return is_plain(element)
        case OptionSort() | QueueSort():
            return False
        case _:
            return True


def belongs(term: Text, sort: Sort, depth: int = 0) -> Text:
    """The condition that the value of `term` is one of `sort`; bound names are ``at``, ``at1``, ..."""
    if is_plain(sort):
        return beside(closed(term, Bind.COMPUTED), " \\in ", domain(sort), bind=Bind.COMPARED)
    name = numbered("at", depth)
    match sort:
        case RecordSort():
            each = zip(accesses(sort), sort.fields, strict=True)
            return bulleted("/\\", [belongs(beside(term, access), s, depth + 1) for access, (_, s) in each])
        case UnionSort(cases):
            options = []
            for case, _ in cases:
                own = case_fields(sort, case)
                names = ", ".join(string(n) for n in (tag_field(sort), *(n for n, _ in own)))
                parts = [
                    beside("DOMAIN ", term, f" = {{{names}}}", bind=Bind.COMPARED),
                    beside(term, f".{tag_field(sort)} = {string(case)}", bind=Bind.COMPARED),
                    *(belongs(beside(term, f".{n}"), s, depth + 1) for n, s in own),
                ]
                options.append(bulleted("/\\", parts))
            return bulleted("\\/", options)
        case OptionSort(element):
            tag = beside(term, '.tag \\in {"None", "Some"}', bind=Bind.COMPARED)
            value = beside(term, ".value")
            none = beside(term, '.tag = "None" /\\ ', value, " = ", literal(element, resting(element)))
            there = beside(term, '.tag = "Some" /\\ ', closed(belongs(value, element, depth + 1), Bind.COMPARED))
            either = bulleted("\\/", [none, there])
            return bulleted("/\\", [tag, either])
        case BagSort(index, element):
            return beside(
                closed(term, Bind.COMPUTED), " \\in [", domain(index), " -> ", domain(element), "]", bind=Bind.COMPARED
            )
        case ArraySort(index, element):
            whole = beside("DOMAIN ", term, " = ", domain(index), bind=Bind.COMPARED)
            inner = belongs(beside(term, f"[{name}]"), element, depth + 1)
            return bulleted("/\\", [whole, beside(f"\\A {name} \\in ", domain(index), " : ", inner, bind=Bind.LOOSE)])
        case QueueSort(element, capacity):
            short = beside("Len(", term, f") <= {capacity}", bind=Bind.COMPARED)
            inner = belongs(beside(term, f"[{name}]"), element, depth + 1)
            return bulleted("/\\", [short, beside(f"\\A {name} \\in DOMAIN ", term, " : ", inner, bind=Bind.LOOSE)])
        case SetSort(element):
            inner = belongs(atom(name), element, depth + 1)
            return beside(f"\\A {name} \\in ", closed(term, Bind.COMPUTED), " : ", inner, bind=Bind.LOOSE)
        case _:
            raise AssertionError(f"{sort} is a plain set")


def initial(sort: Sort, first: Sequence[Value]) -> Text:
    """The set of a variable's initial values. Raises `TooLarge` if there are too many to enumerate."""
    found = set(first)
    if is_plain(sort) and len(found) == cardinality(sort):
        return domain(sort)
    product = _product(sort, found)
    if product is not None:
        return product
    if len(found) > CHOICES:
        raise TooLarge(
            f"{len(found):,} initial values of one variable cannot be written one by one",
            remedy="choose smaller parameters",
        )
    return separated("{", [literal(sort, v) for v in dict.fromkeys(first)], "}")


def _product(sort: Sort, found: set[Value]) -> Text | None:
    """The set as a set of functions or records, if it is one."""
    match sort:
        case RangeSort() if found == set(range(min(found), max(found) + 1)) and len(found) > 1:
            return beside(integer(min(found)), "..", integer(max(found)), bind=Bind.COMPUTED)
        case ArraySort(index, element):
            column = frozenset(v for value in found for v in value)
            if len(column) ** cardinality(index) == len(found):
                return beside("[", domain(index), " -> ", initial(element, ordered(element, column)), "]")
        case RecordSort(parts) if parts:
            columns = [ordered(s, frozenset(value[at] for value in found)) for at, (_, s) in enumerate(parts)]
            if prod(map(len, columns)) == len(found):
                return structures(sort, [initial(s, c) for (_, s), c in zip(parts, columns, strict=True)])
        case _:
            pass
    return None


def type_text(sort: Sort) -> str:
    """The type of a sort's values, as Apalache writes it."""
    match sort:
        case BoolSort():
            return "Bool"
        case RangeSort():
            return "Int"
        case ValueKeys(item=item):
            return type_text(item)
        case KeySort(keys=keys):
            return key_type_text(keys[0]) if alike(keys) else "Str"
        case EnumSort():
            return "Str"
        case TupleSort(parts):
            return f"<<{', '.join(type_text(s) for _, s in parts)}>>"
        case RecordSort():
            return "{ " + ", ".join(f"{n}: {type_text(s)}" for n, s in fields(sort)) + " }" if sort.fields else "Str"
        case UnionSort(cases):
            every = {n: type_text(s) for case, _ in cases for n, s in case_fields(sort, case)}
            return "{ " + ", ".join(f"{n}: {t}" for n, t in {tag_field(sort): "Str", **every}.items()) + " }"
        case OptionSort(element):
            return f"{{ tag: Str, value: {type_text(element)} }}"
        case ArraySort(index, element):
            inner = type_text(element)
            return f"{type_text(index)} -> {f'({inner})' if isinstance(element, ArraySort) else inner}"
        case QueueSort(element, _):
            return f"Seq({type_text(element)})"
        case SetSort(element):
            return f"Set({type_text(element)})"
        case _:
            assert_never(sort)
