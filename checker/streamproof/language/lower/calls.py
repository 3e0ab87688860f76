"""Lowering of Python's built-in functions on values that depend on the state."""

from __future__ import annotations

import ast
import builtins
import enum
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from streamproof.base.errors import Loc, ModelError
from streamproof.language.free.symbolic_parameters import range_between
from streamproof.language.lower import lvalues, sequences
from streamproof.language.lower.conversion import expect_faithful, plain
from streamproof.language.lower.elements import (
    any_number,
    distinct,
    elements,
    everywhere,
    in_sequence,
    iterator,
    refuse_lazy,
    sources,
    unconditional,
)
from streamproof.language.lower.lift import condition_of, merge
from streamproof.language.lower.lowering_context import Context
from streamproof.language.lower.operators import compare, equal, integer
from streamproof.language.lower.terms import (
    Backward,
    Cases,
    HeapCell,
    PartialList,
    Ref,
    Several,
    Term,
    describe,
    is_expr,
    is_formula,
    known,
    simple,
    symbolic,
)
from streamproof.system import build as b
from streamproof.system.expr import Expr, Node, variables
from streamproof.system.formula import FORMULAS, AndF, Atom, Formula, NotF, OrF
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
    is_scalar,
    values,
)
from streamproof.transform.unbounded import exists, forall
from streamproof.transform.unbounded import total as sum_of

ABSENT: Any = object()
"""Marks an optional argument without a value."""

UNKNOWN: Any = object()
"""Result of `builtin` for an unsupported function."""


def length(context: Context, value: Term, loc: Loc) -> Term:
    """``len``."""
    if isinstance(value, HeapCell):
        content = context.content(value)
        return simple(sequences.count(content.items, loc)) if isinstance(content, PartialList) else len(content)
    if isinstance(value, Several) and not value.once:
        return simple(sequences.count(value.items, loc))
    value = lvalues.as_tuple(context, value, loc)
    whole = lvalues.contained_value(context, lvalues.dereference(context, value), loc)
    if is_expr(whole):
        match whole.sort:
            case QueueSort():
                return simple(b.length(whole, loc))
            case SetSort():
                return simple(b.size(whole, loc))
            case BagSort():
                return simple(b.bag_size(whole, loc))
            case ArraySort(index=TermRange(least=least, most=most)):
                return simple(b.add(b.sub(most, least), b.num(1), loc))
            case ArraySort(index, _):
                return cardinality(index)
    elif isinstance(whole, tuple):
        return len(whole)
    elif isinstance(whole, Cases):
        return context.by_case(whole, lambda one: length(context, one, loc), loc)
    raise ModelError(
        f"{describe(value)} has no length",
        loc=loc,
        remedy="len works on queues, sets, bags, arrays and lists; count with sum(condition for ...)",
    )


def truth(context: Context, value: Term, name: str, loc: Loc) -> Expr:
    """An element of ``all`` or ``any`` as a condition."""
    value = lvalues.dereference(context, value)
    if is_expr(value) and value.sort == BOOL:
        return value
    if not is_expr(value) and known(value)[0]:
        return b.truth(bool(value))
    raise ModelError(f"{name}(...) needs truth values, got {describe(value)}", loc=loc, remedy="compare inside")


def formula(context: Context, value: Term, label: str, loc: Loc) -> Formula:
    """A value as a formula; a state condition applies to the first state of the behaviour."""
    if isinstance(value, FORMULAS):
        return value
    if isinstance(value, Cases) and is_formula(value):
        test = Atom(value.cond, f"({label})", loc)
        then, other = (formula(context, side, label, loc) for side in (value.then, value.other))
        return OrF((AndF((test, then)), AndF((NotF(test), other))))
    whole = lvalues.dereference(context, value)
    if isinstance(whole, bool):
        return Atom(b.truth(whole), str(whole), loc)
    if is_expr(whole) and whole.sort == BOOL:
        return Atom(whole, label, loc)
    raise ModelError(
        f"a temporal formula needs a condition here, got {describe(whole)}",
        loc=loc,
        remedy="compare explicitly: x != 0, len(q) > 0, o is not None",
    )


