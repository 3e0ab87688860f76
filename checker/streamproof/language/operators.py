"""Python's operators on terms: comparison, arithmetic, membership, iteration."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from streamproof.language import places
from streamproof.language.terms import Cases, Cell, Guarded, Ref, Term, as_constant, describe, lift, natural, symbolic
from streamproof.language.world import World
from streamproof.system import build as b
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Expr, Node
from streamproof.system.sorts import (
    BOOL,
    ArraySort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    cardinality,
    compatible,
    values,
)

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
}
SYMBOLS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.BitOr: "|", ast.BitAnd: "&"}
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


def plain(world: World, value: Term) -> Term:
    """Places are read, everything else stays."""
    return places.read(world, value) if isinstance(value, Ref) else value


def integer(world: World, value: Term, loc: Loc, text: str) -> Expr:
    """`value` as an integer: options are unwrapped with a check, truth values count as 0 and 1, as in Python."""
    term = natural(plain(world, value), loc)
    if term is not None and isinstance(term.sort, OptionSort):
        term = places.present(world, term, loc, text)
    if term is not None and term.sort == BOOL:
        term = b.ite(term, b.num(1), b.num(0), loc)
    if term is None or not isinstance(term.sort, RangeSort):
        raise ModelError(
            f"an integer expected, got {describe(value)}", loc=loc, remedy="only integers can be computed with"
        )
    return term


def binary(world: World, op: ast.operator, left: Term, right: Term, loc: Loc, texts: tuple[str, str]) -> Term:
    """`left op right`."""
    (lk, lv), (rk, rv) = as_constant(left), as_constant(right)
    if lk and rk:
        return _host(lambda: HOST_BINARY[type(op)](lv, rv), loc)
    if isinstance(left, tuple) and isinstance(right, tuple) and isinstance(op, ast.Add):
        return left + right
    left, right = plain(world, left), plain(world, right)
    known_sets = [x.sort for x in (left, right) if isinstance(x, Node) and isinstance(x.sort, SetSort)]
    if known_sets and type(op) in SETS:
        return SETS[type(op)](lift(left, known_sets[0], loc), lift(right, known_sets[0], loc), loc)
    make = INTEGER.get(type(op))
    if make is None:
        raise ModelError(
            f"operator {type(op).__name__!r} is not part of the language",
            loc=loc,
            remedy="integers have + - * // %, sets have | & -",
        )
    a, c = integer(world, left, loc, texts[0]), integer(world, right, loc, texts[1])
    if isinstance(op, ast.FloorDiv | ast.Mod):
        world.check(b.eq(c, b.num(0)), f"division by zero: {texts[1]} is 0", loc, (texts[1], c))
    return make(a, c, loc)


def _host(run: Callable[[], Any], loc: Loc) -> Any:
    try:
        return run()
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"{type(error).__name__}: {error}",
            loc=loc,
            remedy="this is ordinary Python, evaluated while the model is read",
        ) from error


def compare(world: World, op: ast.cmpop, left: Term, right: Term, loc: Loc, texts: tuple[str, str]) -> Term:
    """One comparison."""
    if isinstance(op, ast.In | ast.NotIn):
        found = contained(world, left, right, loc, texts[0])
        if isinstance(op, ast.In):
            return found
        return b.not_(found, loc) if isinstance(found, Node) else not found
    (lk, lv), (rk, rv) = as_constant(left), as_constant(right)
    if lk and rk:
        if isinstance(op, ast.Is | ast.IsNot):
            op = ast.Eq() if isinstance(op, ast.Is) else ast.NotEq()
        return _host(lambda: HOST_COMPARE[type(op)](lv, rv), loc)
    left, right = plain(world, left), plain(world, right)
    match op:
        case ast.Is() | ast.IsNot():
            if rk and rv is None:
                same = equal(world, left, None, loc)
                return same if isinstance(op, ast.Is) else b.not_(same, loc)
            raise ModelError("'is' compares with None only", loc=loc, remedy="use == for values")
        case ast.Eq():
            return equal(world, left, right, loc)
        case ast.NotEq():
            return b.not_(equal(world, left, right, loc), loc)
    if any(isinstance(x, Node) and isinstance(x.sort, SetSort) for x in (left, right)):
        sort = next(x.sort for x in (left, right) if isinstance(x, Node) and isinstance(x.sort, SetSort))
        x, y = lift(left, sort, loc), lift(right, sort, loc)
        match op:
            case ast.LtE():
                return b.subset(x, y, loc)
            case ast.GtE():
                return b.subset(y, x, loc)
            case ast.Lt():
                return b.and_((b.subset(x, y), b.not_(b.eq(x, y))), loc)
            case _:
                return b.and_((b.subset(y, x), b.not_(b.eq(x, y))), loc)
    a, c = integer(world, left, loc, texts[0]), integer(world, right, loc, texts[1])
    match op:
        case ast.Lt():
            return b.less(a, c, loc)
        case ast.LtE():
            return b.less_eq(a, c, loc)
        case ast.Gt():
            return b.less(c, a, loc)
        case _:
            return b.less_eq(c, a, loc)


def equal(world: World, left: Term, right: Term, loc: Loc) -> Expr:
    """`left == right`. A host value takes the sort of the other side, so a misspelt name is caught."""
    left, right = plain(world, left), plain(world, right)
    if isinstance(left, Cell):
        left = tuple(_content(world, left))
    if isinstance(right, Cell):
        right = tuple(_content(world, right))
    if isinstance(left, Cases):
        return b.ite(left.cond, equal(world, left.then, right, loc), equal(world, left.other, right, loc), loc)
    if isinstance(right, Cases):
        return equal(world, right, left, loc)
    if isinstance(left, Node) and isinstance(right, Node):
        x: Expr = left  # type: ignore[assignment]
        y: Expr = right  # type: ignore[assignment]
        if isinstance(x.sort, OptionSort) and not isinstance(y.sort, OptionSort):
            y = b.some(y, loc)
        elif isinstance(y.sort, OptionSort) and not isinstance(x.sort, OptionSort):
            x = b.some(x, loc)
        if not compatible(x.sort, y.sort):
            raise ModelError(f"{x.sort} and {y.sort} are never equal", loc=loc, remedy="compare values of one sort")
        return b.eq(x, y, loc)
    if isinstance(left, Node):
        return _equal_host(left, right, loc)  # type: ignore[arg-type]
    if isinstance(right, Node):
        return _equal_host(right, left, loc)  # type: ignore[arg-type]
    if isinstance(left, tuple) and isinstance(right, tuple):
        if len(left) != len(right):
            return b.FALSE
        return b.and_((equal(world, x, y, loc) for x, y in zip(left, right, strict=True)), loc)
    if not symbolic(left) and not symbolic(right):
        return b.truth(bool(left == right))
    return b.FALSE


def _equal_host(term: Expr, host: Any, loc: Loc) -> Expr:
    if host is None:
        if isinstance(term.sort, OptionSort):
            return b.is_none(term, loc)
        raise ModelError(f"a {term.sort} is never None", loc=loc, remedy="declare it Option(...) if it can be absent")
    if isinstance(term.sort, RangeSort) and isinstance(host, int) and not isinstance(host, bool):
        return b.eq(term, b.num(host), loc)
    return b.eq(term, lift(host, term.sort, loc), loc)


def contained(world: World, needle: Term, hay: Term, loc: Loc, text: str) -> Term:
    """`needle in hay`."""
    if isinstance(hay, Cell):
        content = _content(world, hay)
        hay = tuple(content)
    known, host = as_constant(needle)
    if known and not symbolic(hay) and not isinstance(hay, Node):
        return _host(lambda: host in hay, loc)
    needle = plain(world, needle)
    if isinstance(hay, Ref | Node):
        whole = plain(world, hay)
        if isinstance(whole.sort, SetSort):
            return b.member(whole, lift(needle, whole.sort.element, loc), loc)
        if isinstance(whole.sort, QueueSort | ArraySort):
            return b.or_((b.and_((c, equal(world, needle, v, loc))) for c, v in elements(world, hay, loc)), loc)
        raise ModelError(
            f"{text} in ... needs a collection, got {whole.sort}", loc=loc, remedy="use a Set, Queue or Array"
        )
    if isinstance(hay, range) and hay.step == 1:
        term = integer(world, needle, loc, text)
        if not len(hay):
            return b.FALSE
        return b.and_((b.less_eq(b.num(hay.start), term), b.less(term, b.num(hay.stop))), loc)
    if isinstance(hay, tuple | list | AbstractSet | Mapping | range):
        return b.or_((equal(world, needle, v, loc) for v in hay), loc)
    raise ModelError(
        f"'in' needs a collection, got {describe(hay)}", loc=loc, remedy="use a tuple, a range, a Set or a Queue"
    )


def _content(world: World, cell: Cell) -> list[Any]:
    content = world.heap[cell.number]
    return list(content)


def elements(world: World, value: Term, loc: Loc) -> list[tuple[Expr, Term]]:
    """What iterating over `value` meets: each element with the condition under which it is there."""
    if isinstance(value, Cell):
        return [(b.TRUE, v) for v in _content(world, value)]
    if isinstance(value, Guarded):
        return list(value.items)
    if isinstance(value, Ref):
        if isinstance(value.sort, ArraySort):
            keys = values(value.sort.index)
            return [(b.TRUE, places.settle(world, places.item(world, value, k, loc, str(k)))) for k in keys]
        value = places.read(world, value)
    if isinstance(value, Node):
        term: Expr = value  # type: ignore[assignment]
        match term.sort:
            case ArraySort(index, _):
                return [(b.TRUE, b.select(term, b.const(index, k), loc)) for k in values(index)]
            case QueueSort(_, capacity):
                n = b.length(term)
                return [(b.less(b.num(i), n), b.peek(term, b.num(i), loc)) for i in range(capacity)]
            case SetSort(element):
                if cardinality(element) > 4096:
                    raise ModelError(
                        f"{term.sort} is too large to iterate over", loc=loc, remedy="use a smaller element sort"
                    )
                return [
                    (b.member(term, b.const(element, v)), _host_value(b.const(element, v))) for v in values(element)
                ]
            case RecordSort():
                raise ModelError("a Record cannot be iterated over", loc=loc, remedy="name its fields")
        raise ModelError(
            f"{term.sort} cannot be iterated over", loc=loc, remedy="iterate over an Array, Queue, Set or range"
        )
    if isinstance(value, Cases):
        raise ModelError(
            "what is iterated over depends on the state",
            loc=loc,
            remedy="iterate over everything and test the condition inside",
        )
    if symbolic(value) and not isinstance(value, tuple):
        raise ModelError(
            f"{describe(value)} cannot be iterated over", loc=loc, remedy="iterate over a finite collection"
        )
    return [(b.TRUE, v) for v in _host(lambda: list(value), loc)]


def _host_value(term: Expr) -> Any:
    return as_constant(term)[1]
