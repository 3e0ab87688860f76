"""Python's operators on terms: arithmetic, set operators, comparison, membership, equality."""

from __future__ import annotations

import ast
import enum
import operator
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from streamproof.base.errors import Loc, ModelError, StreamproofError
from streamproof.language.free.symbolic_parameters import SymbolicRange, depends, sort_of, watch
from streamproof.language.lower import sequences
from streamproof.language.lower.cases import Case
from streamproof.language.lower.conversion import expect_faithful, is_faithful
from streamproof.language.lower.elements import distinct, elements, refuse_iterator, refuse_lazy
from streamproof.language.lower.lift import alike, bag_inside, compared, condition_of, lifted, natural, recast
from streamproof.language.lower.lowering_context import Context
from streamproof.language.lower.lvalues import (
    as_tuple,
    contained_value,
    convert,
    dereference,
    is_tuple,
    resolve_deep,
    unwrap_option,
)
from streamproof.language.lower.sequences import count, ranks
from streamproof.language.lower.terms import (
    Cases,
    HeapCell,
    NewCase,
    PartialList,
    Ref,
    Several,
    Term,
    describe,
    is_expr,
    known,
    simple,
    symbolic,
)
from streamproof.system import build as b
from streamproof.system.expr import Expr, Node
from streamproof.system.sorts import (
    BOOL,
    ArraySort,
    BagSort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    SetSort,
    TermRange,
    cardinality,
    compatible,
    is_scalar,
    values,
)
from streamproof.transform.unbounded import Undecided

HOST_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.MatMult: operator.matmul,
}
SYMBOLS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Div: "/", ast.Pow: "**",
    ast.BitOr: "|", ast.BitAnd: "&", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@",
}  # fmt: skip
INTEGER: dict[type[ast.operator], Callable[[Expr, Expr, Loc | None], Expr]] = {
    ast.Add: b.add,
    ast.Sub: b.sub,
    ast.Mult: b.mul,
    ast.FloorDiv: b.floor_div,
    ast.Mod: b.mod,
}
SETS: dict[type[ast.operator], Callable[[Expr, Expr, Loc | None], Expr]] = {
    ast.BitOr: b.union,
    ast.BitAnd: b.intersection,
    ast.Sub: b.difference,
}
HOST_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
ASKED_LIMIT = 4096
"""Maximum number of values of a sort for which a container's own `__contains__` is evaluated."""
CERTAIN = (IndexError, KeyError, ZeroDivisionError)
"""Python exceptions that depend on values only: on a path, they are model errors."""


def host(context: Context, run: Callable[[], Any], loc: Loc, *operands: Any) -> Any:
    """The result of an ordinary Python operation on constant operands; special methods of one get the others."""
    expect_no_model(operands, loc)
    try:
        return run()
    except Undecided as error:
        if error.loc is not None and error.loc.file == loc.file:
            raise
        raise Undecided(error.message, loc=loc, remedy=error.remedy) from None  # no user function was called
    except StreamproofError:
        raise
    except CERTAIN as error:
        context.check(b.TRUE, f"{type(error).__name__}: {error}", loc)
    except Exception as error:
        raise ModelError(
            f"{type(error).__name__}: {error}",
            loc=loc,
            remedy="nothing here depends on the state: this is ordinary Python, run while the model is read",
        ) from error


def expect_no_model(values: Iterable[Any], loc: Loc) -> None:
    """Raises `Undecided` for a model with free parameters, as another operand than its attributes."""
    if watch() is not None and any(map(depends, values)):
        raise Undecided(
            "an operation of ordinary Python on a model that has a free parameter",
            loc=loc,
            remedy="name its attributes",
        )


def integer(context: Context, value: Term, loc: Loc, text: str) -> Expr:
    """`value` as an integer: options are unwrapped with a check, truth values convert to 0 and 1, as in Python."""
    term = natural(dereference(context, value), loc)
    if term is not None and isinstance(term.sort, OptionSort):
        term = unwrap_option(context, term, loc, text)
    if term is not None and term.sort == BOOL:
        term = b.ite(term, b.num(1), b.num(0), loc)
    if term is None or not isinstance(term.sort, RangeSort):
        is_set = term is not None and isinstance(term.sort, SetSort)
        remedy = "sets have | & - and <=" if is_set else "only integers can be computed with"
        raise ModelError(f"an integer expected, got {describe(value)}", loc=loc, remedy=remedy)
    return term