def together(name: str, terms: list[Expr], said: list[tuple[Expr, Formula]], label: str, loc: Loc) -> Term:
    """``all`` or ``any`` of conditions and formulas; each formula with the condition under which it is present in the
    current state."""
    every = name == "all"
    whole = (b.and_ if every else b.or_)(terms, loc)
    if not said:
        return simple(whole)
    found: list[Formula] = []
    for there, part in (*said, *([(b.TRUE, Atom(whole, label, loc))] if terms else [])):
        if there is b.TRUE:
            found.append(part)
        elif every:
            found.append(OrF((Atom(b.not_(there), "", loc), part)))
        else:
            found.append(AndF((Atom(there, "", loc), part)))
    return AndF(tuple(found)) if every else OrF(tuple(found))


def quantifier(context: Context, name: str, value: Term, loc: Loc) -> Term:
    """``all`` and ``any`` over a finite collection."""
    over = everywhere(context, value, loc)
    if over is not None:
        item = over.item
        bound, body = context.every("i", over.sort, lambda at: truth(context, item(at), name, loc))
        return simple((forall if name == "all" else exists)(bound, body, loc))
    terms = []
    said: list[tuple[Expr, Formula]] = []
    for there, v in elements(context, value, loc):
        if is_formula(v):
            said.append((there, formula(context, v, name, loc)))
            continue
        part = truth(context, v, name, loc)
        terms.append(b.implies(there, part) if name == "all" else b.and_((there, part)))
    return together(name, terms, said, name, loc)


def total(context: Context, value: Term, start: Term, loc: Loc) -> Term:
    """``sum`` of integers and truth values."""
    result = integer(context, start, loc, "start")
    over = everywhere(context, value, loc)
    if over is not None:
        item = over.item
        summed = context.every("i", over.sort, lambda at: integer(context, item(at), loc, "an element"))
        return simple(b.add(result, sum_of(*summed, loc), loc))
    for there, term in context.of_each(elements(context, value, loc), partial(_element, context, loc), loc):
        result = b.add(result, b.ite(there, term, b.num(0)), loc)
    return simple(result)


def _element(context: Context, loc: Loc, value: Term) -> Expr:
    """The integer value of an element of a sum."""
    return integer(context, value, loc, "an element")


def extreme(context: Context, name: str, options: list[tuple[Expr, Term]], fallback: Term, loc: Loc) -> Term:
    """``min`` and ``max``; `fallback` is the result if no conditional element is present."""
    if any(lvalues.is_tuple(value) for _, value in options):
        return _extreme_tuple(context, name, options, fallback, loc)
    best: Expr | None = None
    found: Expr = b.FALSE
    for there, term in context.of_each(options, partial(_element, context, loc), loc):
        if best is None:
            best, found = term, there
            continue
        better = b.less(term, best) if name == "min" else b.less(best, term)
        best = b.ite(b.and_((there, b.or_((b.not_(found), better)))), term, best, loc)
        found = b.or_((found, there))
    if best is None:
        if fallback is ABSENT:
            context.check(b.TRUE, f"{name}() of an empty collection", loc)
        return fallback
    if found is b.TRUE:
        return simple(best)
    if fallback is ABSENT:
        context.check(b.not_(found), f"{name}() of an empty collection", loc)
        return simple(best)
    fallback = lvalues.dereference(context, fallback)
    if fallback is None or (is_expr(fallback) and isinstance(fallback.sort, OptionSort)):
        return merge(found, best, fallback, loc)
    none = [(b.not_(found), fallback)]
    for _, term in context.of_each(none, lambda value: integer(context, value, loc, "default"), loc):
        best = b.ite(found, best, term, loc)
    return simple(best)


def _extreme_tuple(context: Context, name: str, options: list[tuple[Expr, Term]], fallback: Term, loc: Loc) -> Term:
    """``min`` and ``max`` of tuples and records, the first of equal ones."""
    op = ast.Lt() if name == "min" else ast.Gt()
    found, best = options[0]
    for there, value in options[1:]:
        both, better = (
            b.and_((there, found)),
            partial(compare, context, op, value, best, loc, ("an element", "an element")),
        )
        chosen = b.not_(found)
        if both is not b.FALSE:
            chosen = b.or_((chosen, condition_of(context.conditional(both, better, lambda: True, loc))))
        best, found = merge(b.and_((there, chosen)), value, best, loc), b.or_((found, there))
    if found is b.TRUE:
        return best
    if fallback is ABSENT:
        context.check(b.not_(found), f"{name}() of an empty collection", loc)
        return best
    return merge(found, best, fallback, loc)


