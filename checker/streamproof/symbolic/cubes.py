"""Cubes: conjunctions of literals over single leaves (a flag, a bound, an excluded value), each denoting a set of states."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TypeAlias

from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import State, System
from streamproof.system.sorts import BoolSort, EnumSort, RangeSort

Cube: TypeAlias = tuple[Expr, ...]
"""The literals, grouped by leaf in leaf order."""


def cube_of(system: System, state: State) -> Cube:
    """The cube of one scalar state, with the weakest literals: bounds instead of equalities, excluded values."""
    parts = (part for v, value in system.named(state) for part in _literals(b.var(v.name, v.sort), value))
    # Literals implied by the leaf's sort simplify to true.
    return tuple(part for part in parts if not isinstance(part, e.Const))


def _literals(leaf: Expr, value: object) -> Iterator[Expr]:
    match leaf.sort:
        case EnumSort(members) as sort if len(members) > 2:
            for other in members:
                if other != value:
                    yield b.not_(b.eq(leaf, b.const(sort, other)))
        case BoolSort() | EnumSort() as sort:
            # With one or two values, equality is as weak as exclusion.
            yield b.eq(leaf, b.const(sort, value))
        case _:
            assert isinstance(value, int)
            yield b.less_eq(b.num(value), leaf)
            yield b.less_eq(leaf, b.num(value))


def clause(cube: Cube) -> Expr:
    """The negation of the cube, as a clause."""
    return b.or_(b.not_(part) for parts in by_leaf(cube) for part in _joined(parts))


def _joined(parts: Cube) -> Cube:
    """Two bounds that leave one value, as an equality."""
    match parts:
        case (e.LessEq(left=e.Const() as low, right=leaf), e.LessEq(right=e.Const() as high)) if low is high:
            return (b.eq(leaf, low),)
        case _:
            return parts


def leaf_of(part: Expr) -> str:
    """The leaf of a literal."""
    (name,) = e.variables(part)
    return name


def by_leaf(cube: Cube) -> Iterator[Cube]:
    """The literals of each leaf."""
    for _, parts in groupby(cube, key=leaf_of):
        yield tuple(parts)


def widened(part: Expr) -> Expr | None:
    """A bound with half the strictness, relative to the leaf's sort; None for other literals, or if there is no room."""
    match part:
        case e.LessEq(left=e.Const(value=low), right=e.Var(sort=RangeSort() as sort) as leaf):
            further = (low + sort.lo) // 2
            return b.less_eq(b.num(further), leaf) if sort.lo < further < low else None
        case e.LessEq(left=e.Var(sort=RangeSort() as sort) as leaf, right=e.Const(value=high)):
            further = (high + sort.hi + 1) // 2
            return b.less_eq(leaf, b.num(further)) if high < further < sort.hi else None
        case _:
            return None
