"""The set of all reachable states as an invariant: the strongest one, available after a complete search.

It is a decision diagram over the leaves with shared subterms: some thousand terms for thousands of states with scores
of leaves. The solver proves that the set is closed, with steps from the rules instead of the search: so this also
verifies the search.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamproof.base.errors import EvaluationError
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import State, System
from streamproof.system.sorts import Value

CELLS = 2_000_000
"""Maximum product of states and leaves for which the diagram is built."""
LEAVES = 300
"""Maximum number of leaves, which is the nesting depth of the term."""


LAST = 50
"""Number of states, those found last, whose successors are tested."""


def promising(system: System, states: Sequence[State]) -> bool:
    """Whether the set is worth trying: small, and not obviously incomplete, as after an early end of the search."""
    if not 0 < len(states) * len(system.variables) <= CELLS or len(system.variables) > LEAVES:
        return False
    interpreter, known = Interpreter(system), set(states)
    try:
        return all(step.state in known for state in states[-LAST:] for step in interpreter.steps(state))
    except EvaluationError:
        return False


def member(system: System, states: Sequence[State]) -> Expr:
    """The condition that a state of the scalar `system` is one of `states` (at least one)."""
    # Leaves with few values first, to share more of the diagram.
    order = sorted(range(len(system.variables)), key=lambda at: (len({s[at] for s in states}), at))
    below: list[list[dict[Value, int]]] = []
    """For each leaf and each prefix of leaf values, the successor node of each value."""
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
        here = {v: b.eq(leaf, b.const(leaf.sort, v)) for way in ways for v in way}
        terms = [b.or_(b.and_((here[v], terms[to])) for v, to in way.items()) for way in ways]
    (whole,) = terms
    return whole
