"""Validation of a `Model` class: parameters, sizes and limits.

Each error is a `ModelError` at the line of the declaration, raised before any code of the model runs.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, get_args

from streamproof.language.conversion import plain
from streamproof.system.errors import Loc, ModelError, did_you_mean
from streamproof.system.records import dataclass

TYPES: dict[str, type] = {"int": int, "bool": bool, "str": str}
"""Permitted types of parameters; each also as ``int | None``."""


@dataclass(frozen=True, slots=True)
class ParameterType:
    """The declared type of a parameter: `kind`, or None as well if `optional`."""

    kind: type
    optional: bool = False

    def accepts(self, value: object) -> bool:
        """Whether a value is of this type."""
        return type(value) is self.kind or (self.optional and value is None)

    def __str__(self) -> str:
        return f"{self.kind.__name__} | None" if self.optional else self.kind.__name__


def class_place(cls: type) -> Loc | None:
    """The source position of a class."""
    try:
        return Loc(inspect.getsourcefile(cls) or "?", inspect.getsourcelines(cls)[1], cls.__name__)
    except (OSError, TypeError):
        return None


def attribute_place(cls: type, name: str) -> Loc | None:
    """The position where a class annotates, sets or defines an attribute; that of the class if not found."""
    home = class_place(cls)
    if home is None:
        return None
    lines, first = inspect.getsourcelines(cls)
    defines = re.compile(rf"\s+(?:{re.escape(name)}\s*(?::|=(?!=))|def\s+{re.escape(name)}\b)")
    return next(
        (Loc(home.file, first + at, cls.__name__) for at, line in enumerate(lines) if defines.match(line)), home
    )


def parameter_types(cls: type) -> Mapping[str, ParameterType]:
    """The type of each parameter. Raises `ModelError` for a type other than int, bool or str, or an inconsistent default."""
    return _parameter_types(cls)


@lru_cache(maxsize=4096)
def _parameter_types(cls: Any) -> Mapping[str, ParameterType]:
    found: dict[str, ParameterType] = {}
    parameters = cls.parameters()
    for c in reversed(cls.__mro__):
        for name, hint in inspect.get_annotations(c).items():
            if name in parameters:
                found[name] = _type(c, name, hint)
    for name, default in parameters.items():
        if isinstance(default, types.FunctionType):
            continue  # a duplicate name, which the check of the class body rejects
        if not found[name].accepts(default):
            home = next(c for c in cls.__mro__ if name in vars(c))
            raise ModelError(
                f"the default of {name}, {default!r}, is not of type {found[name]}",
                loc=attribute_place(home, name),
                remedy=f"give it one: {name}: {found[name]} = {found[name].kind()!r}",
            )
    return found


def _type(cls: type, name: str, hint: Any) -> ParameterType:
    if isinstance(hint, str) and hint not in TYPES:
        with suppress(Exception):  # a name under TYPE_CHECKING is not a parameter type
            hint = eval(hint, vars(sys.modules[cls.__module__]), dict(vars(cls)))
    kinds = [TYPES.get(hint)] if isinstance(hint, str) else get_args(hint) or [hint]
    kind = next((k for k in kinds if k in TYPES.values()), None)
    if kind is None or {*kinds} - {kind, types.NoneType}:
        shown = hint if isinstance(hint, str) else getattr(hint, "__name__", repr(hint))
        raise ModelError(
            f"the parameter {name} is declared as {shown}",
            loc=attribute_place(cls, name),
            remedy=f"parameters are int, bool, str, or int | None and the like; declare other attributes as "
            f"{name}: ClassVar[...] = ...",
        )
    return ParameterType(kind, optional=len(kinds) > 1)


def check_model(cls: type) -> None:
    """Raises `ModelError` for an invalid class declaration."""
    _check_model(cls)


@lru_cache(maxsize=4096)
def _check_model(cls: type) -> None:
    parameters = parameter_types(cls)
    for c in cls.__mro__:
        for name, check in _CHECKS.items():
            if name in vars(c) and c.__module__ != "streamproof.language.model":
                wrong = check(vars(c)[name], parameters)
                if wrong:
                    raise ModelError(
                        f"{name} of {c.__name__} {wrong[0]}", loc=attribute_place(c, name), remedy=wrong[1]
                    )


Wrong = tuple[str, str] | None
"""The error message and its remedy."""


def _sizes(given: Any, parameters: Mapping[str, ParameterType]) -> Wrong:
    remedy = 'write sizes = {"small": {"n": 1}, "medium": {"n": 2}}'
    if not isinstance(given, Mapping) or not all(isinstance(one, Mapping) for one in given.values()):
        return f"is {given!r}", remedy
    for size, values in given.items():
        if not isinstance(size, str):
            return f"has the size {size!r}", "name it by a text"
        if wrong := wrong_values(values, parameters):
            return f"sets, for {size!r}, {wrong[0]}", wrong[1]
    return None


def wrong_values(values: Mapping[Any, Any], parameters: Mapping[str, ParameterType]) -> Wrong:
    """The error for invalid parameter values."""
    for name, value in values.items():
        if name not in parameters:
            return f"{name!r}, which is not a parameter", known_names(name, parameters, "its parameters")
        if not parameters[name].accepts(plain(value)):
            return f"{name} to {value!r}", f"{name} is of type {parameters[name]}"
    return None


def known_names(name: Any, known: Collection[str], kind: str) -> str:
    """The remedy for an unknown name: the closest known name, or all of them."""
    return did_you_mean(str(name), known) or f"{kind}: {', '.join(known) or 'none'}"


def _limits(given: Any, parameters: Mapping[str, ParameterType]) -> Wrong:
    remedy = 'write limits = {"n": (1, 8)}, with None for no limit'
    if not isinstance(given, Mapping):
        return f"is {given!r}", remedy
    for name, pair in given.items():
        if name not in parameters:
            return f"names {name!r}, which is not a parameter", known_names(name, parameters, "its parameters")
        if parameters[name].kind is not int:
            return f"names {name}, which is of type {parameters[name]}", "only numbers have limits"
        two = isinstance(pair, tuple | list) and len(pair) == 2
        if not two or not all(end is None or type(end) is int for end in pair):
            return f"gives {name} {pair!r}", remedy
        if None not in pair and pair[0] > pair[1]:
            return f"leaves no value for {name}: {pair!r}", "give the least value first"
    return None


def _name(given: Any, parameters: Mapping[str, ParameterType]) -> Wrong:
    return None if isinstance(given, str) else (f"is {given!r}", "give a text")


def _flag(given: Any, parameters: Mapping[str, ParameterType]) -> Wrong:
    return None if isinstance(given, bool) else (f"is {given!r}", "give True or False")


def _setup(given: Any, parameters: Mapping[str, ParameterType]) -> Wrong:
    needed = list(inspect.signature(given).parameters) if inspect.isfunction(given) else ["self"]
    return None if len(needed) == 1 else (f"takes {', '.join(needed) or 'nothing'}", "it takes self and nothing else")


_CHECKS: dict[str, Callable[[Any, Mapping[str, ParameterType]], Wrong]] = {
    "sizes": _sizes,
    "limits": _limits,
    "name": _name,
    "check_deadlock": _flag,
    "setup": _setup,
    "parts": _setup,
}


def check_constructor(cls: Any) -> None:
    """Raises `ModelError` if the class cannot be constructed from its parameters by keyword."""
    own = next((c for c in cls.__mro__ if "__init__" in vars(c)), cls)
    if not isinstance(cls.__module__, str):
        code = getattr(cls.state, "__code__", None)
        raise ModelError(
            f"the module of {cls.__name__} is named {cls.__module__!r}, which is not a str",
            loc=None if code is None else Loc(code.co_filename, code.co_firstlineno),
            remedy="leave __name__ and __module__ as Python sets them",
        )
    if cls.__new__ is not object.__new__:
        maker = next(c for c in cls.__mro__ if "__new__" in vars(c))
        raise ModelError(
            f"{maker.__name__} has its own __new__",
            loc=attribute_place(maker, "__new__"),
            remedy="write def setup(self), which is called when the parameters are set",
        )
    try:
        inspect.signature(cls).bind(**cls.parameters())
    except TypeError as error:
        raise ModelError(
            f"{own.__name__} has its own __init__, and cannot be made from its parameters: {error}",
            loc=attribute_place(own, "__init__"),
            remedy="write def setup(self), which is called when the parameters are set",
        ) from None
