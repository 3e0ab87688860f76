"""Detection of rules that mutate ordinary Python objects, as far as the functions that they call can reach them."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from functools import cached_property
from operator import is_
from typing import Any

from streamproof.language.reachable import MEMORY, Read, is_elsewhere, own, reader
from streamproof.language.sources import place
from streamproof.system.errors import ModelError
from streamproof.system.records import dataclass

MOST = 1_000_000
"""Maximum number of inspected objects. A model with more is rejected, because a mutation of the others would go unnoticed."""
_VALUES = frozenset({bool, int, float, complex, str, bytes})
_LASTING = frozenset({tuple, frozenset, types.MethodType, types.BuiltinFunctionType, property, types.MappingProxyType})
"""Types whose objects keep the same components, although the components may be mutable."""


@dataclass(slots=True, eq=False)
class _Node:
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
        self._nodes: dict[int, _Node] = {}
        self._watched: list[_Node] = []
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
            node = _Node(value, path, read, *read(value))
            self._nodes[id(value)] = node
            if type(value) not in _LASTING and (node.parts or not isinstance(value, type | types.ModuleType)):
                self._watched.append(node)
            self._add(node, found)

    def _add(self, node: _Node, found: list[tuple[str, Any]]) -> None:
        self._size += len(node.parts)
        if self._size > MOST:
            raise ModelError(
                f"functions of the model can reach more than {MOST:,} objects, and could change them unnoticed",
                loc=place(type(node.value)) if isinstance(node.value, types.FunctionType) else None,
                remedy="keep large data out of the model, its classes and modules",
            )
        named = len(node.names)
        for at, part in enumerate(node.parts):
            if reader(type(part)) is not None and id(part) not in self._nodes:
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


def _difference(node: _Node, names: list[Any], parts: list[Any]) -> str | None:
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


def _called(node: _Node, name: Any) -> str:
    """The name, for messages, of a component: by its name, key or position."""
    owner = node.value
    if isinstance(owner, types.ModuleType):
        return str(name)
    if isinstance(owner, type | types.FunctionType):
        return f"{owner.__name__}.{name}" if type(name) is str else owner.__name__
    if type(owner) in (list, tuple, dict) and type(name) in _VALUES:
        return f"{node.path}[{name!r}]" if type(owner) is not dict or name in node.names else node.path
    return f"{node.path}.{name}" if type(name) is str else node.path
