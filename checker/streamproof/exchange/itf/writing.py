"""Traces as files in the Informal Trace Format (Apalache's ADR-015), with Quint's annotations of the actions taken.

Each state has in ``mbt::actionTaken`` the action that led to it (``init`` for the first) and in ``mbt::nondetPicks``
its parameters and picks, each as an option, the form that Quint writes and its test drivers read. ``#meta`` contains
the model, variant, parameters and property, and gives Apalache the types of the variables. A loop is the index of the
state that follows the last one; the closing step is in ``#meta.loopStep``, because no state can contain it. A trace
that stutters in its last state loops there and has ``#meta.stutters``.

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

`itf_reading` reads such files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_never

from streamproof.base.files import ITF, write
from streamproof.base.records import dataclass
from streamproof.base.text import visible_json
from streamproof.system.interpreter import with_derived
from streamproof.system.model import Instance, Property, System, parameter_json
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
    ordered,
    values,
)
from streamproof.system.verdict import Trace

FORMAT = "ITF"
DESCRIPTION = "https://apalache-mc.org/docs/adr/015adr-trace.html"
VERSION = 1
"""Version of this module's extensions in ``#meta``."""

ACTION = "mbt::actionTaken"
PICKS = "mbt::nondetPicks"
INIT = "init"

UNIT: Any = {"#tup": []}
NONE = {"tag": "None", "value": UNIT}


@dataclass(frozen=True, slots=True)
class Origin:
    """The model's name on the command line that made a trace, and the seal of its place; None: it has none."""

    text: str
    seal: str | None


def write_itf(path: Path | str, system: System, trace: Trace, prop: Property | None = None) -> None:
    """Writes `trace` to `path` atomically. Raises `SystemFailure`."""
    write(Path(path), itf_text(system, trace, prop), ITF)


def itf_text(system: System, trace: Trace, prop: Property | None = None, origin: Origin | None = None) -> str:
    """The trace as ITF text, deterministic, with one variable of one state per line."""
    document = to_itf(system, trace, prop, origin)
    parts = []
    for key, value in document.items():
        match key:
            case "#meta":
                parts.append(f' "{key}": {_object(value, 1)}')
            case "states":
                rows = ",\n".join(f"  {_object(state, 2)}" for state in value)
                parts.append(f' "{key}": [\n{rows}\n ]')
            case _:
                parts.append(f' "{key}": {compact(value)}')
    return visible_json("{\n" + ",\n".join(parts) + "\n}\n")


def to_itf(system: System, trace: Trace, prop: Property | None = None, origin: Origin | None = None) -> dict[str, Any]:
    """The trace as ITF data, with the derived values as variables. `prop` is the violated or reached property."""
    system, trace = with_derived(system, trace)
    meta: dict[str, Any] = {"format": FORMAT, "format-description": DESCRIPTION, "model": system.name}
    if system.variant is not None:
        meta["variant"] = system.variant
    meta["parameters"] = {name: parameter_json(value) for name, value in system.parameters.items()}
    if prop is not None:
        meta["property"] = prop.name
        meta["kind"] = prop.kind.value
    if origin is not None:
        meta["source"] = origin.text
        if origin.seal is not None:
            meta["seal"] = origin.seal
    meta["version"] = VERSION
    meta["varTypes"] = {v.name: type_text(v.sort) for v in system.variables}
    states = []
    for number, state in enumerate(trace.states):
        row: dict[str, Any] = {"#meta": {"index": number}}
        row |= _taken(trace.steps[number - 1]) if number else {ACTION: INIT, PICKS: {}}
        row |= {variable.name: encode(variable.sort, value) for variable, value in system.named(state)}
        states.append(row)
    document: dict[str, Any] = {"#meta": meta, "vars": [ACTION, PICKS, *(v.name for v in system.variables)]}
    document["states"] = states
    if trace.loop is not None:
        if trace.stutters:
            meta["stutters"] = True
        else:
            meta["loopStep"] = _taken(trace.steps[-1])
        document["loop"] = trace.loop
    return document


def _object(data: Mapping[str, Any], depth: int) -> str:
    pad = " " * (depth + 1)
    inner = ",\n".join(f"{pad}{compact(k)}: {compact(v)}" for k, v in data.items())
    return f"{{\n{inner}\n{' ' * depth}}}" if data else "{}"


def _taken(instance: Instance) -> dict[str, Any]:
    return {ACTION: instance.action, PICKS: {n: some(v) for n, v in choices(instance).items()}}


def choices(instance: Instance) -> dict[str, Any]:
    """Parameters and picks under unique names: duplicates get a number (``lost_2``)."""
    named: dict[str, Any] = {}
    reached = [(n, v) for n, v in instance.picks if v is not None or n not in instance.labelled]
    for name, value in (*instance.args, *reached):
        free, count = name, 1
        while free in named:
            count += 1
            free = f"{name}_{count}"
        named[free] = encode_plain(value)
    return named


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
        case TupleSort(fields):
            return {"#tup": [encode(s, v) for (_, s), v in zip(fields, value, strict=True)]}
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
            return key_type_text(keys[0])
        case EnumSort():
            return "Str"
        case TupleSort(fields):
            return f"<<{', '.join(type_text(s) for _, s in fields)}>>"
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


def key_type_text(key: Any) -> str:
    """The type of a key in Apalache's type language."""
    if isinstance(key, tuple):
        return f"<<{', '.join(map(key_type_text, key))}>>"
    return "Str" if isinstance(key, str) else "Bool" if isinstance(key, bool) else "Int"


def compact(data: Any) -> str:
    """JSON data on one line."""
    return json.dumps(data, ensure_ascii=False)


def _integer(value: int) -> Any:
    return {"#bigint": str(value)}
