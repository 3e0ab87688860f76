"""Lowering of attribute access and indexing, on the state, its parts, and ordinary Python objects.

Purity of ordinary Python in rules: impure calls are rejected, and operations that are certainly pure are recognised. Lowering
itself is deterministic. Only user code called during lowering (functions, properties and operators) can differ between two
readings. Most rules call none.
"""

from __future__ import annotations

import ast
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any

from streamproof.base.errors import Loc, ModelError, suggest
from streamproof.language.declare.model import Model
from streamproof.language.declare.variables import State
from streamproof.language.free.symbolic_parameters import (
    OpenDeclaration,
    SymbolicInt,
    SymbolicRange,
    call_user,
    getter_of,
    watch,
)
from streamproof.language.lower import inlining, lvalues, operators
from streamproof.language.lower.cases import Case, is_case_class, no_such_field, with_field
from streamproof.language.lower.conversion import expect_faithful, no_field
from streamproof.language.lower.elements import in_sequence
from streamproof.language.lower.lowering_context import Evaluator, Frame, Halt, where
from streamproof.language.lower.lvalues import dereference
from streamproof.language.lower.sequences import listed
from streamproof.language.lower.sources import mangled, text
from streamproof.language.lower.steadiness import UNSTEADY, unsteady
from streamproof.language.lower.terms import (
    Cases,
    Closure,
    HeapCell,
    Method,
    NewCase,
    PartFamily,
    PartialList,
    Ref,
    ScopeNames,
    Several,
    StateRef,
    Term,
    VariableName,
    describe,
    is_expr,
    known,
    symbolic,
)
from streamproof.system import build as b
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
from streamproof.transform.assume import Assuming
from streamproof.transform.unbounded import Undecided

CHANGING = frozenset({"push", "append", "extend", "insert", "pop", "remove", "clear", "add", "discard"})
"""The methods that change a queue, set or bag in place."""
MUTABLE = (list, dict, set, bytearray, deque, OrderedDict, defaultdict, Counter)
CHANGES = {
    *(
        "append",
        "appendleft",
        "extend",
        "extendleft",
        "insert",
        "pop",
        "popleft",
        "popitem",
        "clear",
        "remove",
        "rotate",
    ),
    *("sort", "reverse", "add", "discard", "update", "setdefault", "subtract", "move_to_end", "difference_update"),
    *("intersection_update", "symmetric_difference_update", "__setitem__", "__delitem__", "__iadd__", "__ior__"),
}
EFFECTS = UNSTEADY | {"datetime", "os", "socket", "subprocess", "threading"}
EFFECTFUL = (print, input, open, exec, eval, setattr, delattr, globals, locals, vars, breakpoint, iter, next, id)
REMEDY = "nondeterminism comes from choose(...), and a rule changes the state only"


def mutation(what: str, loc: Loc) -> ModelError:
    """The error for a rule that mutates an ordinary Python object."""
    return ModelError(
        f"{what!r} changes a Python object that is not part of the state",
        loc=loc,
        remedy="everything that changes belongs to the state: declare it in state(); a local list starts with []",
    )


def refuse(function: Any, call: ast.Call, loc: Loc, *, draws: bool) -> None:
    """Raises `ModelError` if calling `function`, written as `call`, has side effects or is not deterministic.

    `draws`: random numbers and clocks are permitted, because the results are compared."""
    owner, name = getattr(function, "__self__", None), called(function)
    if isinstance(owner, MUTABLE) and name in CHANGES:
        raise mutation(text(call), loc)
    modules = {getattr(function, "__module__", None), type(owner).__module__ if owner is not None else None}
    modules |= {owner.__name__} if isinstance(owner, types.ModuleType) else set()
    effects = EFFECTS - UNSTEADY if draws else EFFECTS
    if function in EFFECTFUL or {str(m).split(".")[0] for m in modules} & effects:
        raise ModelError(f"{name}() has effects, or answers differently each time", loc=loc, remedy=REMEDY)
    plain = function.__func__ if isinstance(function, types.MethodType) else function
    if isinstance(plain, types.FunctionType) and not draws:
        module = unsteady(plain, type(owner).__mro__)
        if module:
            raise ModelError(
                f"{name}() uses the module {module!r}: it answers differently each time", loc=loc, remedy=REMEDY
            )


