"""Smart constructors: the only way to make expressions. They check sorts, intern, and simplify as they build.

Simplification is local and keeps the meaning of the total semantics in `expr` exactly: constants fold, trivial
connectives collapse, comparisons that the operand intervals decide disappear, reads cancel against writes at known indices.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from streamproof.system import expr as e
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Expr, intern
from streamproof.system.sorts import (
    BOOL,
    ArraySort,
    BoolSort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    Value,
    cardinality,
    compatible,
    contains,
    default,
    is_scalar,
    position,
    values,
)


def const(sort: Sort, value: Value, loc: Loc | None = None) -> Expr:
    """A literal. Integers get the one-point range, so equal literals are one node."""
    if isinstance(sort, RangeSort):
        sort = RangeSort(value, value)
    elif not contains(sort, value):
        raise ModelError(f"{value!r} is not a value of {sort}", loc=loc)
    return intern(e.Const, sort, loc, value)


def num(value: int) -> Expr:
    """An integer literal."""
    return intern(e.Const, RangeSort(value, value), None, value)


TRUE = const(BOOL, True)
FALSE = const(BOOL, False)


def truth(value: bool) -> Expr:
    """A Boolean literal."""
    return TRUE if value else FALSE


def var(name: str, sort: Sort, loc: Loc | None = None) -> Expr:
    """The current value of a state variable."""
    return intern(e.Var, sort, loc, name)


def next_(name: str, sort: Sort, loc: Loc | None = None) -> Expr:
    """The value of a state variable after the step."""
    return intern(e.Next, sort, loc, name)


def _bad(what: str, loc: Loc | None, *args: Expr) -> ModelError:
    return ModelError(f"{what}, got {' and '.join(str(a.sort) for a in args)}", loc=loc)


def not_(arg: Expr, loc: Loc | None = None) -> Expr:
    """Negation."""
    if arg.sort != BOOL:
        raise _bad("'not' needs a Bool", loc, arg)
    match arg:
        case e.Const(value=v):
            return truth(not v)
        case e.Not(arg=inner):
            return inner
        case _:
            return intern(e.Not, BOOL, loc, arg)


def and_(args: Iterable[Expr], loc: Loc | None = None) -> Expr:
    """Conjunction; flattens, keeps the order, drops repeats."""
    return _connective(e.And, tuple(args), loc)


def or_(args: Iterable[Expr], loc: Loc | None = None) -> Expr:
    """Disjunction; flattens, keeps the order, drops repeats."""
    return _connective(e.Or, tuple(args), loc)


def _connective(kind: type[e.And] | type[e.Or], args: tuple[Expr, ...], loc: Loc | None) -> Expr:
    unit, zero = (TRUE, FALSE) if kind is e.And else (FALSE, TRUE)
    seen: dict[Expr, None] = {}
    for arg in args:
        if arg.sort != BOOL:
            raise _bad("'and'/'or' need Bools", loc, arg)
        for part in arg.args if isinstance(arg, e.And | e.Or) and type(arg) is kind else (arg,):
            if part is zero or not_(part) in seen:
                return zero
            if part is not unit:
                seen[part] = None
    if not seen:
        return unit
    for part in seen:
        # x or y or not (x or y), however it was flattened: the paths of a function that returns early on one of them.
        if isinstance(part, e.Not) and type(part.arg) is kind and all(inner in seen for inner in part.arg.args):
            return zero
    kept = tuple(seen)
    return kept[0] if len(kept) == 1 else intern(kind, BOOL, loc, kept)


def implies(a: Expr, b: Expr, loc: Loc | None = None) -> Expr:
    """`a` implies `b`."""
    return or_((not_(a), b), loc)


def join(a: Sort, b: Sort, loc: Loc | None = None) -> Sort:
    """The smallest sort that has the values of both; raises `ModelError` when the two do not mix."""
    if a == b:
        return a
    match a, b:
        case (RangeSort(l1, h1), RangeSort(l2, h2)):
            return RangeSort(min(l1, l2), max(h1, h2))
        case (OptionSort(x), OptionSort(y)):
            return OptionSort(join(x, y, loc))
        case (SetSort(x), SetSort(y)):
            return SetSort(join(x, y, loc))
        case (QueueSort(x, m), QueueSort(y, n)):
            return QueueSort(join(x, y, loc), max(m, n))
        case (ArraySort(i, x), ArraySort(j, y)) if i == j:
            return ArraySort(i, join(x, y, loc))
        case (RecordSort(f), RecordSort(g)) if compatible(a, b):
            return RecordSort(tuple((n, join(x, y, loc)) for (n, x), (_, y) in zip(f, g, strict=True)))
        case _:
            raise ModelError(f"the two branches have different sorts: {a} and {b}", loc=loc)


def ite(cond: Expr, then: Expr, other: Expr, loc: Loc | None = None) -> Expr:
    """`then` if `cond` else `other`."""
    if cond.sort != BOOL:
        raise _bad("a condition must be a Bool", loc, cond)
    if isinstance(cond, e.Const):
        return then if cond.value else other
    if then is other:
        return then
    if isinstance(cond, e.Not):
        return ite(cond.arg, other, then, loc)
    sort = join(then.sort, other.sort, loc)
    if sort == BOOL:
        if then is TRUE:
            return or_((cond, other), loc)
        if then is FALSE:
            return and_((not_(cond), other), loc)
        if other is TRUE:
            return or_((not_(cond), then), loc)
        if other is FALSE:
            return and_((cond, then), loc)
    return intern(e.Ite, sort, loc, cond, then, other)


def eq(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """Equality."""
    if not compatible(left.sort, right.sort):
        raise _bad("'==' needs two values of one sort", loc, left, right)
    if left is right:
        return TRUE
    match left, right:
        case (e.Const(value=a), e.Const(value=b)):
            return truth(a == b)
        case (e.Const(), _):
            return eq(right, left, loc)
        case (_, e.Const(value=True)) if left.sort == BOOL:
            return left
        case (_, e.Const(value=False)) if left.sort == BOOL:
            return not_(left)
        case (_, e.Const(value=None)):
            return is_none(left, loc)
    if isinstance(left.sort, RangeSort) and isinstance(right.sort, RangeSort):
        a, b = left.sort, right.sort
        if a.hi < b.lo or b.hi < a.lo:
            return FALSE
    if isinstance(left, e.Ite) and isinstance(right, e.Const) and is_scalar(left.sort):
        return _eq_through(left, right)
    return intern(e.Eq, BOOL, loc, left, right)


def _ints(what: str, left: Expr, right: Expr, loc: Loc | None) -> tuple[RangeSort, RangeSort]:
    if isinstance(left.sort, RangeSort) and isinstance(right.sort, RangeSort):
        return left.sort, right.sort
    raise _bad(f"{what!r} needs two integers", loc, left, right)


def less(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """`left < right`."""
    a, b = _ints("<", left, right, loc)
    if a.hi < b.lo:
        return TRUE
    if a.lo >= b.hi or left is right:
        return FALSE
    return intern(e.Less, BOOL, loc, left, right)


def less_eq(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """`left <= right`."""
    a, b = _ints("<=", left, right, loc)
    if a.hi <= b.lo or left is right:
        return TRUE
    if a.lo > b.hi:
        return FALSE
    return intern(e.LessEq, BOOL, loc, left, right)


def add(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """Sum."""
    a, b = _ints("+", left, right, loc)
    if isinstance(left, e.Const) and isinstance(right, e.Const):
        return num(left.value + right.value)
    if isinstance(right, e.Const) and right.value == 0:
        return left
    if isinstance(left, e.Const) and left.value == 0:
        return right
    return intern(e.Add, RangeSort(a.lo + b.lo, a.hi + b.hi), loc, left, right)


def sub(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """Difference."""
    a, b = _ints("-", left, right, loc)
    if isinstance(left, e.Const) and isinstance(right, e.Const):
        return num(left.value - right.value)
    if isinstance(right, e.Const) and right.value == 0:
        return left
    if left is right:
        return num(0)
    return intern(e.Sub, RangeSort(a.lo - b.hi, a.hi - b.lo), loc, left, right)


def mul(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """Product."""
    a, b = _ints("*", left, right, loc)
    if isinstance(left, e.Const) and isinstance(right, e.Const):
        return num(left.value * right.value)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, e.Const) and one.value in (0, 1):
            return other if one.value else num(0)
    ends = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    return intern(e.Mul, RangeSort(min(ends), max(ends)), loc, left, right)


def floor_div(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """Quotient, rounded down; 0 for a zero divisor."""
    a, b = _ints("//", left, right, loc)
    if isinstance(left, e.Const) and isinstance(right, e.Const):
        return num(left.value // right.value if right.value else 0)
    divisors = {d for d in (b.lo, b.hi, -1, 1) if d and b.lo <= d <= b.hi}
    ends = [x // d for x in (a.lo, a.hi) for d in divisors] + [0]
    return intern(e.FloorDiv, RangeSort(min(ends), max(ends)), loc, left, right)


def mod(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """Remainder with the divisor's sign; 0 for a zero divisor."""
    a, b = _ints("%", left, right, loc)
    if isinstance(left, e.Const) and isinstance(right, e.Const):
        return num(left.value % right.value if right.value else 0)
    if b.lo > 0 and a.lo >= 0 and a.hi < b.lo:
        return left
    return intern(e.Mod, RangeSort(min(0, b.lo + 1), max(0, b.hi - 1)), loc, left, right)


