"""Expressions: the closed, typed, hash-consed terms of guards, updates and properties.

Every expression is **total**. Where Python would raise (index outside an array, head of an empty queue, value of None,
division by zero) the term has a defined value (the sort's default; an unchanged container; zero), and a separate
*check* beside the guard makes it an error of the model (`model.Check`). So no engine needs exceptions, and all agree.

Nodes are equal when they are the same object: build them only through `build`, which interns and simplifies. `loc` is
the position of the first occurrence; it is not part of the identity.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Container, Iterator
from dataclasses import fields
from typing import Any, TypeAlias, cast

from streamproof.base.errors import Loc
from streamproof.base.records import annotated, dataclass
from streamproof.system.sorts import BoolSort, RangeSort, Sort, Value


@dataclass(frozen=True, eq=False, repr=False, slots=True, weakref_slot=True)
class Node:
    """Common base of expressions: a sort, and a source position."""

    sort: Sort
    loc: Loc | None

    def __repr__(self) -> str:
        parts = [_part_text(getattr(self, f.name)) for f in fields(self) if f.name not in ("sort", "loc")]
        return f"({' '.join([type(self).__name__, *parts])})"

    def __reduce__(self) -> tuple[Any, ...]:
        rest = tuple(getattr(self, f.name) for f in fields(self) if f.name not in ("sort", "loc"))
        return (intern, (type(self), self.sort, self.loc, *rest))

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value here; it is decided state by state")


def _part_text(value: object) -> str:
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
class MakeCase(Node):
    """A value of a union: a case with its fields, a record."""

    case: str
    payload: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class IsCase(Node):
    """Whether the value of a union is of this case."""

    arg: Expr
    case: str


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Payload(Node):
    """The fields of a case as a record; the record's default in other cases."""

    arg: Expr
    case: str


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
    | MakeCase
    | IsCase
    | Payload
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


class _Known(weakref.ref[Node]):
    """A node in the table, and its key."""

    __slots__ = ("key",)
    key: tuple[Any, ...]


_table: dict[tuple[Any, ...], _Known] = {}
"""The live nodes, by kind, sort and parts."""


def _forget(reference: _Known) -> None:
    """Removes a dead node; another node with the same parts may have been created meanwhile."""
    if _table.get(reference.key) is reference:
        del _table[reference.key]


_numbers: dict[Sort, int] = {}
"""A number for each sort of a term, other than Boolean and ranges."""
_met: dict[int, tuple[Sort, int]] = {}
"""Sorts by identity (`id`), which stays valid while they are listed here, each with its number."""
_MET = 10_000


def _number(sort: Sort) -> int:
    """The number of a sort that is not in `_met`."""
    if len(_met) >= _MET:
        _met.clear()
    number = _numbers.setdefault(sort, len(_numbers))
    _met[id(sort)] = (sort, number)
    return number


def intern(kind: type[Node], sort: Sort, loc: Loc | None, *parts: Any) -> Expr:
    """The unique node of this kind, sort and parts; `loc` is kept from its first construction."""
    # Hashing and comparing sorts runs Python code, which dominates; integers distinguish them instead.
    key: tuple[Any, ...]
    if type(sort) is BoolSort:
        key = (kind, parts)
    elif type(sort) is RangeSort:
        key = (kind, sort.lo, sort.hi, parts)
    else:
        met = _met.get(id(sort))
        key = (kind, _number(sort) if met is None else met[1], parts)
    known = _table.get(key)
    found: Any = None if known is None else known()
    if found is None:
        make: Any = kind
        found = make(sort, loc, *parts)
        known = _table[key] = _Known(found, _forget)
        known.key = key
    return found  # type: ignore[no-any-return]


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct subterms, from left to right."""
    return _getters[type(expr)](expr)


class _Getters(dict[type[Node], Callable[[Any], tuple[Expr, ...]]]):
    """The function that returns the subterms of a term, by its kind; created on first use."""

    def __missing__(self, kind: type[Node]) -> Callable[[Any], tuple[Expr, ...]]:
        get = self[kind] = _getter(kind)
        return get


_getters = _Getters()


def _getter(kind: type[Node]) -> Callable[[Any], tuple[Expr, ...]]:
    """Creates the function that returns the subterms of a term of this kind."""
    subterm = {"Expr": False, "tuple[Expr, ...]": True}
    places = [(name, subterm[type_]) for name, type_ in annotated(kind).items() if type_ in subterm]
    single = [name for name, many in places if not many]
    if not places:
        return lambda term: ()
    if len(single) == len(places):
        get: Callable[[Any], Any] = operator.attrgetter(*single)
        return get if len(single) > 1 else lambda term: (get(term),)
    if not single and len(places) == 1:
        every: Callable[[Any], tuple[Expr, ...]] = operator.attrgetter(places[0][0])
        return every
    return lambda term: tuple(
        part for name, many in places for part in (getattr(term, name) if many else (getattr(term, name),))
    )


def subterms(*roots: Expr) -> Iterator[Expr]:
    """Every distinct term reachable from `roots`, each after its own subterms."""
    done: set[Expr] = set()
    for root in roots:
        for term in unfinished(root, done):
            done.add(term)
            yield term


def unfinished(
    root: Expr, done: Container[Expr], inside: Callable[[Expr], tuple[Expr, ...]] | None = None
) -> Iterator[Expr]:
    """Every term reachable from `root` without passing through `done`, each after its own subterms.

    The caller adds each to `done` before requesting the next. `inside` gives the subterms to visit; by default all.
    """
    stack: list[Expr | None] = [root]
    while stack:
        term = stack.pop()
        if term is None:  # its subterms were above it on the stack and are done
            yield cast(Expr, stack.pop())
        elif term not in done:
            parts = _getters[type(term)](term) if inside is None else inside(term)
            if parts:
                stack += (term, None)
                stack.extend(reversed(parts))
            else:
                yield term


def variables(*roots: Expr) -> frozenset[str]:
    """Names of the state variables read (current or next) in any of `roots`."""
    return frozenset(t.name for t in subterms(*roots) if isinstance(t, Var | Next))