def called(function: Any) -> str:
    """The name of the called function."""
    return str(getattr(function, "__name__", type(function).__name__))


# --- certainly pure operations


_CONTAINERS = frozenset({list, dict, set, frozenset, tuple, range, str, bytes})
_VALUES = _CONTAINERS | {
    *(int, bool, float, complex, types.NoneType, types.EllipsisType, types.NotImplementedType),
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type, super),
    *(type({}.keys()), type({}.values()), type({}.items())),
    *(SymbolicInt, SymbolicRange),
}
"""Types whose inspection, comparison, iteration and printing run no user code."""
_CLASSES = frozenset({*_CONTAINERS, int, bool, float, enumerate, zip, reversed})
"""Classes used as pure functions."""
_MODULES = frozenset({"builtins", "math", "operator"})
"""Modules of pure functions."""
_LOOKED_UP = frozenset({types.FunctionType, staticmethod, classmethod, cached_property, types.MemberDescriptorType})
"""Types of class attributes that are read without user code, or computed once and cached."""


def is_plain_value(value: Any) -> bool:
    """Whether operations on a value run no user code, apart from its elements."""
    return type(value) in _VALUES or isinstance(value, Model | Case) or is_case_class(value) or symbolic(value)


def is_pure_call(function: Callable[..., Any], args: Iterable[Any]) -> bool:
    """Whether a call runs no user code."""
    if any(map(callable, args)):
        return False
    if type(function) is not types.BuiltinFunctionType:
        return function in _CLASSES if isinstance(function, type) else False
    owner = function.__self__
    return owner.__name__ in _MODULES if isinstance(owner, types.ModuleType) else type(owner) in _CONTAINERS


def is_plain_attribute(owner: Any, name: str) -> bool:
    """Whether reading an attribute runs no user code."""
    if isinstance(owner, types.ModuleType):
        return "__getattr__" not in vars(owner)
    kind: Any = type(owner)
    if kind is super:
        return _is_plain(owner.__self_class__, name)
    return _is_plain(kind, name) and (not isinstance(owner, type) or _is_plain(owner, name))


@lru_cache(maxsize=4096)
def _is_plain(kind: type, name: str) -> bool:
    """Whether no base class of `kind` computes the attribute by a descriptor or `__getattr__`."""
    for base in kind.__mro__:
        space = vars(base)
        if base not in (object, type, Model) and ("__getattr__" in space or "__getattribute__" in space):
            return base in _VALUES
        found = space.get(name)
        if found is not None and type(found) not in _LOOKED_UP and hasattr(type(found), "__get__"):
            return base in _VALUES
    return True


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
        case OpenDeclaration(value=State() as declared) if name == "items":
            return declared.items
        case NewCase(kind=kind):
            if name in kind.__match_args__:
                return owner.field(name)
            ev.context.check(b.TRUE, no_such_field(text(node.value), name), loc)
            raise Halt
        case Cases(then=Ref(sort=QueueSort() | SetSort() | BagSort()), other=Ref()) if name not in ("head", "full"):
            return Method(owner, name)
        case Cases():
            return ev.context.by_case(owner, lambda one: attribute(ev, one, node, frame), loc)
    if is_expr(owner):
        return _term_attribute(ev, owner, node, frame)
    if symbolic(owner):
        raise ModelError(f"{describe(owner)} has no {name!r}", loc=loc, remedy="index it, or use its elements")
    name = mangled(name, frame.function)
    if not is_plain_attribute(owner, name):
        ev.context.outside.impure = True
    try:
        return _host_attribute(ev, owner, name, frame, loc)
    except AttributeError:
        remedy = suggest(name, dir(owner), "define it in the model, for example in setup()")
        raise ModelError(f"{_kind(owner)} has no attribute {name!r}", loc=loc, remedy=remedy) from None


