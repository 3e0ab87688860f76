"""Values met while lowering: host objects, expressions, places in the state, and choices between host values.

A *host* value is any ordinary Python object known while lowering (a number, a name, a graph). Everything that depends on
the state is an `Expr`, a `Ref` (a place in the state, read when needed), a `Cases` (a choice between host values that have
no sort yet), or a `Cell` (a local list or dict whose elements may be any of these).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeAlias

from streamproof.language.coerce import coerce, unknown_member
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Expr, Node
from streamproof.system.sorts import (
    BOOL,
    ArraySort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    cardinality,
    compatible,
    values,
)


@dataclass(frozen=True, slots=True)
class Ref:
    """A place in the state: a variable and the way into it. Steps of the path are ("index", Expr) or ("field", name)."""

    root: str
    path: tuple[tuple[str, Any], ...]
    sort: Sort


@dataclass(frozen=True, slots=True)
class StateRef:
    """The state object `s` of an action or property; `after` is the state following a step (read-only)."""

    after: bool = False
    frozen: bool = False


@dataclass(frozen=True, slots=True)
class Cases:
    """One of two host values, by a condition; gets a sort when it meets one."""

    cond: Expr
    then: Any
    other: Any


@dataclass(frozen=True, slots=True)
class Cell:
    """A local list or dict, by its number in the heap, so that aliases see each other's changes as in Python."""

    number: int


