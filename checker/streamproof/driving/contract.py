"""The contract of a model: what an implementation logs, as a page and as JSON Schemas, made from the model itself; and what
those systems log of whose logs there is a binding, made from the `LogForm` of the binding.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from streamproof.conformance.event_forms import EventForm, EventPart, LogForm
from streamproof.conformance.event_log import OBSERVE
from streamproof.conformance.recorded_values import sort_schema
from streamproof.system.model import Action, System, parameter_json

DIALECT = "https://json-schema.org/draft/2020-12/schema"
LISTED = 64
"""Largest number of values that are listed of an argument."""
MOST_WAYS = 3
"""Largest number of ways in which an action is possible that the page lists."""
ORDER = (
    "The lines of one process, in the order of `seq`, are in the order in which their events took effect.",
    "Lines of different processes may have any order, except that a vector clock in `clock` orders them.",
    "A call that took effect before lines with smaller `seq` names in `after` the last line that preceded its beginning.",
)
MOMENT = "Write the line when the action has taken effect, before another action of the same process can."


def contract(system: System, logs: Iterable[LogForm] = ()) -> dict[str, Any]:
    """The contract as JSON data: events, variables, order, and in `line` the JSON Schema of a line; the same of other `logs`
    that the model judges."""
    return {
        "model": system.name,
        "variant": system.variant,
        "parameters": {name: parameter_json(value) for name, value in system.parameters.items()},
        "moment": MOMENT,
        "order": [*ORDER],
        "events": [_event(action) for action in system.actions],
        "variables": [{"name": v.name, "sort": str(v.sort), "schema": sort_schema(v.sort)} for v in system.variables],
        "line": line_schema(system),
        "logs": [_log(form) for form in logs],
    }


def _log(form: LogForm) -> dict[str, Any]:
    return {
        "title": form.title,
        "order": [*form.order],
        "events": [_read_event(name, event) for name, event in form.events.items()],
        "line": log_line_schema(form),
    }


def _read_event(name: str, event: EventForm) -> dict[str, Any]:
    return {
        "name": name,
        "writer": event.writer.words,
        "meaning": event.says,
        "actions": [*event.actions],
        "arguments": [_part(*item) for item in event.args.items()],
        "state": [_part(*item) for item in event.state.items()],
    }


def _part(name: str, part: EventPart) -> dict[str, Any]:
    about = {"name": name, "meaning": part.meaning, "schema": part.schema, "may_be_left_out": not part.needed}
    return {**about, **({"without": part.without} if part.without else {})}


def log_line_schema(form: LogForm) -> dict[str, Any]:
    """The JSON Schema of a line of a log that a binding reads: events of other names, and of other writers, may have any
    arguments."""
    events = [
        {
            "if": {
                "properties": {
                    "event": {"const": name},
                    "process": {"pattern": event.writer.process},
                    "trace": {"pattern": event.writer.trace},
                },
                "required": ["event", "process", "trace"],
            },
            "then": {
                "properties": {"args": _parts_schema(event.args), "state": _parts_schema(event.state)},
                "required": [
                    kind
                    for kind, parts in (("args", event.args), ("state", event.state))
                    if any(part.needed for part in parts.values())
                ],
            },
        }
        for name, event in form.events.items()
    ]
    return {**_line(f"A line of {form.title}"), "allOf": events}


def _parts_schema(parts: Mapping[str, EventPart]) -> dict[str, Any]:
    return {
        "properties": {name: {**part.schema, "description": part.meaning} for name, part in parts.items()},
        "required": [name for name, part in parts.items() if part.needed],
    }


def _event(action: Action) -> dict[str, Any]:
    picks = list(dict.fromkeys(name for instance in action.instances for name, _ in instance.picks))
    ways = dict.fromkeys(tuple(dict.fromkeys(" ".join(c.text.split()) for c in i.guard)) for i in action.instances)
    return {
        "name": action.name,
        "meaning": " ".join(action.doc.split()),
        "conditions": [[*way] for way in ways],
        "arguments": [{"name": name, "values": _values(action, name)} for name in action.parameters],
        "picks": picks,
        "may_be_left_out": action.internal,
    }


def _values(action: Action, name: str) -> list[Any]:
    found: dict[str, Any] = {}
    for instance in action.instances:
        value = parameter_json(dict(instance.args)[name])
        found.setdefault(repr(value), value)
    return [*found.values()]


def line_schema(system: System) -> dict[str, Any]:
    """The JSON Schema of a line of an event log of this model."""
    partial = {v.name: {"$ref": f"#/$defs/variable-{v.name}"} for v in system.variables}
    known = {action.name for action in system.actions}
    events = [_event_schema(action) for action in system.actions]
    if OBSERVE not in known:
        events.append(
            {"properties": {"event": {"const": OBSERVE}, "args": {"maxProperties": 0}}, "required": ["state"]}
        )
    state = {
        "type": "object",
        "description": "Values after the event: any variables, and any part of an array or record.",
        "properties": partial,
        "additionalProperties": False,
    }
    return {
        **_line(f"A line of an event log of {system.heading}", state),
        "oneOf": events,
        "$defs": {f"variable-{v.name}": sort_schema(v.sort) for v in system.variables},
    }


def _line(title: str, state: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What all lines have in common."""
    whole = {"type": "integer", "minimum": 0}
    return {
        "$schema": DIALECT,
        "title": title,
        "type": "object",
        "required": ["trace", "process", "seq", "event"],
        "additionalProperties": False,
        "properties": {
            "trace": {"type": "string", "description": "Name of the execution."},
            "process": {"type": "string", "description": "The process that writes the line."},
            "seq": {**whole, "description": "Number of the line in its process and execution, rising."},
            "event": {"type": "string", "description": "What happened: one of the events."},
            "args": {"type": "object", "description": "Arguments by name; those left out may be any."},
            "picks": {"type": "object", "description": "Choices of the action by name; those left out may be any."},
            "state": state or {"type": "object", "description": "Values after the event."},
            "refused": {"type": "boolean", "description": "True: it was asked for, and not possible."},
            "parameters": {
                "type": "object",
                "description": "In the first line of a trace: sizes of the implementation.",
            },
            "clock": {"type": "object", "additionalProperties": whole, "description": "Vector clock."},
            "after": {"type": "integer", "minimum": -1},
            "ts": {"type": "string", "description": "ISO-8601; for readers only."},
            "run": {"type": "string"},
            "file": {"type": "string"},
            "line": {"type": "integer"},
        },
    }


