"""Smart constructors for Booleans, integers, enumerations, options, arrays and records: see `build`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from streamproof.base.errors import Loc, ModelError
from streamproof.base.records import replace
from streamproof.system import expr as e
from streamproof.system.expr import Expr, intern
from streamproof.system.sorts import (
    BOOL,
    INFINITY,
    ArraySort,
    BagSort,
    BoolSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    UnionSort,
    Value,
    cardinality,
    compatible,
    contains,
    default,
    is_empty,
    is_scalar,
    position,
)


def const(sort: Sort, value: Value, loc: Loc | None = None) -> Expr:
    """A literal. Integers get the one-point range, so equal literals are one node."""
    if isinstance(sort, RangeSort) and type(value) is int:
        sort = _point(value)
    elif not contains(sort, value):
        raise ModelError(f"{value!r} is not a value of {sort}", loc=loc)
    return intern(e.Const, sort, loc, value)


def num(value: int) -> Expr:
    """An integer literal."""
    return intern(e.Const, _point(value), None, value)


@lru_cache(maxsize=4096, typed=True)
def _point(value: int) -> RangeSort:
    """The range that contains one integer."""
    return RangeSort(value, value)


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


def bad(what: str, loc: Loc | None, *args: Expr) -> ModelError:
    """The error for operands of wrong sorts."""
    return ModelError(f"{what}, got {' and '.join(str(a.sort) for a in args)}", loc=loc)


def not_(arg: Expr, loc: Loc | None = None) -> Expr:
    """Negation."""
    if not isinstance(arg.sort, BoolSort):
        raise bad("'not' needs a Bool", loc, arg)
    match arg:
        case e.Const(value=v):
            return truth(not v)
        case e.Not(arg=inner):
            return inner
        case _:
            return intern(e.Not, BOOL, loc, arg)


def and_(args: Iterable[Expr], loc: Loc | None = None) -> Expr:
    """Conjunction; flattens, keeps the order, removes duplicates."""
    return _connective(e.And, args, loc)


def or_(args: Iterable[Expr], loc: Loc | None = None) -> Expr:
    """Disjunction; flattens, keeps the order, removes duplicates."""
    return _connective(e.Or, args, loc)


def _connective(kind: type[e.And] | type[e.Or], args: Iterable[Expr], loc: Loc | None) -> Expr:
    unit, zero = (TRUE, FALSE) if kind is e.And else (FALSE, TRUE)
    rest = [arg for arg in args if arg is not unit]
    if not rest:
        return unit
    if len(rest) == 1 and isinstance(rest[0].sort, BoolSort):
        return rest[0]
    seen: dict[Expr, None] = {}
    denied: set[Expr] = set()
    for arg in rest:
        if not isinstance(arg.sort, BoolSort):
            raise bad("'and'/'or' need Bools", loc, arg)
        for part in arg.args if type(arg) is kind else (arg,):
            if part is zero or part in denied:
                return zero
            if type(part) is e.Not:
                if part.arg in seen:
                    return zero
                denied.add(part.arg)
            seen[part] = None
    for inner in denied:
        # x or y or not (x or y), in any flattening: the paths of a function with an early return.
        if type(inner) is kind and all(part in seen for part in inner.args):
            return zero
    kept = tuple(seen)
    return kept[0] if len(kept) == 1 else intern(kind, BOOL, loc, kept)


def implies(a: Expr, b: Expr, loc: Loc | None = None) -> Expr:
    """`a` implies `b`."""
    return or_((not_(a), b), loc)


def join(a: Sort, b: Sort, loc: Loc | None = None) -> Sort:
    """The least sort that contains the values of both; raises `ModelError` if there is none."""
    if a is b or a == b:
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
        case (BagSort(), BagSort()) if compatible(a, b):
            return a if a.capacity >= b.capacity else b
        case (ArraySort(i, x), ArraySort(_, y)) if compatible(a, b):
            return ArraySort(i, join(x, y, loc))
        case (RecordSort(f), RecordSort(g)) if compatible(a, b):
            return replace(a, fields=tuple((n, join(x, y, loc)) for (n, x), (_, y) in zip(f, g, strict=True)))
        case (UnionSort(f), UnionSort(g)) if compatible(a, b):
            return UnionSort(tuple((n, _records(x, y, loc)) for (n, x), (_, y) in zip(f, g, strict=True)))
        case _:
            raise ModelError(f"the two branches have different sorts: {a} and {b}", loc=loc)


def _records(a: RecordSort, b: RecordSort, loc: Loc | None) -> RecordSort:
    joined = join(a, b, loc)
    assert isinstance(joined, RecordSort)
    return joined


def ite(cond: Expr, then: Expr, other: Expr, loc: Loc | None = None) -> Expr:
    """`then` if `cond` else `other`."""
    if not isinstance(cond.sort, BoolSort):
        raise bad("a condition must be a Bool", loc, cond)
    if isinstance(cond, e.Const):
        return then if cond.value else other
    if then is other:
        return then
    if isinstance(cond, e.Not):
        return ite(cond.arg, other, then, loc)
    if isinstance(then, e.Ite) and then.cond is cond:
        return ite(cond, then.then, other, loc)
    if isinstance(other, e.Ite) and other.cond is cond:
        return ite(cond, then, other.other, loc)
    sort = join(then.sort, other.sort, loc)
    if isinstance(sort, BoolSort):
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
        raise bad("'==' needs two values of one sort", loc, left, right)
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
        return through(eq, left, right)
    return intern(e.Eq, BOOL, loc, left, right)


def ints(what: str, left: Expr, right: Expr, loc: Loc | None) -> tuple[RangeSort, RangeSort]:
    """The sorts of two integer operands."""
    if isinstance(left.sort, RangeSort) and isinstance(right.sort, RangeSort):
        return left.sort, right.sort
    raise bad(f"{what!r} needs two integers", loc, left, right)


def less(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """`left < right`."""
    a, b = ints("<", left, right, loc)
    if a.hi < b.lo:
        return TRUE
    if a.lo >= b.hi or left is right:
        return FALSE
    return intern(e.Less, BOOL, loc, left, right)


def less_eq(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """`left <= right`."""
    a, b = ints("<=", left, right, loc)
    if a.hi <= b.lo or left is right:
        return TRUE
    if a.lo > b.hi:
        return FALSE
    return intern(e.LessEq, BOOL, loc, left, right)


def offset(term: Expr) -> tuple[Expr | None, int]:
    """An integer term as a term (or None) plus a constant."""
    constant = 0
    while True:
        match term:
            case e.Const(value=k):
                return None, constant + k
            case e.Add(left=t, right=e.Const(value=k)) | e.Add(left=e.Const(value=k), right=t):
                term, constant = t, constant + k
            case e.Sub(left=t, right=e.Const(value=k)):
                term, constant = t, constant - k
            case _:
                return term, constant


def add(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """Sum."""
    a, b = ints("+", left, right, loc)
    if isinstance(left, e.Const) and isinstance(right, e.Const):
        return num(left.value + right.value)
    if isinstance(right, e.Const) and right.value == 0:
        return left
    if isinstance(left, e.Const) and left.value == 0:
        return right
    return intern(e.Add, RangeSort(a.lo + b.lo, a.hi + b.hi), loc, left, right)


def sub(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """Difference."""
    a, b = ints("-", left, right, loc)
    if isinstance(left, e.Const) and isinstance(right, e.Const):
        return num(left.value - right.value)
    if isinstance(right, e.Const) and right.value == 0:
        return left
    if left is right:
        return num(0)
    return intern(e.Sub, RangeSort(a.lo - b.hi, a.hi - b.lo), loc, left, right)


def mul(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """Product."""
    a, b = ints("*", left, right, loc)
    if isinstance(left, e.Const) and isinstance(right, e.Const):
        return num(left.value * right.value)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, e.Const) and one.value in (0, 1):
            return other if one.value else num(0)
    ends = [x * y if x and y else 0 for x in (a.lo, a.hi) for y in (b.lo, b.hi)]  # an infinite end times 0 is 0
    return intern(e.Mul, RangeSort(min(ends), max(ends)), loc, left, right)


def floor_div(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """Quotient, rounded down; 0 for a zero divisor."""
    a, b = ints("//", left, right, loc)
    if isinstance(left, e.Const) and isinstance(right, e.Const):
        return num(left.value // right.value if right.value else 0)
    divisors = {d for d in (b.lo, b.hi, -1, 1) if d and b.lo <= d <= b.hi}
    if INFINITY in (-a.lo, a.hi, -b.lo, b.hi):
        ends = [-INFINITY, INFINITY]
    else:
        ends = [x // d for x in (a.lo, a.hi) for d in divisors] + [0]
    return intern(e.FloorDiv, RangeSort(min(ends), max(ends)), loc, left, right)


def mod(left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """Remainder with the divisor's sign; 0 for a zero divisor."""
    a, b = ints("%", left, right, loc)
    if isinstance(left, e.Const) and isinstance(right, e.Const):
        return num(left.value % right.value if right.value else 0)
    if b.lo > 0 and a.lo >= 0 and a.hi < b.lo:
        return left
    return intern(e.Mod, RangeSort(min(0, b.lo + 1), max(0, b.hi - 1)), loc, left, right)


