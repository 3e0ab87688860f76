"""Dataclasses whose methods are generated on first use.

The standard `dataclasses.dataclass` compiles five to eight functions for every class it decorates, about 0.4 ms per
class, which would be half of this package's import time. Most of these classes are never instantiated in a run. This
`dataclass` only records the fields and creates the slots; the constructor is generated for the first object, from that
of a class with the same number of fields if there is one, and comparison, hash and `repr` are shared functions.

Type checkers see the standard decorator; for `dataclasses.fields`, `replace` and `asdict` it is applied to a class of
the same fields on the first call. The `replace` of this module does not need it.
"""

from __future__ import annotations

import dataclasses
import operator
import reprlib
import types
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        eq: bool = True,
        repr: bool = True,
        slots: bool = False,
        weakref_slot: bool = False,
    ) -> Any:
        """Like `dataclasses.dataclass` with these options; base dataclasses must also use this decorator."""
        if cls is None:
            return lambda decorated: dataclass(
                decorated, frozen=frozen, eq=eq, repr=repr, slots=slots, weakref_slot=weakref_slot
            )
        return _RecordShape(cls, frozen, eq, repr, slots).made(weakref_slot)


_ABSENT = object()
_MANY = 5
"""Number of fields from which a frozen object is made faster as one of a class that is not frozen."""
_ABOUT = "__dataclass_fields__"
_SHAPE = "__record_shape__"


