"""Cases of tagged unions: a class for each case, whose instances are values, as in ``Vote(voter=r, value="YES")``.

A case is identified by its name and the names of its fields, as in the sort of a union (`UnionSort`); the classes exist
for Python's own constructs: calls, ``isinstance``, ``match``, attributes. `NewCase` is a value during lowering.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar, TypeGuard

from streamproof.base.errors import ModelError
from streamproof.language.lower.sources import RUNNING, CallSite, caller, fail
from streamproof.system.expr import Node
from streamproof.system.sorts import BOOL, EnumSort, OptionSort, RangeSort, RecordSort, Sort, UnionSort, is_scalar

_OWN = frozenset(
    f"__{name}__" for name in ["module", "qualname", "doc", "annotations", "firstlineno", "static_attributes", "slots"]
)
"""The contents of the body of a case."""


class CaseType(type):
    """The class of cases: two with one name and the same fields have the same instances."""

    __match_args__: tuple[str, ...]

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> CaseType:
        """A class without other attributes."""
        return super().__new__(cls, name, bases, {"__slots__": (), **body})

    def __instancecheck__(cls, value: Any) -> bool:
        kind = type(value)
        return type.__instancecheck__(cls, value) or (
            type(kind) is CaseType and kind.__name__ == cls.__name__ and kind.__match_args__ == cls.__match_args__
        )


class Case(metaclass=CaseType):
    """Base of the cases of a union. A case names its fields, and nothing else::

        class Vote(Case):
            voter: int
            value: str

    ``Union(Vote(voter=Range(0, 2), value=Enum("YES", "NO")), Commit())`` declares the sort; with values instead of
    sorts, ``Vote(voter=1, value="NO")`` is a value. Values are immutable.
    """

    __slots__ = ("_values",)
    __match_args__: ClassVar[tuple[str, ...]] = ()
    _values: tuple[Any, ...]

    def __init_subclass__(cls) -> None:
        loc = caller()
        if cls.__bases__ != (Case,):
            raise ModelError(
                f"{cls.__name__} is derived from a case", loc=loc, remedy="derive each case from Case alone"
            )
        for name in vars(cls):
            if name not in _OWN:
                raise ModelError(
                    f"the case {cls.__name__} defines {name!r}",
                    loc=loc,
                    remedy="a case lists its fields, as 'name: type'; write a helper function for the rest",
                )
        names = tuple(vars(cls).get("__annotations__", {}))
        for name in names:
            if name.startswith("_"):
                raise ModelError(f"field {name!r} starts with an underscore", loc=loc, remedy="such names are reserved")
        type.__setattr__(cls, "__match_args__", names)

    def __init__(self, *given: Any, **named: Any) -> None:
        object.__setattr__(self, "_values", arguments(type(self), given, named))

    def __getattr__(self, name: str) -> Any:
        if name in self.__match_args__:
            return self._values[self.__match_args__.index(name)]
        if RUNNING.get() and not name.startswith("__"):
            spot = CallSite()
            raise fail(no_such_field(spot.owner(), name), spot, (spot.owner(), repr(self)))
        raise AttributeError(f"{type(self).__name__} has no field {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise ModelError(
            f"a {type(self).__name__} cannot be changed",
            loc=CallSite().loc,
            remedy="assign a new value to the place in the state that holds it",
        )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Case):
            return isinstance(other, type(self)) and self._values == other._values
        return type(other) is tuple and other == (type(self).__name__, self._values)

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._values))  # also that of the value in a system

    def __repr__(self) -> str:
        fields = zip(self.__match_args__, self._values, strict=True)
        return f"{type(self).__name__}({', '.join(f'{n}={v}' for n, v in fields)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (type(self).__name__, self.__match_args__, self._values))


def shown_sort(value: Any) -> Sort | None:
    """A sort by which traces and exports show a parameter or a choice: that of a term, the least one of a case; else None."""
    if isinstance(value, Node):
        return None if is_scalar(value.sort) else value.sort
    return _least_sort(value) if isinstance(value, Case) else None


def _least_sort(value: Any) -> Sort | None:
    """The least sort of a case or a field of one; None if it has no sort."""
    match value:
        case None:
            return OptionSort(EnumSort(()))
        case bool():
            return BOOL
        case int():
            return RangeSort(int(value), int(value))
        case str():
            return EnumSort((str.__str__(value),))
        case Case():
            sorts = [(n, _least_sort(v)) for n, v in zip(value.__match_args__, value._values, strict=True)]
            fields = tuple((n, sort) for n, sort in sorts if sort is not None)
            return UnionSort(((type(value).__name__, RecordSort(fields)),)) if len(fields) == len(sorts) else None
    return None


def arguments(kind: type[Case], given: tuple[Any, ...] | list[Any], named: dict[str, Any]) -> tuple[Any, ...]:
    """The values of the fields, in order. Raises `TypeError` for a missing or unknown one."""
    fields, name = kind.__match_args__, kind.__name__
    if kind is Case:
        raise TypeError("Case is the base of the cases: derive a class for each case")
    if len(given) > len(fields):
        raise TypeError(f"{name} has {len(fields)} fields, {len(given)} values are given")
    values = dict(zip(fields, given, strict=False))
    for key in named:
        if key not in fields:
            raise TypeError(f"{name} has no field {key!r}")
        if key in values:
            raise TypeError(f"field {key!r} of {name} is given twice")
    values |= named
    for field in fields:
        if field not in values:
            raise TypeError(f"field {field!r} of {name} is not given")
    return tuple(values[field] for field in fields)


def no_such_field(text: str, name: str) -> str:
    """The message for a field that the case of a value does not have."""
    return f"{text} is of a case without the field {name!r}"


@lru_cache(maxsize=1024)
def case_class(name: str, fields: tuple[str, ...]) -> type[Case]:
    """A class for the case of this name with these fields."""
    return types.new_class(name, (Case,), {}, lambda body: body.update(__annotations__=dict.fromkeys(fields, Any)))


def _restored(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> Case:
    return case_class(name, fields)(*values)


def is_case_class(value: object) -> TypeGuard[type[Case]]:
    """Whether `value` is the class of a case."""
    return type(value) is CaseType


def fields_of(kind: type[Case], sort: UnionSort) -> RecordSort | None:
    """The fields of the case of `sort` that `kind` stands for; None if there is none."""
    if kind.__name__ not in sort.tag.places:
        return None
    own = sort.payload(kind.__name__)
    return own if tuple(n for n, _ in own.fields) == kind.__match_args__ else None


def with_field(sort: UnionSort, name: str) -> Iterator[str]:
    """The cases that have a field of this name."""
    return (case for case, own in sort.cases if name in [n for n, _ in own.fields])


def unknown_case(kind: type[Case], sort: UnionSort, loc: Any) -> ModelError:
    """The error for a case that a union does not have."""
    return ModelError(
        f"{kind.__name__}({', '.join(kind.__match_args__)}) is no case of {sort}",
        loc=loc,
        remedy=f"its cases are {', '.join(sort.tag.members)}",
    )
