"""Rejection of impure Python calls in rules: mutation of objects, input and output, and nondeterminism."""

from __future__ import annotations

import ast
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from streamproof.language.sources import code_of, text
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
