"""Import of TLC's behaviours, from its output or ``-dumpTrace json`` files, replayed step by step by the interpreter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from streamproof.exchange.tla import Tla
from streamproof.exchange.tla_names import string
from streamproof.exchange.tla_values import UNIT, alike, case_fields, fields, tag_field
from streamproof.exchange.tlc_run import Violation
from streamproof.exchange.tlc_values import Unreadable, printed_keys, read_state
from streamproof.system.errors import EvaluationError, Exit, InputError, StreamproofError
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Instance, State, System
from streamproof.system.sorts import (
    ArraySort,
    BoolSort,
    EnumSort,
    KeySort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    UnionSort,
    Value,
    values,
)
from streamproof.system.verdict import Trace


class Refuted(StreamproofError):
    """A behaviour of TLC that the interpreter rejects."""

    exit_code = Exit.DISAGREE


def trace_of(system: System, model: Tla, violation: Violation) -> Trace:
    """TLC's behaviour as a trace: converted states, and for each step an instance that the interpreter takes.

    States repeated without a step are left out. Raises `Refuted` if no instance matches a step, or the first state is
    not initial, and `Unreadable` for an unknown value.
    """
    states = [read_state(system, model.variables, printed.text) for printed in violation.states]
    operators = [model.actions.get(printed.operator or "") for printed in violation.states]
    return _trace(system, states, operators, violation.back_to, stutters=violation.stutters)


def trace_of_dump(system: System, model: Tla, text: str) -> Trace:
    """The behaviour in a file written by TLC with ``-dumpTrace json``. Raises `InputError` for another file, and as
    `trace_of` does."""
    try:
        document = json.loads(text)
        rows = {int(number): state for number, state in document["state"]}
        steps = {int(action[2][0]): action[1]["name"] for action in document["action"] if _forward(action)}
        back = [int(action[2][0]) for action in document["action"] if not _forward(action)]
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise InputError(f"not a behaviour that TLC wrote with -dumpTrace json: {error}") from None
    states = []
    for number in sorted(rows):
        try:
            row = [_decoded(v.sort, rows[number][model.variables[v.name]], v.name) for v in system.variables]
        except (KeyError, TypeError) as error:
            raise Unreadable(f"state {number} of TLC's behaviour has no {error}") from None
        states.append(tuple(row))
    operators = [model.actions.get(str(steps.get(number, ""))) for number in sorted(rows)]
    return _trace(system, states, operators, back[0] if back else None, stutters=bool(back) and back[0] == len(states))


def _forward(action: Any) -> bool:
    return int(action[0][0]) < int(action[2][0])


def instance(interpreter: Interpreter, action: str | None, before: State, after: State) -> Instance | None:
    """An instance that leads from one state to the other, of the action called `action` if given."""
    every = interpreter.system.instances
    for one in (*(i for i in every if i.action == action), *every):
        try:
            if interpreter.take(one, before) == after:
                return one
        except EvaluationError:
            continue  # a model error in one instance does not exclude the others
    return None


def _trace(
    system: System, states: Sequence[State], actions: Sequence[str | None], back_to: int | None, *, stutters: bool
) -> Trace:
    interpreter = Interpreter(system)
    if not states or states[0] not in set(interpreter.initial_states()):
        raise Refuted("TLC's behaviour does not begin in an initial state")
    kept, steps, place = [states[0]], [], [0]
    for at in range(1, len(states)):
        step = instance(interpreter, actions[at], states[at - 1], states[at])
        if step is not None:
            kept.append(states[at])
            steps.append(step)
        elif states[at] != states[at - 1]:
            raise Refuted(f"no action leads from state {at} of TLC's behaviour to state {at + 1}")
        place.append(len(kept) - 1)
    if back_to is None and not stutters:
        return Trace(tuple(kept), tuple(steps))
    if back_to is not None and not 1 <= back_to <= len(place):
        raise Refuted("TLC's behaviour goes back to a state that it does not have")
    loop = len(kept) - 1 if back_to is None else place[back_to - 1]
    if loop < len(kept) - 1 and kept[-1] == kept[loop]:
        return Trace(tuple(kept[:-1]), tuple(steps), loop)
    closing = None if stutters else instance(interpreter, None, kept[-1], kept[loop])
    if closing is not None:
        return Trace(tuple(kept), (*steps, closing), loop)
    if loop < len(kept) - 1:
        raise Refuted("no action closes the loop of TLC's behaviour")
    return Trace(tuple(kept), tuple(steps), loop)


def _decoded(sort: Sort, data: Any, about: str) -> Value:
    """A value as TLC writes it in JSON: functions and records as objects, functions from 1..n as lists, sets as lists."""
    found: Value = None
    match sort:
        case BoolSort():
            found = data if isinstance(data, bool) else None
        case RangeSort():
            found = data if isinstance(data, int) and not isinstance(data, bool) else None
        case EnumSort(members):
            found = {_plain(m): m for m in members}.get(data) if isinstance(data, str) else None
        case RecordSort():
            if not sort.fields:
                found = () if data == UNIT else None
            else:
                found = (
                    tuple(_decoded(s, data[n], f"{about}.{n}") for n, s in fields(sort)) if _is_object(data) else None
                )
        case UnionSort():
            tags = {_plain(m): m for m in sort.tag.members}
            case = tags.get(data.get(tag_field(sort))) if _is_object(data) else None
            if case is not None:
                own = case_fields(sort, case)
                found = (case, tuple(_decoded(s, data[n], f"{about}.{n}") for n, s in own))
        case OptionSort(element):
            if not _is_object(data) or data["tag"] not in ("None", "Some"):
                raise Unreadable(f"TLC wrote no option for {about}")
            return None if data["tag"] == "None" else _decoded(element, data["value"], about)
        case ArraySort(index, element):
            keys = tuple(values(index))
            tuples = isinstance(index, KeySort) and alike(index.keys)
            texts = printed_keys(index) if isinstance(index, KeySort) and tuples else list(map(_key, keys))
            by_key = data if _is_object(data) else dict(zip(texts, data, strict=True))
            found = tuple(_decoded(element, by_key[t], f"{about}[{k}]") for t, k in zip(texts, keys, strict=True))
        case QueueSort(element, _):
            found = tuple(_decoded(element, one, about) for one in data) if isinstance(data, list) else None
        case SetSort(element):
            found = frozenset(_decoded(element, one, about) for one in data) if isinstance(data, list) else None
        case _:
            assert_never(sort)
    if found is None:
        raise Unreadable(f"TLC wrote no value of {sort} for {about}")
    return found


def _is_object(data: Any) -> bool:
    return isinstance(data, Mapping)


def _plain(text: str) -> str:
    return string(text)[1:-1]


def _key(key: Value) -> str:
    return str(key).upper() if isinstance(key, bool) else _plain(str(key))
