"""Measures: an integer quantity of every state, and its largest value over the reachable states."""

from __future__ import annotations

from streamproof.system.errors import Loc
from streamproof.system.expr import Expr
from streamproof.system.model import Check
from streamproof.system.records import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity by name: `expr`, an integer over the variables of a system; undefined where one of `checks` is true."""

    name: str
    expr: Expr
    checks: tuple[Check, ...] = ()
    loc: Loc | None = None
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """The largest value of a quantity.

    `value` is None if the quantity is undefined in some state, with the reason in `because`. `exact`: all reachable
    states were explored; otherwise the value is a lower bound.
    """

    name: str
    doc: str
    value: int | None
    exact: bool
    because: str