def _host_attribute(ev: Evaluator, owner: Any, name: str, frame: Frame, loc: Loc) -> Term:
    """The attribute of an ordinary object; that of a model with free parameters is read without ordinary Python."""
    own = watch()
    if own is None or not isinstance(owner, Model | super):
        return getattr(owner, name)
    setting = ev.context.attributes
    if setting is not None and owner is setting[0]:
        content = ev.context.content(setting[1])
        assert isinstance(content, Mapping)
        if name in content:
            return content[name]
    if name in own.names(owner):
        return object.__getattribute__(owner, name)
    getter = getter_of(owner, name)
    if getter is not None:
        return inlining.inline(ev, getter, [], {}, frame.depth + 1, loc)
    expect_plain_attribute(owner, name, loc)
    return getattr(owner, name) if isinstance(owner, super) else object.__getattribute__(owner, name)


def attribute_outside(owner: Model, name: str, what: str, loc: Loc | None) -> Any:
    """The attribute of a model, read outside of rules. Raises `ModelError`."""
    if watch() is None:
        return getattr(owner, name)
    getter = getter_of(owner, name)
    if getter is not None:
        return call_user(getter, (), what, loc)
    expect_plain_attribute(owner, name, loc)
    return object.__getattribute__(owner, name)


def expect_plain_attribute(owner: Any, name: str, loc: Loc | None) -> None:
    """Raises `Undecided` for an attribute that ordinary Python computes from the model."""
    if not is_plain_attribute(owner, name):
        raise Undecided(
            f"{name} of {_kind(owner)} is computed by ordinary Python, which could read a free parameter",
            loc=loc,
            remedy="write a function or a property, in the language of rules",
        )


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
    if isinstance(owner.sort, RecordSort) and name == "_replace":
        return Method(owner, name)
    if isinstance(owner.sort, RecordSort):
        return lvalues.load(ev.context, lvalues.attribute(ev.context, owner, name, loc))
    if isinstance(owner.sort, QueueSort) and name in ("head", "full"):
        return _queue_attribute(ev, lvalues.read(ev.context, owner), node, frame)
    if not isinstance(owner.sort, QueueSort | SetSort | BagSort):
        from streamproof.language.lower.methods import no_method

        raise no_method(owner.sort, name, loc)
    return Method(owner, name)


def _queue_attribute(ev: Evaluator, whole: Expr, node: ast.Attribute, frame: Frame) -> Term:
    loc, sort = where(frame, node), whole.sort
    assert isinstance(sort, QueueSort)
    if node.attr == "full":
        return b.less_eq(b.num(sort.capacity), b.length(whole), loc)
    from streamproof.language.lower.methods import queue_head

    return queue_head(ev.context, whole, loc, text(node.value))


