"""Lookup in constant sequences and dicts at a position or key that depends on the state."""

from __future__ import annotations

import types
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from streamproof.base.errors import Loc, ModelError
from streamproof.language.lower.conversion import expect_faithful, plain
from streamproof.language.lower.lift import condition_of, merge
from streamproof.language.lower.lowering_context import Context
from streamproof.language.lower.operators import equal, integer
from streamproof.language.lower.terms import Term, describe, is_expr
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.sorts import BoolSort, EnumSort, OptionSort, RangeSort, Sort, contains


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
        hits.append((condition_of(equal(context, key, fit, loc)), v))
    if isinstance(content, Counter) or (isinstance(content, defaultdict) and content.default_factory is not None):
        result: Term = _missing(content, loc)
    else:
        operands = ((text, key),) if is_expr(key) else ()
        context.check(b.not_(b.or_([c for c, _ in hits])), f"{text} is not a key of the dict", loc, *operands)
        result = hits.pop()[1]  # without a hit, the check above ended the path
    for cond, value in reversed(hits):
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