def binary(context: Context, op: ast.operator, left: Term, right: Term, loc: Loc, texts: tuple[str, str]) -> Term:
    """`left op right`."""
    if not symbolic(left) and not symbolic(right):
        return host(context, lambda: HOST_BINARY[type(op)](left, right), loc, left, right)
    if isinstance(op, ast.Add) and is_tuple(left) and is_tuple(right):
        one, two = as_tuple(context, left, loc, texts[0]), as_tuple(context, right, loc, texts[1])
        if type(one) is tuple and type(two) is tuple:
            return one + two
    left, right = contained_value(context, left, loc, texts[0]), contained_value(context, right, loc, texts[1])
    queues = [x for x in (left, right) if isinstance(x, Ref | Node) and isinstance(x.sort, QueueSort)]
    if isinstance(op, ast.Add) and queues:
        return _joined(context, left, right, loc)
    if isinstance(left, HeapCell) or isinstance(right, HeapCell):
        return _lists(context, op, left, right, loc)
    left, right = dereference(context, left), dereference(context, right)
    if type(op) in SETS and (sets := _two_sets(context, left, right, loc, texts)) is not None:
        return SETS[type(op)](*sets, loc)
    if _is_local_set(left) or _is_local_set(right):
        return _local_sets(context, op, left, right, loc)
    make = INTEGER.get(type(op))
    if make is None:
        raise ModelError(
            f"'{SYMBOLS[type(op)]}' is not part of the language for values of the state",
            loc=loc,
            remedy="integers have + - * // %, sets have | & -",
        )
    a, c = integer(context, left, loc, texts[0]), integer(context, right, loc, texts[1])
    if isinstance(op, ast.FloorDiv | ast.Mod):
        context.check(b.eq(c, b.num(0)), f"division by zero: {texts[1]} is 0", loc, (texts[1], c))
    return make(a, c, loc)


def _two_sets(context: Context, left: Term, right: Term, loc: Loc, texts: tuple[str, str]) -> tuple[Expr, Expr] | None:
    """Two operands as sets of one sort, if one of them is a set of the state."""
    sets = [x.sort for x in (left, right) if is_expr(x) and isinstance(x.sort, SetSort)]
    if not sets:
        return None
    wide = sets[-1] if lifted(sets[0], sets[-1]) is not None else sets[0]
    return convert(context, left, wide, loc, texts[0]), convert(context, right, wide, loc, texts[1])


def _is_local_set(value: Term) -> bool:
    return isinstance(value, Several) and not value.once


def _expect_faithful(*sides: Term, loc: Loc) -> None:
    """Raises `ModelError` for a host value whose own special methods would not be called here."""
    for side in sides:
        if not symbolic(side):
            expect_faithful(side, loc)


def _local_sets(context: Context, op: ast.operator, left: Term, right: Term, loc: Loc) -> Term:
    _expect_faithful(left, right, loc=loc)
    for side in (left, right):
        if not (_is_local_set(side) or isinstance(side, AbstractSet)) or type(op) not in SETS:
            raise ModelError(
                f"'{SYMBOLS[type(op)]}' does not work on {describe(left)} and {describe(right)}",
                loc=loc,
                remedy="sets have | & - with other sets",
            )
    one, two = elements(context, left, loc), elements(context, right, loc)
    if isinstance(op, ast.BitOr):
        return distinct(context, [*one, *two], equal, loc)
    kept = []
    for there, v in one:
        common = condition_of(contained(context, v, right, loc, ("element", "set")))
        kept.append((b.and_((there, common if isinstance(op, ast.BitAnd) else b.not_(common))), v))
    return distinct(context, kept, equal, loc)


def _lists(context: Context, op: ast.operator, left: Term, right: Term, loc: Loc) -> Term:
    _expect_faithful(left, right, loc=loc)
    one, two = (context.content(x) if isinstance(x, HeapCell) else x for x in (left, right))
    if isinstance(op, ast.Add) and (isinstance(one, PartialList) or isinstance(two, PartialList)):
        return _joined(context, left, right, loc)
    if (
        isinstance(op, ast.Add)
        and isinstance(left, HeapCell)
        and isinstance(right, HeapCell | list)
        and isinstance(two, tuple | list)
    ):
        if isinstance(one, tuple):
            return context.allocate((*one, *two))
    elif isinstance(op, ast.Add) and isinstance(right, HeapCell) and isinstance(one, list) and isinstance(two, tuple):
        return context.allocate((*one, *two))
    elif isinstance(op, ast.Mult) and isinstance(one, tuple) and isinstance(right, int):
        return context.allocate(one * right)
    raise ModelError(
        f"'{SYMBOLS[type(op)]}' does not work on {describe(left)} and {describe(right)}",
        loc=loc,
        remedy="two lists can be added, a list can be repeated a known number of times",
    )


