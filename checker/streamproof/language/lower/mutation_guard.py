"""Detection of rules that mutate ordinary Python objects, as far as the functions that they call can reach them.

The components of an object are traversed through which a function with a reference to it could mutate it. Immutable values
are leaves, and so are the modules and classes of the standard library, streamproof and installed packages; an instance of
such a class is traversed like any other object.
"""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import types
import warnings
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import cached_property, lru_cache, partial
from operator import is_
from typing import Any

from streamproof.base.errors import ModelError
from streamproof.base.records import dataclass
from streamproof.language.lower.sources import place

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


def _referents(value: Any) -> Parts:
    return [], gc.get_referents(value)


def _function(value: types.FunctionType) -> Parts:
    names = [*value.__dict__, *value.__code__.co_freevars]
    found = [*value.__dict__.values(), *(value.__closure__ or ())]
    found += [value.__defaults__, value.__kwdefaults__, value.__code__, _home(value)]
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


_SPECIAL: dict[type, Read] = {
    dict: lambda value: (list(dict.keys(value)), list(dict.values(value))),
    OrderedDict: lambda value: (list(OrderedDict.keys(value)), list(OrderedDict.values(value))),
    defaultdict: lambda value: (list(dict.keys(value)), [*dict.values(value), value.default_factory]),
    **dict.fromkeys((list, tuple, set, frozenset, deque, property, types.CellType, types.MethodType), _referents),
    **dict.fromkeys((types.MappingProxyType, types.BuiltinFunctionType), _referents),
    **dict.fromkeys((staticmethod, classmethod), lambda value: ([], [value.__func__])),
    types.FunctionType: _function,
    types.ModuleType: _module,
    partial: lambda value: ([], [value.func, value.args, value.keywords]),
    MEMORY: _memory,
    ContextVar: lambda value: ([], [value.get(None)]),
}
_BASES: dict[type, Read] = {
    **_SPECIAL,
    types.SimpleNamespace: lambda value: ([], []),
    BaseException: lambda value: ([], [*value.args]),
}
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


MOST = 4_000_000
"""Maximum number of inspected objects. A model with more is rejected, because a mutation of the others would go unnoticed."""
_VALUES = frozenset({bool, int, float, complex, str, bytes})
_LASTING = frozenset({tuple, frozenset, types.MethodType, types.BuiltinFunctionType, property, types.MappingProxyType})
"""Types whose objects keep the same components, although the components may be mutable."""


@dataclass(slots=True, eq=False)
class _GuardedNode:
    """An object, its name for messages, and its components at the last check."""

    value: Any
    path: str
    read: Read
    names: list[Any]
    parts: list[Any]