def _array(array: Expr, loc: Loc | None) -> ArraySort:
    if isinstance(array.sort, ArraySort):
        return array.sort
    raise bad("indexing needs an Array", loc, array)


def make_array(sort: ArraySort, elements: Iterable[Expr], loc: Loc | None = None) -> Expr:
    """An array from its elements; a constant if all elements are."""
    parts = tuple(elements)
    if len(parts) != cardinality(sort.index):
        raise ModelError(f"{sort} needs {cardinality(sort.index)} elements, got {len(parts)}", loc=loc)
    for part in parts:
        if not compatible(sort.element, part.sort):
            raise bad(f"an element of {sort} expected", loc, part)
    if all(isinstance(p, e.Const) for p in parts):
        value = tuple(p.value for p in parts if isinstance(p, e.Const))
        if contains(sort, value):
            return const(sort, value, loc)
    return intern(e.MakeArray, sort, loc, parts)


def select(array: Expr, index: Expr, loc: Loc | None = None) -> Expr:
    """Element of an array; skips writes at other constant indices."""
    sort = _array(array, loc)
    if not compatible(sort.index, index.sort):
        raise bad(f"an index of {sort} must be in {sort.index}", loc, index)
    if isinstance(index, e.Const):
        at = position(sort.index, index.value)
        if at is None:
            return const(sort.element, default(sort.element))
        while isinstance(array, e.Store) and isinstance(array.index, e.Const):
            if array.index.value == index.value:
                return array.value
            array = array.array
        match array:
            case e.Const(value=v):
                return const(sort.element, v[at], loc)
            case e.MakeArray(elements=parts):
                return parts[at]
            case e.Ite():
                below, written = _written(array)
                if below is not array and not written >> at & 1:
                    return select(below, index)
                return through(select, array, index)
    elif is_empty(sort.index):
        return const(sort.element, default(sort.element), loc)
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
        raise bad(f"an index of {sort} must be in {sort.index}", loc, index)
    if not compatible(sort.element, value.sort):
        raise bad(f"an element of {sort} expected", loc, value)
    if isinstance(index, e.Const):
        at = position(sort.index, index.value)
        if at is None:
            return array
        match array:
            case e.MakeArray(elements=parts):
                return make_array(sort, (*parts[:at], value, *parts[at + 1 :]), loc)
            case e.Const(value=v) if isinstance(value, e.Const):
                if contains(sort, new := (*v[:at], value.value, *v[at + 1 :])):
                    return const(sort, new, loc)
            case e.Store(array=inner, index=e.Const() as written) if written.value == index.value:
                return store(inner, index, value, loc)
        if isinstance(value, e.Select) and value.array is array and value.index is index:
            return array
    return intern(e.Store, sort, loc, array, index, value)


