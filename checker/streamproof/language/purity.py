"""Python operations that certainly give the same result at each reading of a rule.

Lowering itself is deterministic. Only user code called during lowering (functions, properties and operators) can differ
between two readings. Most rules call none.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from typing import Any

from streamproof.language.model import Model
from streamproof.language.symbolic_parameters import SymbolicInt, SymbolicRange
from streamproof.language.terms import symbolic

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
    return type(value) in _VALUES or isinstance(value, Model) or symbolic(value)


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
        if base not in (object, type) and ("__getattr__" in space or "__getattribute__" in space):
            return base in _VALUES
        found = space.get(name)
        if found is not None and type(found) not in _LOOKED_UP and hasattr(type(found), "__get__"):
            return base in _VALUES
    return True
