"""The set of all states as an invariant: where every state was explored, nothing is stronger, and no other is needed.

It is written as a decision diagram over the leaves, in which equal parts are one term: some thousand terms for thousands of
states with scores of leaves. That the set is closed is for the solver to find out, which knows the steps from the rules and
not from the search: so this is a second opinion on the search, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamproof.system import build as b
from streamproof.system.errors import EvaluationError
from streamproof.system.expr import Expr
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import State, System
from streamproof.system.sorts import BoolSort, Sort, Value

CELLS = 2_000_000
"""States times leaves up to which the diagram is drawn."""
LEAVES = 300
"""How many there may be: terms nest as deep."""


LAST = 50
"""States, those found last, whose steps are looked at."""


def promising(system: System, states: Sequence[State]) -> bool:
    """Whether the set is worth a try: small, and not obviously a part only, as when the search that found it was cut."""
    if not 0 < len(states) * len(system.variables) <= CELLS or len(system.variables) > LEAVES:
        return False
    interpreter, known = Interpreter(system), set(states)
    try:
        return all(step.state in known for state in states[-LAST:] for step in interpreter.steps(state))
    except EvaluationError:
        return False


def member(system: System, states: Sequence[State]) -> Expr:
    """The condition that a state of the scalar `system` is one of `states`, of which there is one at least."""
    # Leaves with few values first: what they share is drawn once.
    order = sorted(range(len(system.variables)), key=lambda at: (len({s[at] for s in states}), at))
    below: list[list[dict[Value, int]]] = []
    """For each leaf and each way to have got there, where its values lead."""
    group = dict.fromkeys(range(len(states)), 0)
    for at in order:
        ways: list[dict[Value, int]] = [{} for _ in range(max(group.values()) + 1)]
        number = 0
        for n, state in enumerate(states):
            way = ways[group[n]]
            if state[at] not in way:
                way[state[at]] = number
                number += 1
            group[n] = way[state[at]]
        below.append(ways)
    terms: list[Expr] = [b.TRUE] * len(states)
    for at, ways in zip(reversed(order), reversed(below), strict=True):
        variable = system.variables[at]
        leaf = b.var(variable.name, variable.sort)
        terms = [b.or_(b.and_((_is(leaf, variable.sort, v), terms[to])) for v, to in way.items()) for way in ways]
    (whole,) = terms
    return whole


def _is(leaf: Expr, sort: Sort, value: Value) -> Expr:
    if isinstance(sort, BoolSort):
        return leaf if value else b.not_(leaf)
    return b.eq(leaf, b.const(sort, value))
