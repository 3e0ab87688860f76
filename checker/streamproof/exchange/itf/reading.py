"""Reader of traces in the Informal Trace Format; `itf` describes it.

Reading is lenient: numbers may be plain, keys that start with ``#`` and unknown variables are ignored, and for steps
without action names the instances are searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import UnionType
from typing import Any, assert_never

from streamproof.base.errors import Exit, InputError, StreamproofError
from streamproof.base.reading import parse_json, read_piped, read_text
from streamproof.base.records import dataclass
from streamproof.exchange.itf.writing import ACTION, PICKS, UNIT, Origin, choices, compact, encode_plain
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Instance, State, System
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
    index_value,
    values,
)
from streamproof.system.verdict import Trace

_INTEGER = r"-?[0-9]{1,4000}"


@dataclass(frozen=True, slots=True)
class Meta:
    """The metadata of a trace file; missing entries are None (or empty)."""

    model: str | None = None
    variant: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    property: str | None = None
    kind: str | None = None
    version: int | None = None
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """The contents of a trace file, and its name."""

    name: str
    data: dict[str, Any]


def load(path: Path | str) -> Document:
    """The document in the file at `path`, ``-`` for standard input. Raises `InputError` if it is not an ITF file."""
    piped = str(path) in ("-", "/dev/stdin")
    name = "standard input" if piped else str(path)
    text = read_piped() if piped else read_text(Path(path))
    data = parse_json(text, name, "give a trace in ITF, a file named *.itf.json")
    if not isinstance(data, dict) or not isinstance(data.get("states"), list):
        raise InputError(f"{name}: not a trace in ITF: no list of states", remedy="give a file named *.itf.json")
    return Document(name, data)


def read_meta(given: Path | str | Document) -> Meta:
    """The metadata of a trace file. Raises `InputError` if it is not an ITF file."""
    document = given if isinstance(given, Document) else load(given)
    found = document.data.get("#meta", {})
    meta: Mapping[str, Any] = found if isinstance(found, dict) else {}

    def expect(key: str, value: Any, kind: type | UnionType, what: str) -> None:
        if not isinstance(value, kind):
            raise InputError(
                f"{document.name}: {key}: expected {what}, found {compact(value)[:60]}", remedy="correct the file"
            )

    def text(key: str) -> str | None:
        if key in meta:
            expect(f"#meta.{key}", meta[key], str, "a text")
        return meta.get(key)

    expect("#meta", found, dict | str, "an object")  # other tools write a comment there
    expect("#meta.parameters", meta.get("parameters", {}), dict, "an object")
    variables = document.data.get("vars", [])
    expect("vars", variables, list, "a list of variables")
    for at, name in enumerate(variables):
        expect(f"vars[{at}]", name, str, "the name of a variable")
    _expect_once(document, [(f"vars[{at}]", name) for at, name in enumerate(variables)])
    rows = [(f"states[{at}].#meta.index", row) for at, row in enumerate(document.data["states"])]
    marked = [(at, row["#meta"]) for at, row in rows if isinstance(row, dict) and isinstance(row.get("#meta"), dict)]
    _expect_once(document, [(at, mark["index"]) for at, mark in marked if "index" in mark])
    parameters, version = meta.get("parameters"), meta.get("version")
    return Meta(
        model=text("model"),
        variant=text("variant"),
        parameters=parameters if isinstance(parameters, dict) else {},
        property=text("property"),
        kind=text("kind"),
        version=version if isinstance(version, int) else None,
        origin=None if (source := text("source")) is None else Origin(source, text("seal")),
    )


def _expect_once(document: Document, given: Sequence[tuple[str, Any]]) -> None:
    """Raises `InputError` for contradictory names in a file."""
    places: dict[str, str] = {}
    for at, name in given:
        first = places.setdefault(compact(name), at)
        if first != at:
            raise InputError(
                f"{document.name}: {at}: {compact(name)[:60]} again, as {first}", remedy="correct the file"
            )


class Malformed(Exception):
    """JSON that is not a value of the expected sort; `path` is its position, as ``wire[0].kind``."""

    def __init__(self, path: str, message: str) -> None:
        self.path = path
        self.message = message
        super().__init__(f"{path}: {message}")


class Unexplained(StreamproofError):
    """A well-formed trace with a step that is not a step of the system: the trace is rejected."""

    exit_code = Exit.REJECTED


class _NoStep(Malformed):
    """A step without a matching action or choice of the system."""


def read_itf(given: Path | str | Document, system: System) -> Trace:
    """The trace in a file, as a trace of `system`.

    The values must belong to the variables' sorts, and each step must name an action or be a step of the system;
    `traces.replay` checks whether the trace is a behaviour. Raises `InputError` with the file, the position in it
    (``states[3].wire[0]``) and the expected value, and `Unexplained` for a step that is not a step of the system.
    """
    loaded = given if isinstance(given, Document) else load(given)
    path, document = loaded.name, loaded.data
    try:
        return _trace(document, system)
    except _NoStep as error:
        raise Unexplained(
            f"{path}: {error.path}: {error.message}",
            remedy="give the model, variant and parameters that it was written for",
        ) from None
    except Malformed as error:
        meta = document.get("#meta")
        of = meta.get("model") if isinstance(meta, dict) else None
        hint = f"the file is a trace of model {of}, not of {system.name}" if of not in (None, system.name) else ""
        raise InputError(
            f"{path}: {error.path}: {error.message}",
            remedy=hint or "correct the file, or give the model, variant and parameters that it was written for",
        ) from None
    except RecursionError:
        raise InputError(f"{path}: values are nested too deeply", remedy="correct the file") from None


def _trace(document: dict[str, Any], system: System) -> Trace:
    rows = document["states"]
    if not rows:
        raise Malformed("states", "the trace has no state")
    states = [_state(system, row, f"states[{at}]") for at, row in enumerate(rows)]
    search = _StepSearch(system)
    steps = [search.step(states[at - 1], states[at], rows[at], f"states[{at}]") for at in range(1, len(rows))]
    loop = document.get("loop")
    if loop is None:
        return Trace(tuple(states), tuple(steps))
    kind, index = canonical(loop)
    loop = index if kind == "int" else loop
    if not isinstance(loop, int) or isinstance(loop, bool) or not 0 <= loop < len(states):
        raise Malformed("loop", f"expected the index of a state, 0 to {len(states) - 1}, found {compact(loop)}")
    meta = document.get("#meta")
    if isinstance(meta, dict) and meta.get("stutters") is True and loop == len(states) - 1:
        return Trace(tuple(states), tuple(steps), loop)
    closing = meta.get("loopStep") if isinstance(meta, dict) else None
    if closing is None and loop < len(states) - 1 and states[-1] == states[loop]:
        # Other tools write the state that closes the loop twice; the step into it is the closing step.
        return Trace(tuple(states[:-1]), tuple(steps), loop)
    named = closing if isinstance(closing, dict) else {}
    steps.append(search.step(states[-1], states[loop], named, "loop"))
    return Trace(tuple(states), tuple(steps), loop)


def _state(system: System, row: Any, path: str) -> State:
    if not isinstance(row, dict):
        raise Malformed(path, f"expected an object with the variables, found {compact(row)[:60]}")
    found = []
    for variable in system.variables:
        # Quint qualifies a variable of an instance with its module: ``credit::pool``.
        names = [n for n in row if n == variable.name] or [n for n in row if n.endswith(f"::{variable.name}")]
        if len(names) != 1:
            missing = "is missing" if not names else f"is ambiguous: {', '.join(names)}"
            raise Malformed(path, f"the variable {variable.name} {missing}")
        found.append(decode(variable.sort, row[names[0]], f"{path}.{variable.name}"))
    return tuple(found)


class _StepSearch:
    """Finds the instance of each step, by its name if it has one, else by the states."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._interpreter = Interpreter(system)
        self._choices = {id(i): {n: canonical(v) for n, v in choices(i).items()} for i in system.instances}
        self._names = {name for own in self._choices.values() for name in own}

    def step(self, before: State, after: State, row: Mapping[str, Any], path: str) -> Instance:
        candidates = self._instances_named(row, path)
        if len(candidates) == 1:
            return candidates[0]
        found = self._interpreter.leading(candidates, before, after)
        if found is not None:
            return found
        some_labels = ", ".join(i.label for i in candidates[:4]) + (", ..." if len(candidates) > 4 else "")
        raise _NoStep(path, f"no step of the model leads here from the state before (tried {some_labels})")

    def _instances_named(self, row: Mapping[str, Any], path: str) -> tuple[Instance, ...]:
        name = row.get(ACTION)
        if name is None:
            return self._system.instances
        if not isinstance(name, str):
            raise Malformed(f"{path}.{ACTION}", f"expected the name of an action, found {compact(name)[:60]}")
        short = name.rsplit("::", 1)[-1]
        actions = {a.name: a for a in self._system.actions}
        action = actions.get(name) or actions.get(short)
        if action is None:
            raise _NoStep(f"{path}.{ACTION}", f"no action {name!r}; the model has {', '.join(actions)}")
        picks = row.get(PICKS, {})
        if not isinstance(picks, dict):
            raise Malformed(f"{path}.{PICKS}", f"expected a record, found {compact(picks)[:60]}")
        wanted = {n: canonical(_unwrapped(v)) for n, v in picks.items() if not _absent(v) and not n.startswith("#")}
        strange = wanted.keys() - self._names
        if strange:
            raise _NoStep(f"{path}.{PICKS}", f"no action of the model has the choice {min(strange)!r}")
        found = tuple(i for i in action.instances if self._agrees(i, wanted))
        if not found:
            some_labels = ", ".join(i.label for i in action.instances[:4]) + (
                "..." if len(action.instances) > 4 else ""
            )
            raise _NoStep(f"{path}.{PICKS}", f"no such choice for {action.name}; it has {some_labels}")
        return found

    def _agrees(self, instance: Instance, wanted: Mapping[str, Any]) -> bool:
        # Names that the instance does not have may belong to another action of a file that lists all of them.
        have = self._choices[id(instance)]
        return all(have[name] == value for name, value in wanted.items() if name in have)


def _absent(data: Any) -> bool:
    return data is None or (isinstance(data, dict) and data.get("tag") == "None")


def _unwrapped(data: Any) -> Any:
    return data["value"] if isinstance(data, dict) and data.get("tag") == "Some" and "value" in data else data


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
        case TupleSort(fields):
            parts = _items(data, ("#tup",), "a tuple", path)
            if len(parts) != len(fields):
                raise Malformed(path, f"{len(parts)} elements in a tuple of {len(fields)}")
            return tuple(
                decode(s, one, f"{path}[{at}]") for at, ((_, s), one) in enumerate(zip(fields, parts, strict=True))
            )
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
