"""Lowering of attribute access and indexing, on the state, its parts, and ordinary Python objects."""

from __future__ import annotations

import ast
import types
from collections.abc import Mapping
from typing import Any

from streamproof.language import lvalues, methods, operators, sequence_methods
from streamproof.language.cases import no_such_field, with_field
from streamproof.language.conversion import expect_faithful
from streamproof.language.elements import in_sequence
from streamproof.language.lowering_context import Evaluator, Frame, Halt, where
from streamproof.language.lvalues import dereference
from streamproof.language.model import attribute_of
from streamproof.language.purity import is_plain_attribute
from streamproof.language.scopes import PartFamily, ScopeNames, VariableName
from streamproof.language.sequences import listed
from streamproof.language.sources import text
from streamproof.language.terms import (
    Cases,
    Closure,
    HeapCell,
    Method,
    NewCase,
    PartialList,
    Ref,
    Several,
    StateRef,
    Term,
    describe,
    is_expr,
    known,
    symbolic,
)
from streamproof.system import build as b
from streamproof.system.assume import Assuming
from streamproof.system.errors import Loc, ModelError, suggest
from streamproof.system.expr import Expr, Node
from streamproof.system.sorts import (
    ArraySort,
    BagSort,
    OptionSort,
    QueueSort,
    RecordSort,
    SetSort,
    UnionSort,
    compatible,
)


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
        case NewCase(kind=kind):
            if name in kind.__match_args__:
                return owner.field(name)
            ev.context.check(b.TRUE, no_such_field(text(node.value), name), loc)
            raise Halt
        case Cases(then=one, other=two) if _is_place(one) and _is_place(two):
            if isinstance(one.sort, QueueSort | SetSort | BagSort) and name not in ("head", "full"):
                return Method(Cases(owner.cond, one, two), name)
            return ev.context.conditional(
                owner.cond, lambda: attribute(ev, one, node, frame), lambda: attribute(ev, two, node, frame), loc
            )
        case Cases(then=one, other=two):
            return ev.context.conditional(
                owner.cond, lambda: attribute(ev, one, node, frame), lambda: attribute(ev, two, node, frame), loc
            )
    if is_expr(owner):
        return _term_attribute(ev, owner, node, frame)
    if symbolic(owner):
        raise ModelError(f"{describe(owner)} has no {name!r}", loc=loc, remedy="index it, or use its elements")
    if name.startswith("__") and not name.endswith("__"):
        name = _mangled(name, frame)
    if not is_plain_attribute(owner, name):
        ev.context.outside.impure = True
    try:
        return attribute_of(owner, name, ev.context.free)
    except AttributeError:
        remedy = suggest(name, dir(owner), "define it in the model, for example in setup()")
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
    elif name not in ev.context.sorts:
        raise ModelError(
            f"no state variable {name!r}",
            loc=where(frame, node),
            remedy=suggest(name, list(ev.context.sorts), f"the state has {', '.join(ev.context.sorts)}"),
        )
    sort = ev.context.sorts[name]
    if owner.after:
        return b.next_(name, sort, where(frame, node))
    return lvalues.variable(ev.context, name, sort)


def assigned_variable(ev: Evaluator, owner: StateRef, node: ast.Attribute, frame: Frame) -> str:
    """The state variable that ``s.name = ...`` assigns to."""
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
        return lvalues.load(ev.context, lvalues.attribute(ev.context, owner, name, loc))
    if isinstance(owner.sort, QueueSort) and name in ("head", "full"):
        return _queue_attribute(ev, lvalues.read(ev.context, owner), node, frame)
    if not isinstance(owner.sort, QueueSort | SetSort | BagSort):
        raise methods.no_method(owner.sort, name, loc)
    return Method(owner, name)


def _queue_attribute(ev: Evaluator, whole: Expr, node: ast.Attribute, frame: Frame) -> Term:
    loc, sort = where(frame, node), whole.sort
    assert isinstance(sort, QueueSort)
    if node.attr == "full":
        return b.less_eq(b.num(sort.capacity), b.length(whole), loc)
    return sequence_methods.queue_head(ev.context, whole, loc, text(node.value))


def _term_attribute(ev: Evaluator, owner: Expr, node: ast.Attribute, frame: Frame) -> Term:
    name, loc = node.attr, where(frame, node)
    if isinstance(owner.sort, OptionSort):
        owner = lvalues.unwrap_option(ev.context, owner, loc, text(node.value))
    if isinstance(owner.sort, RecordSort):
        if name not in [n for n, _ in owner.sort.fields]:
            raise lvalues.no_field(owner.sort, name, loc)
        return b.field(owner, name, loc)
    if isinstance(owner.sort, UnionSort):
        return _case_field(ev, owner, node, loc)
    if isinstance(owner.sort, QueueSort) and name in ("head", "full"):
        return _queue_attribute(ev, owner, node, frame)
    if isinstance(owner.sort, BagSort) and name == "count":
        return Method(owner, name)
    if isinstance(owner.sort, QueueSort | SetSort | BagSort):
        raise ModelError(
            f"{name!r} cannot change {describe(owner)} that is only a value here",
            loc=loc,
            remedy="change it where it lies in the state",
        )
    raise methods.no_method(owner.sort, name, loc)


