"""Values in the Informal Trace Format (Apalache's ADR-015): ours to JSON and back.

==========  ================================================================
sort        JSON
==========  ================================================================
Bool        ``true`` / ``false``
Range       ``{"#bigint": "-3"}`` (a plain number is read as well)
Enum        the member, a string
Record      an object, one key per field
Option      ``{"tag": "Some", "value": v}`` / ``{"tag": "None", "value": {"#tup": []}}``
Array       ``{"#map": [[key, value], ...]}`` in index order; a tuple as key is ``{"#tup": [...]}``
Queue       a list, head first
Set         ``{"#set": [...]}``, members in the order of their sort
==========  ================================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, assert_never

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
    UnionSort,
    Value,
    ValueKeys,
    index_value,
    ordered,
    values,
)

_INTEGER = r"-?[0-9]{1,4000}"

UNIT: Any = {"#tup": []}
NONE = {"tag": "None", "value": UNIT}


class Malformed(Exception):
    """JSON that is not a value of the expected sort; `path` is its position, as ``wire[0].kind``."""

    def __init__(self, path: str, message: str) -> None:
        self.path = path
        self.message = message
        super().__init__(f"{path}: {message}")


def encode(sort: Sort, value: Value) -> Any:
    """A value of `sort` as JSON data."""
    match sort:
        case ValueKeys(item=item):
            return encode(item, sort.keys[sort.places[value]])
        case KeySort():
            return encode_plain(sort.keys[sort.places[value]])
        case BoolSort() | EnumSort():
            return value
        case RangeSort():
            return _integer(value)
        case RecordSort(fields):
            return {n: encode(s, v) for (n, s), v in zip(fields, value, strict=True)}
        case UnionSort():
            own = sort.payload(value[0])
            return {"tag": value[0], "value": encode(own, value[1]) if own.fields else UNIT}
        case OptionSort(element):
            return NONE if value is None else some(encode(element, value))
        case ArraySort(index, element):
            pairs = zip(values(index), value, strict=True)
            return {"#map": [[encode(index, k), encode(element, v)] for k, v in pairs]}
        case QueueSort(element, _):
            return [encode(element, v) for v in value]
        case SetSort(element):
            return {"#set": [encode(element, v) for v in ordered(element, value)]}
        case _:
            assert_never(sort)


def encode_plain(value: Any) -> Any:
    """A parameter or pick without a sort as JSON data; other objects as text."""
    match value:
        case bool() | str():
            return value
        case int():
            return _integer(value)
        case None:
            return NONE
        case tuple():
            return {"#tup": [encode_plain(v) for v in value]}
        case frozenset():
            return {"#set": sorted((encode_plain(v) for v in value), key=compact)}
        case _:
            return str(value)


def some(value: Any) -> Any:
    """A present option with JSON data."""
    return {"tag": "Some", "value": value}


def decode(sort: Sort, data: Any, path: str) -> Value:
    """JSON data as a value of `sort`. Raises `Malformed` with the position, starting with `path`."""
    match sort:
        case BoolSort():
            if not isinstance(data, bool):
                raise _expected("true or false", data, path)
            return data
        case RangeSort(lo, hi):
            number = _read_integer(data, path)
            if not lo <= number <= hi:
                raise Malformed(path, f"{number} is outside {sort}")
            return number
        case ValueKeys(item=item):
            found = index_value(sort, decode(item, data, path))
            assert found is not None
            return found
        case KeySort(members, keys=keys):
            wanted = canonical(data)
            for text, key in zip(members, keys, strict=True):
                if wanted == canonical(encode_plain(key)):
                    return text
            raise Malformed(path, f"{compact(data)} is not one of {', '.join(members)}")
        case EnumSort(members):
            if data not in members:
                raise Malformed(path, f"{compact(data)} is not one of {', '.join(members)}")
            return data
        case RecordSort(fields):
            return _decode_record(fields, data, path)
        case UnionSort():
            match data:
                case {"tag": str(name), "value": inner} if name in sort.tag.places:
                    own = sort.payload(name)
                    return (name, () if not own.fields and inner == UNIT else decode(own, inner, f"{path}.{name}"))
            raise _expected(f'{{"tag": ..., "value": ...}} with one of {", ".join(sort.tag.members)}', data, path)
        case OptionSort(element):
            match data:
                case None | {"tag": "None"}:
                    return None
                case {"tag": "Some", "value": inner}:
                    return decode(element, inner, path)
            raise _expected('{"tag": "Some", "value": ...} or {"tag": "None", ...}', data, path)
        case ArraySort(index, element):
            counts = _decode_array(index, element, data, path)
            if isinstance(sort, BagSort) and sum(counts) > sort.capacity:
                raise Malformed(path, f"{sum(counts)} elements in a bag of capacity {sort.capacity}")
            return counts
        case QueueSort(element, capacity):
            items = _items(data, ("#tup",), "a list", path)
            if len(items) > capacity:
                raise Malformed(path, f"{len(items)} elements in a queue of capacity {capacity}")
            return tuple(decode(element, item, f"{path}[{at}]") for at, item in enumerate(items))
        case SetSort(element):
            items = _items(data, ("#set",), '{"#set": [...]}', path)
            return frozenset(decode(element, item, f"{path}[{at}]") for at, item in enumerate(items))
        case _:
            assert_never(sort)


def canonical(data: Any) -> Any:
    """A hashable normal form of JSON data: numbers of either form are equal, sets and maps are unordered."""
    match data:
        case bool() | str() | None:
            return (type(data).__name__, data)
        case int():
            return ("int", data)
        case {"#bigint": str(text)} if re.fullmatch(_INTEGER, text):
            return ("int", int(text))
        case {"#set": [*items]}:
            return ("set", frozenset(map(canonical, items)))
        case {"#map": [*pairs]}:
            return ("map", frozenset(map(canonical, pairs)))
        case [*items] | {"#tup": [*items]}:
            return ("list", tuple(map(canonical, items)))
        case dict():
            return ("record", frozenset((k, canonical(v)) for k, v in data.items()))
        case _:
            return ("text", compact(data))


def type_text(sort: Sort) -> str:
    """The sort in Apalache's type language, for ``#meta.varTypes``."""
    match sort:
        case BoolSort():
            return "Bool"
        case RangeSort():
            return "Int"
        case ValueKeys(item=item):
            return f"({type_text(item)})" if isinstance(item, OptionSort | UnionSort | ArraySort) else type_text(item)
        case KeySort(keys=keys):
            return _key_type(keys[0])
        case EnumSort():
            return "Str"
        case RecordSort(fields):
            return f"{{ {', '.join(f'{n}: {type_text(s)}' for n, s in fields)} }}"
        case UnionSort(cases):
            return " | ".join(f"{name}({type_text(own) if own.fields else 'UNIT'})" for name, own in cases)
        case OptionSort(element):
            return f"None(UNIT) | Some({type_text(element)})"
        case ArraySort(index, element):
            inner = type_text(element)
            if isinstance(element, ArraySort | OptionSort | UnionSort):
                inner = f"({inner})"
            return f"{type_text(index)} -> {inner}"
        case QueueSort(element, _):
            return f"Seq({type_text(element)})"
        case SetSort(element):
            return f"Set({type_text(element)})"
        case _:
            assert_never(sort)