class _RecordShape:
    """The fields of one class, and the methods to generate for it."""

    __slots__ = ("cls", "compared", "fields", "frozen", "own", "shown", "slots", "standard")

    def __init__(self, cls: type, frozen: bool, eq: bool, repr: bool, slots: bool) -> None:
        self.cls, self.frozen, self.compared, self.shown, self.slots = cls, frozen, eq, repr, slots
        self.standard: type | None = None
        self.fields: dict[str, tuple[Any, Any]] = {}
        for base in reversed(cls.__mro__[1:]):
            inherited: _RecordShape | None = base.__dict__.get(_SHAPE)
            if inherited is not None:
                self.fields.update(inherited.fields)
            elif _ABOUT in base.__dict__:
                raise TypeError(
                    f"{cls.__qualname__}: its base {base.__qualname__} must be made by streamproof's dataclass too"
                )
        space = cls.__dict__
        annotations = space.get("__annotations__", {})
        self.own = [
            name for name, kind in annotations.items() if not str(kind).startswith(("ClassVar", "typing.ClassVar"))
        ]
        for name in self.own:
            self.fields[name] = (annotations[name], space.get(name, _ABSENT))

    def made(self, weakref_slot: bool) -> type:
        """The class, with slots if requested, and with methods that are generated on first use."""
        cls = self.cls
        added = self._methods()
        added[_SHAPE] = self
        added[_ABOUT] = _Written(self, _ABOUT)
        added["__dataclass_params__"] = _Written(self, "__dataclass_params__")
        added["__match_args__"] = tuple(name for name, (_, default) in self.fields.items() if _positional(default))
        if not self.slots:
            for name in self.own:
                default = self.fields[name][1]
                if isinstance(default, dataclasses.Field):
                    _replace_default(cls, name, default)
            for name, value in added.items():
                if name == "__match_args__" and name in cls.__dict__:
                    continue
                setattr(cls, name, value)
            return cls
        space = {name: value for name, value in cls.__dict__.items() if name not in self.fields}
        space.pop("__dict__", None)
        space.pop("__weakref__", None)
        inherited = {name for base in cls.__mro__[1:] for name in base.__dict__.get("__slots__", ())}
        space["__slots__"] = (*(name for name in self.own if name not in inherited), *(["__weakref__"] * weakref_slot))
        space.update({name: value for name, value in added.items() if name != "__match_args__" or name not in space})
        if self.frozen:
            space["__getstate__"], space["__setstate__"] = _state, _set_state
        qualname = cls.__qualname__
        self.cls = made = type(cls)(cls.__name__, cls.__bases__, space)
        made.__qualname__ = qualname
        return made

    def _methods(self) -> dict[str, Any]:
        """Placeholders for the methods of the standard decorator, except those that the class defines itself."""
        space = self.cls.__dict__
        added: dict[str, Any] = {}
        if "__init__" not in space:
            added["__init__"] = _stand_in(self, "__init__")
        if self.shown and "__repr__" not in space:
            added["__repr__"] = _stand_in(self, "__repr__")
        if self.compared:
            if "__eq__" not in space:
                added["__eq__"] = _stand_in(self, "__eq__")
            if space.get("__hash__") is None:
                added["__hash__"] = _stand_in(self, "__hash__") if self.frozen else None
        if self.frozen:
            added["__setattr__"], added["__delattr__"] = _refuse_set, _refuse_delete
        return added

    def write(self, name: str) -> Callable[..., Any]:
        """Generates a method and replaces its placeholder."""
        method: Callable[..., Any] = getattr(self, name[2:-2])()
        method.__name__, method.__qualname__ = name, f"{self.cls.__qualname__}.{name}"
        method.__module__ = self.cls.__module__
        setattr(self.cls, name, method)
        return method

    def init(self) -> Callable[..., Any]:
        """The constructor."""
        known: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": dataclasses.MISSING}
        plain: list[str] = []
        named: list[str] = []
        defaults: list[Any] = []
        named_defaults: dict[str, Any] = {}
        body: list[str] = []
        called: dict[str, str] = {}
        opened = self.frozen and self.slots and len(self.fields) >= _MANY
        for at, (name, (_, default)) in enumerate(self.fields.items()):
            value = stands = f"f{at}"
            called[stands] = name
            given, argument = default, True
            if isinstance(default, dataclasses.Field):
                given, argument = default.default, default.init
                if default.default_factory is not dataclasses.MISSING:
                    known[f"make_{at}"] = default.default_factory
                    value = f"make_{at}() if {stands} is _MISSING else {stands}" if argument else f"make_{at}()"
                elif not argument:
                    if given is dataclasses.MISSING:
                        continue
                    known[f"default_{at}"], value = given, f"default_{at}"
                elif given is dataclasses.MISSING:
                    given = _ABSENT
            if argument and not _positional(default):
                named.append(stands)
                named_defaults |= {} if given is _ABSENT else {name: given}
            elif argument:
                if defaults and given is _ABSENT:
                    raise TypeError(f"non-default argument {name!r} follows default argument")
                plain.append(stands)
                defaults += [] if given is _ABSENT else [given]
            body.append(
                f'_set(self, "{stands}", {value})' if self.frozen and not opened else f"self.{stands} = {value}"
            )
        if opened:
            body = ['_set(self, "__class__", _open)', *body, "self.__class__ = _frozen"]
            known |= {"_open": self.opened(), "_frozen": self.cls}
        if hasattr(self.cls, "__post_init__"):
            body.append("self.__post_init__()")
        head = ", ".join(["self", *plain, *(["*", *named] if named else [])])
        code = _constructor(f"def __init__({head}):\n " + "\n ".join(body or ["pass"]))
        own = code.replace(
            co_varnames=tuple(called.get(name, name) for name in code.co_varnames),
            co_names=tuple(called.get(name, name) for name in code.co_names),
            co_consts=tuple(called.get(value, value) for value in code.co_consts),
        )
        written = types.FunctionType(own, known, "__init__", tuple(defaults))
        written.__kwdefaults__ = named_defaults or None
        return written

    def opened(self) -> type:
        """A class with the same slots whose fields can be set: what a frozen object is while it is made."""
        cls = self.cls
        space = {
            "__slots__": cls.__dict__["__slots__"],
            "__setattr__": object.__setattr__,
            "__module__": cls.__module__,
        }
        return type(cls)(cls.__name__, cls.__bases__, space)

    def eq(self) -> Callable[..., Any]:
        """Whether an object is of the same class and has equal fields."""
        values = self._values("compare")
        return lambda one, other: (
            one is other or values(one) == values(other) if other.__class__ is one.__class__ else NotImplemented
        )

    def hash(self) -> Callable[..., Any]:
        """The hash of the fields that are compared."""
        values = self._values("compare")
        return lambda one: hash(values(one))

    def repr(self) -> Callable[..., Any]:
        """The class and its fields by name."""
        names = self._names("repr")

        @reprlib.recursive_repr()
        def text(one: object) -> str:
            return f"{type(one).__qualname__}({', '.join(f'{name}={getattr(one, name)!r}' for name in names)})"

        return text

    def _names(self, purpose: str) -> list[str]:
        """The fields used by an operation."""
        return [
            name
            for name, (_, default) in self.fields.items()
            if not isinstance(default, dataclasses.Field) or getattr(default, purpose)
        ]

    def _values(self, purpose: str) -> Callable[[Any], tuple[Any, ...]]:
        """A function that returns the values of those fields."""
        names = self._names(purpose)
        if not names:
            return lambda one: ()
        get = operator.attrgetter(*names)
        return get if len(names) > 1 else lambda one: (get(one),)

    def twin(self) -> type:
        """A class with the same fields, made by the standard decorator."""
        if self.standard is None:
            space: dict[str, Any] = {"__annotations__": {name: kind for name, (kind, _) in self.fields.items()}}
            space |= {name: default for name, (_, default) in self.fields.items() if default is not _ABSENT}
            space["__module__"], space["__doc__"] = self.cls.__module__, self.cls.__doc__
            bare = type(self.cls.__name__, (), space)
            self.standard = dataclasses.dataclass(frozen=self.frozen, eq=self.compared, init=False, repr=False)(bare)
        return self.standard


