"""Import of Spin's trails as behaviours of the system, replayed step by step by the interpreter.

Spin replays a trail statement by statement and prints the variables after each (``spin -t -p -g``); their values after
the last statement of a step are the state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from streamproof.base.records import dataclass
from streamproof.exchange.promela.model import STARTED, Promela
from streamproof.exchange.tool_run import Refuted
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Instance, State, System
from streamproof.system.sorts import BoolSort, EnumSort, Sort, Value
from streamproof.system.verdict import Trace
from streamproof.transform.scalarise import scalarise


@dataclass(frozen=True, slots=True)
class Trail:
    """The variables of the text after each step, and the number of steps before the cycle."""

    valuations: tuple[Mapping[str, int], ...]
    cycle: int | None


_STATEMENT = re.compile(r"\s*(?P<step>\d+):\tproc\s+\d+ \(model.*\t\[")
_VALUE = re.compile(r"\t\t(?P<name>\w+) = (?P<value>-?\d+)$")


def read(lines: Iterable[str]) -> Trail:
    """The parsed lines of ``spin -t -p -g``."""
    after: dict[int, dict[str, int]] = {}
    step, cycle = 0, None
    for line in lines:
        if statement := _STATEMENT.match(line):
            step = int(statement["step"])
            after[step] = {}
        elif "START OF CYCLE" in line:
            cycle = len(after)
        elif (value := _VALUE.match(line)) and step:
            after[step][value["name"]] = int(value["value"])
    return Trail(tuple(after.values()), cycle)


def behaviour(system: System, model: Promela, trail: Trail) -> Trace:
    """The behaviour of `system` for a trail of its marked text `model`; stuttering steps are left out.

    With a cycle, it is a lasso. Raises `Refuted` if the interpreter cannot take a step.
    """
    scalarised = scalarise(system)
    leaves = scalarised.system.variables
    interpreter = Interpreter(system)

    def state(values: Mapping[str, int]) -> State:
        return scalarised.decode(tuple(_value(v.sort, values[model.names[v.name]]) for v in leaves))

    first = next(interpreter.initial_states()) if not model.opening else None
    states: list[State] = [] if first is None else [first]
    steps: list[Instance] = []
    loop: int | None = None
    begun = first is not None
    for number, values in enumerate(trail.valuations):
        if number == trail.cycle:
            loop = max(len(states) - 1, 0)
        if not values:
            continue
        if not begun:
            begun = values.get(STARTED) == 1
            if begun:
                states.append(state(values))
            continue
        now = state(values)
        if now != states[-1]:
            step = interpreter.leading(system.instances, states[-1], now)
            if step is None:
                raise Refuted(f"no step of {system.name} leads from {states[-1]} to {now}, as in Spin's trail")
            steps.append(step)
            states.append(now)
    if trail.cycle is not None and loop is None:
        loop = len(states) - 1
    if not states or not (first is not None or states[0] in set(interpreter.initial_states())):
        raise Refuted("Spin's trail does not begin in an initial state")
    if loop is None or loop == len(states) - 1:
        return Trace(tuple(states), tuple(steps), loop)
    if states[-1] != states[loop]:
        raise Refuted("the cycle that Spin found does not lead back to where it began")
    return Trace(tuple(states[:-1]), tuple(steps), loop)


def _value(sort: Sort, number: int) -> Value:
    match sort:
        case BoolSort():
            return bool(number)
        case EnumSort(members):
            return members[number]
        case _:
            return number
