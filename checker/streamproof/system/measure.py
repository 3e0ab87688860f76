"""Measured quantities: a number that a model gives for every state, and the largest that any reachable state gives."""

from __future__ import annotations

from streamproof.system.errors import Loc
from streamproof.system.expr import Expr
from streamproof.system.model import Check
from streamproof.system.records import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity by name: `expr`, an integer over the variables of a system, has a meaning where none of `checks` shows."""

    name: str
    expr: Expr
    checks: tuple[Check, ...] = ()
    loc: Loc | None = None
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """The largest value of a quantity.

    `value` is None where there is none: a state was met in which the quantity has no meaning, as `because` says. `exact`
    tells whether all reachable states were looked at; otherwise the value is a lower bound.
    """

    name: str
    doc: str
    value: int | None
    exact: bool
    because: str