def _joined(context: Context, left: Term, right: Term, loc: Loc) -> Term:
    """The list of the elements of two queues or lists, one of which has a length that depends on the state."""
    for side in (left, right):
        queue = isinstance(side, Ref | Node) and isinstance(side.sort, QueueSort)
        lists = isinstance(side, list) or (
            isinstance(side, HeapCell) and not isinstance(context.content(side), Mapping)
        )
        if not queue and not lists:
            raise ModelError(
                f"'+' does not work on {describe(left)} and {describe(right)}",
                loc=loc,
                remedy="queues and lists can be added to each other",
            )
    return context.allocate(PartialList((*elements(context, left, loc), *elements(context, right, loc))))


def compare(context: Context, op: ast.cmpop, left: Term, right: Term, loc: Loc, texts: tuple[str, str]) -> Term:
    """One comparison operator."""
    if isinstance(op, ast.In | ast.NotIn):
        found = contained(context, left, right, loc, texts)
        return found if isinstance(op, ast.In) else negated(found, loc)
    if isinstance(op, ast.Is | ast.IsNot):
        same = _identical(context, left, right, loc)
        return same if isinstance(op, ast.Is) else negated(same, loc)
    if not symbolic(left) and not symbolic(right):
        return host(context, lambda: HOST_COMPARE[type(op)](left, right), loc, left, right)
    if isinstance(op, ast.Eq | ast.NotEq):
        equals = equal(context, left, right, loc)
        return equals if isinstance(op, ast.Eq) else negated(equals, loc)
    left, right = (
        contained_value(context, dereference(context, side), loc, shown)
        for side, shown in zip((left, right), texts, strict=True)
    )
    if (sets := _two_sets(context, left, right, loc, texts)) is not None:
        return _subset(op, *sets, loc)
    for side in (left, right):
        if is_expr(side) and isinstance(side.sort, BagSort):
            return _included(context, op, left, right, side.sort, loc)
    if _is_local_set(left) or _is_local_set(right):
        return _local_subset(context, op, left, right, loc)
    if is_tuple(left) and is_tuple(right):
        one, two = as_tuple(context, left, loc, texts[0]), as_tuple(context, right, loc, texts[1])
        return _lexicographic(context, op, one, two, loc, texts)
    a, c = integer(context, left, loc, texts[0]), integer(context, right, loc, texts[1])
    low, high = (c, a) if isinstance(op, ast.Gt | ast.GtE) else (a, c)
    return (b.less_eq if isinstance(op, ast.LtE | ast.GtE) else b.less)(low, high, loc)


def _is_number(value: Term) -> bool:
    return type(value) is int or (is_expr(value) and isinstance(value.sort, RangeSort))


def _lexicographic(context: Context, op: ast.cmpop, left: Term, right: Term, loc: Loc, texts: tuple[str, str]) -> Term:
    """The comparison of two tuples: that of the first elements that differ."""
    for at, side in enumerate((left, right)):
        if isinstance(side, Cases):
            ways = [(one, right) if at == 0 else (left, one) for one in (side.then, side.other)]
            then, other = (partial(_lexicographic, context, op, *way, loc, texts) for way in ways)
            return context.conditional(side.cond, then, other, loc)
    if not left or not right:
        return HOST_COMPARE[type(op)](len(left), len(right))
    parts = (f"a part of {texts[0]}", f"a part of {texts[1]}")
    if len(left) == len(right) == 1 and _is_number(left[0]) and _is_number(right[0]):
        return compare(context, op, left[0], right[0], loc, parts)
    same = condition_of(equal(context, left[0], right[0], loc))
    strict = ast.Lt() if isinstance(op, ast.Lt | ast.LtE) else ast.Gt()
    if same is b.TRUE:
        return _lexicographic(context, op, left[1:], right[1:], loc, texts)
    if same is b.FALSE:
        return compare(context, strict, left[0], right[0], loc, parts)
    return context.conditional(
        same,
        partial(_lexicographic, context, op, left[1:], right[1:], loc, texts),
        partial(compare, context, strict, left[0], right[0], loc, parts),
        loc,
    )


def negated(value: Term, loc: Loc) -> Term:
    """The negation of a truth value."""
    return b.not_(value, loc) if is_expr(value) else not value


