"""Methods of queues, sets and bags of the state, and of local lists and dicts."""

from __future__ import annotations

import types
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from streamproof.language import lvalues, sequences
from streamproof.language.conversion import expect_faithful, plain
from streamproof.language.elements import iterator
from streamproof.language.lift import merge
from streamproof.language.lowering_context import Context
from streamproof.language.operators import equal, integer
from streamproof.language.terms import (
    QUEUE,
    Cases,
    HeapCell,
    Method,
    Ref,
    Term,
    arity,
    describe,
    is_expr,
    known,
    simple,
)
from streamproof.system import build as b
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Expr
from streamproof.system.sorts import (
    BagSort,
    BoolSort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    SetSort,
    Sort,
    contains,
    default,
)

SET = "a Set has add, discard, remove, clear, len, in, | & - and <="
BAG = "a Bag has add, discard, remove, clear, count, len, in, iteration, == and <="
DICT = "a local dict has get, items, keys, values, copy, len, in and []"


def method(context: Context, m: Method | Cases, args: list[Term], kwargs: dict[str, Term], loc: Loc, text: str) -> Term:
    """A method call on a place of the state, or on a local list or dict, one of several perhaps; `text` is the source of
    the owner."""
    if isinstance(m, Cases):
        one, two = m.then, m.other
        return context.conditional(
            m.cond,
            lambda: method(context, one, args, kwargs, loc, text),
            lambda: method(context, two, args, kwargs, loc, text),
            loc,
        )
    if kwargs:
        raise ModelError(f"{m.name}() takes no keyword arguments", loc=loc, remedy="pass the value alone")
    if isinstance(m.owner, HeapCell):
        content = context.content(m.owner)
        if isinstance(content, Mapping):
            return _dict_method(context, m.owner, content, m.name, args, loc)
        from streamproof.language.sequence_methods import list_method

        return list_method(context, m.owner, m.name, args, loc)
    ref = m.owner
    if isinstance(ref, Cases):
        raise ModelError(
            f"which place {text!r} refers to depends on the state",
            loc=loc,
            remedy="call the method under an 'if', once for each of them",
        )
    if is_expr(ref) and isinstance(ref.sort, BagSort):
        return _count(context, ref, args, loc, text)
    assert isinstance(ref, Ref)
    if isinstance(ref.sort, BagSort):
        return _bag_method(context, ref, m.name, args, loc, text)
    if isinstance(ref.sort, QueueSort):
        from streamproof.language.sequence_methods import queue_method

        return queue_method(context, ref, m.name, args, loc, text)
    if isinstance(ref.sort, SetSort):
        return _set_method(context, ref, m.name, args, loc, text)
    raise no_method(ref.sort, m.name, loc)


def no_method(sort: Sort, name: str, loc: Loc) -> ModelError:
    """The error for an unknown attribute of values of `sort`."""
    match sort:
        case QueueSort():
            return ModelError(f"a Queue has no {name!r}", loc=loc, remedy=QUEUE)
        case SetSort():
            return ModelError(f"a Set has no {name!r}", loc=loc, remedy=SET)
        case BagSort():
            return ModelError(f"a Bag has no {name!r}", loc=loc, remedy=BAG)
        case _:
            return ModelError(
                f"{sort} has no {name!r}",
                loc=loc,
                remedy="only records have fields, only queues, sets and bags have methods; arrays are indexed",
            )


def _set_method(context: Context, ref: Ref, name: str, args: list[Term], loc: Loc, text: str) -> Term:
    sort = ref.sort
    assert isinstance(sort, SetSort)
    match name:
        case "add" | "discard" | "remove":
            arity(name, args, 1, 1, loc, f"write {text}.{name}(value)")
            value = lvalues.convert(context, args[0], sort.element, loc, "the value")
            whole = lvalues.read(context, ref)
            if name == "add":
                context.check(
                    b.not_(b.in_domain(value, sort.element)),
                    f"the value added to {text} leaves {sort.element}",
                    loc,
                    ("value", value),
                )
            if name == "remove":
                context.check(
                    b.not_(b.member(whole, value)), f"remove() of a value that is not in {text}", loc, ("value", value)
                )
            made = b.insert(whole, value, loc) if name == "add" else b.remove(whole, value, loc)
            lvalues.store(context, ref, made, loc)
            return None
        case "clear":
            arity(name, args, 0, 0, loc, f"write {text}.clear()")
            lvalues.store(context, ref, b.const(sort, frozenset()), loc)
            return None
    raise no_method(sort, name, loc)


def _bag_method(context: Context, ref: Ref, name: str, args: list[Term], loc: Loc, text: str) -> Term:
    sort = ref.sort
    assert isinstance(sort, BagSort)
    whole = lvalues.read(context, ref)
    match name:
        case "count":
            return _count(context, whole, args, loc, text)
        case "add" | "discard" | "remove":
            arity(name, args, 1, 1, loc, f"write {text}.{name}(value)")
            value = lvalues.convert(context, args[0], sort.item, loc, "the value")
            if name == "add":
                full = b.less_eq(b.num(sort.capacity), b.bag_size(whole))
                context.check(full, f"add to the full bag {text}", loc, (text, whole))
                outside = b.not_(b.in_domain(value, sort.item))
                context.check(outside, f"the value added to {text} leaves {sort.item}", loc, ("value", value))
            if name == "remove":
                absent = b.less_eq(sequences.count_of(whole, value, loc), b.num(0))
                context.check(absent, f"remove() of a value that is not in {text}", loc, ("value", value))
            made = (sequences.with_one if name == "add" else sequences.without_one)(whole, value, loc)
            lvalues.store(context, ref, made, loc)
            return None
        case "clear":
            arity(name, args, 0, 0, loc, f"write {text}.clear()")
            lvalues.store(context, ref, b.const(sort, default(sort)), loc)
            return None
    raise no_method(sort, name, loc)


