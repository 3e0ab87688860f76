"""Lowering of attributes and indexing: of the state, of its parts, and of ordinary Python objects."""

from __future__ import annotations

import ast
import types
from collections.abc import Mapping
from typing import Any

from streamproof.language import methods, operators, places
from streamproof.language.conversion import expect_faithful
from streamproof.language.model import attribute_of
from streamproof.language.places import plain
from streamproof.language.purity import is_plain_attribute
from streamproof.language.scopes import PartFamily, ScopeNames, VariableName
from streamproof.language.sources import text
from streamproof.language.terms import (
    Cases,
    Closure,
    HeapCell,
    Method,
    Ref,
    Several,
    StateRef,
    Term,
    describe,
    is_expr,
    known,
    symbolic,
)
from streamproof.language.world import Evaluator, Frame, where
from streamproof.system import build as b
from streamproof.system.errors import ModelError, nearest
from streamproof.system.expr import Expr
from streamproof.system.sorts import ArraySort, OptionSort, QueueSort, RecordSort, SetSort


def attribute(ev: Evaluator, owner: Term, node: ast.Attribute, frame: Frame) -> Term:
    """``owner.name``."""
    if isinstance(owner, StateRef):
        return state_variable(ev, owner, node.attr, node, frame)
    name, loc = node.attr, where(frame, node)
    match owner:
        case Ref():
            return _place_attribute(ev, owner, node, frame)
        case HeapCell():
            return Method(owner, name)
        case Cases(then=one, other=two) if _is_place(one) and _is_place(two):
            if isinstance(one.sort, QueueSort | SetSort) and name not in ("head", "full"):
                return Method(Cases(owner.cond, one, two), name)
            return ev.world.either(
                owner.cond, lambda: attribute(ev, one, node, frame), lambda: attribute(ev, two, node, frame), loc
            )
        case Cases(then=one, other=two):
            return ev.world.either(
                owner.cond, lambda: attribute(ev, one, node, frame), lambda: attribute(ev, two, node, frame), loc
            )
    if is_expr(owner):
        return _term_attribute(ev, owner, node, frame)
    if symbolic(owner):
        raise ModelError(f"{describe(owner)} has no {name!r}", loc=loc, remedy="index it, or use its elements")
    if name.startswith("__") and not name.endswith("__"):
        name = _mangled(name, frame)
    if not is_plain_attribute(owner, name):
        ev.world.outside.asked = True
    try:
        return attribute_of(owner, name, ev.world.free)
    except AttributeError:
        remedy = near(name, dir(owner), "define it in the model, for example in setup()")
        raise ModelError(f"{_kind(owner)} has no attribute {name!r}", loc=loc, remedy=remedy) from None


def state_variable(ev: Evaluator, owner: StateRef, name: str, node: ast.AST, frame: Frame) -> Term:
    """``s.name``, where `s` is the state or a part of a composition."""
    if owner.names is not None:
        match owner.names.find(name, where(frame, node)):
            case ScopeNames() as part:
                return StateRef(owner.after, part)
            case PartFamily() as family:
                return family.seen(lambda part: StateRef(owner.after, part))
            case VariableName(name=variable):
                name = variable
    elif name not in ev.world.sorts:
        raise ModelError(
            f"no state variable {name!r}",
            loc=where(frame, node),
            remedy=near(name, list(ev.world.sorts), f"the state has {', '.join(ev.world.sorts)}"),
        )
    sort = ev.world.sorts[name]
    if owner.after:
        return b.next_(name, sort, where(frame, node))
    return places.variable(ev.world, name, sort)


def assigned_variable(ev: Evaluator, owner: StateRef, node: ast.Attribute, frame: Frame) -> str:
    """The variable that is assigned to as ``s.name``."""
    state_variable(ev, owner, node.attr, node, frame)
    if owner.names is None:
        return node.attr
    found = owner.names.find(node.attr, where(frame, node))
    if not isinstance(found, VariableName):
        raise ModelError(
            f"{text(node)} is a part, and cannot be assigned",
            loc=where(frame, node),
            remedy=f"assign to its variables: {text(node)}.name = ...",
        )
    return found.name


def _place_attribute(ev: Evaluator, owner: Ref, node: ast.Attribute, frame: Frame) -> Term:
    name, loc = node.attr, where(frame, node)
    if isinstance(owner.sort, RecordSort):
        return places.settle(ev.world, places.attribute(ev.world, owner, name, loc))
    if isinstance(owner.sort, QueueSort) and name in ("head", "full"):
        return _queue_attribute(ev, places.read(ev.world, owner), node, frame)
    if not isinstance(owner.sort, QueueSort | SetSort):
        raise methods.no_method(owner.sort, name, loc)
    return Method(owner, name)


def _queue_attribute(ev: Evaluator, whole: Expr, node: ast.Attribute, frame: Frame) -> Term:
    loc, sort = where(frame, node), whole.sort
    assert isinstance(sort, QueueSort)
    if node.attr == "full":
        return b.less_eq(b.num(sort.capacity), b.length(whole), loc)
    return methods.queue_head(ev.world, whole, loc, text(node.value))


