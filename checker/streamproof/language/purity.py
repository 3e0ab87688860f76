"""Purity of ordinary Python in rules: rejection of impure calls, and recognition of operations that are certainly pure.

Lowering itself is deterministic. Only user code called during lowering (functions, properties and operators) can differ
between two readings. Most rules call none.
"""

from __future__ import annotations

import ast
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Any

from streamproof.language.cases import Case, is_case_class
from streamproof.language.model import Model
from streamproof.language.sources import code_of, text
from streamproof.language.symbolic_parameters import SymbolicInt, SymbolicRange
from streamproof.language.terms import symbolic
from streamproof.system.errors import Loc, ModelError

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
UNSTEADY = frozenset({"random", "time", "secrets", "uuid"})
"""Modules whose functions are not deterministic."""
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


def refuse(function: Any, call: ast.Call, loc: Loc) -> None:
    """Raises `ModelError` if calling `function`, written as `call`, has side effects or is not deterministic."""
    owner, name = getattr(function, "__self__", None), called(function)
    if isinstance(owner, MUTABLE) and name in CHANGES:
        raise mutation(text(call), loc)
    modules = {getattr(function, "__module__", None), type(owner).__module__ if owner is not None else None}
    modules |= {owner.__name__} if isinstance(owner, types.ModuleType) else set()
    if function in EFFECTFUL or {str(m).split(".")[0] for m in modules} & EFFECTS:
        raise ModelError(f"{name}() has effects, or answers differently each time", loc=loc, remedy=REMEDY)
    plain = function.__func__ if isinstance(function, types.MethodType) else function
    if isinstance(plain, types.FunctionType):
        module = _unsteady(plain, type(owner).__mro__)
        if module:
            raise ModelError(
                f"{name}() uses the module {module!r}: it answers differently each time", loc=loc, remedy=REMEDY
            )


def called(function: Any) -> str:
    """The name of the called function."""
    return str(getattr(function, "__name__", type(function).__name__))


@lru_cache(maxsize=4096)
def _unsteady(function: types.FunctionType, owners: tuple[type, ...]) -> str | None:
    """The nondeterministic module that a Python function, or a function that it names, belongs to."""
    seen: set[types.FunctionType] = set()
    todo = [function]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        for name in _names(code_of(current)):
            value = current.__globals__.get(name)
            if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] in UNSTEADY:
                return value.__name__
            if str(getattr(value, "__module__", "")).split(".")[0] in UNSTEADY or _drawn(value):
                return name
            for found in (value, *(vars(owner).get(name) for owner in owners)):
                if isinstance(found, types.FunctionType):
                    todo.append(found)
    return None


def _drawn(value: Any) -> bool:
    """Whether `value` is a method of a random number generator."""
    return type(getattr(value, "__self__", None)).__module__ in UNSTEADY


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _names(part)


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
        if base not in (object, type) and ("__getattr__" in space or "__getattribute__" in space):
            return base in _VALUES
        found = space.get(name)
        if found is not None and type(found) not in _LOOKED_UP and hasattr(type(found), "__get__"):
            return base in _VALUES
    return True
