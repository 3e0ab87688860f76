"""Smart constructors: the only way to make expressions. They check sorts, intern, and simplify.

Simplification is local and exactly preserves the total semantics in `expr`: constants fold, trivial connectives
collapse, comparisons decided by the operands' intervals disappear, reads cancel against writes at constant indices.
Those of scalars, arrays and records are in `basics`; those of queues and sets, and domain conditions, are here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, assert_never

from streamproof.base.errors import Loc
from streamproof.system import expr as e
from streamproof.system.basics import (
    FALSE,
    TRUE,
    add,
    and_,
    bad,
    const,
    eq,
    field,
    floor_div,
    implies,
    ints,
    is_case,
    is_none,
    ite,
    join,
    less,
    less_eq,
    make_array,
    make_case,
    make_record,
    mod,
    mul,
    next_,
    not_,
    num,
    offset,
    or_,
    payload,
    select,
    some,
    store,
    sub,
    through,
    truth,
    unwrap,
    var,
    with_field,
)
from streamproof.system.expr import Expr, intern
from streamproof.system.sorts import (
    BOOL,
    ArraySort,
    BagSort,
    BoolSort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    TermRange,
    UnionSort,
    cardinality,
    compatible,
    contains,
    default,
    is_empty,
    values,
)


def _queue(queue: Expr, what: str, loc: Loc | None) -> QueueSort:
    if isinstance(queue.sort, QueueSort):
        return queue.sort
    raise bad(f"{what} needs a Queue", loc, queue)


def length(queue: Expr, loc: Loc | None = None) -> Expr:
    """Number of elements in a queue."""
    sort = _queue(queue, "length", loc)
    if isinstance(queue, e.Const):
        return num(len(queue.value))
    return intern(e.Length, RangeSort(0, sort.capacity), loc, queue)


def peek(queue: Expr, index: Expr, loc: Loc | None = None) -> Expr:
    """Element of a queue, 0 being the head; the default outside."""
    sort = _queue(queue, "peek", loc)
    ints("index", index, index, loc)
    if isinstance(queue, e.Const) and isinstance(index, e.Const):
        inside = 0 <= index.value < len(queue.value)
        return const(sort.element, queue.value[index.value] if inside else default(sort.element), loc)
    if is_empty(sort.element):
        return const(sort.element, default(sort.element), loc)
    return intern(e.Peek, sort.element, loc, queue, index)


def push(queue: Expr, value: Expr, loc: Loc | None = None) -> Expr:
    """`queue` with `value` at the end; unchanged when full."""
    sort = _queue(queue, "push", loc)
    if not compatible(sort.element, value.sort):
        raise bad(f"an element of {sort} expected", loc, value)
    if isinstance(queue, e.Const) and isinstance(value, e.Const) and contains(sort.element, value.value):
        return const(sort, (*queue.value, value.value) if len(queue.value) < sort.capacity else queue.value, loc)
    return intern(e.Push, sort, loc, queue, value)


def pop(queue: Expr, loc: Loc | None = None) -> Expr:
    """`queue` without its head; unchanged when empty."""
    sort = _queue(queue, "pop", loc)
    if isinstance(queue, e.Const):
        return const(sort, queue.value[1:], loc)
    return intern(e.Pop, sort, loc, queue)


def _set(set_: Expr, value: Expr, loc: Loc | None) -> SetSort:
    if not isinstance(set_.sort, SetSort):
        raise bad("a Set expected", loc, set_)
    if not compatible(set_.sort.element, value.sort):
        raise bad(f"a member of {set_.sort} expected", loc, value)
    return set_.sort


def member(set_: Expr, value: Expr, loc: Loc | None = None) -> Expr:
    """Whether `value` is in `set_`."""
    sort = _set(set_, value, loc)
    while isinstance(set_, e.Insert | e.Remove) and isinstance(set_.value, e.Const) and isinstance(value, e.Const):
        if set_.value.value == value.value:
            return truth(isinstance(set_, e.Insert))
        set_ = set_.set_
    match set_, value:
        case (e.Const(value=s), e.Const(value=v)):
            return truth(v in s)
        case (e.Const(value=s), _) if isinstance(sort.element, BoolSort | EnumSort | RangeSort):
            return or_((eq(value, const(sort.element, v)) for v in values(sort.element) if v in s), loc)
        case (e.Ite(), e.Const()):
            return through(member, set_, value)
    return intern(e.Member, BOOL, loc, set_, value)


def insert(set_: Expr, value: Expr, loc: Loc | None = None) -> Expr:
    """`set_` with `value`."""
    sort = _set(set_, value, loc)
    if isinstance(set_, e.Const) and isinstance(value, e.Const) and contains(sort.element, value.value):
        return const(sort, set_.value | {value.value}, loc)
    return intern(e.Insert, sort, loc, set_, value)


def remove(set_: Expr, value: Expr, loc: Loc | None = None) -> Expr:
    """`set_` without `value`."""
    sort = _set(set_, value, loc)
    if isinstance(set_, e.Const) and isinstance(value, e.Const):
        return const(sort, set_.value - {value.value}, loc)
    return intern(e.Remove, sort, loc, set_, value)


def _two_sets(left: Expr, right: Expr, loc: Loc | None) -> SetSort:
    if isinstance(left.sort, SetSort) and isinstance(right.sort, SetSort):
        joined = join(left.sort, right.sort, loc)
        assert isinstance(joined, SetSort)
        return joined
    raise bad("two Sets expected", loc, left, right)


def union(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """Values in either set."""
    sort = _two_sets(left, right, loc)
    if isinstance(left, e.Const) and isinstance(right, e.Const):
        return const(sort, left.value | right.value, loc)
    return intern(e.Union, sort, loc, left, right)


def intersection(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """Values in both sets."""
    sort = _two_sets(left, right, loc)
    if isinstance(left, e.Const) and isinstance(right, e.Const):
        return const(sort, left.value & right.value, loc)
    return intern(e.Intersection, sort, loc, left, right)


def difference(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """Values in `left` and not in `right`."""
    sort = _two_sets(left, right, loc)
    if isinstance(left, e.Const) and isinstance(right, e.Const):
        return const(sort, left.value - right.value, loc)
    return intern(e.Difference, sort, loc, left, right)


def subset(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """Whether every member of `left` is in `right`."""
    _two_sets(left, right, loc)
    if isinstance(left, e.Const) and isinstance(right, e.Const):
        return truth(left.value <= right.value)
    return intern(e.Subset, BOOL, loc, left, right)


def size(set_: Expr, loc: Loc | None = None) -> Expr:
    """Number of members of a set."""
    if not isinstance(set_.sort, SetSort):
        raise bad("a Set expected", loc, set_)
    if isinstance(set_, e.Const):
        return num(len(set_.value))
    return intern(e.Size, RangeSort(0, cardinality(set_.sort.element)), loc, set_)


def bag_size(bag: Expr, loc: Loc | None = None) -> Expr:
    """Number of elements of a bag."""
    if not isinstance(bag.sort, BagSort):
        raise bad("a Bag expected", loc, bag)
    result = num(0)
    for key in values(bag.sort.index):
        result = add(result, select(bag, const(bag.sort.index, key), loc), loc)
    return result


def _never_above(left: Expr, right: Expr) -> bool:
    """Whether `left` is certainly at most `right`: both are the same term plus constants, or the sorts imply it."""
    (one, more), (other, most) = offset(left), offset(right)
    return (one is other and more <= most) or less_eq(left, right) is TRUE


def in_domain(term: Expr, sort: Sort) -> Expr:
    """The condition that `term`, of a compatible sort, is a value of `sort`; TRUE if its own sort implies it."""
    if not compatible(sort, term.sort):
        raise bad(f"a value of {sort} expected", None, term)
    return _in_domain(term, sort)


def _in_domain(term: Expr, sort: Sort) -> Expr:
    own: Any = term.sort  # of the same class as `sort`
    match sort:
        case BoolSort() | EnumSort():
            return TRUE
        case TermRange(least=least, most=most):
            ends = (own.least, own.most) if isinstance(own, TermRange) else (term, term)
            low = TRUE if _never_above(least, ends[0]) else less_eq(least, term)
            return and_((low, TRUE if _never_above(ends[1], most) else less_eq(term, most)))
        case RangeSort(lo, hi):
            low = TRUE if lo <= own.lo else less_eq(num(lo), term)
            high = TRUE if own.hi <= hi else less_eq(term, num(hi))
            return and_((low, high))
        case OptionSort(element):
            if own.element == element or (isinstance(term, e.Const) and term.value is None):
                return TRUE
            return or_((is_none(term), _in_domain(unwrap(term), element)))
        case BagSort(capacity=capacity):
            return TRUE if own.capacity <= capacity else less_eq(bag_size(term), num(capacity))
        case ArraySort(index, element):
            if own.element == element:
                return TRUE
            return and_(_in_domain(select(term, const(index, k)), element) for k in values(index))
        case RecordSort(fields):
            return TRUE if own == sort else and_(_in_domain(field(term, n), s) for n, s in fields)
        case UnionSort(cases):
            if own == sort:
                return TRUE
            return and_(or_((not_(is_case(term, n)), _in_domain(payload(term, n), s))) for n, s in cases)
        case QueueSort(element, capacity):
            fits = TRUE if own.capacity <= capacity else less_eq(length(term), num(capacity))
            if own.element == element:
                return fits
            places = map(num, range(own.capacity))
            return and_((fits, *(or_((less_eq(length(term), k), _in_domain(peek(term, k), element))) for k in places)))
        case SetSort(element):
            if own.element == element:
                return TRUE
            return and_(
                not_(member(term, const(own.element, v))) for v in values(own.element) if not contains(element, v)
            )
        case _:
            assert_never(sort)


OPERATIONS: Mapping[type[Expr], Callable[..., Expr]] = {
    e.Not: not_, e.Ite: ite, e.Eq: eq, e.Less: less, e.LessEq: less_eq,
    e.Add: add, e.Sub: sub, e.Mul: mul, e.FloorDiv: floor_div, e.Mod: mod,
    e.Select: select, e.Store: store, e.Some: some, e.IsNone: is_none, e.Unwrap: unwrap,
    e.Length: length, e.Peek: peek, e.Push: push, e.Pop: pop,
    e.Member: member, e.Insert: insert, e.Remove: remove, e.Union: union,
    e.Intersection: intersection, e.Difference: difference, e.Subset: subset, e.Size: size,
}  # fmt: skip
"""The constructors of the terms that have no parts but their operands."""


__all__ = [
    "FALSE",
    "OPERATIONS",
    "TRUE",
    "add",
    "and_",
    "bag_size",
    "const",
    "difference",
    "eq",
    "field",
    "floor_div",
    "implies",
    "in_domain",
    "insert",
    "intersection",
    "is_case",
    "is_none",
    "ite",
    "join",
    "length",
    "less",
    "less_eq",
    "make_array",
    "make_case",
    "make_record",
    "member",
    "mod",
    "mul",
    "next_",
    "not_",
    "num",
    "or_",
    "payload",
    "peek",
    "pop",
    "push",
    "remove",
    "select",
    "size",
    "some",
    "store",
    "sub",
    "subset",
    "truth",
    "union",
    "unwrap",
    "var",
    "with_field",
]
