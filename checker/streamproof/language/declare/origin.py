"""The model that a transition system was compiled from."""

from __future__ import annotations

import weakref

from streamproof.language.declare.model import Model
from streamproof.system.model import System

_MODELS: dict[int, type[Model]] = {}
"""By number of a system that exists."""


def compiled_from(system: System, model: Model) -> System:
    """The system, which is known from now on to be compiled from `model`, as is the one without its constraint."""
    for one in {id(s): s for s in (system, system.unconstrained)}.values():
        if id(one) not in _MODELS:
            weakref.finalize(one, _MODELS.pop, id(one), None)
        _MODELS[id(one)] = type(model)
    return system


def model_of(system: System) -> type[Model] | None:
    """The class of the model that a system was compiled from; None for a system built in another way."""
    return _MODELS.get(id(system))