def _record(record: Expr, name: str, loc: Loc | None) -> tuple[RecordSort, int]:
    if not isinstance(record.sort, RecordSort):
        raise bad(f"'.{name}' needs a Record", loc, record)
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
            raise bad(f"field {name!r} needs {field}", loc, part)
    if all(isinstance(p, e.Const) and contains(s, p.value) for (_, s), p in zip(sort.fields, got, strict=True)):
        return const(sort, tuple(p.value for p in got if isinstance(p, e.Const)), loc)
    return intern(e.MakeRecord, sort, loc, got)


def field(record: Expr, name: str, loc: Loc | None = None) -> Expr:
    """A field of a record."""
    sort, at = _record(record, name, loc)
    while isinstance(record, e.WithField):
        if record.name == name:
            return record.value
        record = record.record
    match record:
        case e.Const(value=v):
            return const(sort.fields[at][1], v[at], loc)
        case e.MakeRecord(values=parts):
            return parts[at]
        case e.Ite():
            return through(field, record, name)
    return intern(e.Field, sort.fields[at][1], loc, record, name)


def with_field(record: Expr, name: str, value: Expr, loc: Loc | None = None) -> Expr:
    """`record` with one field replaced."""
    sort, at = _record(record, name, loc)
    if not compatible(sort.fields[at][1], value.sort):
        raise bad(f"field {name!r} needs {sort.fields[at][1]}", loc, value)
    match record:
        case e.MakeRecord(values=parts):
            return make_record(sort, (*parts[:at], value, *parts[at + 1 :]), loc)
        case e.WithField(record=inner, name=written) if written == name:
            return with_field(inner, name, value, loc)
    return intern(e.WithField, sort, loc, record, name, value)


