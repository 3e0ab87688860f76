"""Keys of arrays: lists of numbers, names, truth values and tuples of these as indices.

A key in a rule may have parts that depend on the state: ``s.wire[s.turn, n]``. It is compared with every key of the
array; a key that is not among them is an index outside the array.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from streamproof.language.conversion import expect_faithful, in_order, plain
from streamproof.language.terms import Cases, Term, is_expr, symbolic
from streamproof.system import build as b
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Expr
from streamproof.system.sorts import BoolSort, EnumSort, KeySort, RangeSort, index_value, key_sort, key_type


def sort_of_keys(given: Iterable[Any], loc: Loc | None) -> RangeSort | EnumSort:
    """The index sort of a collection of keys: numbers in ascending order, others in their order."""
    keys = tuple(_declared(key, loc) for key in in_order(given))
    if all(type(key) is str for key in keys):
        return EnumSort(keys)
    if all(type(key) is int for key in keys):
        keys = tuple(sorted(keys))
    found = set()
    for key in keys:
        if (typed := (key_type(key), key)) in found:
            raise ModelError(f"the index has the key {key!r} twice", loc=loc, remedy="list every key once")
        found.add(typed)
    if type(keys[0]) is int and keys == tuple(range(keys[0], keys[0] + len(keys))):
        return RangeSort(keys[0], keys[-1])
    return key_sort(keys)


def _declared(key: Any, loc: Loc | None) -> Any:
    """A key as plain value. Raises `ModelError` for one that is not made of numbers, names and truth values."""
    expect_faithful(key, loc)
    if isinstance(key, tuple):
        return tuple(_declared(part, loc) for part in key)
    if isinstance(key, int | str):
        return plain(key)
    raise ModelError(
        f"{key!r} ({type(key).__name__}) cannot be a key of an Array",
        loc=loc,
        remedy="use numbers, names, and tuples of these: [(0, 1), (1, 2)]",
    )


def plain_key(key: Any, loc: Loc | None) -> Any:
    """A key of a rule as plain value, tuples included."""
    expect_faithful(key, loc)
    return tuple(plain_key(part, loc) for part in key) if isinstance(key, tuple) else plain(key)


def cases_of(key: Term) -> Cases | None:
    """A key of which some part is a conditional value, as a conditional key; None for other keys."""
    if not isinstance(key, tuple):
        return key if isinstance(key, Cases) else None
    for at, part in enumerate(key):
        if (split := cases_of(part)) is not None:
            then, other = ((*key[:at], value, *key[at + 1 :]) for value in (split.then, split.other))
            return Cases(split.cond, then, other)
    return None


def is_key(term: Term, key: Any, loc: Loc | None) -> Expr:
    """The condition that a value of a rule, without references, options and conditional values, is this key."""
    if isinstance(term, tuple):
        alike = isinstance(key, tuple) and len(key) == len(term)
        return b.and_(is_key(t, k, loc) for t, k in zip(term, key, strict=True)) if alike else b.FALSE
    if not is_expr(term):
        host = None if symbolic(term) else plain_key(term, loc)
        return b.truth((key_type(host), host) == (key_type(key), key))
    match term.sort:
        case BoolSort() if type(key) is bool:
            return b.eq(term, b.truth(key), loc)
        case RangeSort() if type(key) is int:
            return b.eq(term, b.num(key), loc)
        case EnumSort(members) if key in members and type(key) is str:
            return b.eq(term, b.const(term.sort, key), loc)
        case _:
            return b.FALSE


def key_term(sort: KeySort, key: Term, loc: Loc | None) -> tuple[Expr, Expr]:
    """A value of a rule as an index of `sort`, and the condition that it is none. Options are unwrapped before."""
    if not symbolic(key) and (known := index_value(sort, plain_key(key, loc))) is not None:
        return b.const(sort, known, loc), b.FALSE
    tests = [
        (is_key(key, own, loc), b.const(sort, text, loc)) for text, own in zip(sort.members, sort.keys, strict=True)
    ]
    possible = [(test, text) for test, text in tests if test is not b.FALSE]
    term = possible[-1][1] if possible else tests[0][1]
    for test, text in reversed(possible[:-1]):
        term = b.ite(test, text, term, loc)
    return term, b.not_(b.or_((test for test, _ in possible), loc))


def named_parts(text: str, key: Term) -> list[tuple[str, Any]]:
    """The scalar parts of a key with their texts in the source, for messages; literals are left out."""
    if not isinstance(key, tuple):
        return [(text, key)]
    node = ast.parse(text, mode="eval").body
    if not isinstance(node, ast.Tuple) or len(node.elts) != len(key):
        return [(f"{text}[{at}]", part) for at, part in enumerate(key) if _is_scalar(part)]
    parts = zip(node.elts, key, strict=True)
    return [(ast.unparse(n), part) for n, part in parts if _is_scalar(part) and not isinstance(n, ast.Constant)]


def _is_scalar(part: Term) -> bool:
    return is_expr(part) or isinstance(part, int | str)


def as_operand(part: Any) -> Expr:
    """A part of a key as a term, for messages."""
    if is_expr(part):
        return part
    host: Any = plain(part)
    return (
        b.truth(host) if type(host) is bool else b.num(host) if type(host) is int else b.const(EnumSort((host,)), host)
    )
