"""The form of the events that a binding reads, declared once: the binding checks events by it, contracts describe it.

A `LogForm` has an `EventForm` for each event, with the function that reads it, and that has an `EventPart` for each argument
and for each part of the recorded state. Arguments are checked before anything is followed; the state is what the model is
compared with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from streamproof.base.errors import InputError
from streamproof.base.records import dataclass, replace
from streamproof.conformance.event import Event

Schema = Mapping[str, Any]
"""A JSON Schema with the keywords `type`, `enum`, `pattern`, `minimum`, `maximum`, `items`, `minItems` and
`additionalProperties`."""


@dataclass(frozen=True, slots=True)
class EventPart:
    """An argument of an event, or a part of its state: the schema of its values, the same in words, and what it means.

    `needed`: an event without it is not read. Otherwise `without` is what its absence means.
    """

    schema: Schema
    words: str
    meaning: str = ""
    needed: bool = True
    without: str = ""

    def __call__(self, meaning: str) -> EventPart:
        """The same with a meaning."""
        return replace(self, meaning=meaning)

    def or_none(self, without: str = "") -> EventPart:
        """The same, which may be left out; `without` is what that means."""
        return replace(self, needed=False, without=without)


TEXT = EventPart({"type": "string"}, "a text")
INTEGER = EventPart({"type": "integer"}, "a number")
NUMBER = EventPart({"type": "integer", "minimum": 0}, "a number")
TRUTH = EventPart({"type": "boolean"}, "true or false")
ANYTHING = EventPart({}, "any value")


def up_to(most: int, least: int = 0) -> EventPart:
    """A whole number with bounds."""
    return EventPart({"type": "integer", "minimum": least, "maximum": most}, f"a number from {least} to {most:,}")


def one_of(*names: str) -> EventPart:
    """One of some texts."""
    return EventPart({"enum": [*names]}, f"one of {', '.join(names)}")


def matching(pattern: str, words: str) -> EventPart:
    """A text that a regular expression describes as a whole."""
    return EventPart({"type": "string", "pattern": f"^(?:{pattern})$"}, words)


def list_of(part: EventPart, words: str, *, least: int = 0) -> EventPart:
    """A list of such values."""
    return EventPart({"type": "array", "items": part.schema, **({"minItems": least} if least else {})}, words)


def by_name(part: EventPart, words: str) -> EventPart:
    """An object with such values by name."""
    return EventPart({"type": "object", "additionalProperties": part.schema}, words)


TEXTS = list_of(TEXT, "a list of texts")


@dataclass(frozen=True, slots=True)
class LogWriter:
    """Who writes an event, in words; its `process` and `trace` by regular expressions of ECMA-262, which are searched for."""

    words: str
    process: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class EventForm:
    """One kind of event. `read` is the function of the binding that reads it; its docstring is what has happened, unless
    `meaning` is. `actions`: the actions of the model that it may stand for; none: it is compared, or says what follows."""

    read: Callable[..., Any] | None
    writer: LogWriter
    actions: tuple[str, ...] = ()
    args: Mapping[str, EventPart] = field(default_factory=dict)
    state: Mapping[str, EventPart] = field(default_factory=dict)
    meaning: str = ""

    @property
    def says(self) -> str:
        """What has happened."""
        return " ".join((self.meaning or getattr(self.read, "__doc__", None) or "").split())


@dataclass(frozen=True, slots=True)
class LogForm:
    """What a binding reads in a log: `events` by name, and in which `order` they are. Events with other names, and of other
    writers, are not read."""

    title: str
    events: Mapping[str, EventForm]
    order: tuple[str, ...] = ()
    lacking: str = "record it"
    """The remedy for an argument that is not there."""

    def read(self, event: Event, *given: Any) -> Any:
        """What the function returns that reads events of this name."""
        read = self.events[event.event].read
        return read(*given) if read is not None else ()

    def expect(self, events: Iterable[Event]) -> None:
        """Raises `InputError` for an event that lacks an argument that it needs, and for an argument of another form."""
        checks = {name: _checks(form) for name, form in self.events.items() if form.args}
        for event in events:
            wanted = checks.get(event.event)
            if wanted is None or not _is_written_by(self.events[event.event].writer, event.process, event.trace):
                continue
            args = event.args
            for name, part, fits in wanted:
                if name in args:
                    if not fits(args[name]):
                        raise InputError(f"{event} needs the argument {name!r}, {part.words}", loc=event.loc)
                elif part.needed:
                    about = f"{event} needs the argument {name!r}, {part.words}"
                    raise InputError(about, loc=event.loc, remedy=self.lacking)


NOTHING = LogForm("", MappingProxyType({}))
"""The form of a log whose events have the names of the model's actions, or of another system."""


@lru_cache(maxsize=1 << 12)
def _is_written_by(writer: LogWriter, process: str, trace: str) -> bool:
    return bool(re.search(writer.process, process) and re.search(writer.trace, trace))


def _checks(form: EventForm) -> list[tuple[str, EventPart, Callable[[Any], bool]]]:
    return [(name, part, _fitting(part.schema)) for name, part in form.args.items()]


def _fitting(schema: Schema) -> Callable[[Any], bool]:
    """Whether a value is an instance of a schema."""
    wanted = _TYPES.get(schema.get("type", ""))
    names = schema.get("enum")
    pattern = re.compile(schema["pattern"].removesuffix("$") + r"\Z") if "pattern" in schema else None
    least, most = schema.get("minimum"), schema.get("maximum")
    shortest = schema.get("minItems", 0)
    inner = schema.get("items", schema.get("additionalProperties"))
    fits = _fitting(inner) if inner is not None else None

    def instance(value: Any) -> bool:
        if wanted is not None and type(value) is not wanted:
            return False
        if names is not None and not any(value == name and type(value) is type(name) for name in names):
            return False
        if pattern is not None and not pattern.search(value):
            return False
        if (least is not None and value < least) or (most is not None and value > most):
            return False
        if fits is None:
            return True
        return len(value) >= shortest and all(map(fits, value.values() if wanted is dict else value))

    return instance


_TYPES: Mapping[str, type] = {
    "string": str, "integer": int, "boolean": bool, "array": list, "object": dict
}  # fmt: skip
