"""Host values that may be read as the plain type they are an instance of, and those that mean something of their own.

Where ordinary Python meets the state, lowering spells out what numbers, texts and containers mean. A subclass that has its
own `__contains__`, `__eq__`, `__len__` and the like means something else, which lowering would not see.
"""

from __future__ import annotations

import enum
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

from streamproof.system.errors import Loc, ModelError

_EXACT = frozenset({bool, int, str, float, bytes, types.NoneType, tuple, list, dict, set, frozenset, range})
_KNOWN = _EXACT | {
    *(OrderedDict, defaultdict, Counter, deque, types.MappingProxyType),
    *(type({}.keys()), type({}.values()), type({}.items())),
}
"""Types whose meaning lowering knows."""
_BASES = (int, str, float, bytes, tuple, list, dict, set, frozenset)
_MEANING = frozenset(
    f"__{name}__"
    for name in (
        *("contains", "iter", "len", "getitem", "missing", "reversed", "length_hint", "bool", "hash", "index", "int"),
        *("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert"),
        *(
            f"{side}{op}"
            for op in ("add", "sub", "mul", "floordiv", "truediv", "mod", "divmod", "pow", "and", "or", "xor")
            for side in ("", "r", "i")
        ),
    )
) | {"keys", "values", "items"}
"""The special methods that lowering takes for those of the plain type."""
_OTHERS = frozenset({"enum", "typing", "abc", "collections.abc", "_collections_abc"})
"""Modules of classes between a plain type and its subclasses whose methods agree with one another."""


def is_faithful(value: object) -> bool:
    """Whether a host value means what the plain value means that it is an instance of."""
    kind: Any = type(value)
    return kind in _EXACT or not own_methods(kind)


@lru_cache(maxsize=4096)
def own_methods(kind: type) -> tuple[str, ...]:
    """The special methods that make values of a type mean something of their own; none for a type that is known."""
    own = set[str]()
    for base in kind.__mro__ if kind not in _KNOWN else ():
        if base not in _KNOWN and base is not object and base.__module__ not in _OTHERS:
            own |= _MEANING & vars(base).keys()
    return tuple(sorted(own))


def expect_faithful(value: object, loc: Loc | None) -> None:
    """Raises `ModelError` for an instance of a plain type with special methods of its own, where none would be asked."""
    kind: Any = type(value)
    if kind in _EXACT or not isinstance(value, _BASES):
        return
    own = own_methods(kind) if issubclass(kind, _BASES) else ("__class__",)
    if own:
        base = next(one.__name__ for one in _BASES if isinstance(value, one))
        raise ModelError(
            f"{kind.__name__} has its own {own[0]}, and would be read as {'an' if base == 'int' else 'a'} {base} here",
            loc=loc,
            remedy="use a plain value where the state is involved, and write what the method does as a helper",
        )


def plain(value: Any) -> Any:
    """A faithful number or text as the plain value that it is: `Phase.IDLE` of a `StrEnum` as ``"IDLE"``."""
    if type(value) in _EXACT or not issubclass(type(value), str | int):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    return int.__int__(value)


def plain_inside(value: Any) -> Any:
    """As `plain`, also inside tuples and frozen sets."""
    if type(value) is tuple or type(value) is frozenset:
        return type(value)(map(plain_inside, value))
    return plain(value)


Members = Mapping[str, Mapping[tuple[type, Any], Any]]
"""For parameters of an action the members of enumerations in their domains, by type and value of the plain value."""


def members(model: object, domains: Iterable[tuple[str, Any]]) -> Members:
    """The members in the domains of an action: a system has plain values, the functions of the model get the members."""
    found: dict[str, dict[tuple[type, Any], Any]] = {}
    for name, given in domains:
        given = getattr(model, given, None) if isinstance(given, str) else given
        given = given(model) if isinstance(given, types.FunctionType) else given
        for value in given if isinstance(given, enum.EnumType | list | tuple | AbstractSet | Mapping) else ():
            whole = plain_inside(value)
            if whole is not value:
                found.setdefault(name, {})[type(whole), whole] = value
    return found


def as_member(table: Members, name: str, value: Any) -> Any:
    """The member that stands for a plain value of a parameter, or the value."""
    return table[name].get((type(value), value), value) if name in table else value
