"""Arguments of the events of the runtime's JobMaster and TaskExecutors: texts, numbers, copies of partitions."""

from __future__ import annotations

import re

from streamproof.conformance import Event, InputError

MOST = 10_000
"""Largest number of partitions of a dataset, and of attempts."""
_COPY = re.compile(r"(.+)/(\d+)@(\d+)", re.ASCII)
"""A copy of a partition: its dataset, its number, and the attempt that makes it."""


def texts(event: Event, name: str) -> list[str]:
    """An argument that is a list of texts."""
    value = event.args.get(name)
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise InputError(f"{event} needs the argument {name!r}, a list of texts", loc=event.loc)
    return value


def texts_of(event: Event, name: str) -> list[str]:
    """The same of an argument that an event need not have."""
    return texts(event, name) if name in event.args else []


def number(event: Event, name: str) -> int:
    """An argument that is a number."""
    value = event.args.get(name)
    if type(value) is not int or not 0 <= value <= MOST:
        raise InputError(f"{event} needs the argument {name!r}, a number from 0 to {MOST:,}", loc=event.loc)
    return value


def tracked(event: Event) -> dict[str, str]:
    """The TaskExecutor of each partition."""
    value = event.args.get("partitions")
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()) or len(value) > MOST:
        raise InputError(f"{event} needs the argument 'partitions', TaskExecutors by partition", loc=event.loc)
    return value


def copies(event: Event, name: str) -> list[tuple[str, int, int]]:
    """An argument that names copies of partitions: dataset, number and attempt of each."""
    value = event.args.get(name)
    found = [_COPY.fullmatch(v) for v in ([value] if isinstance(value, str) else texts(event, name))]
    if not all(found):
        raise InputError(f"{event} needs the argument {name!r}: partitions, as DATASET/0@0", loc=event.loc)
    return [(match[1], int(match[2]), int(match[3])) for match in found if match]


def listed(event: Event, name: str) -> list[tuple[str, int, int]]:
    """The same of an argument that an event need not have."""
    return copies(event, name) if name in event.args else []
