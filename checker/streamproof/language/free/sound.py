"""The functions that may be called with arguments that contain free parameters, listed by identity.

Each function on the list either uses only operations that a `SymbolicInt` supports or rejects, or only stores and passes on
its arguments. Any other function is rejected where it could reach a free parameter.
"""

from __future__ import annotations

import abc
import builtins
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import gc
import itertools
import math
import operator
import sys
import types
import typing
from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any

from streamproof.language.free.rewritten import functions_of, is_users
from streamproof.language.free.symbolic_parameters import Hostile, SymbolicInt, SymbolicRange
from streamproof.language.lower.sources import PACKAGE, codes

DEEPEST = 50_000
"""Maximum number of objects searched for free parameters."""

_LISTED: list[Any] = [
    *(v for v in vars(builtins).values() if isinstance(v, type) and issubclass(v, BaseException)),
    list, tuple, dict, set, frozenset, enumerate, zip, map, filter, reversed, slice, property, staticmethod, classmethod,
    bool, int, float, complex, str, sum, min, max, any, all, sorted, len, iter, next, isinstance, callable, getattr,
    setattr, hasattr, delattr, abs, round, divmod, pow, repr, format, hash, print, vars, object, range,
    *(v for n, v in vars(itertools).items() if not n.startswith("_")),
    *(getattr(operator, n) for n in operator.__all__ if n not in ("is_", "is_not", "mod", "imod")),
    functools.partial, functools.reduce, functools.lru_cache, functools.cache, functools.wraps, functools.update_wrapper,
    functools.cmp_to_key, functools.cached_property, functools.partialmethod, functools.total_ordering,
    functools.singledispatch,
    collections.deque, collections.defaultdict, collections.OrderedDict, collections.Counter, collections.ChainMap,
    collections.namedtuple, copy.copy, copy.deepcopy, math.prod,
    contextlib.contextmanager, contextlib.suppress, contextlib.nullcontext, contextlib.closing, contextlib.ExitStack,
    dataclasses.dataclass, dataclasses.field, dataclasses.replace, dataclasses.fields, dataclasses.is_dataclass,
    dataclasses.asdict, dataclasses.astuple,
    enum.Enum, enum.IntEnum, enum.StrEnum, enum.Flag, enum.IntFlag, enum.auto, enum.unique,
    types.SimpleNamespace, types.MappingProxyType, types.GenericAlias, abc.ABC, abc.abstractmethod,
    typing.cast, typing.NamedTuple, typing.Generic, typing.Protocol,
]  # fmt: skip
_CONTAINERS: tuple[type, ...] = (
    list, tuple, dict, set, frozenset, collections.deque, collections.defaultdict, collections.OrderedDict,
    types.MappingProxyType, types.GeneratorType, enumerate, zip, map, filter, reversed, BaseException, type(iter([])),
    type(iter(())), type(iter({})), type(iter(set())), type({}.keys()), type({}.values()), type({}.items()),
    *(v for v in vars(itertools).values() if isinstance(v, type)),
)  # fmt: skip
_MADE: tuple[type, ...] = (operator.itemgetter, operator.attrgetter)
"""Types of function objects that only use operations of their arguments."""
_LOOKING = (type, id, operator.is_, operator.is_not, issubclass, super)
"""Functions that inspect an object without calling its operations, though not its elements."""
_WITH = (
    map, filter, sorted, min, max, iter, functools.partial, functools.reduce, functools.cmp_to_key, functools.lru_cache,
    functools.cache, functools.partialmethod, collections.defaultdict, property, functools.cached_property,
    itertools.accumulate, itertools.dropwhile, itertools.filterfalse, itertools.groupby, itertools.starmap,
    itertools.takewhile, *([operator.call] if hasattr(operator, "call") else []),
)  # fmt: skip
"""Higher-order functions, which call their arguments."""

_SOUND = {id(f): f for f in _LISTED}
_DESCRIBED = {id(d): d for kind in _CONTAINERS for d in vars(kind).values() if callable(d)}
_DESCRIBED |= {id(d): d for d in (property.getter, property.setter, property.deleter)}
_CLASS_MADE = {
    id(d): d for kind in _CONTAINERS for d in vars(kind).values() if type(d) is types.ClassMethodDescriptorType
}
_OF_OBJECT = {id(d): d for d in vars(object).values() if callable(d) and d is not vars(object)["__format__"]}


def _codes_of(modules: Iterable[types.ModuleType]) -> dict[int, types.CodeType]:
    """The code of every function defined in the given modules."""
    found: dict[int, types.CodeType] = {}
    for module in modules:
        for function in functions_of(frozenset({str(module.__file__)})):
            found.update((id(code), code) for code in codes(function.__code__))
    return found


_SOUND_CODES = _codes_of((collections, contextlib, copy, dataclasses, enum, functools, types, typing, abc))
"""For the modules of the listed functions: code that Python itself calls, such as methods and the results of decorators."""
_PLAIN = frozenset({int, bool, str, bytes, float, complex, type(None), types.ModuleType, types.CodeType, range})


def is_free(value: Any) -> bool:
    """Whether a value itself depends on free parameters; calls none of its operations."""
    return type(value) is SymbolicInt or type(value) is SymbolicRange


def is_sound_code(code: types.CodeType) -> bool:
    """Whether a code object belongs to a standard library function that only uses operations of its arguments."""
    return id(code) in _SOUND_CODES


def looks(function: Any) -> bool:
    """Whether a function inspects an object without calling its operations."""
    return any(function is f for f in _LOOKING)


def calls(function: Any) -> bool:
    """Whether a function calls its arguments."""
    return any(function is f for f in _WITH)


