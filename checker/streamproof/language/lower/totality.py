"""Whether a condition that must be defined for all states is: its checks are decided for all values of what they read."""

from __future__ import annotations

from itertools import product

from streamproof.base.errors import ModelError
from streamproof.system.expr import Expr, Next, Var, subterms
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import System, Variable
from streamproof.system.sorts import cardinality_up_to, values

MOST = 2_000
"""Maximum number of combinations of values that are tried for one check."""


def may_be_true(condition: Expr) -> bool:
    """Whether some values of the variables make `condition` true; True if there are more than `MOST` combinations, or
    values without an end."""
    read = sorted(
        {t for t in subterms(condition) if isinstance(t, Var | Next)}, key=lambda t: (t.name, type(t).__name__)
    )
    combinations = 1
    try:
        for term in read:
            combinations *= cardinality_up_to(term.sort, MOST)
    except ModelError:  # depends on a parameter without a value
        return True
    if combinations > MOST:
        return True
    names = tuple(dict.fromkeys(t.name for t in read))
    sorts = {t.name: t.sort for t in read}
    interpreter = Interpreter(System("condition", tuple(Variable(n, sorts[n], ()) for n in names), ()))
    for chosen in product(*(tuple(values(t.sort)) for t in read)):
        now = dict.fromkeys(names) | {t.name: v for t, v in zip(read, chosen, strict=True) if isinstance(t, Var)}
        then = dict.fromkeys(names) | {t.name: v for t, v in zip(read, chosen, strict=True) if isinstance(t, Next)}
        if interpreter.value(condition, tuple(now.values()), tuple(then.values())):
            return True
    return False