def _array(array: Expr, loc: Loc | None) -> ArraySort:
    if isinstance(array.sort, ArraySort):
        return array.sort
    raise _bad("indexing needs an Array", loc, array)


def make_array(sort: ArraySort, elements: Iterable[Expr], loc: Loc | None = None) -> Expr:
    """An array from its elements; a constant when all of them are."""
    parts = tuple(elements)
    if len(parts) != cardinality(sort.index):
        raise ModelError(f"{sort} needs {cardinality(sort.index)} elements, got {len(parts)}", loc=loc)
    for part in parts:
        if not compatible(sort.element, part.sort):
            raise _bad(f"an element of {sort} expected", loc, part)
    if all(isinstance(p, e.Const) and contains(sort.element, p.value) for p in parts):
        return const(sort, tuple(p.value for p in parts if isinstance(p, e.Const)), loc)
    return intern(e.MakeArray, sort, loc, parts)


def select(array: Expr, index: Expr, loc: Loc | None = None) -> Expr:
    """Element of an array; looks through writes at other known indices."""
    sort = _array(array, loc)
    if not compatible(sort.index, index.sort):
        raise _bad(f"an index of {sort} must be in {sort.index}", loc, index)
    if isinstance(index, e.Const):
        at = position(sort.index, index.value)
        if at is None:
            return const(sort.element, default(sort.element))
        match array:
            case e.Const(value=v):
                return const(sort.element, v[at], loc)
            case e.MakeArray(elements=parts):
                return parts[at]
            case e.Store(array=inner, index=e.Const() as written, value=value):
                return value if written.value == index.value else select(inner, index, loc)
            case e.Ite():
                return _select_through(array, index)
    elif isinstance(array, e.Store) and array.index is index and _inside(sort, index):
        return array.value
    return intern(e.Select, sort.element, loc, array, index)


