"""Noticing that a rule changed an ordinary Python object: an attribute of the model, or a variable of its module."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Any

from streamproof.language.effects import MUTABLE
from streamproof.language.sources import place
from streamproof.system.errors import ModelError

_PLAIN = (bool, int, float, str, bytes, types.NoneType)
_EXACTLY = frozenset(_PLAIN)
_WATCHED = (*MUTABLE, *_PLAIN, tuple, frozenset)
_LARGE = 10_000
"""Containers with more elements than this are compared by their length only."""


class Unchanged:
    """What a rule could change from the inside of an ordinary Python function that it calls, as it was before."""

    def __init__(
        self, model: object, functions: Iterable[Callable[..., Any]], parts: Iterable[tuple[str, object]] = ()
    ) -> None:
        modules = {id(g): g for f in functions if (g := getattr(f, "__globals__", None)) is not None}
        self._model = model
        self._parts = list(parts)
        self._modules = list(modules.values())
        owners = [type(model), *(type(part) for _, part in self._parts)]
        self._classes = list(dict.fromkeys(c for owner in owners for c in owner.__mro__ if _is_users(c)))
        spaces = [("self.", vars(model)), *((f"{c.__name__}.", vars(c)) for c in self._classes)]
        self._objects = [(f"{at}{n}", v) for at, space in spaces for n, v in space.items() if _has_attributes(v)]
        self._fixed = {name: (value, _print(value, ())) for name, value in self._items() if _is_fixed(value)}
        self._before = dict(self._prints())

    def _items(self) -> Iterator[tuple[str, Any]]:
        yield from ((f"self.{n}", v) for n, v in vars(self._model).items())
        for path, part in self._parts:
            yield from ((f"self.{path}.{n}", v) for n, v in vars(part).items())
        for cls in self._classes:
            yield from ((f"{cls.__name__}.{n}", v) for n, v in vars(cls).items() if _own(n, v))
        for module in self._modules:
            yield from ((n, v) for n, v in module.items() if _own(n, v))
        for name, value in self._objects:
            yield from ((f"{name}.{n}", v) for n, v in list(vars(value).items()) if isinstance(v, _PLAIN))

    def _prints(self) -> Iterator[tuple[str, Any]]:
        for name, value in self._items():
            fixed = self._fixed.get(name)
            yield name, fixed[1] if fixed is not None and fixed[0] is value else _print(value, ())

    def check(self, function: Callable[..., Any]) -> None:
        """Raises `ModelError` when something has changed since; `function` is the rule that was read last."""
        now = dict(self._prints())
        if now == self._before:
            return
        objects = {name for name, _ in self._objects}
        for name in sorted(now.keys() | self._before.keys()):
            if name not in self._before and (not name.startswith("self.") or self._computed(name[5:])):
                continue
            if name not in self._before and name.rpartition(".")[0] in objects:
                continue  # an object may remember results
            if now.get(name) != self._before.get(name):
                raise ModelError(
                    f"reading {function.__name__}() changed {name}",
                    loc=place(function),
                    remedy="a function that a rule calls must not change Python objects (use functools.cache to "
                    "remember results); what changes belongs to the state",
                )

    def _computed(self, attribute: str) -> bool:
        owners = [self._model, *(part for _, part in self._parts)]
        name = attribute.rpartition(".")[2]
        return any(isinstance(getattr(type(owner), name, None), cached_property) for owner in owners)


@lru_cache(maxsize=1024)
def _watched(kind: type) -> bool:
    """Whether variables of this type are watched; remembered, because there are many types to compare with."""
    return issubclass(kind, _WATCHED)


def _own(name: str, value: Any) -> bool:
    """Whether a variable of a class or module is watched."""
    return not name.startswith("__") and _watched(value.__class__)


def _is_users(cls: type) -> bool:
    """Whether a class of a model is written by its author."""
    return not cls.__module__.startswith("streamproof.language") and cls is not object


def _has_attributes(value: Any) -> bool:
    """Whether a value is an object whose plain attributes are watched: no container, class, function or module."""
    kind = value.__class__
    if kind.__module__.startswith(("streamproof.", "_frozen_importlib")):
        return False  # free parameters among them, which have no attributes
    return not issubclass(kind, (*_WATCHED, type, types.FunctionType, types.ModuleType)) and hasattr(value, "__dict__")


class _Same:
    """Stands for one object, and keeps it: its number alone could be that of another one, made after it is gone."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)


def _is_fixed(value: Any) -> bool:
    """Whether the print of this very object cannot change: nothing in it can be changed in place."""
    if isinstance(value, tuple | frozenset):
        return all(map(_is_fixed, value))
    return not isinstance(value, MUTABLE)


def _print(value: Any, inside: tuple[int, ...]) -> Any:
    """What identifies the content of a value: plain values by themselves, containers by theirs, the rest by identity."""
    if type(value) in _EXACTLY or isinstance(value, _PLAIN):
        return (type(value), value)
    if id(value) in inside or not isinstance(value, (*MUTABLE, tuple, frozenset)):
        return _Same(value)
    if len(value) > _LARGE:
        return ("large", len(value))
    within = (*inside, id(value))
    if isinstance(value, dict):
        return (_Same(value), tuple((_print(k, within), _print(v, within)) for k, v in value.items()))
    if isinstance(value, set | frozenset):
        return (_Same(value), frozenset(_print(v, within) for v in value))
    return (_Same(value) if isinstance(value, MUTABLE) else "tuple", tuple(_print(v, within) for v in value))
