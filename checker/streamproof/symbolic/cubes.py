"""Cubes: sets of states, each a conjunction of parts that say something of one leaf: a flag, a bound, a value it has not."""

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
"""The parts, all of which are true; those of one leaf stand together, in the order of the leaves."""


def cube_of(system: System, state: State) -> Cube:
    """The one state of a scalar system, with parts as weak as can be: bounds instead of equality, values excluded."""
    parts = (part for v, value in system.named(state) for part in _parts(b.var(v.name, v.sort), value))
    # What the sort says of the leaf anyway folds away.
    return tuple(part for part in parts if not isinstance(part, e.Const))


def _parts(leaf: Expr, value: object) -> Iterator[Expr]:
    match leaf.sort:
        case BoolSort():
            yield leaf if value else b.not_(leaf)
        case EnumSort(members) as sort if len(members) > 2:
            for other in members:
                if other != value:
                    yield b.not_(b.eq(leaf, b.const(sort, other)))
        case EnumSort() as sort:
            # With one or two members, what it is says as little as what it is not.
            yield b.eq(leaf, b.const(sort, value))
        case _:
            assert isinstance(value, int)
            yield b.less_eq(b.num(value), leaf)
            yield b.less_eq(leaf, b.num(value))


def clause(cube: Cube) -> Expr:
    """That the state is not in the cube."""
    return b.or_(b.not_(part) for parts in by_leaf(cube) for part in _joined(parts))


def _joined(parts: Cube) -> Cube:
    """Bounds that leave one value, as that value."""
    match parts:
        case (e.LessEq(left=e.Const() as low, right=leaf), e.LessEq(right=e.Const() as high)) if low is high:
            return (b.eq(leaf, low),)
        case _:
            return parts


def leaf_of(part: Expr) -> str:
    """The leaf that a part speaks of."""
    (name,) = e.variables(part)
    return name


def by_leaf(cube: Cube) -> Iterator[Cube]:
    """The parts of each leaf together."""
    for _, parts in groupby(cube, key=leaf_of):
        yield tuple(parts)


def widened(part: Expr) -> Expr | None:
    """A bound half as strict, measured by the leaf's sort; None for what is no bound, or has no room."""
    match part:
        case e.LessEq(left=e.Const(value=low), right=e.Var(sort=RangeSort() as sort) as leaf):
            further = (low + sort.lo) // 2
            return b.less_eq(b.num(further), leaf) if sort.lo < further < low else None
        case e.LessEq(left=e.Var(sort=RangeSort() as sort) as leaf, right=e.Const(value=high)):
            further = (high + sort.hi + 1) // 2
            return b.less_eq(leaf, b.num(further)) if high < further < sort.hi else None
        case _:
            return None