def _inside(sort: ArraySort, index: Expr) -> bool:
    inner, outer = index.sort, sort.index
    if isinstance(inner, RangeSort) and isinstance(outer, RangeSort):
        return outer.lo <= inner.lo and inner.hi <= outer.hi
    return inner == outer


def store(array: Expr, index: Expr, value: Expr, loc: Loc | None = None) -> Expr:
    """`array` with one element replaced."""
    sort = _array(array, loc)
    if not compatible(sort.index, index.sort):
        raise _bad(f"an index of {sort} must be in {sort.index}", loc, index)
    if not compatible(sort.element, value.sort):
        raise _bad(f"an element of {sort} expected", loc, value)
    if isinstance(index, e.Const):
        at = position(sort.index, index.value)
        if at is None:
            return array
        match array:
            case e.MakeArray(elements=parts):
                return make_array(sort, (*parts[:at], value, *parts[at + 1 :]), loc)
            case e.Const(value=v) if isinstance(value, e.Const) and contains(sort.element, value.value):
                return const(sort, (*v[:at], value.value, *v[at + 1 :]), loc)
            case e.Store(array=inner, index=e.Const() as written) if written.value == index.value:
                return store(inner, index, value, loc)
        if isinstance(value, e.Select) and value.array is array and value.index is index:
            return array
    return intern(e.Store, sort, loc, array, index, value)


def _record(record: Expr, name: str, loc: Loc | None) -> tuple[RecordSort, int]:
    if not isinstance(record.sort, RecordSort):
        raise _bad(f"'.{name}' needs a Record", loc, record)
    try:
        return record.sort, record.sort.index(name)
    except KeyError:
        names = ", ".join(n for n, _ in record.sort.fields)
        raise ModelError(f"no field {name!r} in {record.sort}", loc=loc, remedy=f"its fields are {names}") from None


