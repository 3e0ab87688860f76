"""The messages of an adapter: answers and events, checked as `drive.schema.json` describes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from streamproof.base.errors import Exit, StreamproofError
from streamproof.base.reading import json_problem
from streamproof.base.records import dataclass
from streamproof.conformance.event_table import json_value

Kind: TypeAlias = Literal["ready", "accepted", "refused", "unsupported", "observed", "error"]
DEEPEST = 100
"""Largest depth of a value."""
FORM = "docs/how-to-drive.md describes the messages; values after an answer are in `state`, by variable"
LONGEST_SHOWN = 200
"""Largest number of characters shown of a message that is not understood."""


class AdapterFailure(StreamproofError):
    """The adapter did not answer, or not with a message. `kind`: ``start``, ``crash``, ``hang`` or ``garbage``."""

    def __init__(self, kind: str, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.kind = kind
        codes = {"start": Exit.SYSTEM, "crash": Exit.REJECTED, "hang": Exit.INCONCLUSIVE, "garbage": Exit.USAGE}
        self.exit_code = codes[kind]


@dataclass(frozen=True, slots=True)
class Message:
    """An answer, or, with the kind ``event``, something that happened without being asked for."""

    kind: Kind | Literal["event"]
    fields: Mapping[str, Any]

    def get(self, name: str) -> Any:
        """A field; None if it is absent."""
        return self.fields.get(name)

    def names(self, name: str) -> tuple[str, ...]:
        """A field with names; none if it is absent."""
        return tuple(self.fields.get(name, ()))


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _object(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) for name in value) and not _has_fraction(value)


def _has_fraction(value: object, depth: int = 0) -> bool:
    """Raises `RecursionError` for a value that is nested more deeply than any sort."""
    kind = type(value)
    if kind is dict or kind is list:
        if depth > DEEPEST:
            raise RecursionError
        parts = cast("dict[str, object]", value).values() if kind is dict else cast("list[object]", value)
        return any(_has_fraction(part, depth + 1) for part in parts)
    return kind is float


def _names(value: object) -> bool:
    return isinstance(value, list) and all(map(_text, value))


_AN_OBJECT = "an object without fractional numbers"
_TESTS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "ready": (lambda v: v is True, "true"),
    "accepted": (lambda v: isinstance(v, bool), "true or false"),
    "because": (lambda v: isinstance(v, str), "text"),
    "unsupported": (lambda v: isinstance(v, str), "text"),
    "error": (lambda v: isinstance(v, str), "text"),
    "event": (_text, "text"),
    "process": (_text, "text"),
    "args": (_object, _AN_OBJECT),
    "picks": (_object, _AN_OBJECT),
    "state": (_object, _AN_OBJECT),
    "own": (_names, "a list of names"),
    "hidden": (_names, "a list of names"),
}
_HAPPENED = ("event", "args", "picks", "state", "process")
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "ready": ("own", "hidden", "unsupported", "state"),
    "accepted": _HAPPENED,
    "refused": ("because", "state", "process"),
    "unsupported": (),
    "observed": ("process",),
    "error": (),
    "event": _HAPPENED,
}
"""The optional fields of each kind."""


def parsed(text: str | bytes) -> tuple[int | None, Message]:
    """The message of a line, with the number of the call that it answers. Raises `AdapterFailure`."""
    try:
        data = json_value(text)
    except (ValueError, RecursionError) as error:
        raise garbage(text, f"is {json_problem(error)}") from None
    return understood(data, text)


def understood(data: Any, text: str | bytes = "") -> tuple[int | None, Message]:
    """The message in JSON data, with the number of the call that it answers. Raises `AdapterFailure`."""

    def wrong(why: str) -> AdapterFailure:
        return garbage(text or json.dumps(data, default=str), why, FORM)

    if not isinstance(data, dict):
        raise garbage(text or json.dumps(data, default=str), "is no JSON object")
    fields = dict(data)
    number = fields.pop("id", None)
    if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
        raise wrong("has an id that is no number")
    kind: Any = "event"
    if number is not None:
        kinds = ("ready", "accepted", "unsupported", "error", "state")
        kind = next((name for name in kinds if name in fields), None)
        if kind == "accepted" and fields["accepted"] is False:
            kind = "refused"
        elif kind == "state":
            kind = "observed"
    if kind is None or (kind == "event" and "event" not in fields):
        raise wrong("is neither an answer nor an event")
    own = {"refused": "accepted", "observed": "state"}.get(kind, kind)
    for name, value in fields.items():
        if name != own and name not in _FIELDS[kind]:
            raise wrong(f"has the field {name!r}, which a message of this kind ({kind}) does not have")
        test, form = _TESTS[name] if (kind, name) != ("ready", "unsupported") else (_names, "a list of names")
        try:
            fits = test(value)
        except RecursionError:
            raise wrong(f"has in {name!r} a value that is nested too deeply") from None
        if not fits:
            raise wrong(f"has in {name!r} something else than {form}")
    return number, Message(kind, fields)


PLAIN = "write messages only to standard output, one JSON object a line; print everything else to standard error"


def garbage(text: str | bytes, why: str, remedy: str = PLAIN) -> AdapterFailure:
    """The failure of an adapter that wrote something else than a message."""
    shown = text.decode(errors="replace") if isinstance(text, bytes) else text
    shown = shown.strip()
    cut = shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]} ..."
    return AdapterFailure("garbage", f"a line of the adapter {why}: {cut}", remedy)
