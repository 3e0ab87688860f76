"""Checks of the fields of records: each returns the value as its type, or raises `BadRecord` with the field's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

_LARGEST = 2**63 - 1


class BadRecord(ValueError):
    """Why a record is invalid; the caller adds its position."""


def as_mapping(value: object, name: str) -> Mapping[str, Any]:
    """A JSON object; none is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadRecord(f"`{name}` must be a JSON object, got {shortened(value)}")
    return value


def as_list(value: object, name: str) -> list[Any]:
    """A list; none is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadRecord(f"`{name}` must be a list, got {shortened(value)}")
    return value


def as_text(value: object, name: str) -> str:
    """Valid Unicode text."""
    if not isinstance(value, str):
        raise BadRecord(f"`{name}` must be text, got {shortened(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as failure:  # an unpaired surrogate, which JSON escapes can express
            raise BadRecord(f"`{name}` is not valid Unicode text") from failure
    return value


def as_count(value: object, name: str) -> int:
    """A whole number from 0."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise BadRecord(f"`{name}` must be a whole number from 0, got {shortened(value)}")
    return value


def as_time(value: object, name: str) -> datetime | None:
    """A time as UTC; one without a zone is read as UTC, which is right for differences within one log."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as failure:
            raise BadRecord(
                f"`{name}` must be a time such as 2026-11-21T03:17:55.749Z, got {shortened(value)}"
            ) from failure
    if not isinstance(value, datetime):
        raise BadRecord(f"`{name}` must be a time as ISO 8601 text, got {shortened(value)}")
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Reader: TypeAlias = Callable[[object, str], Any]
"""Reads the value of a field, whose name is for messages. Raises `BadRecord`."""


def optional(read: Reader) -> Reader:
    """Reads a value, or none."""
    return lambda value, name: None if value is None else read(value, name)


def each(read: Reader) -> Reader:
    """Reads the elements of a list; none is an empty one."""
    return lambda value, name: [read(item, name) for item in as_list(value, name)]


def record(**fields: Reader) -> Reader:
    """Reads an object with these fields; others are left out."""

    def read(value: object, name: str) -> dict[str, Any]:
        data = as_mapping(value, name)
        return {field: one(data.get(field), f"{name}.{field}") for field, one in fields.items()}

    return read


def shortened(value: object) -> str:
    """A value for a message, cut."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
