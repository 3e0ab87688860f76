"""A variant of a model in place of a machine that follows logs: its functions stand where the machine inherits its own."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from streamproof import Model
from streamproof.language.declare.model import marked
from streamproof.language.declare.primitives import ActionMark


def variants_of(machine: type[Model]) -> dict[str, type[Model]]:
    """The variants of the models that a machine has the rules of."""
    bases = [c for c in machine.__mro__ if issubclass(c, Model) and c is not Model and actions_of(c)]
    models = [c for c in _subclasses(bases[-1]) if c.variant is None] if bases else []
    return {f"{m.title()} ({n})": v for m in models for n, v in m.variants.items()}


def actions_of(model: type[Model]) -> set[str]:
    """The names of the actions of a class."""
    return {name for name, (mark, _) in marked(model).items() if isinstance(mark, ActionMark)}


def called_by(machine: type[Model], action: str) -> frozenset[str]:
    """The functions of a machine that an action calls, itself included."""
    kind: Any = machine  # for mypy, a `type[Model]` is not hashable
    return _called_by(kind, action)


@cache
def _called_by(machine: Any, action: str) -> frozenset[str]:
    found, open_names = set[str](), [action]
    while open_names:
        name = open_names.pop()
        functions = [vars(c)[name] for c in machine.__mro__ if inspect.isfunction(vars(c).get(name))]
        if name in found or not functions:
            continue
        found.add(name)
        open_names += [called for function in functions for called in function.__code__.co_names]
    return frozenset(found)


def _subclasses(cls: type[Model]) -> list[type[Model]]:
    return [cls, *(found for sub in cls.__subclasses__() for found in _subclasses(sub))]


@contextmanager
def varied(machine: type[Model], variant: type[Model]) -> Iterator[None]:
    """The functions of a variant stand in place of those that a machine inherits."""
    if issubclass(variant, machine):
        with in_place_of(machine, variant):
            yield
        return
    shared = next(c for c in machine.__mro__ if issubclass(variant, c))
    namespace: dict[str, Any] = {**vars(sys.modules[variant.__module__]), "_Shared": shared}
    below = [c for c in variant.__mro__ if c is not shared and issubclass(c, shared)]
    for cls in reversed(below):
        namespace["_Shared"] = _rebased(cls, namespace)
    other: Any = type(f"Varied{machine.__name__}", (machine, namespace["_Shared"]), {"__module__": machine.__module__})
    with in_place_of(machine, other):
        yield


@contextmanager
def in_place_of(machine: type[Model], other: Any) -> Iterator[None]:
    """Another machine stands where the bindings name one."""
    places = [
        (module, name)
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith("streamproof_specs")
        for name, value in list(vars(module).items())
        if value is machine
    ]
    cached = [v for m, _ in places for v in vars(m).values() if hasattr(v, "cache_clear")]
    for module, name in places:
        setattr(module, name, other)
    try:
        for function in cached:
            function.cache_clear()
        yield
    finally:
        for module, name in places:
            setattr(module, name, machine)
        for function in cached:
            function.cache_clear()


def _rebased(cls: type, namespace: dict[str, Any]) -> type:
    """A class with the functions of another one, of which `_Shared` in `namespace` is the base."""
    file = inspect.getsourcefile(cls) or ""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    node = next(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == cls.__name__)
    node.bases = [ast.copy_location(ast.Name("_Shared", ast.Load()), node.body[0])]
    node.keywords = []
    made = {**namespace, **vars(sys.modules[cls.__module__]), "_Shared": namespace["_Shared"]}
    exec(compile(ast.Module([node], []), file, "exec"), made)
    found: type = made[cls.__name__]
    return found