def builtin(context: Context, function: Any, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    """Lowers a call of a built-in function with symbolic arguments; `UNKNOWN` if the function is not supported."""
    if isinstance(function, enum.EnumType):
        return _member(context, function, args, kwargs, loc)
    lowered = _FUNCTIONS.get(function) if isinstance(function, type | type(len)) else None
    if lowered is None:
        return UNKNOWN
    least, most, names, run = lowered
    name = function.__name__
    for key in kwargs:
        if key not in names and function is not builtins.dict:
            raise ModelError(
                f"{name}(..., {key}=...) is not part of the language for values of the state",
                loc=loc,
                remedy="write the loop or the comparison out",
            )
    if not least <= len(args) <= most:
        raise ModelError(f"{name}() is called with {len(args)} arguments", loc=loc, remedy=f"as in Python: {name}(x)")
    return run(context, args, kwargs, loc)


def _member(context: Context, kind: enum.EnumType, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    """The enumeration member for a symbolic value, ``Phase(s.phase)``: the value itself if every possible value is a
    member."""
    if len(args) != 1 or kwargs:
        return UNKNOWN
    term = lvalues.dereference(context, args[0])
    every: list[Any] = list(kind)
    for member in every[:1]:
        expect_faithful(member, loc)
    members = {plain(member) for member in every}
    other = next((v for v in _possible(term) if plain(v) not in members), ABSENT)
    if other is ABSENT:
        return term
    raise ModelError(
        f"{other!r}, which {describe(term)} can be, is not a member of {kind.__name__}",
        loc=loc,
        remedy="declare the sort with the members of the enumeration",
    )


def _possible(term: Term) -> Iterator[Any]:
    """The possible values of a term, as far as its sort determines them."""
    if isinstance(term, Cases):
        yield from _possible(term.then)
        yield from _possible(term.other)
    elif is_expr(term):
        yield from values(term.sort) if isinstance(term.sort, EnumSort | RangeSort) else (None,)
    else:
        yield term


Lowered = Callable[[Context, list[Term], dict[str, Term], Loc], Term]


def _minmax(name: str) -> Lowered:
    def run(context: Context, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
        fallback = kwargs.get("default", ABSENT)
        if len(args) == 1:
            return extreme(context, name, elements(context, args[0], loc), fallback, loc)
        if fallback is not ABSENT:
            raise ModelError(f"{name}() with several arguments has no default", loc=loc, remedy="drop default=")
        return extreme(context, name, [(b.TRUE, a) for a in args], ABSENT, loc)

    return run


def _absolute(context: Context, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    term = integer(context, args[0], loc, "argument")
    return simple(b.ite(b.less(term, b.num(0)), b.sub(b.num(0), term), term, loc))


def _boolean(context: Context, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    value = lvalues.dereference(context, args[0])
    if is_expr(value) and value.sort == BOOL:
        return value
    raise ModelError(
        f"bool() of {describe(value)}", loc=loc, remedy="compare explicitly: x != 0, len(q) > 0, o is not None"
    )


def _list(context: Context, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    given = lvalues.dereference(context, args[0])
    if is_expr(given) and isinstance(given.sort, ArraySort) and isinstance(given.sort.index, TermRange):
        if is_scalar(given.sort.element):  # a copy of other elements would share them
            return given
        raise any_number(given.sort.index, loc)
    return context.allocate(sequences.listed(in_sequence(context, args[0], loc)))


def _set(context: Context, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    return distinct(context, elements(context, args[0], loc), equal, loc)


def _dict(context: Context, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    made: dict[Any, Term] = {}
    if args:
        held = context.content(args[0]) if isinstance(args[0], HeapCell) else None
        if isinstance(held, Mapping):
            made.update(held)
        else:
            for pair in unconditional(context, args[0], loc):
                if not (isinstance(pair, tuple) and len(pair) == 2 and known(pair[0])[0]):
                    raise ModelError(
                        "dict() needs pairs with known keys", loc=loc, remedy="use an Array of the state instead"
                    )
                made[known(pair[0])[1]] = pair[1]
    return context.allocate({**made, **kwargs})


def _enumerate(context: Context, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    start = args[1] if len(args) > 1 else kwargs.get("start", 0)
    whole = lvalues.contained_value(context, args[0], loc)
    refuse_lazy(whole, loc)
    if not isinstance(start, int):
        raise ModelError("enumerate() starts at a value of the state", loc=loc, remedy="add it inside the loop")
    if isinstance(whole, Ref | Node) and isinstance(whole.sort, QueueSort):  # the first elements present
        pairs = [(c, (start + i, v)) for i, (c, v) in enumerate(elements(context, whole, loc))]
    else:
        pairs = [(b.TRUE, (start + i, v)) for i, v in enumerate(unconditional(context, whole, loc))]
    return iterator(context, pairs, (whole,))


def _zip(context: Context, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    for a in args:
        refuse_lazy(a, loc)
    columns = [unconditional(context, a, loc) for a in args]
    if kwargs.get("strict", False) and len({len(c) for c in columns}) > 1:
        raise ModelError("zip(..., strict=True) of collections of different lengths", loc=loc, remedy="match them")
    return iterator(context, [(b.TRUE, row) for row in zip(*columns, strict=False)], tuple(args))


def _reversed(context: Context, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    whole = lvalues.contained_value(context, args[0], loc)
    if isinstance(whole, Ref | Node) and isinstance(whole.sort, SetSort | BagSort):
        kind = "Set" if isinstance(whole.sort, SetSort) else "Bag"
        raise ModelError(f"a {kind} has no order to reverse", loc=loc, remedy="iterate over it as it is")
    if isinstance(whole, Several):
        raise ModelError(f"{describe(whole)} cannot be reversed", loc=loc, remedy="make it a list first")
    read = tuple(Backward(one) if isinstance(one, Ref) else one for one in sources(whole))
    return iterator(context, reversed(elements(context, whole, loc)), read)


def _range(context: Context, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    if context.free and all(isinstance(a, int) or (is_expr(a) and variables(a) <= context.free) for a in args):
        return range_between(args, loc)
    raise ModelError(
        "the bounds of a range depend on the state",
        loc=loc,
        remedy="loop over the largest range and test the bound inside the loop",
    )


def _sorted(context: Context, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    items = unconditional(context, args[0], loc) if isinstance(args[0], HeapCell | tuple | Several) else [args[0]]
    if any(symbolic(v) for v in items):
        raise ModelError(
            "the order of sorted(...) depends on the state",
            loc=loc,
            remedy="iterate without sorting (the members of a Set come in the order of its sort), or use min and max",
        )
    return context.allocate(tuple(sorted(items)))


_FUNCTIONS: dict[Any, tuple[int, int, tuple[str, ...], Lowered]] = {
    builtins.len: (1, 1, (), lambda w, a, k, loc: length(w, a[0], loc)),
    builtins.all: (1, 1, (), lambda w, a, k, loc: quantifier(w, "all", a[0], loc)),
    builtins.any: (1, 1, (), lambda w, a, k, loc: quantifier(w, "any", a[0], loc)),
    builtins.sum: (1, 2, ("start",), lambda w, a, k, loc: total(w, a[0], a[1] if a[1:] else k.get("start", 0), loc)),
    builtins.min: (1, 255, ("default",), _minmax("min")),
    builtins.max: (1, 255, ("default",), _minmax("max")),
    builtins.abs: (1, 1, (), _absolute),
    builtins.bool: (1, 1, (), _boolean),
    builtins.int: (1, 1, (), lambda w, a, k, loc: simple(integer(w, a[0], loc, "argument"))),
    builtins.tuple: (1, 1, (), lambda w, a, k, loc: tuple(unconditional(w, a[0], loc))),
    builtins.list: (1, 1, (), _list),
    builtins.set: (1, 1, (), _set),
    builtins.frozenset: (1, 1, (), _set),
    builtins.dict: (0, 1, (), _dict),
    builtins.enumerate: (1, 2, ("start",), _enumerate),
    builtins.zip: (1, 255, ("strict",), _zip),
    builtins.reversed: (1, 1, (), _reversed),
    builtins.range: (1, 3, (), _range),
    builtins.sorted: (1, 1, (), _sorted),
}