def _key_type(key: Any) -> str:
    """The type of a key in Apalache's type language."""
    if isinstance(key, tuple):
        return f"<<{', '.join(map(_key_type, key))}>>"
    return "Str" if isinstance(key, str) else "Bool" if isinstance(key, bool) else "Int"


def compact(data: Any) -> str:
    """JSON data on one line."""
    return json.dumps(data, ensure_ascii=False)


def _integer(value: int) -> Any:
    return {"#bigint": str(value)}


def _read_integer(data: Any, path: str) -> int:
    match data:
        case bool():
            pass
        case int():
            return data
        case {"#bigint": str(text)} if re.fullmatch(_INTEGER, text):
            return int(text)
        case {"#bigint": int(number)} if not isinstance(number, bool):
            return number
    raise _expected('an integer, {"#bigint": "..."}', data, path)


def _decode_record(fields: Iterable[tuple[str, Sort]], data: Any, path: str) -> Value:
    known = dict(fields)
    if not isinstance(data, dict):
        raise _expected(f"a record with {', '.join(known)}", data, path)
    for name in data:
        if name not in known and not name.startswith("#"):
            raise Malformed(path, f"{name!r} is not a field of the record, which has {', '.join(known)}")
    for name in known:
        if name not in data:
            raise Malformed(path, f"the field {name!r} is missing")
    return tuple(decode(s, data[n], f"{path}.{n}") for n, s in known.items())


def _decode_array(index: RangeSort | EnumSort | BoolSort, element: Sort, data: Any, path: str) -> Value:
    keys = tuple(values(index))
    found: dict[Value, Value] = {}
    match data:
        case {"#map": [*pairs]}:
            for at, pair in enumerate(pairs):
                if not (isinstance(pair, list) and len(pair) == 2):
                    raise _expected("a pair [key, value]", pair, f"{path}.#map[{at}]")
                key = decode(index, pair[0], f"{path}.#map[{at}][0]")
                if key in found:
                    raise Malformed(path, f"the key {key} is there twice")
                found[key] = decode(element, pair[1], f"{path}[{key}]")
        case [*items] if len(items) == len(keys):
            found = {key: decode(element, item, f"{path}[{key}]") for key, item in zip(keys, items, strict=True)}
        case dict() if not any(name.startswith("#") for name in data):
            by_text = {str(key): key for key in keys}
            for name, item in data.items():
                if name not in by_text:
                    raise Malformed(path, f"{name!r} is not a key of {index}")
                found[by_text[name]] = decode(element, item, f"{path}[{name}]")
        case _:
            raise _expected(f'{{"#map": [[key, value], ...]}} over {index}', data, path)
    for key in keys:
        if key not in found:
            raise Malformed(path, f"the key {key} is missing")
    return tuple(found[key] for key in keys)


def _items(data: Any, wrappers: tuple[str, ...], expected: str, path: str) -> list[Any]:
    if isinstance(data, dict):
        for wrapper in wrappers:
            inner = data.get(wrapper)
            if isinstance(inner, list):
                return inner
    if isinstance(data, list):
        return data
    raise _expected(expected, data, path)


def _expected(what: str, data: Any, path: str) -> Malformed:
    text = compact(data)
    return Malformed(path, f"expected {what}, found {text if len(text) <= 60 else text[:57] + '...'}")
