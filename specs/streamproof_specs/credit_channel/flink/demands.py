"""Constraints from records of credit-based flow control on a channel's state: single values, messages, counters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from streamproof.conformance import Constraint, StateReader
from streamproof_specs.credit_channel.flink.records import Recorded

ANY = 1 << 40
"""Larger than any counter."""

# --- constraints


def field_equals(record: Recorded, field: str, what: str, value: Callable[[StateReader], Any]) -> Constraint:
    """The recorded number or name equals the machine's."""
    given = record.event.args.get(field)
    return Constraint(
        lambda look: f"{what} is {given}, but it must be {value(look)}",
        lambda look: value(look) == given,
        lambda look: f"{record.name}({field}={value(look)})",
    )


def message_pending(what: str, test: Callable[[StateReader], Any]) -> Constraint:
    """A message from the other end has arrived."""
    return Constraint(what, lambda look: bool(test(look)))


def first_message(look: StateReader) -> Mapping[str, Any]:
    """The first message on its way to the consumer, by field."""
    return named(look, "responses", look("responses")[0])


def named(look: StateReader, queue: str, value: Any) -> Mapping[str, Any]:
    """An element of a queue of records, or of an optional record, by field."""
    return dict(zip(look.fields(queue), value, strict=True))


QUEUES = ("received_priority_buffers", "received_buffers")
"""The variables with received messages, in the order in which the task takes them; a blocking event follows."""


def blocking_event(look: StateReader) -> Mapping[str, Any] | None:
    """The blocking event that was received and not taken."""
    event = look("received_blocking_event")
    return None if event is None else named(look, "received_blocking_event", event)


def next_kind(look: StateReader) -> str:
    """The kind of the message that the task would take next, NONE if there is none."""
    for queue in QUEUES:
        if look(queue):
            return str(named(look, queue, look(queue)[0])["data_type"])
    event = blocking_event(look)
    return "NONE" if event is None else str(event["data_type"])


def queued(look: StateReader) -> int:
    """The number of messages received and not taken."""
    return sum(len(look(queue)) for queue in QUEUES) + (look("received_blocking_event") is not None)


# --- counters

COUNTERS: dict[str, dict[str, Callable[[StateReader], Any]]] = {
    "c.": {
        "unannounced": lambda look: look("unannounced_credit"),
        "excl": lambda look: look("exclusive_buffers"),
        "float": lambda look: look("floating_buffers"),
        "required": lambda look: look("num_required_buffers"),
        "waiting": lambda look: look("is_waiting_for_floating_buffers"),
        "queued": queued,
        "next_seq": lambda look: look("expected_sequence_number"),
        "released": lambda look: look("channel_released"),
    },
    "p.": {
        "credits": lambda look: look("num_credits_available"),
        "backlog_now": lambda look: look("buffers_in_backlog"),
        "queue": lambda look: len(look("priority_buffers")) + len(look("buffers")),
        "blocked": lambda look: look("is_blocked"),
    },
}
"""The machine's values of the counters in a record."""

COUNTER_WORDS = {
    "unannounced": "credit gained and not announced",
    "excl": "the number of free exclusive buffers",
    "float": "the number of free floating buffers",
    "required": "the number of buffers required",
    "waiting": "whether the channel waits for a floating buffer",
    "queued": "the number of messages received and not taken",
    "next_seq": "the next sequence number",
    "released": "whether the channel is released",
    "credits": "the credit left",
    "backlog_now": "the number of data buffers queued",
    "queue": "the length of the queue",
    "blocked": "whether the producer is stopped",
}


def counters(record: Recorded, slack: Mapping[str, int] = MappingProxyType({})) -> list[Constraint]:
    """The recorded counters as constraints. `slack` is the permitted deviation of each, because it was read during
    changes."""
    args = record.event.args
    found: dict[str, Any] = {f: args[f] for f in COUNTERS[record.name[:2]] if f in args}
    if "next_seq" in args:
        found.setdefault("released", False)
    if "queue" in args:
        found.setdefault("blocked", False)
    return [_counter(record, f, value, slack.get(f, 0)) for f, value in found.items()]


def torn(record: Recorded) -> dict[str, int]:
    """The counters that a call changes in several steps, with the size of the change: concurrent reads may see
    intermediate values."""
    return _STEPS.get(record.name, {})


_STEPS: dict[str, dict[str, int]] = {
    "c.recv": {"next_seq": 1},
    "c.buffer_taken": {"required": 1, "float": 1, "excl": 1},
    "c.float_request": {"required": ANY, "float": ANY, "waiting": 1},
    "c.float_offered": {"float": ANY, "waiting": 1},
    "c.excl_recycle": {"excl": 1, "float": 1},
    "c.float_release": {"required": ANY, "float": ANY},
    "c.release": {"queued": ANY},
    "c.release_buffers": {"excl": ANY, "float": ANY},
    "p.send": {"queue": 2, "backlog_now": 2, "blocked": 1},
    "p.enqueue": {"queue": 1, "backlog_now": 1},
    "p.release": {"queue": ANY},
}


def _counter(record: Recorded, field: str, given: Any, slack: int) -> Constraint:
    value = COUNTERS[record.name[:2]][field]
    forgotten = field == "backlog_now" and given == 0

    def agrees(look: StateReader) -> bool:
        message_pending = value(look)
        return (
            message_pending == given
            or (slack > 0 and message_pending - slack <= given <= message_pending + slack)
            or (forgotten and bool(look("subpartition_released")))
        )

    return Constraint(
        lambda look: f"{COUNTER_WORDS[field]} is recorded as {_shown(given)}, but it must be {_shown(value(look))}",
        agrees,
        lambda look: f"{record.name}({field}={_shown(value(look))})",
    )


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