def _union(arg: Expr, case: str, loc: Loc | None) -> UnionSort:
    if not isinstance(arg.sort, UnionSort):
        raise bad("a Union expected", loc, arg)
    if case not in arg.sort.tag.places:
        remedy = f"its cases are {', '.join(arg.sort.tag.members)}"
        raise ModelError(f"no case {case} in {arg.sort}", loc=loc, remedy=remedy)
    return arg.sort


def make_case(sort: UnionSort, case: str, payload: Expr, loc: Loc | None = None) -> Expr:
    """A value of a union from a case and the record of its fields."""
    if not compatible(sort.payload(case), payload.sort):
        raise bad(f"case {case} needs {sort.payload(case)}", loc, payload)
    if isinstance(payload, e.Const) and contains(sort.payload(case), payload.value):
        return const(sort, (case, payload.value), loc)
    return intern(e.MakeCase, sort, loc, case, payload)


def is_case(arg: Expr, case: str, loc: Loc | None = None) -> Expr:
    """Whether the value of a union is of this case."""
    sort = _union(arg, case, loc)
    match arg:
        case e.Const(value=v):
            return truth(v[0] == case)
        case e.MakeCase(case=own):
            return truth(own == case)
        case e.Ite():
            return through(is_case, arg, case)
    return TRUE if len(sort.cases) == 1 else intern(e.IsCase, BOOL, loc, arg, case)


def payload(arg: Expr, case: str, loc: Loc | None = None) -> Expr:
    """The fields of a case as a record; the record's default in other cases."""
    record = _union(arg, case, loc).payload(case)
    match arg:
        case e.Const(value=v):
            return const(record, v[1] if v[0] == case else default(record), loc)
        case e.MakeCase(case=own, payload=inner):
            return inner if own == case else const(record, default(record), loc)
        case e.Ite():
            return through(payload, arg, case)
    return intern(e.Payload, record, loc, arg, case)


def some(arg: Expr, loc: Loc | None = None) -> Expr:
    """A present option."""
    if isinstance(arg, e.Const):
        return intern(e.Const, OptionSort(arg.sort), loc, arg.value)
    return intern(e.Some, OptionSort(arg.sort), loc, arg)


def is_none(arg: Expr, loc: Loc | None = None) -> Expr:
    """Whether an option is absent."""
    if not isinstance(arg.sort, OptionSort):
        raise bad("'is None' needs an Option", loc, arg)
    if is_empty(arg.sort.element):
        return TRUE
    match arg:
        case e.Const(value=v):
            return truth(v is None)
        case e.Some():
            return FALSE
        case e.Ite():
            return through(is_none, arg)
    return intern(e.IsNone, BOOL, loc, arg)


def unwrap(arg: Expr, loc: Loc | None = None) -> Expr:
    """The value of an option; the default when absent."""
    if not isinstance(arg.sort, OptionSort):
        raise bad("unwrapping needs an Option", loc, arg)
    inner = arg.sort.element
    if is_empty(inner):
        return const(inner, default(inner), loc)
    match arg:
        case e.Const(value=v):
            return const(inner, default(inner) if v is None else v, loc)
        case e.Some(arg=x):
            return x
    return intern(e.Unwrap, inner, loc, arg)


@lru_cache(maxsize=1 << 18)
def through(read: Callable[..., Expr], whole: e.Ite, *args: Any) -> Expr:
    """A read of a conditional: the conditional of the reads.

    The branches of sequential updates share subterms, so results are cached: otherwise n updates in sequence cost 2^n reads.
    """
    return ite(whole.cond, read(whole.then, *args), read(whole.other, *args), whole.loc)


@lru_cache(maxsize=1 << 16)
def _written(array: Expr) -> tuple[Expr, int]:
    """The array below all writes at constant indices, in either branch of conditionals, and the written positions as a
    bit mask.

    At every other index, `array` has the elements of the array below.
    """
    written = 0
    while isinstance(array, e.Store) and isinstance(array.index, e.Const):
        assert isinstance(array.sort, ArraySort)
        written |= 1 << (position(array.sort.index, array.index.value) or 0)
        array = array.array
    if isinstance(array, e.Ite):
        (below, then), (other_below, other) = _written(array.then), _written(array.other)
        if below is other_below:
            return below, written | then | other
    return array, written