def _identical(context: Context, left: Term, right: Term, loc: Loc) -> Term:
    left, right = dereference(context, left), dereference(context, right)
    if not symbolic(left) and not symbolic(right):
        return left is right
    if left is None or right is None:
        term = right if left is None else left
        if is_expr(term) and not isinstance(term.sort, OptionSort):
            return False
        return equal(context, term, None, loc)
    if isinstance(left, HeapCell) and isinstance(right, HeapCell):
        return left == right
    raise ModelError("'is' compares with None only", loc=loc, remedy="use == for values")


def _local_subset(context: Context, op: ast.cmpop, left: Term, right: Term, loc: Loc) -> Term:
    if isinstance(op, ast.Gt | ast.GtE):
        left, right = right, left
    below = simple(b.and_(_inclusion(context, left, right, loc), loc))
    if isinstance(op, ast.LtE | ast.GtE):
        return below
    return simple(b.and_((condition_of(below), b.not_(condition_of(_equal_sets(context, left, right, loc)))), loc))


def _inclusion(context: Context, left: Term, right: Term, loc: Loc) -> list[Expr]:
    """The subset condition: each element of a local or host set is in another set."""
    _expect_faithful(left, right, loc=loc)
    for side in (left, right):
        if not (_is_local_set(side) or isinstance(side, AbstractSet)):
            raise ModelError(
                f"{describe(left)} and {describe(right)} cannot be compared", loc=loc, remedy="compare two sets"
            )
    found = []
    for there, v in elements(context, left, loc):
        found.append(b.implies(there, condition_of(contained(context, v, right, loc, ("element", "set")))))
    return found


def _subset(op: ast.cmpop, x: Expr, y: Expr, loc: Loc) -> Expr:
    small, large = (y, x) if isinstance(op, ast.Gt | ast.GtE) else (x, y)
    if isinstance(op, ast.LtE | ast.GtE):
        return b.subset(small, large, loc)
    return b.and_((b.subset(small, large), b.not_(b.eq(x, y))), loc)


def _included(context: Context, op: ast.cmpop, left: Term, right: Term, sort: BagSort, loc: Loc) -> Term:
    """The comparison of two bags, or of a bag and a list, by the counts of all values, also of those that are no items."""
    left, right = resolve_deep(context, left), resolve_deep(context, right)
    for at, side in enumerate((left, right)):
        if isinstance(side, Cases):
            ways = [(one, right) if at == 0 else (left, one) for one in (side.then, side.other)]
            then, other = (partial(_included, context, op, *way, sort, loc) for way in ways)
            return context.conditional(side.cond, then, other, loc)
    if isinstance(op, ast.Gt | ast.GtE):
        left, right = right, left
    (x, x_outside), (y, y_outside) = bag_inside(left, sort, loc), bag_inside(right, sort, loc)
    below = b.and_((sequences.included(x, y, loc), b.not_(x_outside)))
    differ = b.or_((y_outside, b.not_(b.eq(x, y))))
    return simple(b.and_((below,) if isinstance(op, ast.LtE | ast.GtE) else (below, differ), loc))


def equal(context: Context, left: Term, right: Term, loc: Loc) -> Term:
    """`left == right`. A host value is converted to the sort of the other side, which detects a misspelt name."""
    left, right = dereference(context, left), dereference(context, right)
    if isinstance(left, Cases):
        return context.by_case(left, lambda one: equal(context, one, right, loc), loc)
    if isinstance(right, Cases):
        return equal(context, right, left, loc)
    if is_expr(left) and is_expr(right):
        return _equal_terms(left, right, loc)
    if is_expr(left):
        return _equal_host(context, left, right, loc)
    if is_expr(right):
        return _equal_host(context, right, left, loc)
    if isinstance(left, HeapCell) or isinstance(right, HeapCell):
        return _equal_containers(context, left, right, loc)
    if type(left) is tuple and type(right) is tuple:
        if len(left) != len(right):
            return False
        return simple(b.and_([condition_of(equal(context, x, y, loc)) for x, y in zip(left, right, strict=True)], loc))
    if isinstance(left, NewCase | Case) and right is None:
        return False
    if isinstance(left, NewCase | Case) and isinstance(right, NewCase | Case):
        (kind, one), (other, two) = map(_parts, (left, right))
        if kind.__name__ != other.__name__ or kind.__match_args__ != other.__match_args__:
            return False
        return equal(context, one, two, loc)
    if isinstance(left, Several) or isinstance(right, Several):
        return _equal_sets(context, left, right, loc)
    if symbolic(left) or symbolic(right):
        raise ModelError(
            f"{describe(left)} and {describe(right)} cannot be compared", loc=loc, remedy="compare values of one sort"
        )
    return host(context, lambda: bool(left == right), loc, left, right)