def _term_attribute(ev: Evaluator, owner: Expr, node: ast.Attribute, frame: Frame) -> Term:
    name, loc = node.attr, where(frame, node)
    if isinstance(owner.sort, OptionSort):
        owner = places.present(ev.world, owner, loc, text(node.value))
    if isinstance(owner.sort, RecordSort):
        if name not in [n for n, _ in owner.sort.fields]:
            raise places.no_field(owner.sort, name, loc)
        return b.field(owner, name, loc)
    if isinstance(owner.sort, QueueSort) and name in ("head", "full"):
        return _queue_attribute(ev, owner, node, frame)
    if isinstance(owner.sort, QueueSort | SetSort):
        raise ModelError(
            f"{name!r} cannot change {describe(owner)} that is only a value here",
            loc=loc,
            remedy="change it where it lies in the state",
        )
    raise methods.no_method(owner.sort, name, loc)


def subscript(ev: Evaluator, node: ast.Subscript, frame: Frame) -> Term:
    """``owner[key]`` or a slice."""
    owner = ev.value(node.value, frame)
    if isinstance(node.slice, ast.Slice):
        return _slice(ev, owner, node.slice, where(frame, node), frame)
    key = plain(ev.world, ev.value(node.slice, frame))
    return indexed(ev, owner, key, node, frame)


def indexed(ev: Evaluator, owner: Term, key: Term, node: ast.Subscript, frame: Frame) -> Term:
    """``owner[key]``."""
    loc, label = where(frame, node), text(node.slice)
    if isinstance(owner, Cases):
        one, two = owner.then, owner.other
        return ev.world.either(
            owner.cond,
            lambda: indexed(ev, one, key, node, frame),
            lambda: indexed(ev, two, key, node, frame),
            loc,
        )
    if isinstance(owner, Ref) and isinstance(owner.sort, ArraySort):
        return places.settle(ev.world, places.item(ev.world, owner, key, loc, label))
    whole = plain(ev.world, owner)
    if is_expr(whole):
        if isinstance(whole.sort, OptionSort):
            whole = places.present(ev.world, whole, loc, text(node.value))
        if isinstance(whole.sort, ArraySort):
            return b.select(whole, places.index_term(ev.world, whole.sort, key, loc, label), loc)
        if isinstance(whole.sort, QueueSort):
            return methods.queue_item(ev.world, whole, key, loc, text(node.value))
        raise ModelError(f"{describe(whole)} cannot be indexed", loc=loc, remedy="arrays and queues can")
    content = ev.world.content(whole) if isinstance(whole, HeapCell) else whole
    if isinstance(content, StateRef):
        raise ModelError("the state is not indexed", loc=loc, remedy="write s.name")
    if isinstance(content, Several | Closure | Method):
        raise ModelError(f"{describe(content)} cannot be indexed", loc=loc, remedy="arrays, queues and lists can")
    is_known, host = known(key)
    if is_known:
        return operators.host(ev.world, lambda: content[host], loc)
    if not symbolic(content):
        expect_faithful(content, loc)
    if isinstance(content, Mapping) and content:
        return methods.pick_from_dict(ev.world, content, key, loc, label)
    if isinstance(content, list | tuple | range) and content:
        return methods.pick_from_list(ev.world, tuple(content), key, loc, label)
    raise ModelError(
        f"{describe(whole)} cannot be indexed by {describe(key)}", loc=loc, remedy="use a tuple, a list or a dict"
    )


def _slice(ev: Evaluator, owner: Term, node: ast.Slice, loc: Any, frame: Frame) -> Term:
    ends = [ev.value(x, frame) if x else None for x in (node.lower, node.upper, node.step)]
    content = ev.world.content(owner) if isinstance(owner, HeapCell) else owner
    if any(symbolic(x) for x in ends) or not isinstance(content, tuple | list | str | range):
        raise ModelError(
            "only local and host sequences can be sliced, at known positions", loc=loc, remedy="index one by one"
        )
    part = operators.host(ev.world, lambda: content[slice(*ends)], loc)
    if isinstance(part, list):
        expect_faithful(part, loc)
    if isinstance(owner, HeapCell):
        return ev.world.allocate(part)
    return ev.world.allocate(tuple(part)) if isinstance(part, list) else part


def _is_place(value: Term) -> bool:
    return isinstance(value, Ref)


def _kind(owner: object) -> str:
    """What to call the owner of an attribute that does not exist."""
    if isinstance(owner, types.ModuleType):
        return f"module {owner.__name__}"
    return "the base class" if isinstance(owner, super) else type(owner).__name__


def near(name: str, candidates: list[str], otherwise: str) -> str:
    """The candidate that `name` probably was meant to be, as a remedy."""
    found = nearest(name, (c for c in candidates if not c.startswith("_")))
    return f"did you mean {found[0]!r}?" if found else otherwise


def _mangled(name: str, frame: Frame) -> str:
    """A private name as Python stores it in the class that the function belongs to."""
    owner = getattr(frame.function, "__qualname__", "").split(".<locals>")[-1].split(".")[:-1]
    return f"_{owner[-1].lstrip('_')}{name}" if owner else name