class MutationGuard:
    """A snapshot of the objects that a rule could mutate inside an ordinary Python function that it calls."""

    def __init__(
        self, model: object, functions: Iterable[Callable[..., Any]], parts: Iterable[tuple[str, object]] = ()
    ) -> None:
        self._nodes: dict[int, _GuardedNode] = {}
        self._watched: list[_GuardedNode] = []
        self._values: dict[int, object] = {}
        """Values in which nothing can change, by number; kept, so that no other object gets a number of theirs."""
        self._size = 0
        functions = list(functions)
        for one in (type(model), *functions):
            own(one.__module__)
        roots = [("self", model), *((f"self.{path}", part) for path, part in parts)]
        self._reach([*roots, *((f.__name__, f) for f in functions)])

    def _reach(self, found: list[tuple[str, Any]]) -> None:
        """Adds objects and their components to the snapshot, breadth first."""
        for path, value in found:  # grows during the iteration
            read = reader(type(value))
            if read is None or id(value) in self._nodes:
                continue
            node = _GuardedNode(value, path, read, *read(value))
            self._nodes[id(value)] = node
            if type(value) not in _LASTING and (node.parts or not isinstance(value, type | types.ModuleType)):
                self._watched.append(node)
            self._add(node, found)

    def _add(self, node: _GuardedNode, found: list[tuple[str, Any]]) -> None:
        self._size += len(node.parts)
        if self._size > MOST:
            raise ModelError(
                f"functions of the model can reach more than {MOST:,} objects, and could change them unnoticed",
                loc=place(type(node.value)) if isinstance(node.value, types.FunctionType) else None,
                remedy="keep large data out of the model, its classes and modules",
            )
        named = len(node.names)
        for at, part in enumerate(node.parts):
            if reader(type(part)) is None or id(part) in self._nodes or id(part) in self._values:
                continue
            if _is_value(part):
                self._values[id(part)] = part
            else:
                found.append((_called(node, node.names[at] if at < named else at), part))
        found += [(node.path, key) for key in node.names if type(key) is not str and reader(type(key)) is not None]

    def check(self, function: Callable[..., Any]) -> None:
        """Raises `ModelError` if an object has changed since the last check; `function` is the rule read last."""
        found: list[tuple[str, Any]] = []
        for node in self._watched:
            names, parts = node.read(node.value)
            if _same(names, node.names) and _same(parts, node.parts):
                continue
            changed = None if type(node.value) is MEMORY else _difference(node, names, parts)
            if changed is not None:
                raise ModelError(
                    f"reading {function.__name__}() changed {changed}",
                    loc=place(function),
                    remedy="a function that a rule calls must not change Python objects (use functools.cache to "
                    "remember results); what changes belongs to the state",
                )
            self._size -= len(node.parts)
            node.names, node.parts = names, parts
            self._add(node, found)
        self._reach(found)


def _is_value(part: Any, depth: int = 4) -> bool:
    """Whether this is a tuple or frozenset of leaves and of such tuples, a few deep: nothing in it can change."""
    return type(part) in (tuple, frozenset) and all(
        reader(type(one)) is None or (depth > 1 and _is_value(one, depth - 1)) for one in part
    )


def _same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))


def _alike(one: Any, other: Any) -> bool:
    """Whether two components are equivalent."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if type(one) is tuple:
        return len(one) == len(other) and all(map(_alike, one, other))
    return type(one) in _VALUES and bool(one == other)


def _difference(node: _GuardedNode, names: list[Any], parts: list[Any]) -> str | None:
    """The name of a changed component, ignoring caches of results."""
    old, new = (
        {n if type(n) is str else id(n): (n, p) for n, p in zip(*both, strict=False)}
        for both in ((node.names, node.parts), (names, parts))
    )
    for key, (name, part) in old.items():
        if key not in new or not _alike(part, new[key][1]):
            return _called(node, name)
    for key, (name, part) in new.items():
        if key not in old and not _may_appear(node.value, name, part):
            return _called(node, name)
    if [key for key in new if key in old] != list(old):
        return node.path  # the order has changed
    rest, later = node.parts[len(node.names) :], parts[len(names) :]
    return None if len(rest) == len(later) and all(map(_alike, rest, later)) else node.path


def _may_appear(owner: Any, name: Any, part: Any) -> bool:
    """Whether a new attribute is a cached result or an imported module."""
    if isinstance(owner, types.ModuleType):
        return isinstance(part, types.ModuleType)
    if type(name) is not str or isinstance(owner, type):
        return False
    found = (vars(base).get(name) for base in type(owner).__mro__)
    return any(isinstance(one, cached_property) for one in found) or _is_installed(type(owner))


def _is_installed(kind: type) -> bool:
    """Whether objects of a class may cache results in new attributes, as those of networkx do."""
    return is_elsewhere(kind.__module__) and kind.__module__ not in ("builtins", "types", "collections")


def _called(node: _GuardedNode, name: Any) -> str:
    """The name, for messages, of a component: by its name, key or position."""
    owner = node.value
    if isinstance(owner, types.ModuleType):
        return str(name)
    if isinstance(owner, type | types.FunctionType):
        return f"{owner.__name__}.{name}" if type(name) is str else owner.__name__
    if type(owner) in (list, tuple, dict) and type(name) in _VALUES:
        return f"{node.path}[{name!r}]" if type(owner) is not dict or name in node.names else node.path
    return f"{node.path}.{name}" if type(name) is str else node.path
