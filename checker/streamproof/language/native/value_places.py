"""Places of values in native execution: boxes of a state, whose changes are shared, and values that no place holds."""

from __future__ import annotations

from typing import Any, Protocol

from streamproof.base.errors import ModelError
from streamproof.language.lower.sources import CallSite
from streamproof.system.sorts import Value


class ValuePlace(Protocol):
    """The interface of a storage cell."""

    def get(self) -> Value:
        """The current value."""

    def put(self, value: Value) -> None:
        """Replaces the value."""

    def part(self, at: Any) -> ValuePlace:
        """The current element."""

    def replace(self, at: Any, value: Value) -> None:
        """Replaces an element."""


class FixedValue:
    """A temporary value: the element of a queue, the result of an operator, any part of a read-only state."""

    def __init__(self, value: Any, why: str = "this is only a value here, not a place of the state") -> None:
        self._value, self._why = value, why

    def get(self) -> Any:
        """The value."""
        return self._value

    def put(self, value: Value) -> None:
        """Rejected."""
        raise ModelError(self._why, loc=CallSite().loc, remedy="assign to the place in the state that holds it")

    def part(self, at: Any) -> FixedValue:
        """An element."""
        return FixedValue(self._value[at], self._why)

    def replace(self, at: Any, value: Value) -> None:
        """Rejected."""
        self.put(value)


class Box:
    """The state (a dict), or a component of it (a tuple or a set) until its place is assigned another value."""

    def __init__(self, value: Any, whole: Box | None = None, at: Any = None) -> None:
        self._value, self._whole, self._at, self._parts = value, whole, at, dict[Any, Box]()

    def get(self) -> Any:
        """The value."""
        return self._value

    def put(self, value: Any) -> None:
        """Replaces the value, also in the enclosing value as long as it is a component of it."""
        self._value = value
        if self._whole is not None:
            self._whole._store(self._at, value)

    def _store(self, at: Any, value: Value) -> None:
        whole = self._value
        self.put({**whole, at: value} if isinstance(whole, dict) else (*whole[:at], value, *whole[at + 1 :]))

    def part(self, at: Any) -> Box:
        """The box of an element."""
        if at not in self._parts:
            self._parts[at] = Box(self._value[at], self, at)
        return self._parts[at]

    def replace(self, at: Any, value: Value) -> None:
        """Replaces an element; the former element keeps its value and is detached."""
        gone = self._parts.pop(at, None)
        if gone is not None:
            gone._whole = None
        self._store(at, value)
