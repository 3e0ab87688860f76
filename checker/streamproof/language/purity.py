"""What ordinary Python certainly answers alike each time a rule is read.

A rule is lowered by our own code, which does the same each time. Only what the user's code is asked for meanwhile, its
functions, properties and operators, could be different at the next reading. Most rules ask it for nothing of the kind.
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
"""Types whose values are looked at, compared, gone through and shown by Python's own code."""
_CLASSES = frozenset({*_CONTAINERS, int, bool, float, enumerate, zip, reversed})
"""Classes that are called like functions."""
_MODULES = frozenset({"builtins", "math", "operator"})
"""Modules whose functions compute something from their arguments and do nothing else."""
_LOOKED_UP = frozenset({types.FunctionType, staticmethod, classmethod, cached_property, types.MemberDescriptorType})
"""Attributes of a class that are found without the user's code, or computed once and kept."""


def is_plain_value(value: Any) -> bool:
    """Whether a value is one that Python's own code, or lowering, deals with; in containers it is not looked."""
    return type(value) in _VALUES or isinstance(value, Model) or symbolic(value)


def is_pure_call(function: Callable[..., Any], args: Iterable[Any]) -> bool:
    """Whether a call runs none of the user's code."""
    if any(map(callable, args)):
        return False
    if type(function) is not types.BuiltinFunctionType:
        return function in _CLASSES if isinstance(function, type) else False
    owner = function.__self__
    return owner.__name__ in _MODULES if isinstance(owner, types.ModuleType) else type(owner) in _CONTAINERS


def is_plain_attribute(owner: Any, name: str) -> bool:
    """Whether reading an attribute runs none of the user's code."""
    if isinstance(owner, types.ModuleType):
        return "__getattr__" not in vars(owner)
    kind: Any = type(owner)
    if kind is super:
        return _is_plain(owner.__self_class__, name)
    return _is_plain(kind, name) and (not isinstance(owner, type) or _is_plain(owner, name))


@lru_cache(maxsize=4096)
def _is_plain(kind: type, name: str) -> bool:
    """Whether no class among those of `kind` computes the attribute, by a descriptor or in general."""
    for base in kind.__mro__:
        space = vars(base)
        if base not in (object, type) and ("__getattr__" in space or "__getattribute__" in space):
            return base in _VALUES
        found = space.get(name)
        if found is not None and type(found) not in _LOOKED_UP and hasattr(type(found), "__get__"):
            return base in _VALUES
    return True