@dataclass(frozen=True, slots=True)
class Guarded:
    """Elements of a collection that are present only under a condition (queues and sets of the state)."""

    items: tuple[tuple[Expr, Any], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Closure:
    """A lambda or nested function with the frame it was made in."""

    node: ast.Lambda | ast.FunctionDef
    frame: Any


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a place in the state or of a local list, before it is called."""

    owner: Any
    name: str


class Undefined:
    """A local that some path has not assigned."""

    def __init__(self, name: str) -> None:
        self.name = name


Term: TypeAlias = Any


def symbolic(value: Term) -> bool:
    """Whether `value` depends on the state (looked for inside tuples too)."""
    if isinstance(value, Node | Ref | StateRef | Cases | Cell | Closure | Method | Guarded | Undefined):
        return True
    return isinstance(value, tuple) and any(symbolic(v) for v in value)


def describe(value: Term) -> str:
    """What to call `value` in a message."""
    if isinstance(value, Node):
        return f"a {value.sort}"
    if isinstance(value, Ref):
        return f"a {value.sort}"
    if isinstance(value, Cell):
        return "a local list or dict"
    if isinstance(value, Cases):
        return f"{value.then!r} or {value.other!r}"
    if isinstance(value, StateRef):
        return "the state"
    return f"{value!r} ({type(value).__name__})"


def lift(value: Term, sort: Sort, loc: Loc | None) -> Expr:
    """`value` as an expression that can stand where `sort` is wanted; `ModelError` when it cannot.

    Integers keep their own interval: that they lie in `sort` is checked where they are stored.
    """
    if isinstance(value, Node):
        return _fit(value, sort, loc)  # type: ignore[arg-type]
    if isinstance(value, Cases):
        return b.ite(value.cond, lift(value.then, sort, loc), lift(value.other, sort, loc), loc)
    if isinstance(sort, OptionSort):
        return b.const(sort, None, loc) if value is None else b.some(lift(value, sort.element, loc), loc)
    if isinstance(sort, RangeSort) and isinstance(value, int) and not isinstance(value, bool):
        return b.num(value)
    if isinstance(sort, EnumSort) and isinstance(value, str) and value not in sort.members:
        raise unknown_member(sort, value, loc)
    if isinstance(value, tuple | list | Mapping | AbstractSet) and _has_symbols(value):
        return _build(value, sort, loc)
    return b.const(sort, coerce(sort, value, loc), loc)


def _fit(term: Expr, sort: Sort, loc: Loc | None) -> Expr:
    if isinstance(sort, OptionSort) and not isinstance(term.sort, OptionSort):
        return b.some(_fit(term, sort.element, loc), loc)
    if compatible(term.sort, sort):
        return term
    raise ModelError(f"{sort} expected, got {term.sort}", loc=loc, remedy="compare and assign values of one sort")


def _has_symbols(value: Any) -> bool:
    parts = value.values() if isinstance(value, Mapping) else value
    return any(symbolic(p) or (isinstance(p, tuple | list | Mapping) and _has_symbols(p)) for p in parts)


def _build(value: Any, sort: Sort, loc: Loc | None) -> Expr:
    match sort:
        case RecordSort(fields) if isinstance(value, Mapping):
            names = [n for n, _ in fields]
            if set(value) != set(names):
                raise ModelError(
                    f"{sort} needs exactly the fields {', '.join(names)}", loc=loc, remedy="give every field"
                )
            return b.make_record(sort, (lift(value[n], s, loc) for n, s in fields), loc)
        case RecordSort(fields) if isinstance(value, tuple | list) and len(value) == len(fields):
            return b.make_record(sort, (lift(v, s, loc) for (_, s), v in zip(fields, value, strict=True)), loc)
        case ArraySort(index, element) if isinstance(value, Mapping) and set(value) == set(values(index)):
            return b.make_array(sort, (lift(value[k], element, loc) for k in values(index)), loc)
        case ArraySort(index, element) if isinstance(value, tuple | list) and len(value) == cardinality(index):
            return b.make_array(sort, (lift(v, element, loc) for v in value), loc)
        case QueueSort(element, capacity) if isinstance(value, tuple | list):
            if len(value) > capacity:
                raise ModelError(f"{len(value)} elements do not fit into {sort}", loc=loc, remedy="raise the capacity")
            queue = b.const(sort, (), loc)
            for v in value:
                queue = b.push(queue, lift(v, element, loc), loc)
            return queue
        case SetSort(element) if isinstance(value, tuple | list | AbstractSet):
            made = b.const(sort, frozenset(), loc)
            for v in value:
                made = b.insert(made, lift(v, element, loc), loc)
            return made
        case _:
            raise ModelError(f"{describe(value)} is not a value of {sort}", loc=loc, remedy="build it field by field")


def natural(value: Term, loc: Loc | None) -> Expr | None:
    """`value` as an expression by its own type alone (booleans and integers), or None."""
    if isinstance(value, Node):
        return value  # type: ignore[return-value]
    if isinstance(value, bool):
        return b.truth(value)
    if isinstance(value, int):
        return b.num(value)
    if isinstance(value, Cases):
        then, other = natural(value.then, loc), natural(value.other, loc)
        return None if then is None or other is None else b.ite(value.cond, then, other, loc)
    return None


def merge(cond: Expr, then: Term, other: Term, loc: Loc | None) -> Term:
    """The value that is `then` where `cond` holds and `other` elsewhere."""
    if then is other:
        return then
    if not symbolic(then) and not symbolic(other) and type(then) is type(other):
        try:
            if then == other:
                return then
        except Exception:  # a host type whose == does not answer; treat the values as different
            return Cases(cond, then, other)
    if isinstance(then, Undefined) or isinstance(other, Undefined):
        return then if isinstance(then, Undefined) else other
    if isinstance(then, tuple) and isinstance(other, tuple) and len(then) == len(other):
        return tuple(merge(cond, x, y, loc) for x, y in zip(then, other, strict=True))
    if isinstance(then, Node) and isinstance(other, Node):
        return _merge_terms(cond, then, other, loc)  # type: ignore[arg-type]
    if isinstance(then, Node) and not symbolic(other):
        return _merge_mixed(cond, then, other, loc, flip=False)  # type: ignore[arg-type]
    if isinstance(other, Node) and not symbolic(then):
        return _merge_mixed(cond, other, then, loc, flip=True)  # type: ignore[arg-type]
    left, right = natural(then, loc), natural(other, loc)
    if left is not None and right is not None and left.sort == BOOL == right.sort:
        return b.ite(cond, left, right, loc)
    if (
        left is not None
        and right is not None
        and isinstance(left.sort, RangeSort)
        and isinstance(right.sort, RangeSort)
    ):
        return b.ite(cond, left, right, loc)
    return Cases(cond, then, other)


def _merge_terms(cond: Expr, then: Expr, other: Expr, loc: Loc | None) -> Expr:
    if isinstance(then.sort, OptionSort) and not isinstance(other.sort, OptionSort):
        other = b.some(other, loc)
    elif isinstance(other.sort, OptionSort) and not isinstance(then.sort, OptionSort):
        then = b.some(then, loc)
    return b.ite(cond, then, other, loc)


def _merge_mixed(cond: Expr, term: Expr, host: Any, loc: Loc | None, *, flip: bool) -> Term:
    if host is None and not isinstance(term.sort, OptionSort):
        term = b.some(term, loc)
    lifted = lift(host, term.sort, loc)
    return b.ite(cond, lifted, term, loc) if flip else b.ite(cond, term, lifted, loc)


def as_constant(value: Term) -> tuple[bool, Any]:
    """(True, host value) when `value` is known while lowering, else (False, None)."""
    if isinstance(value, e.Const):
        return True, value.value
    if symbolic(value):
        return False, None
    return True, value
