"""Values in logs, as JSON: checked, compared with values of the model, written, and described by a JSON Schema. An array, a
record or a union may be recorded in part.

| sort | form in a log |
|---|---|
| Bool, Range | a truth value, a number |
| Enum | its name |
| Option | null, or the value |
| Record | an object with some of the fields |
| Union | `{"tag": case, "value": {field: ...}}` |
| Array | a list of all elements, or an object with some; keys are as traces show them: `"0"`, `"(a, b)"` |
| Queue, Set, Bag | a list of all elements |
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from typing import Any, assert_never

from streamproof.base.errors import InputError, Loc, did_you_mean
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
    TupleSort,
    UnionSort,
    Value,
    bag_items,
    ordered,
    values,
)

SHOWN_KEYS = 6
LISTED_KEYS = 64
"""Largest number of keys of an array that a schema lists."""


def expect_value(sort: Sort, recorded: Any, name: str, loc: Loc | None) -> None:
    """Raise `InputError` if no value of the sort is recorded as `recorded` at the place `name`, at `loc` of the log.

    A number outside a Range and a queue above its capacity are values that the model excludes, not mistakes of form.
    """

    def expect(possible: bool, form: str, names: Iterable[str] = ()) -> None:
        if not possible:
            remedy = did_you_mean(recorded, names) if isinstance(recorded, str) else None
            text = f"{name} is {json.dumps(recorded)} in the log, which is no value of {sort}"
            raise InputError(text, loc=loc, remedy=remedy or f"give {form}")

    match sort:
        case OptionSort(element):
            if recorded is not None:
                expect_value(element, recorded, name, loc)
        case BagSort(item=element) | SetSort(element) | QueueSort(element):
            expect(isinstance(recorded, list), "a list of the elements")
            for at, part in enumerate(recorded):
                expect_value(element, part, f"{name}[{at}]", loc)
            if isinstance(sort, SetSort) and _is_recorded_whole(element):
                twice = [part for at, part in enumerate(recorded) if part in recorded[:at]]
                for part in twice[:1]:
                    text = f"{name} is a set, and has {json.dumps(part)} twice in the log"
                    raise InputError(text, loc=loc, remedy="give each member once")
        case ArraySort(index, element) if isinstance(recorded, dict):
            known = places(index)
            for key, part in recorded.items():
                if key not in known:
                    some = ", ".join(islice((str(k) for k in values(index)), SHOWN_KEYS))
                    raise InputError(f"{name} has no element {key!r}", loc=loc, remedy=f"its keys: {some}")
                expect_value(element, part, f"{name}[{key}]", loc)
        case ArraySort(index, element):
            size = sum(1 for _ in values(index))
            expect(isinstance(recorded, list) and len(recorded) == size, f"a list of {size}, or an object with some")
            for key, part in zip(values(index), recorded, strict=True):
                expect_value(element, part, f"{name}[{key}]", loc)
        case TupleSort(fields):
            expect(isinstance(recorded, list) and len(recorded) == len(fields), f"a list of {len(fields)}")
            for at, ((_, own), part) in enumerate(zip(fields, recorded, strict=True)):
                expect_value(own, part, f"{name}[{at}]", loc)
        case RecordSort(fields):
            expect(isinstance(recorded, dict), "an object with some of the fields")
            _expect_fields(fields, recorded, name, loc)
        case UnionSort(cases):
            known_case = isinstance(recorded, dict) and recorded.get("tag") in [name for name, _ in cases]
            payload = recorded.get("value", {}) if known_case else None
            expect(isinstance(payload, dict), '{"tag": case, "value": {field: ...}}')
            _expect_fields(sort.payload(recorded["tag"]).fields, payload, f"{name}.{recorded['tag']}", loc)
        case BoolSort():
            expect(isinstance(recorded, bool), "true or false")
        case RangeSort():
            expect(type(recorded) is int, "an integer")
        case EnumSort(members):
            expect(recorded in members, "one of the names", members)
        case _:
            assert_never(sort)


def _is_recorded_whole(sort: Sort) -> bool:
    """Whether no value of the sort can be recorded in part, so that two equal records mean one value."""
    match sort:
        case OptionSort(element) | SetSort(element) | QueueSort(element) | BagSort(item=element):
            return _is_recorded_whole(element)
        case BoolSort() | RangeSort() | EnumSort():
            return True
        case TupleSort(fields):
            return all(_is_recorded_whole(own) for _, own in fields)
        case RecordSort() | UnionSort() | ArraySort():
            return False
        case _:
            assert_never(sort)


def _expect_fields(fields: tuple[tuple[str, Sort], ...], recorded: Any, name: str, loc: Loc | None) -> None:
    sorts = dict(fields)
    for own, part in recorded.items():
        if own not in sorts:
            remedy = did_you_mean(own, sorts) or f"its fields: {', '.join(sorts) or 'none'}"
            raise InputError(f"{name} has no field {own!r}", loc=loc, remedy=remedy)
        expect_value(sorts[own], part, f"{name}.{own}", loc)


def agrees(sort: Sort, value: Value, recorded: Any) -> bool:
    """Whether a recorded value, from JSON, is `value`; of arrays and records it may have a part."""
    match sort:
        case OptionSort(element):
            return recorded is None if value is None else agrees(element, value, recorded)
        case BagSort(item=item):
            return recorded is not None and _matched(item, bag_items(sort, value), recorded)
        case ArraySort(index, element) if isinstance(recorded, dict):
            known = places(index)
            return all(agrees(element, value[known[key]], own) for key, own in recorded.items())
        case ArraySort(_, element) | QueueSort(element):
            same_length = recorded is not None and len(value) == len(recorded)
            return same_length and all(agrees(element, a, b) for a, b in zip(value, recorded, strict=True))
        case TupleSort(fields):
            if recorded is None or len(recorded) != len(fields):
                return False
            return all(agrees(s, own, part) for (_, s), own, part in zip(fields, value, recorded, strict=True))
        case RecordSort(fields):
            own = {name: (inner, part) for (name, inner), part in zip(fields, value, strict=True)}
            return recorded is not None and all(agrees(*own[name], part) for name, part in recorded.items())
        case UnionSort():
            own_case = recorded is not None and recorded.get("tag") == value[0]
            return own_case and agrees(sort.payload(value[0]), value[1], recorded.get("value", {}))
        case SetSort(element):
            return recorded is not None and _matched(element, list(value), recorded)
        case BoolSort() | RangeSort() | EnumSort():
            return type(recorded) is type(value) and bool(recorded == value)
        case _:
            assert_never(sort)


def _matched(item: Sort, found: list[Value], recorded: list[Any]) -> bool:
    """Whether recorded elements are those of a bag or set, each once: a matching, because parts may fit several."""
    partner: dict[int, int] = {}

    def place(at: int, tried: set[int]) -> bool:
        for to, value in enumerate(found):
            if to not in tried and agrees(item, value, recorded[at]):
                tried.add(to)
                if to not in partner or place(partner[to], tried):
                    partner[to] = at
                    return True
        return False

    return len(found) == len(recorded) and all(place(at, set()) for at in range(len(recorded)))


def places(index: Sort) -> dict[str, int]:
    """The position of each key of an array, by its text and by its JSON."""
    return {text: at for at, key in enumerate(values(index)) for text in (str(key), json.dumps(key))}


def value_json(sort: Sort, value: Value) -> Any:
    """A value of the model in the form of logs."""
    match sort:
        case OptionSort(element):
            return None if value is None else value_json(element, value)
        case BagSort(item=item):  # which is an ArraySort
            return [value_json(item, own) for own in bag_items(sort, value)]
        case ArraySort(index, element):
            return {str(key): value_json(element, own) for key, own in zip(values(index), value, strict=True)}
        case QueueSort(element):
            return [value_json(element, own) for own in value]
        case SetSort(element):
            return [value_json(element, own) for own in ordered(element, value)]
        case TupleSort(fields):
            return [value_json(inner, own) for (_, inner), own in zip(fields, value, strict=True)]
        case RecordSort(fields):
            return {name: value_json(inner, own) for (name, inner), own in zip(fields, value, strict=True)}
        case UnionSort():
            payload = sort.payload(value[0])
            return {"tag": value[0], "value": value_json(payload, value[1])}
        case EnumSort() | RangeSort():
            return value
        case BoolSort():
            return bool(value)
        case _:
            assert_never(sort)


def sort_schema(sort: Sort) -> dict[str, Any]:
    """The JSON Schema of recorded values of a sort, in part or whole."""
    match sort:
        case BoolSort():
            return {"type": "boolean"}
        case RangeSort():
            return {"type": "integer"}
        case EnumSort():
            return {"enum": [*sort.members]}
        case OptionSort(element):
            return {"anyOf": [{"type": "null"}, sort_schema(element)]}
        case BagSort(item=element) | SetSort(element) | QueueSort(element):
            return {"type": "array", "items": sort_schema(element)}
        case ArraySort(index, element):
            keys = [str(key) for key in values(index)]
            items = sort_schema(element)
            some: dict[str, Any] = {"type": "object", "additionalProperties": items}
            if len(keys) <= LISTED_KEYS:
                some = {"type": "object", "properties": dict.fromkeys(keys, items), "additionalProperties": False}
                some = some if all(map(_is_plain_key, keys)) else {"type": "object", "additionalProperties": items}
            return {"anyOf": [some, {"type": "array", "items": items, "minItems": len(keys), "maxItems": len(keys)}]}
        case TupleSort(fields):
            each = [sort_schema(inner) for _, inner in fields]
            return {"type": "array", "prefixItems": each, "items": False, "minItems": len(each)}
        case RecordSort(fields):
            own = {name: sort_schema(inner) for name, inner in fields}
            return {"type": "object", "properties": own, "additionalProperties": False}
        case UnionSort(cases):
            return {
                "anyOf": [
                    {
                        "type": "object",
                        "required": ["tag"],
                        "additionalProperties": False,
                        "properties": {"tag": {"const": name}, "value": sort_schema(sort.payload(name))},
                    }
                    for name, _ in cases
                ]
            }
        case _:
            assert_never(sort)


def _is_plain_key(key: str) -> bool:
    """Whether a key has one text only: others may also be written as JSON."""
    return key.isidentifier() or key.isdigit()