def _event_schema(action: Action) -> dict[str, Any]:
    args = {
        name: {"enum": values_} if len(values_) <= LISTED else {}
        for name in action.parameters
        for values_ in [_values(action, name)]
    }
    fields = {"event": {"const": action.name}, "args": {"properties": args, "additionalProperties": False}}
    return {"properties": fields, **({"description": " ".join(action.doc.split())} if action.doc else {})}


def page(found: Mapping[str, Any]) -> Iterator[str]:
    """The contract as lines of Markdown."""
    parameters = ", ".join(f"{name}={value}" for name, value in found["parameters"].items())
    variant = f", variant {found['variant']}" if found["variant"] else ""
    yield f"# What an implementation of {found['model']} logs{variant}"
    yield ""
    yield f"For the parameters {parameters or 'of the model'}. One JSON object a line: `trace`, `process`, `seq`, `event`,"
    yield "and as far as they apply `args`, `state`, `picks`, `clock`, `after`, `refused`. The first line of a trace"
    yield "states in `parameters` the sizes of the implementation, as far as they are other ones."
    yield ""
    yield found["moment"]
    yield ""
    yield from (f"* {text}" for text in found["order"])
    yield ""
    yield "| event | arguments | meaning | possible if |"
    yield "|---|---|---|---|"
    for event in found["events"]:
        args = "; ".join(f"`{a['name']}`: {_listed(a['values'])}" for a in event["arguments"]) or "none"
        left = " May be left out." if event["may_be_left_out"] else ""
        about = f"{_cell(args)} | {_cell(event['meaning'])}{left}"
        yield f"| `{event['name']}` | {about} | {_cell(_possible(event['conditions']))} |"
    if all(event["name"] != OBSERVE for event in found["events"]):
        yield f"| `{OBSERVE}` | none | Nothing happens; `state` has values. | always |"
    yield ""
    yield "| variable, in `state` | values |"
    yield "|---|---|"
    for variable in found["variables"]:
        yield f"| `{variable['name']}` | {_cell(variable['sort'])} |"
    yield ""
    yield "An event may be left out only if the binding names its action as hidden. `state` may have any part of the values."
    for log in found["logs"]:
        yield from _log_page(log)


def _possible(ways: Sequence[Sequence[str]]) -> str:
    """The conditions of an action, as they are written: all of one of the ways in which it is possible."""
    shown = [" and ".join(f"`` {text} ``" if "`" in text else f"`{text}`" for text in way) or "always" for way in ways]
    listed = "; or ".join(shown[:MOST_WAYS])
    return listed + (f"; or one of {len(shown) - MOST_WAYS} more" if len(shown) > MOST_WAYS else "")


def _log_page(log: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"# What {log['title']} has"
    yield ""
    yield "`streamproof validate` judges it with this model, too. An event corresponds to some actions, or to none. What is"
    yield "marked with ? may be left out. Events of other names, and further arguments, are not read."
    yield ""
    yield from (f"* {text}" for text in log["order"])
    yield ""
    yield "| event | arguments | meaning | written by | actions of the model |"
    yield "|---|---|---|---|---|"
    described: dict[tuple[str, str], list[str]] = {}
    for event in log["events"]:
        parts = [", ".join(_named(part) for part in event[kind]) for kind in ("arguments", "state")]
        listed = f"{parts[0] or 'none'}{f'; state: {parts[1]}' if parts[1] else ''}"
        about = f"{listed} | {_cell(event['meaning'])} | {_cell(event['writer'])}"
        yield f"| `{event['name']}` | {about} | {', '.join(f'`{name}`' for name in event['actions'])} |"
        for part in (*event["arguments"], *event["state"]):
            described.setdefault((part["name"], _described(part)), []).append(f"`{event['name']}`")
    yield ""
    yield "| argument or part of the state | values | meaning | of |"
    yield "|---|---|---|---|"
    yield from (f"| `{name}` | {text} | {', '.join(events)} |" for (name, text), events in sorted(described.items()))


def _named(part: Mapping[str, Any]) -> str:
    return f"`{part['name']}`{'?' if part['may_be_left_out'] else ''}"


def _described(part: Mapping[str, Any]) -> str:
    meaning = f"{part['meaning']}; without it: {part['without']}" if part.get("without") else part["meaning"]
    return f"`{_cell(json.dumps(part['schema']))}` | {_cell(meaning)}"


def _listed(found: Sequence[Any]) -> str:
    shown = ", ".join(str(v) for v in found[:8])
    return shown + (f", ... ({len(found)} values)" if len(found) > 8 else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
