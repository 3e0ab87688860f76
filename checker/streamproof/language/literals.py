"""Lowering of tuple, list, set and dict literals and comprehensions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from streamproof.language import operators, sequences
from streamproof.language.comprehensions import comprehended
from streamproof.language.conversion import expect_faithful
from streamproof.language.elements import distinct, generator, refuse_used_up, unconditional
from streamproof.language.lowering_context import Evaluator, Frame, where
from streamproof.language.sources import text
from streamproof.language.terms import HeapCell, Several, Term, describe, known, symbolic
from streamproof.system import build as b
from streamproof.system.errors import ModelError
from streamproof.system.expr import Expr

LANGUAGE = "use arithmetic, comparisons, and/or/not, conditional expressions, indexing, comprehensions and calls"


def tuple_display(ev: Evaluator, node: ast.Tuple, frame: Frame) -> Term:
    """``(a, b)``."""
    return _reusable(ev, tuple(spread(ev, node.elts, frame)), node, frame)


def list_display(ev: Evaluator, node: ast.List, frame: Frame) -> Term:
    """``[a, b]``."""
    return ev.context.allocate(_reusable(ev, tuple(spread(ev, node.elts, frame)), node, frame))


def set_display(ev: Evaluator, node: ast.Set, frame: Frame) -> Term:
    """``{a, b}``."""
    return _make_set(ev, [(b.TRUE, v) for v in spread(ev, node.elts, frame)], node, frame)


def list_comprehension(ev: Evaluator, node: ast.ListComp, frame: Frame) -> Term:
    """``[a for ...]``."""
    items = comprehended(ev, node.generators, node.elt, frame, in_turn=True)
    return ev.context.allocate(sequences.listed(items))


def set_comprehension(ev: Evaluator, node: ast.SetComp, frame: Frame) -> Term:
    """``{a for ...}``."""
    return _make_set(ev, comprehended(ev, node.generators, node.elt, frame), node, frame)


def generator_expression(ev: Evaluator, node: ast.GeneratorExp, frame: Frame) -> Term:
    """``(a for ...)``; its elements are evaluated on use."""
    return generator(ev.context, lambda: comprehended(ev, node.generators, node.elt, frame))


def dict_comprehension(ev: Evaluator, node: ast.DictComp, frame: Frame) -> Term:
    """``{a: b for ...}``."""
    pair = ast.copy_location(ast.Tuple(elts=[node.key, node.value], ctx=ast.Load()), node)
    made = {}
    for there, (key, value) in comprehended(ev, node.generators, pair, frame):
        if there is not b.TRUE:
            raise ModelError(
                "the keys of a local dict depend on the state",
                loc=where(frame, node),
                remedy="use an Array of the state",
            )
        made[dict_key(ev, key, node.key, frame)] = value
    return ev.context.allocate(made)


def refused(ev: Evaluator, node: ast.expr, frame: Frame) -> Term:
    """Rejects a construct outside the language."""
    loc = where(frame, node)
    match node:
        case ast.NamedExpr():
            raise ModelError("':=' is not part of the language", loc=loc, remedy="assign on a line of its own")
        case ast.Await() | ast.Yield() | ast.YieldFrom():
            raise ModelError(
                f"{text(node)!r} is not part of the language",
                loc=loc,
                remedy="interleaving is what the checker explores: use actions",
            )
    raise ModelError(f"{text(node)!r} ({type(node).__name__}) is not part of the language", loc=loc, remedy=LANGUAGE)


def _reusable(ev: Evaluator, parts: tuple[Term, ...], node: ast.expr, frame: Frame) -> tuple[Term, ...]:
    """The elements of a literal; iterators, which a first use would exhaust, are rejected."""
    for part in parts:
        refuse_used_up(part, where(frame, node))
    return parts


def spread(ev: Evaluator, nodes: list[ast.expr], frame: Frame) -> Iterator[Term]:
    """The elements of a literal or the arguments of a call, with starred ones expanded."""
    for n in nodes:
        if isinstance(n, ast.Starred):
            spread = ev.value(n.value, frame)
            if isinstance(spread, set | frozenset):
                expect_faithful(spread, where(frame, n))  # a set literal ignores their __iter__
            yield from unconditional(ev.context, spread, where(frame, n))
        else:
            yield ev.value(n, frame)


def _make_set(ev: Evaluator, items: list[tuple[Expr, Term]], node: ast.expr, frame: Frame) -> Term:
    if any(symbolic(v) or there is not b.TRUE for there, v in items):
        _expect_hashable(ev, [v for _, v in items], node, frame)
        return distinct(ev.context, items, operators.equal, where(frame, node))
    try:
        return frozenset(v for _, v in items)
    except TypeError as error:
        raise ModelError(
            f"a set needs hashable members: {error}", loc=where(frame, node), remedy="use tuples instead of lists"
        ) from None


def _expect_hashable(ev: Evaluator, items: list[Term], node: ast.expr, frame: Frame) -> None:
    for v in items:
        if isinstance(v, HeapCell | Several):
            raise ModelError(
                f"{describe(v)} cannot be a member of a set", loc=where(frame, node), remedy="use a tuple instead"
            )


def dict_key(ev: Evaluator, key: Term, node: ast.expr, frame: Frame) -> Any:
    """A key of a local dict."""
    is_known, host = known(key)
    if isinstance(key, HeapCell):
        raise ModelError("a list cannot be a key", loc=where(frame, node), remedy="use a tuple instead")
    if not is_known:
        raise ModelError(
            "a key of a local dict depends on the state",
            loc=where(frame, node),
            remedy="use an Array of the state, or create every key and test with 'if'",
        )
    try:
        hash(host)
    except TypeError as error:
        raise ModelError(
            f"a dict needs hashable keys: {error}", loc=where(frame, node), remedy="use tuples instead of lists"
        ) from None
    return host


def dict_display(ev: Evaluator, node: ast.Dict, frame: Frame) -> Term:
    """``{a: b}``."""
    made: dict[Any, Term] = {}
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        if key_node is None:
            held = ev.value(value_node, frame)
            content = ev.context.content(held) if isinstance(held, HeapCell) else held
            if not isinstance(content, Mapping):
                raise ModelError(
                    f"'**' needs a dict, got {describe(held)}", loc=where(frame, value_node), remedy="name the keys"
                )
            made.update(content)
            continue
        key = dict_key(ev, ev.value(key_node, frame), key_node, frame)
        made[key] = ev.value(value_node, frame)
        refuse_used_up(made[key], where(frame, value_node))
    return ev.context.allocate(made)
