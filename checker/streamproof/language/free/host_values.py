"""Terms of free parameters as ordinary Python has them, for assignments to a model and for declarations."""

from __future__ import annotations

import types
from abc import ABCMeta
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Generic

from streamproof.base.errors import Loc
from streamproof.language.declare.declarations import attribute_place, class_place
from streamproof.language.declare.model import Model
from streamproof.language.free.symbolic_parameters import OpenDeclaration, SymbolicInt, as_term, call_user, expect_sums
from streamproof.language.lower.inlining import call_closure
from streamproof.language.lower.lowering_context import Evaluator
from streamproof.language.lower.sources import lowered_at, place
from streamproof.language.lower.terms import (
    Closure,
    HeapCell,
    NewCase,
    PartialList,
    Term,
    describe,
    is_expr,
    simple,
    symbolic,
)
from streamproof.system.expr import variables
from streamproof.system.sorts import BoolSort, RangeSort
from streamproof.transform.unbounded import Undecided


def host_value(ev: Evaluator, term: Term, loc: Loc) -> Any:
    """A term without the state as ordinary Python has it: a `SymbolicInt` for a term of free parameters.

    Raises `Undecided` for a value that is none."""
    context = ev.context
    term = simple(term)
    if isinstance(term, OpenDeclaration):
        return term.value
    if isinstance(term, HeapCell):
        content = context.content(term)
        if isinstance(content, Mapping):
            return {key: host_value(ev, value, loc) for key, value in content.items()}
        if not isinstance(content, PartialList):
            return [host_value(ev, value, loc) for value in content]
    if type(term) is tuple:
        return tuple(host_value(ev, value, loc) for value in term)
    if is_expr(term) and isinstance(term.sort, BoolSort | RangeSort) and variables(term) <= context.free:
        return SymbolicInt(term)
    if symbolic(term):
        raise Undecided(
            f"{describe(term).removesuffix(', depending on the state')}, which depends on a free parameter",
            loc=loc,
            remedy="decide inside a rule, or give the parameter a value",
        )
    return term


def declaration(ev: Evaluator, function: Any, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    """A call of one of streamproof's own functions, such as `Range`, with free parameters. Raises `ModelError`."""

    def given(value: Term) -> Any:
        if isinstance(value, Closure):  # each(3, lambda c: ...)
            return lambda *keys: given(call_closure(ev, value, list(keys), {}, value.frame, loc))
        if isinstance(value, types.FunctionType | types.MethodType):
            return lambda *keys: call_user(value, keys, str(getattr(value, "__name__", value)), loc)
        if isinstance(value, NewCase):
            return value.kind(*map(given, value.values))
        made = host_value(ev, value, loc)
        expect_sums(made, loc)
        return made

    kind = function if isinstance(function, type) else getattr(function, "__self__", None)
    if isinstance(kind, type) and issubclass(kind, Model):
        expect_ordinary(kind)
    with lowered_at(loc):
        found = function(*map(given, args), **{name: given(value) for name, value in kwargs.items()})
    if isinstance(found, Iterator):  # of `State.items`
        return tuple((name, as_term(decl)) for name, decl in found)
    return as_term(found)


def expect_ordinary(kind: type[Model]) -> None:
    """Raises `Undecided` for a model of which ordinary Python gets an instance before its rules are read."""
    if type(kind) not in (type, ABCMeta):
        raise Undecided(f"{kind.__name__} has a metaclass", loc=class_place(kind), remedy="leave it out")
    for base in kind.__mro__:
        for name, member in vars(base).items():
            if base not in (object, Model, Generic) and _is_called(name, member):
                raise Undecided(
                    f"{name} of {base.__name__} is ordinary Python, which could read a free parameter",
                    loc=place(member) or attribute_place(base, name) or class_place(kind),
                    remedy="write a function or a property, in the language of rules",
                )


def _is_called(name: str, member: Any) -> bool:
    """Whether Python itself calls a member of a class: a special method, a descriptor, or what sets a property."""
    if name.startswith("__") and name.endswith("__"):
        return name not in _OF_CLASSES and (callable(member) or hasattr(type(member), "__get__"))
    if type(member) is property:
        return member.fset is not None or member.fdel is not None
    return type(member) not in _KNOWN and any(hasattr(type(member), n) for n in ("__get__", "__set__", "__delete__"))


_OF_CLASSES = frozenset({"__dict__", "__weakref__", "__init_subclass__", "__class_getitem__", "__subclasshook__"})
"""Special names of classes, not of instances."""
_KNOWN = frozenset({types.FunctionType, staticmethod, classmethod, cached_property, types.MemberDescriptorType})
"""Descriptors that only the lowering calls."""