def _case_field(ev: Evaluator, owner: Expr, node: ast.Attribute, loc: Loc) -> Expr:
    """A field of the value of a union, with a check that the value is of a case that has it."""
    name, sort = node.attr, owner.sort
    assert isinstance(sort, UnionSort)
    having = list(with_field(sort, name))
    if not having:
        remedy = suggest(name, [n for _, own in sort.cases for n, _ in own.fields], "match the cases")
        raise ModelError(f"no case of {sort} has a field {name!r}", loc=loc, remedy=remedy)
    if len(having) > 1:
        here = Assuming((ev.context.path, *(c.expr for c in ev.context.guards)))
        having = next(([case] for case in having if here(b.is_case(owner, case)) is b.TRUE), having)
    there = [b.is_case(owner, case, loc) for case in having]
    shown = text(node.value)
    ev.context.check(b.not_(b.or_(there)), no_such_field(shown, name), loc, (shown, owner))
    parts = [b.field(b.payload(owner, case, loc), name, loc) for case in having]
    found = parts.pop()
    for condition, part in zip(there[-2::-1], reversed(parts), strict=True):
        if not compatible(part.sort, found.sort):
            raise ModelError(
                f"the field {name!r} has different sorts in the cases of {sort}",
                loc=loc,
                remedy="read it in a 'match', where the case is known",
            )
        found = b.ite(condition, part, found, loc)
    return found


def subscript(ev: Evaluator, node: ast.Subscript, frame: Frame) -> Term:
    """``owner[key]`` or a slice."""
    owner = ev.value(node.value, frame)
    if isinstance(node.slice, ast.Slice):
        return _slice(ev, owner, node.slice, where(frame, node), frame)
    key = dereference(ev.context, ev.value(node.slice, frame))
    return indexed(ev, owner, key, node, frame)


def indexed(ev: Evaluator, owner: Term, key: Term, node: ast.Subscript, frame: Frame) -> Term:
    """``owner[key]``."""
    loc, label = where(frame, node), text(node.slice)
    if isinstance(owner, Cases):
        one, two = owner.then, owner.other
        return ev.context.conditional(
            owner.cond,
            lambda: indexed(ev, one, key, node, frame),
            lambda: indexed(ev, two, key, node, frame),
            loc,
        )
    if isinstance(owner, Ref) and isinstance(owner.sort, ArraySort):
        return lvalues.load(ev.context, lvalues.item(ev.context, owner, key, loc, label))
    whole = dereference(ev.context, owner)
    if is_expr(whole):
        if isinstance(whole.sort, OptionSort):
            whole = lvalues.unwrap_option(ev.context, whole, loc, text(node.value))
        if isinstance(whole.sort, ArraySort) and not isinstance(whole.sort, BagSort):
            return b.select(whole, lvalues.index_term(ev.context, whole.sort, key, loc, label), loc)
        if isinstance(whole.sort, QueueSort):
            return sequence_methods.queue_item(ev.context, whole, key, loc, text(node.value))
        raise ModelError(f"{describe(whole)} cannot be indexed", loc=loc, remedy="arrays and queues can")
    content = ev.context.content(whole) if isinstance(whole, HeapCell) else whole
    if isinstance(content, StateRef):
        raise ModelError("the state is not indexed", loc=loc, remedy="write s.name")
    if isinstance(content, PartialList):
        return sequence_methods.list_item(ev.context, content.items, key, loc)
    if isinstance(content, Several | Closure | Method):
        raise ModelError(f"{describe(content)} cannot be indexed", loc=loc, remedy="arrays, queues and lists can")
    is_known, host = known(key)
    if is_known:
        return operators.host(ev.context, lambda: content[host], loc)
    if not symbolic(content):
        expect_faithful(content, loc)
    if isinstance(content, Mapping) and content:
        return methods.pick_from_dict(ev.context, content, key, loc, label)
    if isinstance(content, list | tuple | range) and content:
        return methods.pick_from_list(ev.context, tuple(content), key, loc, label)
    raise ModelError(
        f"{describe(whole)} cannot be indexed by {describe(key)}", loc=loc, remedy="use a tuple, a list or a dict"
    )


def _slice(ev: Evaluator, owner: Term, node: ast.Slice, loc: Any, frame: Frame) -> Term:
    ends = [dereference(ev.context, ev.value(x, frame)) if x else None for x in (node.lower, node.upper, node.step)]
    content = ev.context.content(owner) if isinstance(owner, HeapCell) else owner
    queue = isinstance(owner, Ref | Node) and isinstance(owner.sort, QueueSort)
    moving = isinstance(content, PartialList) or (isinstance(owner, HeapCell | list) and any(map(symbolic, ends)))
    if ends[2] is None and (queue or moving) and not isinstance(content, Mapping):
        items = in_sequence(ev.context, owner, loc)
        return ev.context.allocate(listed(sequence_methods.sliced(ev.context, items, ends[0], ends[1], loc)))
    if any(symbolic(x) for x in ends) or not isinstance(content, tuple | list | str | range):
        raise ModelError(
            f"{describe(owner)} cannot be sliced like this",
            loc=loc,
            remedy="queues and lists can, without a step; tuples and texts at known positions",
        )
    part = operators.host(ev.context, lambda: content[slice(*ends)], loc)
    if isinstance(part, list):
        expect_faithful(part, loc)
    if isinstance(owner, HeapCell):
        return ev.context.allocate(part)
    return ev.context.allocate(tuple(part)) if isinstance(part, list) else part


def _is_place(value: Term) -> bool:
    return isinstance(value, Ref)


def _kind(owner: object) -> str:
    """A description, for messages, of the owner of a missing attribute."""
    if isinstance(owner, types.ModuleType):
        return f"module {owner.__name__}"
    return "the base class" if isinstance(owner, super) else type(owner).__name__


def _mangled(name: str, frame: Frame) -> str:
    """The mangled form of a private name in the class that defines the function."""
    owner = getattr(frame.function, "__qualname__", "").split(".<locals>")[-1].split(".")[:-1]
    return f"_{owner[-1].lstrip('_')}{name}" if owner else name