def replace(one: T, /, **changes: Any) -> T:
    """Like `dataclasses.replace`, for objects of classes made here."""
    shape: _RecordShape = getattr(type(one), _SHAPE)
    for name, (_, default) in shape.fields.items():
        if isinstance(default, dataclasses.Field) and not default.init:
            if name in changes:
                raise ValueError(f"field {name} is computed, and cannot be replaced")
        elif name not in changes:
            changes[name] = getattr(one, name)
    return type(one)(**changes)


def annotated(cls: type) -> dict[str, Any]:
    """The fields of a class made here, with their annotations."""
    shape: _RecordShape = getattr(cls, _SHAPE)
    return {name: kind for name, (kind, _) in shape.fields.items()}


def described(cls: type) -> dict[str, tuple[dataclasses.Field[Any], Mapping[str, Any]]]:
    """The fields of a class made here that have metadata, with their annotations as `type`."""
    shape: _RecordShape = getattr(cls, _SHAPE)
    found = dict[str, tuple[dataclasses.Field[Any], Mapping[str, Any]]]()
    for name, (kind, default) in shape.fields.items():
        if isinstance(default, dataclasses.Field) and default.metadata:
            default.type = kind
            found[name] = default, default.metadata
    return found


class _Written:
    """An attribute of the standard decorator, created on first access."""

    __slots__ = ("name", "shape")

    def __init__(self, shape: _RecordShape, name: str) -> None:
        self.shape, self.name = shape, name

    def __get__(self, _: object, owner: type) -> Any:
        return getattr(self.shape.twin(), self.name)


@lru_cache(maxsize=256)
def _constructor(source: str) -> types.CodeType:
    """The code of a constructor in which ``f0``, ``f1`` ... are placeholders for field names. Compiling takes a hundred
    times as long as renaming, and most classes have the shape of others."""
    return next(part for part in compile(source, "<constructor>", "exec").co_consts if isinstance(part, types.CodeType))


def _stand_in(shape: _RecordShape, name: str) -> Callable[..., Any]:
    """A placeholder that generates the real method and calls it."""
    return lambda *args, **kwargs: shape.write(name)(*args, **kwargs)


def _positional(default: object) -> bool:
    """Whether a field is a positional argument of the constructor."""
    return not isinstance(default, dataclasses.Field) or (default.init and default.kw_only is not True)


def _replace_default(cls: type, name: str, described: dataclasses.Field[Any]) -> None:
    """Replaces the attribute that describes a field by its default, or removes it, like the standard decorator."""
    if described.default is dataclasses.MISSING:
        delattr(cls, name)
    else:
        setattr(cls, name, described.default)


def _refuse_set(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    """The pickled state of a frozen object with slots."""
    return [getattr(self, name) for name in getattr(type(self), _SHAPE).fields]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(getattr(type(self), _SHAPE).fields, state, strict=True):
        object.__setattr__(self, name, value)