def is_sound(function: Any, args: tuple[Any, ...]) -> bool:
    """Whether a function may receive free parameters; `args` are its positional arguments."""
    if id(function) in _SOUND:
        return True
    kind = type(function)
    if kind is types.FunctionType:
        return _is_sound_python(function)
    if looks(function) or id(function) in _OF_OBJECT:
        return not any(map(is_free, args))
    if isinstance(function, type):
        return _is_sound_type(function)
    if id(function) in _DESCRIBED:
        return True
    if kind is types.MethodWrapperType:
        return _is_bound(function, args)
    if kind is types.BuiltinMethodType:
        return _is_bound(function, args)
    if kind in _MADE:
        return True
    if kind is functools._lru_cache_wrapper:
        return is_sound(function.__wrapped__, args)
    call = _found(kind, "__call__")
    return isinstance(call, functools.partial) or _is_sound_python(call) or _is_ours(kind)


def _is_bound(function: Any, args: tuple[Any, ...]) -> bool:
    """Whether a C method is one of those listed, not another method of the same name."""
    owner = function.__self__
    if isinstance(owner, types.ModuleType) or owner is None:
        return False
    if function.__name__ == "__new__":
        return isinstance(owner, type) and function == vars(owner).get("__new__") and _is_sound_type(owner)
    for kind in owner.__mro__ if isinstance(owner, type) else type(owner).__mro__:
        found: Any = vars(kind).get(function.__name__)
        if type(found) not in _IN_C:
            continue
        bound = found.__get__(None, owner) if isinstance(owner, type) else found.__get__(owner, type(owner))
        if type(bound) is type(function) and bound == function:
            listed = id(found) in _DESCRIBED or id(found) in _CLASS_MADE
            return listed or (id(found) in _OF_OBJECT and not any(map(is_free, args)))
    return False


_IN_C = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)


def _is_sound_python(function: Any) -> bool:
    """Whether a Python function is the user's, streamproof's, or listed."""
    if not isinstance(function, types.FunctionType):
        return False
    code = function.__code__
    return is_sound_code(code) or is_users(code.co_filename) or id(code) in public_code()


@lru_cache(maxsize=1)
def public_code() -> dict[int, types.CodeType]:
    """The code of everything that a model may import from streamproof, including methods of its classes.

    The first call imports modules, which is user code for a profiler if there are import hooks.
    """
    found: dict[int, types.CodeType] = {}
    door = import_module("streamproof")
    for value in (getattr(door, name) for _, names in door.AUTHORING.values() for name in names.split()):
        kinds = value.__mro__ if isinstance(value, type) else type(value).__mro__
        members = [m for kind in kinds if _is_ours(kind) for m in vars(kind).values()]
        for member in (value, *(getattr(m, "__func__", getattr(m, "fget", m)) for m in members)):
            if isinstance(member, types.FunctionType):
                found.update((id(code), code) for code in codes(member.__code__))
    return found


def _is_sound_type(kind: type) -> bool:
    """Whether constructing an instance runs only user code, generated code, and listed functions."""
    if id(kind) in _SOUND or _is_ours(kind):
        return True
    maker = _found(type(kind), "__call__")
    known = id(type(kind)) in _METAS or id(maker) in _SOUND
    if not known and not isinstance(maker, types.FunctionType | functools.partial):
        return False
    for base in kind.__mro__:
        if id(base) in _SOUND or _is_ours(base):
            continue
        for name in ("__new__", "__init__"):
            made = vars(base).get(name)
            made = made.__func__ if isinstance(made, staticmethod) else made
            if made is None or isinstance(made, functools.partial) or id(made) in _OF_OBJECT:
                continue
            if not _is_sound_python(made) and not _is_text(made):
                return False
    return True


_METAS = {id(k): k for k in (type, abc.ABCMeta, enum.EnumType, type(typing.Protocol))}


def _is_text(made: Any) -> bool:
    """Whether a method is generated code, which is inspected when it runs."""
    return isinstance(made, types.FunctionType) and made.__code__.co_filename.startswith("<")


def _is_ours(kind: type) -> bool:
    """Whether a class is internal to streamproof, so that models cannot reach it."""
    if kind is SymbolicInt or kind is SymbolicRange or kind is Hostile:
        return False
    home = sys.modules.get(kind.__module__) if type(kind.__module__) is str else None
    if home is None or not str(getattr(home, "__file__", "")).startswith(PACKAGE):
        return False
    found: Any = home
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is kind


def _found(kind: type, name: str) -> Any:
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def reached(values: Iterable[Any]) -> Any:
    """A value that depends on free parameters, among `values` and everything reachable from them; None if there is none."""
    seen: set[int] = set()
    todo = list(values)
    while todo:
        value = todo.pop()
        kind = type(value)
        if kind is SymbolicInt or kind is SymbolicRange:
            return value
        if kind in _PLAIN or id(value) in seen:
            continue
        seen.add(id(value))
        if len(seen) > DEEPEST:
            return "what is given here"
        todo += _held(value, kind)
    return None


def _held(value: Any, kind: type) -> Iterable[Any]:
    """The references of a value, without those common to every function or class."""
    if kind is types.FunctionType:
        return [value.__defaults__, value.__kwdefaults__, vars(value), *(value.__closure__ or ())]
    if isinstance(value, type):
        home = sys.modules.get(value.__module__)
        elsewhere = home is not None and not is_users(getattr(home, "__file__", None) or PACKAGE)
        return [] if elsewhere else list(vars(value).values())
    if kind is dict and "__name__" in value and "__builtins__" in value:
        return []  # the module's globals
    if _is_ours(kind):
        return []
    return gc.get_referents(value)
