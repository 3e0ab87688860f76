"""User functions: what an operator does with a record, and what it may use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

Key: TypeAlias = Callable[[Any], Any]
"""The key of a record: numbers, text, truth values, or tuples of them."""
Transform: TypeAlias = Callable[[Any], Iterable[Any]]
"""The outputs of a stateless function for one record."""
Process: TypeAlias = "Callable[[Context, Any], Iterable[Any]]"
"""The outputs of a stateful function for one record."""


@dataclass(slots=True)
class Context:
    """What a stateful function may use: its state, the key of the record, and choices that a simulated run repeats.

    `state` belongs to the key of the record, or to the subtask if the input has no key. `choose(n)` is a number below n.
    """

    choose: Callable[[int], int]
    subtask: int = 0
    key: Any = None
    state: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Operation:
    """The operation of one subtask: a function for each of its inputs, with the key of that input, if any."""

    inputs: tuple[tuple[Process, Key | None], ...]
    context: Context
    states: dict[Any, dict[str, Any]] = field(default_factory=dict)

    def process(self, side: int, record: Any) -> Iterable[Any]:
        """The outputs for a record of input `side`."""
        function, key = self.inputs[side]
        context = self.context
        context.key = None if key is None else key(record)
        context.state = self.states.setdefault(context.key, {})
        return function(context, record)


def forward(_context: Context, record: Any) -> Iterable[Any]:
    """The record itself."""
    return (record,)


def reducing(function: Callable[[Any, Any], Any]) -> Process:
    """A process that emits, for each record, the combination of all records of its key so far."""

    def process(context: Context, record: Any) -> Iterable[Any]:
        state = context.state
        state["value"] = function(state["value"], record) if "value" in state else record
        return (state["value"],)

    return process


def grouping(function: Callable[[list[Any], list[Any]], Iterable[Any]]) -> tuple[Process, Process]:
    """For each record of one of two inputs the outputs for all records of its key so far, by input."""

    def process(side: int, context: Context, record: Any) -> Iterable[Any]:
        groups: tuple[list[Any], list[Any]] = context.state.setdefault("groups", ([], []))
        groups[side].append(record)
        return function(*groups)

    return partial(process, 0), partial(process, 1)


def joining(function: Callable[[Any, Any], Any]) -> tuple[Process, Process]:
    """For each record of one of two inputs its pairs with the records of its key that the other had before."""

    def process(side: int, context: Context, record: Any) -> Iterable[Any]:
        groups: tuple[list[Any], list[Any]] = context.state.setdefault("groups", ([], []))
        groups[side].append(record)
        return [function(*((other, record) if side else (record, other))) for other in groups[1 - side]]

    return partial(process, 0), partial(process, 1)


def to_list(context: Context, record: Any) -> Iterable[Any]:
    """A sink that keeps all records, in the order of arrival."""
    context.state.setdefault("records", []).append(record)
    return ()


def to_dict(context: Context, record: Any) -> Iterable[Any]:
    """A sink that keeps the last value of each key; records are pairs of key and value."""
    key, value = record
    context.state.setdefault("records", {})[key] = value
    return ()
