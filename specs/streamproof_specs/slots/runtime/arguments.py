"""The arguments that events of the slot protocol need: a log that lacks one is of another version, or not of the runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streamproof.conformance import Event, InputError

_RECEIVED = ("from", "sent")
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "allocation_started": ("executor", "slot"),
    "executor_lost": ("executor",),
    "executor_registered": ("executor", "slots", *_RECEIVED),
    "jobmaster_lost": ("slots",),
    "list_received": ("failed", "freed", "slots", "stopped", *_RECEIVED),
    "offer_answered": ("accepted", "failed", "slot", *_RECEIVED),
    "offer_received": ("accepted", "slot", *_RECEIVED),
    "registered": ("slots", "total"),
    "report_received": ("executor", "slots", *_RECEIVED),
    "request_answered": ("done", "slot", *_RECEIVED),
    "requirements_received": ("required", *_RECEIVED),
    "slot_available": ("slot", *_RECEIVED),
    "slot_failed": ("slot", *_RECEIVED),
    "slot_offered": ("slot",),
    "slot_released": ("slot",),
    "slot_requested": ("done", "slot", *_RECEIVED),
    "slot_returned": ("slot", "stopped", *_RECEIVED),
    "slot_timed_out": ("slot", "stopped"),
    "slots_declared": ("co_located", "groups", "required"),
    "slots_listed": ("executor", "slots"),
    "slots_lost": ("executor",),
    "slots_reported": ("slots",),
    "slots_reserved": ("slots", "subtasks"),
    "slots_unreserved": ("slots",),
    "tasks_deployed": ("slots", "subtasks", *_RECEIVED),
    "tasks_ended": ("slots",),
}


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


_FORMS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("slot", "executor", "from"), ("a text", lambda value: isinstance(value, str))),
    **dict.fromkeys(("slots", "failed", "freed", "stopped"), ("a list of texts", _is_texts)),
    **dict.fromkeys(("required", "sent", "total"), ("a number", lambda value: type(value) is int)),
    **dict.fromkeys(("accepted", "done"), ("true or false", lambda value: type(value) is bool)),
    **dict.fromkeys(("groups", "subtasks"), ("an object", lambda value: isinstance(value, dict))),
    "co_located": ("a list", lambda value: isinstance(value, list)),
}


def expect_arguments(events: Iterable[Event]) -> None:
    """Raises `InputError` for an event without an argument that it needs, or with one of another form."""
    for event in events:
        wrong = next((name for name in _NEEDED.get(event.event, ()) if not _has(event, name)), None)
        if wrong is not None:
            about = f"{event} needs the argument {wrong!r}, {_FORMS[wrong][0]}"
            remedy = "a log of an older version: trace the job again with this one" if wrong not in event.args else ""
            raise InputError(about, loc=event.loc, remedy=remedy)
        if not isinstance((event.state or {}).get("slots", {}), dict):
            raise InputError(f"{event} needs the state 'slots', an object", loc=event.loc)


def _has(event: Event, name: str) -> bool:
    return name in event.args and _FORMS[name][1](event.args[name])