def make_record(sort: RecordSort, parts: Iterable[Expr], loc: Loc | None = None) -> Expr:
    """A record from its field values, in field order."""
    got = tuple(parts)
    for (name, field), part in zip(sort.fields, got, strict=True):
        if not compatible(field, part.sort):
            raise _bad(f"field {name!r} needs {field}", loc, part)
    if all(isinstance(p, e.Const) and contains(s, p.value) for (_, s), p in zip(sort.fields, got, strict=True)):
        return const(sort, tuple(p.value for p in got if isinstance(p, e.Const)), loc)
    return intern(e.MakeRecord, sort, loc, got)


def field(record: Expr, name: str, loc: Loc | None = None) -> Expr:
    """A field of a record."""
    sort, at = _record(record, name, loc)
    match record:
        case e.Const(value=v):
            return const(sort.fields[at][1], v[at], loc)
        case e.MakeRecord(values=parts):
            return parts[at]
        case e.WithField(record=inner, name=written, value=value):
            return value if written == name else field(inner, name, loc)
        case e.Ite():
            return _field_through(record, name)
    return intern(e.Field, sort.fields[at][1], loc, record, name)


def with_field(record: Expr, name: str, value: Expr, loc: Loc | None = None) -> Expr:
    """`record` with one field replaced."""
    sort, at = _record(record, name, loc)
    if not compatible(sort.fields[at][1], value.sort):
        raise _bad(f"field {name!r} needs {sort.fields[at][1]}", loc, value)
    match record:
        case e.MakeRecord(values=parts):
            return make_record(sort, (*parts[:at], value, *parts[at + 1 :]), loc)
        case e.WithField(record=inner, name=written) if written == name:
            return with_field(inner, name, value, loc)
    return intern(e.WithField, sort, loc, record, name, value)


def some(arg: Expr, loc: Loc | None = None) -> Expr:
    """A present option."""
    if isinstance(arg, e.Const):
        return intern(e.Const, OptionSort(arg.sort), loc, arg.value)
    return intern(e.Some, OptionSort(arg.sort), loc, arg)


def is_none(arg: Expr, loc: Loc | None = None) -> Expr:
    """Whether an option is absent."""
    if not isinstance(arg.sort, OptionSort):
        raise _bad("'is None' needs an Option", loc, arg)
    match arg:
        case e.Const(value=v):
            return truth(v is None)
        case e.Some():
            return FALSE
        case e.Ite():
            return _is_none_through(arg)
    return intern(e.IsNone, BOOL, loc, arg)


def unwrap(arg: Expr, loc: Loc | None = None) -> Expr:
    """The value of an option; the default when absent."""
    if not isinstance(arg.sort, OptionSort):
        raise _bad("unwrapping needs an Option", loc, arg)
    inner = arg.sort.element
    match arg:
        case e.Const(value=v):
            return const(inner, default(inner) if v is None else v, loc)
        case e.Some(arg=x):
            return x
    return intern(e.Unwrap, inner, loc, arg)


def _queue(queue: Expr, what: str, loc: Loc | None) -> QueueSort:
    if isinstance(queue.sort, QueueSort):
        return queue.sort
    raise _bad(f"{what} needs a Queue", loc, queue)


def length(queue: Expr, loc: Loc | None = None) -> Expr:
    """Number of elements in a queue."""
    sort = _queue(queue, "length", loc)
    if isinstance(queue, e.Const):
        return num(len(queue.value))
    return intern(e.Length, RangeSort(0, sort.capacity), loc, queue)


def peek(queue: Expr, index: Expr, loc: Loc | None = None) -> Expr:
    """Element of a queue, 0 being the head; the default outside."""
    sort = _queue(queue, "peek", loc)
    _ints("index", index, index, loc)
    if isinstance(queue, e.Const) and isinstance(index, e.Const):
        inside = 0 <= index.value < len(queue.value)
        return const(sort.element, queue.value[index.value] if inside else default(sort.element), loc)
    return intern(e.Peek, sort.element, loc, queue, index)


def push(queue: Expr, value: Expr, loc: Loc | None = None) -> Expr:
    """`queue` with `value` at the end; unchanged when full."""
    sort = _queue(queue, "push", loc)
    if not compatible(sort.element, value.sort):
        raise _bad(f"an element of {sort} expected", loc, value)
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
        raise _bad("a Set expected", loc, set_)
    if not compatible(set_.sort.element, value.sort):
        raise _bad(f"a member of {set_.sort} expected", loc, value)
    return set_.sort


