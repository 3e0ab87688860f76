"""Host values that can be read as their plain base type, and subclasses that redefine its meaning.

Lowering expands the meaning of numbers, texts and containers that meet the state. It would not see a subclass's own
`__contains__`, `__eq__`, `__len__` and the like.
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
"""Types whose meaning lowering implements."""
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
"""Special methods that lowering assumes unchanged from the plain type."""
_OTHERS = frozenset({"enum", "typing", "abc", "collections.abc", "_collections_abc"})
"""Modules of intermediate base classes whose overriding methods agree with the plain type."""


def is_faithful(value: object) -> bool:
    """Whether a host value has the meaning of its plain base type."""
    kind: Any = type(value)
    return kind in _EXACT or not own_methods(kind)


@lru_cache(maxsize=4096)
def own_methods(kind: type) -> tuple[str, ...]:
    """The special methods by which a type redefines the meaning of its values; empty for a supported type."""
    own = set[str]()
    for base in kind.__mro__ if kind not in _KNOWN else ():
        if base not in _KNOWN and base is not object and base.__module__ not in _OTHERS:
            own |= _MEANING & vars(base).keys()
    return tuple(sorted(own))


def expect_faithful(value: object, loc: Loc | None) -> None:
    """Raises `ModelError` for an instance of a plain type that overrides special methods lowering would not call."""
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
    """A faithful number or text as its plain value: `Phase.IDLE` of a `StrEnum` as ``"IDLE"``."""
    if type(value) in _EXACT or not issubclass(type(value), str | int):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    return int.__int__(value)


def plain_inside(value: Any) -> Any:
    """Like `plain`, also inside tuples and frozen sets."""
    if type(value) is tuple or type(value) is frozenset:
        return type(value)(map(plain_inside, value))
    return plain(value)


Members = Mapping[str, Mapping[tuple[type, Any], Any]]
"""For action parameters: the enumeration members in their domains, by type and value of the plain value."""


def members(model: object, domains: Iterable[tuple[str, Any]]) -> Members:
    """The enumeration members in an action's domains: a system uses plain values, the model's functions get members."""
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
    """The enumeration member for a parameter's plain value, or the value itself."""
    return table[name].get((type(value), value), value) if name in table else value
