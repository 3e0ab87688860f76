"""The components of an ordinary Python object through which a function with a reference to it could mutate it.

Immutable values are leaves, and so are the modules and classes of the standard library, streamproof and installed
packages; an instance of such a class is traversed like any other object.
"""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import types
import warnings
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import Any

from streamproof.language.sources import code_of

Parts = tuple[list[Any], list[Any]]
"""The components of an object, preceded by the names (or keys) of those that have one."""
Read = Callable[[Any], Parts]
"""Function that decomposes an object."""
_FIXED = frozenset(
    {
        *(bool, int, float, complex, str, bytes, range, slice, types.NoneType, types.EllipsisType, types.CodeType),
        *(types.NotImplementedType, types.WrapperDescriptorType, types.MethodDescriptorType, types.MethodWrapperType),
        *(types.GetSetDescriptorType, types.MemberDescriptorType, types.ClassMethodDescriptorType),
        *(types.GenericAlias, types.UnionType, type(threading.Lock()), type(threading.RLock())),
    }
)
_QUIET = frozenset(
    {
        *("streamproof", "logging", "threading", "weakref", "_weakref", "_weakrefset", "abc", "_abc", "typing", "re"),
        *("importlib", "_frozen_importlib", "_frozen_importlib_external", "inspect", "ast", "warnings", "pathlib"),
        *("datetime", "decimal", "zoneinfo", "concurrent", "multiprocessing", "asyncio", "site", "_sitebuiltins"),
    }
)
"""Packages whose objects are leaves: immutable, or with caches that do not affect results in rules."""
MEMORY = type(lru_cache(maxsize=1)(len))
"""The type of functions made by `functools.cache`: their results come and go."""
_OWN: set[str] = set()
"""Installed packages that contain models."""


def reader(kind: type) -> Read | None:
    """The function that decomposes objects of a type; None for leaves."""
    return _reader(kind)


@lru_cache(maxsize=4096)
def _reader(kind: Any) -> Read | None:
    if kind in _FIXED or kind.__module__.partition(".")[0] in _QUIET:
        return None
    if kind in _SPECIAL:
        return _SPECIAL[kind]
    if issubclass(kind, type):
        return _class
    container = next((_BASES[base] for base in kind.__mro__ if base in _BASES), None)
    slots = [d for base in kind.__mro__ for d in vars(base).values() if type(d) is types.MemberDescriptorType]
    native = any(_is_native(base) for base in kind.__mro__) and not issubclass(kind, int | str | float | bytes)
    opaque = container is None and native
    return partial(_object, slots, container, opaque) if kind.__dictoffset__ or slots or container or opaque else _plain


def _is_native(kind: Any) -> bool:
    """Whether a class is implemented in C, so that its instances may have hidden state."""
    return kind is not object and (
        not kind.__flags__ & 1 << 9 or type(vars(kind).get("__new__")) is types.BuiltinFunctionType
    )


def _object(slots: list[types.MemberDescriptorType], container: Read | None, opaque: bool, value: Any) -> Parts:
    """An instance: its attributes and slots, then its elements, its state, and its class."""
    try:
        space = object.__getattribute__(value, "__dict__")
    except AttributeError:
        space = {}
    names, found = list(space), list(space.values())
    for slot in slots:
        try:
            found.append(slot.__get__(value))
        except AttributeError:
            continue
        names.append(slot.__name__)
    if container is not None:
        keys, elements = container(value)
        found += keys
        found += elements
    if opaque:
        found.append(_state(value))
        if not space:
            found += gc.get_referents(value)
    found.append(type(value))
    return names, found


def _plain(value: Any) -> Parts:
    return [], [type(value)]


def _state(value: Any) -> bytes:
    """The hidden state of an object as its type exposes it; empty if the type exposes none."""
    if isinstance(value, types.GeneratorType):
        return str(-1 if value.gi_frame is None else value.gi_frame.f_lasti).encode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return pickle.dumps(value)
        except Exception:
            return b""


def _dict(value: Any) -> Parts:
    return list(dict.keys(value)), list(dict.values(value))


def _ordered(value: Any) -> Parts:
    return list(OrderedDict.keys(value)), list(OrderedDict.values(value))


def _default(value: Any) -> Parts:
    return list(dict.keys(value)), [*dict.values(value), value.default_factory]


def _referents(value: Any) -> Parts:
    return [], gc.get_referents(value)


def _wrapped(value: Any) -> Parts:
    return [], [value.__func__]


def _partial(value: Any) -> Parts:
    return [], [value.func, value.args, value.keywords]


def _arguments(value: Any) -> Parts:
    return [], [*value.args] if isinstance(value, BaseException) else []


def _function(value: types.FunctionType) -> Parts:
    names = [*value.__dict__, *value.__code__.co_freevars]
    found = [*value.__dict__.values(), *(value.__closure__ or ())]
    found += [value.__defaults__, value.__kwdefaults__, code_of(value), _home(value)]
    return names, found


@lru_cache(maxsize=4096)
def _home(function: types.FunctionType) -> Any:
    """The owner of a function's global variables: its module, or a dict; None for modules that are leaves."""
    space = function.__globals__
    if is_elsewhere(str(space.get("__name__", ""))):
        return None
    module = sys.modules.get(function.__module__)
    return module if getattr(module, "__dict__", None) is space else space


def _module(value: types.ModuleType) -> Parts:
    if is_elsewhere(value.__name__):
        return [], []
    names = [n for n in vars(value) if not n.startswith("__")]
    return names, [vars(value)[n] for n in names]


def _class(value: type) -> Parts:
    if is_elsewhere(value.__module__):
        return [], []
    own = {n: v for n, v in vars(value).items() if not n.endswith("_") or isinstance(v, types.FunctionType)}
    return list(own), [*own.values(), *value.__bases__]


def _memory(value: Any) -> Parts:
    found: list[Any] = []
    for one in gc.get_referents(value):
        found += dict.values(one) if type(one) is dict else [one]
    return [], found


def _variable(value: ContextVar[Any]) -> Parts:
    return [], [value.get(None)]


_SPECIAL: dict[type, Read] = {
    dict: _dict,
    OrderedDict: _ordered,
    defaultdict: _default,
    **dict.fromkeys((list, tuple, set, frozenset, deque, property, types.CellType, types.MethodType), _referents),
    **dict.fromkeys((types.MappingProxyType, types.BuiltinFunctionType), _referents),
    **dict.fromkeys((staticmethod, classmethod), _wrapped),
    types.FunctionType: _function,
    types.ModuleType: _module,
    partial: _partial,
    MEMORY: _memory,
    ContextVar: _variable,
}
_BASES: dict[type, Read] = {**_SPECIAL, **dict.fromkeys((types.SimpleNamespace, BaseException), _arguments)}
"""Further components of instances, beside attributes, by the class that contributes them."""


def own(module: str) -> None:
    """Includes the package of a module, even if it is installed, because it contains a model. Functions made here have
    none."""
    top = module.partition(".")[0]
    if top != "streamproof" and top not in sys.stdlib_module_names and top not in _OWN:
        _OWN.add(top)
        is_elsewhere.cache_clear()
        _home.cache_clear()


@lru_cache(maxsize=4096)
def is_elsewhere(module: str) -> bool:
    """Whether a module belongs to the standard library, streamproof, or an installed package without models."""
    top = module.partition(".")[0]
    if top in _OWN:
        return False
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return top in sys.stdlib_module_names or top == "streamproof" or "-packages" in file
