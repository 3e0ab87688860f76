"""User functions: what an operator does with a record, and what it may use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from traceback import walk_tb
from typing import Any, TypeAlias

from streamproof_runtime.errors import Unsendable
from streamproof_runtime.jobs.records import own

MODULE = "streamproof_job_"
"""What the names of the modules of job files begin with."""
Key: TypeAlias = Callable[[Any], Any]
"""The key of a record: numbers, text, bytes, truth values, None, or tuples and frozensets of them."""
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

    def outputs(self, side: int, records: list[Any]) -> Iterator[Any]:
        """The outputs for records of input `side`, in order."""
        function, key = self.inputs[side]
        context, states = self.context, self.states
        for record in records:
            context.key = found = None if key is None else key(record)
            if found not in states:
                states[found] = {}
            context.state = states[found]
            outputs = function(context, record)
            kind = type(outputs)
            if not (kind is list or kind is tuple or hasattr(outputs, "__iter__") or hasattr(outputs, "__getitem__")):
                place = line_of(function)
                raise TypeError(f"a function{place and f' ({place})'} returned {outputs!r}, not an iterable of records")
            yield from outputs


def key_text(key: Any) -> str:
    """The text of a key, by which its subtask is chosen: equal keys have one text in every process.

    Raises `TypeError` for a key that is none: its text could depend on the process.
    """
    kind = type(key)
    if kind is str or kind is int or kind is bytes or key is None:
        return repr(key)
    if isinstance(key, tuple):
        return f"({', '.join(map(key_text, key))}{',' * (len(key) == 1)})"
    if isinstance(key, frozenset):
        return f"{{{', '.join(sorted(map(key_text, key)))}}}"
    if isinstance(key, int):
        return int.__repr__(key)
    if isinstance(key, float):
        return repr(int(key)) if key.is_integer() else float.__repr__(key)
    if isinstance(key, str):
        return str.__repr__(key)
    raise TypeError(
        f"a {kind.__name__} is no key; keys are numbers, text, bytes, None, and tuples and frozensets of them"
    )


def copied(value: Any) -> Any:
    """A copy of a value between chained functions, which need be no record."""
    try:
        return own(value)
    except Unsendable:
        return deepcopy(value)


def place_of(error: BaseException) -> str:
    """The file and the line of a job file where an error was raised; empty if it was elsewhere."""
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).startswith(MODULE)
    ]
    return f"{Path(frames[-1][0]).name}:{frames[-1][1]}" if frames else ""


def line_of(function: object) -> str:
    """The file and the line at which a function of a job file begins, or one that a function of an operator calls; empty for
    others."""
    if isinstance(function, partial):
        return line_of(function.func)
    code = getattr(function, "__code__", None)
    if code is not None and str(getattr(function, "__module__", "")).startswith(MODULE):
        return f"{Path(code.co_filename).name}:{code.co_firstlineno}"
    inside = (cell.cell_contents for cell in getattr(function, "__closure__", None) or ())
    return next((line for each in inside if callable(each) and (line := line_of(each))), "")


def is_of_job(error: BaseException) -> bool:
    """Whether a function of a job may have raised an error: no interrupt of the program, whose class is of another module."""
    usual = (Exception, SystemExit, GeneratorExit, asyncio.CancelledError)
    return isinstance(error, usual) or type(error).__module__.startswith(MODULE)


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