def _count(context: Context, whole: Expr, args: list[Term], loc: Loc, text: str) -> Term:
    """``bag.count(value)``: the number of its occurrences."""
    arity("count", args, 1, 1, loc, f"write {text}.count(value)")
    assert isinstance(whole.sort, BagSort)
    value = lvalues.convert(context, args[0], whole.sort.item, loc, "the value")
    return simple(sequences.count_of(whole, value, loc))


def _dict_method(
    context: Context, cell: HeapCell, content: Mapping[object, Term], name: str, args: list[Term], loc: Loc
) -> Term:
    parts = {"items": content.items(), "keys": content.keys(), "values": content.values()}
    if name in parts:
        arity(name, args, 0, 0, loc, DICT)
        return iterator(context, [(b.TRUE, v) for v in parts[name]], (cell,))
    if name == "copy":
        arity(name, args, 0, 0, loc, DICT)
        return context.allocate(dict(content))
    if name == "get":
        arity(name, args, 1, 2, loc, DICT)
        is_known, key = known(args[0])
        if is_known:
            return content.get(key, args[1] if len(args) > 1 else None)
    raise ModelError(f"dict.{name}() cannot be lowered here", loc=loc, remedy=DICT)


def pick_from_list(context: Context, content: tuple[Term, ...], index: Term, loc: Loc, text: str) -> Term:
    """The element of a constant sequence at a symbolic position; negative positions count from the end."""
    term, size = integer(context, index, loc, text), len(content)
    assert isinstance(term.sort, RangeSort)
    bad = b.or_((b.less(term, b.num(-size)), b.less_eq(b.num(size), term)))
    context.check(bad, f"index outside a sequence of {size}", loc, (text, term))
    if term.sort.lo < 0:
        term = b.ite(b.less(term, b.num(0)), b.add(term, b.num(size)), term, loc)
    result: Term = content[-1]
    for at in reversed(range(size - 1)):
        result = merge(b.eq(term, b.num(at)), content[at], result, loc)
    return result


def pick_from_dict(context: Context, content: Mapping[object, Term], key: Term, loc: Loc, text: str) -> Term:
    """The value of a constant dict at a symbolic key."""
    if isinstance(content, types.MappingProxyType):
        content = content.copy()
        expect_faithful(content, loc)
    if not isinstance(content, dict):
        raise ModelError(
            f"a {type(content).__name__} has its own way to find a key, which depends on the state here",
            loc=loc,
            remedy="use a dict",
        )
    hits: list[tuple[Expr, Term]] = []
    for k, v in content.items():
        fit = as_key(k, key.sort, loc) if is_expr(key) else k
        if fit is ABSENT:
            continue
        same = equal(context, key, fit, loc)
        hits.append((same if is_expr(same) else b.truth(bool(same)), v))
    if isinstance(content, Counter) or (isinstance(content, defaultdict) and content.default_factory is not None):
        result: Term = _missing(content, loc)
        for cond, value in reversed(hits):
            result = merge(cond, value, result, loc)
        return result
    operands = ((text, key),) if is_expr(key) else ()
    context.check(b.not_(b.or_([c for c, _ in hits])), f"{text} is not a key of the dict", loc, *operands)
    result = hits[-1][1]  # without a hit, the check above ended the path
    for cond, value in reversed(hits[:-1]):
        result = merge(cond, value, result, loc)
    return result


def _missing(content: Counter[Any] | defaultdict[Any, Any], loc: Loc) -> Term:
    """The default value of such a dict for a missing key."""
    made = 0 if isinstance(content, Counter) or content.default_factory is None else content.default_factory()
    if type(made) not in (bool, int, str, types.NoneType):
        raise ModelError(
            f"a missing key gets {describe(made)}, a new object each time",
            loc=loc,
            remedy="use a dict with every key",
        )
    return made


ABSENT: Any = object()
"""Marks a key that equals no value of the sort."""


def as_key(key: object, sort: Sort, loc: Loc) -> Any:
    """The value of `sort` that is equal, in Python, to a key of a dict; `ABSENT` if there certainly is none.

    Raises `ModelError` for a key with another notion of equality: a float, or an object with its own `__eq__`.
    """
    if isinstance(sort, OptionSort):
        return None if key is None else as_key(key, sort.element, loc)
    expect_faithful(key, loc)
    key = plain(key)
    if isinstance(sort, RangeSort) and isinstance(key, int):
        return int(key)
    if isinstance(sort, BoolSort) and type(key) is int:
        return bool(key) if key in (0, 1) else ABSENT
    if contains(sort, key):
        return key
    if not _never_equal(key, alone=isinstance(sort, BoolSort | RangeSort | EnumSort)):
        raise ModelError(
            f"the key {describe(key)} of the dict may be equal to a value of {sort}, or not",
            loc=loc,
            remedy=f"use keys that are values of {sort}",
        )
    return ABSENT


def _never_equal(key: object, *, alone: bool) -> bool:
    """Whether a key equals values of its own type only; `alone`: it is compared with no tuple or set."""
    if isinstance(key, tuple | frozenset):
        return alone or not any(isinstance(k, bool | tuple | frozenset) or not _never_equal(k, alone=True) for k in key)
    return isinstance(key, int | str | bytes | types.NoneType) or type(key).__eq__ is object.__eq__
