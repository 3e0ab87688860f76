"""Integer constants in a model's source: the values for which a rule may behave differently from all other values."""

from __future__ import annotations

import ast
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from enum import Enum, EnumType
from functools import _lru_cache_wrapper, cached_property, partial
from typing import Any

from streamproof.base.errors import ModelError
from streamproof.language.declare.model import Model
from streamproof.language.lower.sources import PACKAGE, definition, is_installed, is_standard, is_users

MOST = 64
"""Maximum number of integers returned, smallest absolute value first."""
LARGEST = 10**6
DEPTH = 12
"""Maximum depth of nested function calls and containers that are inspected."""


def integers_in(cls: type[Model], properties: Iterable[Callable[..., Any]] = ()) -> list[int]:
    """The integers in the code and data of a model, of the functions that it calls, and of external `properties`."""
    found: set[int] = set()
    seen: set[int] = set()
    for base in cls.__mro__:
        if base in (object, Model):
            continue
        found.update(_in_class(base, seen, DEPTH))
    for function in properties:
        found.update(_in(function, seen, DEPTH))
    return sorted((n for n in found if abs(n) <= LARGEST), key=lambda n: (abs(n), n))[:MOST]


def _in(value: Any, seen: set[int], depth: int) -> Iterator[int]:
    kind = type(value)
    if kind is int:
        yield value
    elif kind is float and value.is_integer():
        yield int(value)
    elif kind is str:
        yield from map(int, re.findall(r"\d{1,6}", value) if len(value) < 40 else ())
    if not depth or id(value) in seen or kind in (int, float, str, bool):
        return
    seen.add(id(value))
    if isinstance(value, staticmethod | classmethod | types.MethodType):
        yield from _in(value.__func__, seen, depth)
    elif isinstance(value, property):
        yield from _in(value.fget, seen, depth)
    elif isinstance(value, cached_property):
        yield from _in(value.func, seen, depth)
    elif isinstance(value, types.FunctionType):
        if not value.__code__.co_filename.startswith(PACKAGE) and not is_standard(value.__code__.co_filename):
            yield from _written(value)
            yield from _in_code(value.__code__, value.__globals__, seen, depth)
        yield from _in((value.__defaults__, value.__kwdefaults__), seen, depth)
        for cell in value.__closure__ or ():
            try:
                yield from _in(cell.cell_contents, seen, depth - 1)
            except ValueError:  # unbound cell
                continue
    elif isinstance(value, Mapping):
        for key, held in list(value.items())[:MOST]:
            yield from _in(key, seen, depth - 1)
            yield from _in(held, seen, depth - 1)
    elif isinstance(value, list | tuple | AbstractSet):
        for held in list(value)[:MOST]:
            yield from _in(held, seen, depth - 1)
    elif isinstance(value, EnumType):
        yield from _in(list(value.__members__.values()), seen, depth)
    elif isinstance(value, type):
        for base in value.__mro__:
            if _is_written(base):
                yield from _in_class(base, seen, depth - 1)
    elif isinstance(value, range):
        yield from (value.start, value.stop)
    elif isinstance(value, partial):
        yield from _in((value.func, value.args, value.keywords), seen, depth)
    elif isinstance(value, _lru_cache_wrapper):
        yield from _in(value.__wrapped__, seen, depth)
    elif isinstance(value, Enum):
        yield from _in(value.value, seen, depth)
    elif isinstance(value, types.BuiltinMethodType | types.MethodWrapperType):
        yield from _in(value.__self__, seen, depth - 1)


def _written(function: types.FunctionType) -> Iterator[int]:
    """The integers in the source of a user function, where constant folding of the bytecode would hide them."""
    if is_users(function.__code__.co_filename) and not is_installed(function.__code__.co_filename):
        with suppress(ModelError):
            for node in ast.walk(definition(function)):
                if isinstance(node, ast.Constant) and type(node.value) in (int, float):
                    yield from _in(node.value, set(), 0)


def _is_written(kind: type) -> bool:
    """Whether a class is user code; a class of a module missing from `sys.modules` counts as user code."""
    if kind.__module__ not in sys.modules:
        return True
    file = getattr(sys.modules[kind.__module__], "__file__", None) or "<"
    return is_users(file) and not is_installed(file)


def _in_code(code: types.CodeType, space: Mapping[str, Any], seen: set[int], depth: int) -> Iterator[int]:
    for held in code.co_consts:
        if isinstance(held, types.CodeType):
            yield from _in_code(held, space, seen, depth)
        else:
            yield from _in(held, seen, depth)
    for name in code.co_names:
        held = space.get(name)
        if isinstance(held, types.ModuleType):
            file = getattr(held, "__file__", None) or "<"
            if is_users(file) and not is_installed(file):
                for part in code.co_names:
                    yield from _in(vars(held).get(part), seen, depth - 1)
        else:
            yield from _in(held, seen, depth - 1)


def _in_class(kind: type, seen: set[int], depth: int) -> Iterator[int]:
    for name, value in vars(kind).items():
        if not name.startswith("__") or callable(value):  # neither the source file nor the text is available
            yield from _in(value, seen, depth)
