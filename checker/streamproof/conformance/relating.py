"""What relates the machine that follows a log to the model that the verdict names.

Only `same` and `refines` let an accepted log say something about the model. The relation is computed from the classes: no
binding states it. That a subclass only adds to its model, or restricts it, and that each refinement holds, is shown by
tests of the machines.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from streamproof.conformance.relation import KINDS, Relation
from streamproof.language.declare.model import Model, marked
from streamproof.language.declare.origin import model_of
from streamproof.language.declare.primitives import ActionMark, RefinementMark
from streamproof.model_registry import find, is_registered
from streamproof.system import System

OWN_PACKAGES = ("streamproof_models", "streamproof_specs")
"""Packages of this project, whose machines are compared with their models by tests; see `_is_own`."""


def relation_of(system: System, model: str) -> Relation:
    """The relation to a registered model of the machine that a system was compiled from; see `relation_to`."""
    machine = model_of(system)
    if machine is None:
        return Relation(system.name, model, "not related" if is_registered(model) else "same")
    return relation_to(machine, model)


def relation_to(machine: type[Model], model: str) -> Relation:
    """The relation of a machine to a registered model, or its variant that is nearest, or else to another model that the
    machine is; without such a model, to itself."""
    kind: Any = machine  # for mypy, a `type[Model]` is not hashable
    return _nearest(kind, model)


@lru_cache(maxsize=256)
def _nearest(machine: type[Any], model: str) -> Relation:
    if not is_registered(model):
        return relation(machine, machine)
    models = [find(name).spec.model for name in (model, machine.title()) if is_registered(name)]
    found = [relation(machine, one) for base in models for one in (base, *base.variants.values())]
    return min(found, key=lambda r: (KINDS.index(r.kind), len(r.overrides) + len(r.adds)))


def relation(machine: type[Model], model: type[Model]) -> Relation:
    """The relation of a machine to a model, or to a variant of a model."""
    names = machine.__name__, model.title() if model.variant is None else f"{model.title()} ({model.variant})"
    shared = next(c for c in machine.__mro__ if issubclass(model, c))
    rules = _actions(shared)
    if rules:
        overrides, adds = tuple(_overrides(machine, shared)), tuple(sorted(_actions(machine) - rules))
        own = (cls for cls in machine.__mro__[: machine.__mro__.index(shared)] if issubclass(cls, Model))
        compared = not (overrides or adds) or all(map(_is_own, own))
        restricts = tuple(_overrides(model, shared))
        return Relation(*names, "same", shared.__name__, overrides, adds, restricts, compared)
    return Relation(*names, "refines" if model in _refined(machine) else "not related")


def _is_own(machine: type) -> bool:
    """Whether a class is the one that a module of this project defines; the name of its module alone says nothing."""
    package = sys.modules.get(machine.__module__.partition(".")[0])
    module = sys.modules.get(machine.__module__)
    if package is None or module is None or package.__name__ not in OWN_PACKAGES:
        return False
    file = getattr(module, "__file__", None) or ""
    within = any(Path(file).is_relative_to(folder) for folder in package.__path__)
    return within and getattr(module, machine.__qualname__, None) is machine


def _actions(machine: type) -> set[str]:
    marks = marked(machine) if issubclass(machine, Model) else {}
    return {name for name, (mark, _) in marks.items() if isinstance(mark, ActionMark)}


def _overrides(machine: type[Model], base: type[Model]) -> Iterator[str]:
    """The functions of a base class that a machine has its own of, but for those that declare its state and domains."""
    own = machine.__mro__[: machine.__mro__.index(base)]
    for name in dict.fromkeys(name for cls in own for name in vars(cls)):
        function = getattr(base, name, None)
        declares = name in ("__init__", "setup", "state")
        if isinstance(function, types.FunctionType) and function is not getattr(machine, name) and not declares:
            yield name


def _refined(machine: type[Model]) -> Iterator[type[Model]]:
    """The models, and variants of models, that a machine claims to refine."""
    for mark, _ in marked(machine).values():
        if isinstance(mark, RefinementMark):
            yield mark.model if mark.variant is None else mark.model.variants[mark.variant]
