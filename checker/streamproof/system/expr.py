"""Expressions: the closed, typed, hash-consed terms that guards, updates and properties are made of.

Every expression is **total**. Where Python would raise (index outside an array, head of an empty queue, value of None,
division by zero) the term has a defined value (the sort's default; an unchanged container; zero), and the *check* that
makes it an error of the model stands beside the guard (`model.Check`). So no engine needs exceptions, and all agree.

Nodes are equal when they are the same object: build them only through `build`, which interns and simplifies.
`loc` is where the term was first written; it takes no part in identity.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, TypeAlias, cast

from streamproof.system.errors import Loc
from streamproof.system.records import dataclass
from streamproof.system.sorts import Sort, Value


@dataclass(frozen=True, eq=False, repr=False, slots=True, weakref_slot=True)
class Node:
    """What all expressions share: a sort, and a place of birth."""

    sort: Sort
    loc: Loc | None

    def __repr__(self) -> str:
        parts = [_part(getattr(self, f.name)) for f in fields(self) if f.name not in ("sort", "loc")]
        return f"({' '.join([type(self).__name__, *parts])})"

    def __reduce__(self) -> tuple[Any, ...]:
        rest = tuple(getattr(self, f.name) for f in fields(self) if f.name not in ("sort", "loc"))
        return (intern, (type(self), self.sort, self.loc, *rest))

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value here; it is decided state by state")


def _part(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{' '.join(map(repr, value))}]"
    return repr(value)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Const(Node):
    """A literal value of the sort."""

    value: Value


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Var(Node):
    """The current value of a state variable."""

    name: str


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Next(Node):
    """The value of a state variable after the step; only in step properties."""

    name: str


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Not(Node):
    """Negation."""

    arg: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class And(Node):
    """Conjunction, evaluated from the left and stopping at the first false."""

    args: tuple[Expr, ...]


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Or(Node):
    """Disjunction, evaluated from the left and stopping at the first true."""

    args: tuple[Expr, ...]


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Ite(Node):
    """`then` if `cond` else `other`."""

    cond: Expr
    then: Expr
    other: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Eq(Node):
    """Equality of two values of compatible sorts."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Less(Node):
    """`left < right` on integers."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class LessEq(Node):
    """`left <= right` on integers."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Add(Node):
    """Sum; the sort is the interval that contains every possible result."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Sub(Node):
    """Difference."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Mul(Node):
    """Product."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class FloorDiv(Node):
    """Quotient rounded towards minus infinity, as Python's ``//``; 0 when the divisor is 0."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Mod(Node):
    """Remainder with the sign of the divisor, as Python's ``%``; 0 when the divisor is 0."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class MakeArray(Node):
    """An array from one element per index, in index order."""

    elements: tuple[Expr, ...]


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Select(Node):
    """Element of `array` at `index`; the element sort's default outside the index sort."""

    array: Expr
    index: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Store(Node):
    """`array` with `value` at `index`; unchanged outside the index sort."""

    array: Expr
    index: Expr
    value: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class MakeRecord(Node):
    """A record from its field values, in field order."""

    values: tuple[Expr, ...]


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Field(Node):
    """A field of a record."""

    record: Expr
    name: str


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class WithField(Node):
    """`record` with one field replaced."""

    record: Expr
    name: str
    value: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Some(Node):
    """A present option."""

    arg: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class IsNone(Node):
    """Whether an option is absent."""

    arg: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Unwrap(Node):
    """The value of an option; the element sort's default when absent."""

    arg: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Length(Node):
    """Number of elements in a queue."""

    queue: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Peek(Node):
    """Element `index` of a queue, 0 being the head; the element sort's default outside."""

    queue: Expr
    index: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Push(Node):
    """`queue` with `value` at the end; unchanged when full."""

    queue: Expr
    value: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Pop(Node):
    """`queue` without its head; unchanged when empty."""

    queue: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Member(Node):
    """Whether `value` is in `set_`."""

    set_: Expr
    value: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Insert(Node):
    """`set_` with `value`."""

    set_: Expr
    value: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Remove(Node):
    """`set_` without `value`."""

    set_: Expr
    value: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Union(Node):
    """Values in either set."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Intersection(Node):
    """Values in both sets."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Difference(Node):
    """Values in `left` and not in `right`."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Subset(Node):
    """Whether every member of `left` is in `right`."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Size(Node):
    """Number of members of a set."""

    set_: Expr


Expr: TypeAlias = (
    Const
    | Var
    | Next
    | Not
    | And
    | Or
    | Ite
    | Eq
    | Less
    | LessEq
    | Add
    | Sub
    | Mul
    | FloorDiv
    | Mod
    | MakeArray
    | Select
    | Store
    | MakeRecord
    | Field
    | WithField
    | Some
    | IsNone
    | Unwrap
    | Length
    | Peek
    | Push
    | Pop
    | Member
    | Insert
    | Remove
    | Union
    | Intersection
    | Difference
    | Subset
    | Size
)

_table: weakref.WeakValueDictionary[tuple[Any, ...], Node] = weakref.WeakValueDictionary()


def intern(kind: type[Node], sort: Sort, loc: Loc | None, *parts: Any) -> Expr:
    """The one node of this kind, sort and parts; `loc` is kept from the first time it was built."""
    key = (kind, sort, parts)
    found = _table.get(key)
    if found is None:
        found = cast(Callable[..., Node], kind)(sort, loc, *parts)
        _table[key] = found
    return cast(Expr, found)


def children(expr: Expr) -> Iterator[Expr]:
    """The direct subterms, from left to right."""
    for name, many in _places(type(expr)):
        if many:
            yield from getattr(expr, name)
        else:
            yield getattr(expr, name)


_known_places: dict[type[Node], tuple[tuple[str, bool], ...]] = {}


def _places(kind: type[Node]) -> tuple[tuple[str, bool], ...]:
    """The fields of a kind of term that hold subterms, and whether they hold several."""
    if kind not in _known_places:
        subterm = {"Expr": False, "tuple[Expr, ...]": True}
        _known_places[kind] = tuple((f.name, subterm[str(f.type)]) for f in fields(kind) if f.type in subterm)
    return _known_places[kind]


def subterms(*roots: Expr) -> Iterator[Expr]:
    """Every distinct term reachable from `roots`, each after its own subterms."""
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(r, False) for r in reversed(roots)]
    while stack:
        term, ready = stack.pop()
        if ready:
            yield term
        elif term not in seen:
            seen.add(term)
            stack.append((term, True))
            stack.extend((c, False) for c in reversed(tuple(children(term))) if c not in seen)


def variables(*roots: Expr) -> frozenset[str]:
    """Names of the state variables read (current or next) in any of `roots`."""
    return frozenset(t.name for t in subterms(*roots) if isinstance(t, Var | Next))
