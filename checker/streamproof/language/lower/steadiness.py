"""Functions of a model that may answer differently each time: random numbers and clocks."""

from __future__ import annotations

import types
from functools import lru_cache
from typing import Any

from streamproof.language.lower.sources import names_used

UNSTEADY = frozenset({"random", "time", "secrets", "uuid"})
"""Modules whose functions are not deterministic."""
READ_DRAWN = 30
"""Number of further evaluations of a function that uses random numbers or a clock: two draws may be equal."""


@lru_cache(maxsize=4096)
def unsteady(function: types.FunctionType, owners: tuple[type, ...]) -> str | None:
    """The nondeterministic module that a Python function, or a function that it names, belongs to."""
    for _, name, value in names_used(function, owners):
        if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] in UNSTEADY:
            return value.__name__
        if str(getattr(value, "__module__", "")).split(".")[0] in UNSTEADY or _drawn(value):
            return name
    return None


def _drawn(value: Any) -> bool:
    """Whether `value` is a method of a random number generator."""
    return type(getattr(value, "__self__", None)).__module__ in UNSTEADY