def _term_attribute(ev: Evaluator, owner: Expr, node: ast.Attribute, frame: Frame) -> Term:
    name, loc = node.attr, where(frame, node)
    of_option = isinstance(owner.sort, OptionSort)
    if of_option:
        owner = lvalues.unwrap_option(ev.context, owner, loc, text(node.value))
    if isinstance(owner.sort, RecordSort) and name == "_replace":
        return Method(owner, name)
    if isinstance(owner.sort, RecordSort):
        if name not in [n for n, _ in owner.sort.fields]:
            raise no_field(owner.sort, name, loc)
        return b.field(owner, name, loc)
    if isinstance(owner.sort, UnionSort):
        return _case_field(ev, owner, node, loc)
    if isinstance(owner.sort, QueueSort) and name in ("head", "full"):
        return _queue_attribute(ev, owner, node, frame)
    if (isinstance(owner.sort, BagSort) and name == "count") or (
        isinstance(owner.sort, QueueSort) and name in ("count", "index")
    ):
        return Method(owner, name)
    if isinstance(owner.sort, QueueSort | SetSort | BagSort) and name in CHANGING:
        raise ModelError(
            f"{name!r} cannot change {describe(owner)} that is only a value here",
            loc=loc,
            remedy=f"an Option is assigned as a whole: {text(node.value)} = ..."
            if of_option
            else "change it where it lies in the state",
        )
    from streamproof.language.lower.methods import no_method

    raise no_method(owner.sort, name, loc)


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
    owner = lvalues.as_tuple(ev.context, owner, loc, text(node.value))
    if isinstance(owner, Cases):
        return ev.context.by_case(owner, lambda one: indexed(ev, one, key, node, frame), loc)
    if isinstance(owner, Ref) and isinstance(owner.sort, ArraySort):
        return lvalues.load(ev.context, lvalues.item(ev.context, owner, key, loc, label))
    whole = dereference(ev.context, owner)
    if is_expr(whole):
        if isinstance(whole.sort, OptionSort):
            whole = lvalues.unwrap_option(ev.context, whole, loc, text(node.value))
        if isinstance(whole.sort, ArraySort) and not isinstance(whole.sort, BagSort):
            return b.select(whole, lvalues.index_term(ev.context, whole.sort, key, loc, label), loc)
        if isinstance(whole.sort, QueueSort):
            from streamproof.language.lower.methods import queue_item

            return queue_item(ev.context, whole, key, loc, text(node.value))
        raise ModelError(f"{describe(whole)} cannot be indexed", loc=loc, remedy="arrays, queues and records can")
    content = ev.context.content(whole) if isinstance(whole, HeapCell) else whole
    if isinstance(content, StateRef):
        raise ModelError("the state is not indexed", loc=loc, remedy="write s.name")
    if isinstance(content, PartialList):
        from streamproof.language.lower.methods import list_item

        return list_item(ev.context, content.items, key, loc)
    if isinstance(content, Several | Closure | Method):
        raise ModelError(f"{describe(content)} cannot be indexed", loc=loc, remedy="arrays, queues and lists can")
    is_known, host = known(key)
    if is_known:
        return operators.host(ev.context, lambda: content[host], loc, host)
    if not symbolic(content):
        expect_faithful(content, loc)
    if isinstance(content, Mapping) and content:
        from streamproof.language.lower.lookups import pick_from_dict

        return pick_from_dict(ev.context, content, key, loc, label)
    if isinstance(content, list | tuple | range) and content:
        from streamproof.language.lower.lookups import pick_from_list

        return pick_from_list(ev.context, tuple(content), key, loc, label)
    raise ModelError(
        f"{describe(whole)} cannot be indexed by {describe(key)}", loc=loc, remedy="use a tuple, a list or a dict"
    )


def _slice(ev: Evaluator, owner: Term, node: ast.Slice, loc: Any, frame: Frame) -> Term:
    ends = [dereference(ev.context, ev.value(x, frame)) if x else None for x in (node.lower, node.upper, node.step)]
    owner = lvalues.contained_value(ev.context, lvalues.as_tuple(ev.context, owner, loc), loc)
    content = ev.context.content(owner) if isinstance(owner, HeapCell) else owner
    queue = isinstance(owner, Ref | Node) and isinstance(owner.sort, QueueSort)
    moving = isinstance(content, PartialList) or (isinstance(owner, HeapCell | list) and any(map(symbolic, ends)))
    if ends[2] is None and (queue or moving) and not isinstance(content, Mapping):
        items = in_sequence(ev.context, owner, loc)
        from streamproof.language.lower.methods import sliced

        return ev.context.allocate(listed(sliced(ev.context, items, ends[0], ends[1], loc)))
    if any(symbolic(x) for x in ends) or not isinstance(content, tuple | list | str | range):
        raise ModelError(
            f"{describe(owner)} cannot be sliced like this",
            loc=loc,
            remedy="queues and lists can, without a step; tuples and texts at known positions",
        )
    part = operators.host(ev.context, lambda: content[slice(*ends)], loc, *ends)
    if isinstance(part, list):
        expect_faithful(part, loc)
    if isinstance(owner, HeapCell):
        return ev.context.allocate(part)
    return ev.context.allocate(tuple(part)) if isinstance(part, list) else part


def _kind(owner: object) -> str:
    """A description, for messages, of the owner of a missing attribute."""
    if isinstance(owner, types.ModuleType):
        return f"module {owner.__name__}"
    return "the base class" if isinstance(owner, super) else type(owner).__name__
