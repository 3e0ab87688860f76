"""What can be sent to another process, without the library that writes it: a simulated run refuses the same records."""

from __future__ import annotations

from typing import Any

from streamproof_runtime.errors import Unsendable
from streamproof_runtime.subtasks.batons import Baton

FORMS = "records between processes are numbers, text, bytes, and tuples, lists, sets and dictionaries of them"
_PLAIN = frozenset({int, str, float, bool, bytes, bytearray, memoryview, type(None), Baton})
_PARTS = frozenset({tuple, list, set, frozenset})


DEEPEST = 250
"""Number of containers inside each other in one message. Each may take two of the levels that msgpack permits."""


def other_type(value: Any) -> str:
    """The message about a value of a type that has no form."""
    return f"a record has a value of type {type(value).__name__}"


def expect_sendable(value: Any) -> None:
    """Raises `Unsendable` for a value that has no form between processes, as `wire.frame` does."""
    level, depth = [value], 0
    while level:
        if depth > DEEPEST:
            raise Unsendable(f"a record has values inside values, more than {DEEPEST} deep")
        inside: list[Any] = []
        for one in level:
            kind = type(one)
            if kind in _PARTS:
                inside += one
            elif kind is dict:
                inside += one
                inside += one.values()
            elif kind not in _PLAIN:
                raise Unsendable(f"{other_type(one)}; {FORMS}")
        level, depth = inside, depth + 1
