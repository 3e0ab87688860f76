"""Dataclasses whose methods are written when the first object of a class is made.

The standard `dataclasses.dataclass` compiles five to eight functions for every class it decorates, some 0.4 ms a class, and
the classes of this package would take half of the time that it needs to be imported. Most of them are never instantiated
in a run. This `dataclass` therefore only notes the fields and makes the slots; the first construction, comparison, hash or
`repr` of a class has the standard decorator write the methods for a class of the same fields, and takes them over. Type
checkers see the standard decorator, and `dataclasses.fields`, `replace` and `asdict` work as they do there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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
        """As `dataclasses.dataclass` with these options; bases that are dataclasses must be made by this one."""
        if cls is None:
            return lambda decorated: dataclass(
                decorated, frozen=frozen, eq=eq, repr=repr, slots=slots, weakref_slot=weakref_slot
            )
        return _Shape(cls, frozen, eq, repr, slots).made(weakref_slot)


_ABSENT = object()
_ABOUT = "__dataclass_fields__"
_SHAPE = "__record_shape__"


class _Shape:
    """The fields of one class, and what is to be written for it."""

    __slots__ = ("cls", "eq", "fields", "frozen", "own", "repr", "slots", "twin")

    def __init__(self, cls: type, frozen: bool, eq: bool, repr: bool, slots: bool) -> None:
        self.cls, self.frozen, self.eq, self.repr, self.slots = cls, frozen, eq, repr, slots
        self.twin: type | None = None
        self.fields: dict[str, tuple[Any, Any]] = {}
        for base in reversed(cls.__mro__[1:]):
            inherited: _Shape | None = base.__dict__.get(_SHAPE)
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
        """The class, with slots if it wants them, and with methods that have themselves written at first use."""
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
        """Stand-ins for what the standard decorator would write, except for what the class defines itself."""
        space = self.cls.__dict__
        added: dict[str, Any] = {}
        if "__init__" not in space:
            added["__init__"] = _stand_in(self, "__init__")
        if self.repr and "__repr__" not in space:
            added["__repr__"] = _stand_in(self, "__repr__")
        if self.eq:
            if "__eq__" not in space:
                added["__eq__"] = _stand_in(self, "__eq__")
            if space.get("__hash__") is None:
                added["__hash__"] = _stand_in(self, "__hash__") if self.frozen else None
        if self.frozen:
            added["__setattr__"], added["__delattr__"] = _refuse_set, _refuse_delete
        return added

    def write(self) -> type:
        """Has the methods written; the class whose methods they were first."""
        if self.twin is None:
            space: dict[str, Any] = {"__annotations__": {name: kind for name, (kind, _) in self.fields.items()}}
            space |= {name: default for name, (_, default) in self.fields.items() if default is not _ABSENT}
            space["__module__"], space["__doc__"] = self.cls.__module__, self.cls.__doc__
            if hasattr(self.cls, "__post_init__"):
                space["__post_init__"] = None  # the written constructor calls that of the object
            bare = type(self.cls.__name__, (), space)
            twin: type = dataclasses.dataclass(frozen=self.frozen, eq=self.eq, repr=self.repr)(bare)
            for name, method in list(self.cls.__dict__.items()):
                if getattr(method, "stands_for", None) is self:
                    written = twin.__dict__[name]
                    written.__qualname__ = f"{self.cls.__qualname__}.{name}"
                    setattr(self.cls, name, written)
            self.twin = twin  # last, so that a second thread writes again and never finds half of it
        return self.twin


class _Written:
    """An attribute that the standard decorator gives a class, once somebody asks for it."""

    __slots__ = ("name", "shape")

    def __init__(self, shape: _Shape, name: str) -> None:
        self.shape, self.name = shape, name

    def __get__(self, _: object, owner: type) -> Any:
        return getattr(self.shape.write(), self.name)


def _stand_in(shape: _Shape, name: str) -> Callable[..., Any]:
    """A method that has the real one written and calls it."""

    def method(self: object, *args: Any, **kwargs: Any) -> Any:
        shape.write()
        return getattr(shape.cls, name)(self, *args, **kwargs)

    method.stands_for = shape  # type: ignore[attr-defined]
    return method


def _positional(default: object) -> bool:
    """Whether a field is an argument of the constructor that needs no name."""
    return not isinstance(default, dataclasses.Field) or (default.init and default.kw_only is not True)


def _replace_default(cls: type, name: str, described: dataclasses.Field[Any]) -> None:
    """What the standard decorator does with the attribute that described a field: its default, or nothing."""
    if described.default is dataclasses.MISSING:
        delattr(cls, name)
    else:
        setattr(cls, name, described.default)


def _refuse_set(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    """What is pickled of a frozen object with slots."""
    return [getattr(self, name) for name in getattr(type(self), _SHAPE).fields]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(getattr(type(self), _SHAPE).fields, state, strict=True):
        object.__setattr__(self, name, value)