def _parts(value: NewCase | Case) -> tuple[type[Case], tuple[Term, ...]]:
    return (value.kind, value.values) if isinstance(value, NewCase) else (type(value), value._values)


def _equal_terms(x: Expr, y: Expr, loc: Loc) -> Term:
    if isinstance(x.sort, OptionSort) and not isinstance(y.sort, OptionSort):
        y = b.some(y, loc)
    elif isinstance(y.sort, OptionSort) and not isinstance(x.sort, OptionSort):
        x = b.some(x, loc)
    if isinstance(x.sort, EnumSort) and isinstance(y.sort, EnumSort) and x.sort != y.sort:
        common = [name for name in x.sort.members if name in y.sort.members]
        if common and not x.sort.symmetric and not y.sort.symmetric:
            pairs = ((b.eq(x, b.const(x.sort, n)), b.eq(y, b.const(y.sort, n))) for n in common)
            return simple(b.or_([b.and_(pair, loc) for pair in pairs], loc))
    if not compatible(x.sort, y.sort):
        x, y = alike(x, y, loc)
    if not compatible(x.sort, y.sort):
        raise ModelError(f"{x.sort} and {y.sort} are never equal", loc=loc, remedy="compare values of one sort")
    return simple(b.eq(x, y, loc))


def _equal_host(context: Context, term: Expr, other: Term, loc: Loc) -> Term:
    if other is None:
        if isinstance(term.sort, OptionSort):
            return simple(b.is_none(term, loc))
        raise ModelError(
            f"{describe(term)} is never None", loc=loc, remedy="declare it Option(...) if it can be absent"
        )
    value, present = compared(resolve_deep(context, other), term.sort, loc)
    return simple(b.and_((present, b.eq(term, value, loc)), loc))


def _equal_containers(context: Context, left: Term, right: Term, loc: Loc) -> Term:
    _expect_faithful(left, right, loc=loc)
    one, two = (context.content(x) if isinstance(x, HeapCell) else x for x in (left, right))
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        if set(one) != set(two):
            return False
        return simple(b.and_([condition_of(equal(context, v, two[k], loc)) for k, v in one.items()], loc))
    if isinstance(one, PartialList) or isinstance(two, PartialList):
        return _equal_lists(context, left, right, loc)
    both_lists = (isinstance(left, HeapCell) or isinstance(one, list)) and (
        isinstance(right, HeapCell) or isinstance(two, list)
    )
    if both_lists and isinstance(one, tuple | list) and isinstance(two, tuple | list):
        return equal(context, tuple(one), tuple(two), loc)
    if isinstance(left, Several) or isinstance(right, Several):
        raise ModelError("a list is never equal to a set", loc=loc, remedy="compare two lists or two sets")
    return False


def _equal_lists(context: Context, left: Term, right: Term, loc: Loc) -> Term:
    """Whether two lists, one of which has a length that depends on the state, have equal elements in the same order."""
    if any(not isinstance(side, HeapCell | list) for side in (left, right)):
        return False
    one, two = elements(context, left, loc), elements(context, right, loc)
    parts = [b.eq(count(one), count(two), loc)]
    for (here, x), rank in zip(one, ranks(one), strict=True):
        for (there, y), other in zip(two, ranks(two), strict=True):
            both = b.and_((here, there, b.eq(rank, other)))
            if both is not b.FALSE:
                parts.append(b.implies(both, condition_of(equal(context, x, y, loc))))
    return simple(b.and_(parts, loc))


def _equal_sets(context: Context, left: Term, right: Term, loc: Loc) -> Term:
    return simple(b.and_([*_inclusion(context, left, right, loc), *_inclusion(context, right, left, loc)], loc))


