"""Noticing that a rule changed an ordinary Python object: an attribute of the model, or a variable of its module."""

from __future__ import annotations

import copy
import types
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from streamproof.language.effects import MUTABLE
from streamproof.language.sources import place
from streamproof.system.errors import ModelError

_PLAIN = (bool, int, float, str, bytes, tuple, frozenset, types.NoneType)


class Unchanged:
    """Copies of what a rule could change from the inside of an ordinary Python function that it calls."""

    def __init__(self, model: object, functions: Iterable[Callable[..., Any]]) -> None:
        modules = {id(g): g for f in functions if (g := getattr(f, "__globals__", None)) is not None}
        self._model = model
        self._modules = list(modules.values())
        self._before = dict(self._copies())
        self._names = {name for name, _ in self._items()}

    def _items(self) -> Iterator[tuple[str, Any]]:
        yield from ((f"self.{n}", v) for n, v in vars(self._model).items())
        for module in self._modules:
            yield from ((n, v) for n, v in module.items() if not n.startswith("__"))

    def _copies(self) -> Iterator[tuple[str, Any]]:
        for name, value in self._items():
            if isinstance(value, MUTABLE):
                try:
                    yield name, copy.deepcopy(value)
                except Exception:  # holds something that cannot be copied: nothing to compare with
                    continue
            elif isinstance(value, _PLAIN):
                yield name, value

    def _computed(self, attribute: str) -> bool:
        return isinstance(getattr(type(self._model), attribute, None), cached_property)

    def check(self, function: Callable[..., Any]) -> None:
        """Raises `ModelError` when something has changed since; `function` is the rule that was read last."""
        now = dict(self._items())
        for name in sorted(now.keys() | self._before.keys()):
            if name in self._before:
                changed = _differs(now.get(name, _GONE), self._before[name])
            else:
                changed = name.startswith("self.") and name not in self._names and not self._computed(name[5:])
            if changed:
                raise ModelError(
                    f"reading {function.__name__}() changed {name}",
                    loc=place(function),
                    remedy="a function that a rule calls must not change Python objects (use functools.cache to "
                    "remember results); what changes belongs to the state",
                )


_GONE = object()


def _differs(now: Any, before: Any) -> bool:
    try:
        return type(now) is not type(before) or bool(now != before)
    except Exception:  # a type whose comparison does not answer
        return False
