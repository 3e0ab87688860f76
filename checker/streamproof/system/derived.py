"""Derived values in traces: each is shown as one more variable, as by TLC's ALIAS."""

from __future__ import annotations

from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Derived, State, System, Variable
from streamproof.system.records import replace
from streamproof.system.sorts import OptionSort, Sort, Value
from streamproof.system.verdict import Trace


def with_derived(system: System, trace: Trace) -> tuple[System, Trace]:
    """The system and the trace with a variable for each derived value, None where the value does not exist; for display."""
    if not system.derived:
        return system, trace
    interpreter = Interpreter(system)
    more = tuple(Variable(one.name, _sort(one), (), one.loc) for one in system.derived)
    states = tuple((*state, *(_value(interpreter, one, state) for one in system.derived)) for state in trace.states)
    shown = replace(system, variables=(*system.variables, *more), derived=())
    return shown, replace(trace, states=states)


def _sort(one: Derived) -> Sort:
    return OptionSort(one.expr.sort) if one.checks and not isinstance(one.expr.sort, OptionSort) else one.expr.sort


def _value(interpreter: Interpreter, one: Derived, state: State) -> Value:
    missing = any(interpreter.value(check.condition, state) for check in one.checks)
    return None if missing else interpreter.value(one.expr, state)
