"""Traces as files in the Informal Trace Format (Apalache's ADR-015), with Quint's annotations of the actions taken.

Each state has in ``mbt::actionTaken`` the action that led to it (``init`` for the first) and in ``mbt::nondetPicks``
its parameters and picks, each as an option, the form that Quint writes and its test drivers read. ``#meta`` contains
the model, variant, parameters and property, and gives Apalache the types of the variables. A loop is the index of the
state that follows the last one; the closing step is in ``#meta.loopStep``, because no state can contain it. A trace
that stutters in its last state loops there and has ``#meta.stutters``.

Reading is lenient: numbers may be plain, keys that start with ``#`` and unknown variables are ignored, and for steps
without action names the instances are searched.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import UnionType
from typing import Any

from streamproof.exchange.itf_values import Malformed, canonical, compact, decode, encode, encode_plain, some, type_text
from streamproof.system.errors import EvaluationError, Exit, InputError, StreamproofError
from streamproof.system.files import ITF, write
from streamproof.system.foreign import visible_json
from streamproof.system.interpreter import Interpreter, with_derived
from streamproof.system.model import Instance, Property, State, System, parameter_json
from streamproof.system.reading import parse_json, read_text
from streamproof.system.records import dataclass
from streamproof.system.verdict import Trace

FORMAT = "ITF"
DESCRIPTION = "https://apalache-mc.org/docs/adr/015adr-trace.html"
VERSION = 1
"""Version of this module's extensions in ``#meta``."""

ACTION = "mbt::actionTaken"
PICKS = "mbt::nondetPicks"
INIT = "init"


@dataclass(frozen=True, slots=True)
class Meta:
    """The metadata of a trace file; missing entries are None (or empty)."""

    model: str | None = None
    variant: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    property: str | None = None
    kind: str | None = None
    version: int | None = None


def write_itf(path: Path | str, system: System, trace: Trace, prop: Property | None = None) -> None:
    """Writes `trace` to `path` atomically. Raises `SystemFailure`."""
    write(Path(path), itf_text(system, trace, prop), ITF)


def itf_text(system: System, trace: Trace, prop: Property | None = None) -> str:
    """The trace as ITF text, deterministic, with one variable of one state per line."""
    document = to_itf(system, trace, prop)
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


def to_itf(system: System, trace: Trace, prop: Property | None = None) -> dict[str, Any]:
    """The trace as ITF data, with the derived values as variables. `prop` is the violated or reached property."""
    system, trace = with_derived(system, trace)
    meta: dict[str, Any] = {"format": FORMAT, "format-description": DESCRIPTION, "model": system.name}
    if system.variant is not None:
        meta["variant"] = system.variant
    meta["parameters"] = {name: parameter_json(value) for name, value in system.parameters.items()}
    if prop is not None:
        meta["property"] = prop.name
        meta["kind"] = prop.kind.value
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


@dataclass(frozen=True, slots=True)
class Document:
    """The contents of a trace file, and its name."""

    name: str
    data: dict[str, Any]


def load(path: Path | str) -> Document:
    """The document in the file at `path`, ``-`` for standard input. Raises `InputError` if it is not an ITF file."""
    piped = str(path) in ("-", "/dev/stdin")
    name = "standard input" if piped else str(path)
    text = sys.stdin.read() if piped else read_text(Path(path))
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


def _object(data: Mapping[str, Any], depth: int) -> str:
    pad = " " * (depth + 1)
    inner = ",\n".join(f"{pad}{compact(k)}: {compact(v)}" for k, v in data.items())
    return f"{{\n{inner}\n{' ' * depth}}}" if data else "{}"


def _taken(instance: Instance) -> dict[str, Any]:
    return {ACTION: instance.action, PICKS: {n: some(v) for n, v in _choices(instance).items()}}


def _choices(instance: Instance) -> dict[str, Any]:
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


def _trace(document: dict[str, Any], system: System) -> Trace:
    rows = document["states"]
    if not rows:
        raise Malformed("states", "the trace has no state")
    states = [_state(system, row, f"states[{at}]") for at, row in enumerate(rows)]
    search = _Search(system)
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


class _Search:
    """Finds the instance of each step, by its name if it has one, else by the states."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._interpreter = Interpreter(system)
        self._choices = {id(i): {n: canonical(v) for n, v in _choices(i).items()} for i in system.instances}
        self._names = {name for choices in self._choices.values() for name in choices}

    def step(self, before: State, after: State, row: Mapping[str, Any], path: str) -> Instance:
        candidates = self._named(row, path)
        if len(candidates) == 1:
            return candidates[0]
        for instance in candidates:
            try:
                if self._interpreter.take(instance, before) == after:
                    return instance
            except EvaluationError:
                continue  # a model error in one candidate does not exclude the others
        some_labels = ", ".join(i.label for i in candidates[:4]) + (", ..." if len(candidates) > 4 else "")
        raise _NoStep(path, f"no step of the model leads here from the state before (tried {some_labels})")

    def _named(self, row: Mapping[str, Any], path: str) -> tuple[Instance, ...]:
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