def member(set_: Expr, value: Expr, loc: Loc | None = None) -> Expr:
    """Whether `value` is in `set_`."""
    sort = _set(set_, value, loc)
    match set_, value:
        case (e.Const(value=s), e.Const(value=v)):
            return truth(v in s)
        case (e.Const(value=s), _) if isinstance(sort.element, BoolSort | EnumSort | RangeSort):
            return or_((eq(value, const(sort.element, v)) for v in values(sort.element) if v in s), loc)
        case (e.Insert(set_=inner, value=x), e.Const()) if isinstance(x, e.Const):
            return TRUE if x.value == value.value else member(inner, value, loc)
        case (e.Remove(set_=inner, value=x), e.Const()) if isinstance(x, e.Const):
            return FALSE if x.value == value.value else member(inner, value, loc)
        case (e.Ite(), e.Const()):
            return _member_through(set_, value)
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


# A read of a conditional is the conditional of the reads. The branches of sequential updates share their subterms, so
# these five remember their answers: without that, n updates in sequence cost 2^n reads.


@lru_cache(maxsize=1 << 16)
def _eq_through(left: e.Ite, right: e.Const) -> Expr:
    return ite(left.cond, eq(left.then, right), eq(left.other, right), left.loc)


@lru_cache(maxsize=1 << 16)
def _select_through(array: e.Ite, index: e.Const) -> Expr:
    return ite(array.cond, select(array.then, index), select(array.other, index), array.loc)


@lru_cache(maxsize=1 << 16)
def _field_through(record: e.Ite, name: str) -> Expr:
    return ite(record.cond, field(record.then, name), field(record.other, name), record.loc)


@lru_cache(maxsize=1 << 16)
def _is_none_through(arg: e.Ite) -> Expr:
    return ite(arg.cond, is_none(arg.then), is_none(arg.other), arg.loc)


@lru_cache(maxsize=1 << 16)
def _member_through(set_: e.Ite, value: e.Const) -> Expr:
    return ite(set_.cond, member(set_.then, value), member(set_.other, value), set_.loc)


def _two_sets(left: Expr, right: Expr, loc: Loc | None) -> SetSort:
    if isinstance(left.sort, SetSort) and isinstance(right.sort, SetSort):
        joined = join(left.sort, right.sort, loc)
        assert isinstance(joined, SetSort)
        return joined
    raise _bad("two Sets expected", loc, left, right)


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
        raise _bad("a Set expected", loc, set_)
    if isinstance(set_, e.Const):
        return num(len(set_.value))
    return intern(e.Size, RangeSort(0, cardinality(set_.sort.element)), loc, set_)


def in_domain(term: Expr, sort: Sort) -> Expr:
    """Whether the value of `term` is a value of `sort`; TRUE when its own sort already says so."""
    match term.sort, sort:
        case (RangeSort(lo, hi), RangeSort(lo2, hi2)):
            low = TRUE if lo2 <= lo else less_eq(num(lo2), term)
            high = TRUE if hi <= hi2 else less_eq(term, num(hi2))
            return and_((low, high))
        case (OptionSort(x), OptionSort(y)):
            return (
                TRUE
                if isinstance(term, e.Const) and term.value is None
                else or_((is_none(term), in_domain(unwrap(term), y)))
                if x != y
                else TRUE
            )
        case (ArraySort(i, x), ArraySort(_, y)):
            return TRUE if x == y else and_(in_domain(select(term, const(i, k)), y) for k in values(i))
        case (RecordSort(f), RecordSort(g)):
            return and_(in_domain(field(term, n), s) for n, s in g) if f != g else TRUE
        case (QueueSort(x, m), QueueSort(y, n)):
            fits = TRUE if m <= n else less_eq(length(term), num(n))
            inside = (
                TRUE
                if x == y
                else and_(or_((less_eq(length(term), num(k)), in_domain(peek(term, num(k)), y))) for k in range(m))
            )
            return and_((fits, inside))
        case (SetSort(x), SetSort(y)):
            if x == y:
                return TRUE
            return and_(not_(member(term, const(x, v))) for v in values(x) if not contains(y, v))
        case _:
            return TRUE
