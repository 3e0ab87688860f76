"""Import of the behaviours that TLC writes with ``-dumpTrace json``, replayed step by step by the interpreter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, assert_never

from streamproof.base.errors import InputError
from streamproof.exchange.tla.module import Tla
from streamproof.exchange.tla.names import string
from streamproof.exchange.tla.tlc import replayed
from streamproof.exchange.tla.tlc_values import Unreadable, printed_keys, read_value
from streamproof.exchange.tla.values import UNIT, alike, case_fields, fields, tag_field
from streamproof.system.model import System
from streamproof.system.sorts import (
    ArraySort,
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
    values,
)
from streamproof.system.verdict import Trace


def trace_of_dump(system: System, model: Tla, text: str) -> Trace:
    """The behaviour in a file that TLC wrote for `model`, the export of `system`.

    Raises `InputError` for another file, `Unreadable` for an unknown value, and `Refuted` if the interpreter does not take
    a step, or the first state is not initial.
    """
    try:
        document = json.loads(text)
        rows = {int(number): dict(state) for number, state in document["state"]}
        moves = [(int(before[0]), action["name"], int(after[0])) for before, action, after in document["action"]]
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError) as error:
        raise InputError(f"not a behaviour that TLC wrote with -dumpTrace json: {error}") from None
    steps = {after: name for before, name, after in moves if before < after}
    back = next((after for before, _, after in moves if before >= after), None)
    states = []
    for number in sorted(rows):
        try:
            row = [_decoded(v.sort, rows[number][model.variables[v.name]], v.name) for v in system.variables]
        except (KeyError, TypeError, ValueError) as error:
            raise Unreadable(f"state {number} of TLC's behaviour cannot be read: {error}") from None
        states.append(tuple(row))
    actions = [model.actions.get(str(steps.get(number, ""))) for number in sorted(rows)]
    return replayed(system, states, actions, back, stutters=back is not None and back == len(states))


def _decoded(sort: Sort, data: Any, about: str) -> Value:
    """A value as TLC writes it in JSON: functions and records as objects, functions from 1..n as lists, sets as lists."""
    found: Value = None
    match sort:
        case BoolSort():
            found = data if isinstance(data, bool) else None
        case RangeSort():
            found = data if isinstance(data, int) and not isinstance(data, bool) else None
        case EnumSort(members):
            found = {_plain(m): m for m in members}.get(data) if isinstance(data, str) else None
        case TupleSort(parts):
            if isinstance(data, list) and len(data) == len(parts):
                found = tuple(_decoded(s, one, about + sort.part(n)) for (n, s), one in zip(parts, data, strict=True))
        case RecordSort():
            if sort.fields and isinstance(data, Mapping):
                found = tuple(_decoded(s, data[n], f"{about}.{n}") for n, s in fields(sort))
            elif not sort.fields and data == UNIT:
                found = ()
        case UnionSort():
            tags = {_plain(m): m for m in sort.tag.members}
            case = tags.get(str(data.get(tag_field(sort)))) if isinstance(data, Mapping) else None
            if case is not None:
                found = (case, tuple(_decoded(s, data[n], f"{about}.{n}") for n, s in case_fields(sort, case)))
        case OptionSort(element):
            if isinstance(data, Mapping) and data["tag"] in ("None", "Some"):
                return None if data["tag"] == "None" else _decoded(element, data["value"], about)
        case ArraySort(ValueKeys() as index, element) if isinstance(data, Mapping):
            texts_of = {read_value(index, text, about): text for text in data}
            found = tuple(_decoded(element, data[texts_of[k]], f"{about}[{k}]") for k in values(index))
        case ArraySort(index, element):
            keys = tuple(values(index))
            tuples = isinstance(index, KeySort) and alike(index.keys)
            texts = printed_keys(index) if isinstance(index, KeySort) and tuples else list(map(_key, keys))
            by_key = data if isinstance(data, Mapping) else dict(zip(texts, data, strict=True))
            found = tuple(_decoded(element, by_key[t], f"{about}[{k}]") for t, k in zip(texts, keys, strict=True))
        case QueueSort(element, _):
            found = tuple(_decoded(element, one, about) for one in data) if isinstance(data, list) else None
        case SetSort(element):
            found = frozenset(_decoded(element, one, about) for one in data) if isinstance(data, list) else None
        case _:
            assert_never(sort)
    if found is None:
        raise Unreadable(f"TLC wrote no value of {sort} for {about}")
    return found


def _plain(text: str) -> str:
    return string(text)[1:-1]


def _key(key: Value) -> str:
    return str(key).upper() if isinstance(key, bool) else _plain(str(key))