def contained(context: Context, needle: Term, hay: Term, loc: Loc, texts: tuple[str, str]) -> Term:
    """`needle in hay`."""
    refuse_iterator(hay, loc)
    if not symbolic(needle) and not symbolic(hay):
        return host(context, lambda: needle in hay, loc, needle, hay)
    if isinstance(hay, enum.EnumType):
        raise ModelError(
            f"Python 3.11 refuses to look for a plain value in the enumeration {hay.__name__}",
            loc=loc,
            remedy=f"write {texts[0]} in list({hay.__name__})",
        )
    needle = dereference(context, needle)
    refuse_lazy(hay, loc)
    if not symbolic(hay) and not is_faithful(hay):
        hay = _asked(context, needle, hay, loc)
    if isinstance(hay, Cases):
        return context.by_case(hay, lambda one: contained(context, needle, one, loc, texts), loc)
    if isinstance(hay, HeapCell):
        content = context.content(hay)
        hay = Several(content.items, once=False) if isinstance(content, PartialList) else tuple(content)
    hay = as_tuple(context, hay, loc, texts[1])
    if isinstance(hay, Ref) or is_expr(hay):
        whole = hay = contained_value(context, dereference(context, hay), loc, texts[1])
        if isinstance(whole.sort, SetSort | BagSort):
            if isinstance(needle, Cases):
                return context.by_case(needle, lambda one: contained(context, one, whole, loc, texts), loc)
            element = whole.sort.element if isinstance(whole.sort, SetSort) else whole.sort.item
            if needle is None and not isinstance(element, OptionSort):
                return False
            if is_expr(needle) and isinstance(needle.sort, OptionSort) and not isinstance(element, OptionSort):
                found_in = contained(context, b.unwrap(needle, loc), whole, loc, texts)
                return simple(b.and_((b.not_(b.is_none(needle)), condition_of(found_in)), loc))
        if isinstance(whole.sort, SetSort):
            if is_expr(needle) and not compatible(needle.sort, whole.sort.element):
                wide = lifted(whole.sort, SetSort(needle.sort))
                whole = whole if wide is None else recast(whole, wide, loc)
            assert isinstance(whole.sort, SetSort)
            value, present = compared(resolve_deep(context, needle), whole.sort.element, loc)
            return simple(b.and_((present, b.member(whole, value, loc)), loc))
        if isinstance(whole.sort, BagSort):
            value, present = compared(resolve_deep(context, needle), whole.sort.item, loc)
            return simple(b.and_((present, b.less(b.num(0), sequences.count_of(whole, value, loc), loc)), loc))
        if not isinstance(whole.sort, QueueSort | ArraySort):
            raise ModelError(
                f"'in' needs a collection, got {describe(whole)}", loc=loc, remedy="use a Set, Queue or Array"
            )
    elif type(hay) is SymbolicRange:
        return b.in_domain(integer(context, needle, loc, texts[0]), sort_of(hay))
    elif isinstance(hay, range):
        return _in_range(context, needle, hay, loc, texts[0])
    elif not isinstance(hay, tuple | list | AbstractSet | Mapping | Several):
        raise ModelError(
            f"'in' needs a collection, got {describe(hay)}", loc=loc, remedy="use a tuple, a range, a Set or a Queue"
        )
    is_known, value = known(needle)
    found = []
    for there, v in elements(context, hay, loc):
        if is_known and not is_expr(needle) and not symbolic(v):
            found.append(b.and_((there, b.truth(bool(host(context, lambda v=v: value == v, loc, value, v))))))  # type: ignore[misc]
        else:
            found.append(b.and_((there, condition_of(equal(context, needle, v, loc)))))
    return simple(b.or_(found, loc))


def _asked(context: Context, needle: Term, hay: Any, loc: Loc) -> Term:
    """The members of a container with its own special methods, evaluated for each value of the needle's sort."""
    scalar = is_expr(needle) and is_scalar(needle.sort) and not isinstance(needle.sort, TermRange)
    if not scalar or cardinality(needle.sort) > ASKED_LIMIT:
        expect_faithful(hay, loc)
        return hay
    context.outside.impure = True
    return tuple(v for v in values(needle.sort) if host(context, partial(operator.contains, hay, v), loc))


def _in_range(context: Context, needle: Term, hay: range, loc: Loc, text: str) -> Term:
    if not len(hay):
        return False
    there: Expr = b.TRUE  # None is in no range, and testing it is not an error
    if is_expr(needle) and isinstance(needle.sort, OptionSort):
        there, needle = b.not_(b.is_none(needle)), b.unwrap(needle, loc)
    term = integer(context, needle, loc, text)
    low, high = min(hay[0], hay[-1]), max(hay[0], hay[-1])
    inside = [there, b.less_eq(b.num(low), term), b.less_eq(term, b.num(high))]
    if abs(hay.step) != 1:
        inside.append(b.eq(b.mod(b.sub(term, b.num(low)), b.num(abs(hay.step))), b.num(0)))
    return simple(b.and_(inside, loc))
