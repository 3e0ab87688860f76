"""`Model`: the base class of models.

A model's annotated class attributes are its parameters, with defaults. ``state()`` declares the variables; methods
marked ``@action`` are the rules. A *variant* is a subclass declared with ``variant="name"`` that overrides one of them.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self, dataclass_transform

from streamproof.base.errors import ModelError, UsageError, did_you_mean
from streamproof.base.files import is_plain
from streamproof.base.text import visible
from streamproof.language.declare.declarations import (
    ParameterType,
    attribute_place,
    check_class,
    check_model,
    class_place,
    parameter_types,
)
from streamproof.language.declare.primitives import MARK, ActionMark
from streamproof.language.declare.variables import State
from streamproof.language.free.symbolic_parameters import SymbolicInt, call_user, watch
from streamproof.language.lower.conversion import plain
from streamproof.language.lower.sources import place
from streamproof.system.model import Fairness, PartialFairness, System

_CLASS_VARIABLE = re.compile(r"([\w.]+\.)?ClassVar\b")
"""Annotations, possibly as text, of attributes that are not parameters."""
_OWN = {"sizes", "limits", "instance_bounds", "check_deadlock", "name"}

RESERVED = frozenset(
    {
        "build",
        "parameter_limits",
        "parameters",
        "parse",
        "parts",
        "settings",
        "setup",
        "state",
        "system",
        "title",
        "variant",
        "variants",
    }
)
"""Reserved names: no parameter, rule or property may use them."""


@dataclass_transform(kw_only_default=True)  # type checkers know the parameters of a subclass
class Model:
    """Base of every model. Parameters are keyword arguments: ``Credit(channels=3)``."""

    name: ClassVar[str] = ""
    """Name of the model on the command line; by default the class name in lower case."""
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Parameter values for ``--size small|medium|large``."""
    limits: ClassVar[Mapping[str, tuple[int | None, int | None]]] = {}
    """Least and greatest value of numeric parameters; None: unbounded."""
    instance_bounds: ClassVar[tuple[str, ...]] = ()
    """Numeric parameters that only bound an instance: a larger number adds behaviours and removes none."""
    check_deadlock: ClassVar[bool] = True
    """False for models in which a state without a successor is not an error."""
    variants: ClassVar[dict[str, type[Model]]] = {}
    """The variants of this model by name."""
    variant: ClassVar[str | None] = None
    system: ClassVar[Callable[..., System]]
    """``system(variant=None, **parameters)``: the model's transition system with its own properties; defined in `spec`,
    which imports the compiler."""

    def __init_subclass__(cls, variant: str | None = None, without: str | Iterable[str] = (), **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in [without] if isinstance(without, str) else without:
            _remove(cls, name)
        for name, member in cls.__dict__.items():
            own = isinstance(member, types.FunctionType) and not hasattr(member, MARK)
            if name in RESERVED and not (name in ("parts", "setup", "state") and own):
                raise ModelError(
                    f"{cls.__name__}.{name} has the name of something every model has",
                    loc=place(member) or attribute_place(cls, name),
                    remedy="choose another name",
                )
        for title in (variant, cls.__dict__.get("name")):
            if isinstance(title, str) and title and not is_plain(title):
                raise ModelError(
                    f"{cls.__name__}: the name {visible(title)!r} cannot be part of a path",
                    loc=class_place(cls),
                    remedy="choose one without / and control characters that does not start with a dot",
                )
        if variant is None:
            cls.variants = {}
            cls.variant = None
            return
        base = cls._base(cls.__mro__[1:])
        if base is Model:
            raise ModelError(
                f"{cls.__name__}: a variant needs a model to vary",
                loc=class_place(cls),
                remedy="subclass the model: class Broken(MyModel, variant='broken')",
            )
        if variant in base.variants:
            raise ModelError(
                f"variant {variant!r} of {base.__name__} is declared twice", loc=class_place(cls), remedy="rename one"
            )
        cls.variant = variant
        base.variants[variant] = cls

    def __init__(self, **given: Any) -> None:
        parameters = type(self).parameters()
        check_model(type(self))
        declared = parameter_types(type(self))
        for name, value in given.items():
            if name not in parameters:
                known = ", ".join(parameters) or "none"
                untyped = hasattr(type(self), name) and name not in RESERVED
                remedy = f"give it a type to make it one: {name}: int = ..." if untyped else f"its parameters: {known}"
                raise UsageError(f"{type(self).title()} has no parameter {name!r}", remedy=remedy)
            kind, value = declared[name], plain(value)
            if not kind.accepts(value) and not (kind.kind is int and type(value) is SymbolicInt):
                raise UsageError(f"{name}={value!r} is not a value of type {kind}", remedy=_example(kind))
            setattr(self, name, value)
            if type(value) is SymbolicInt and (own := watch()) is not None:
                own.mark(self, name)
        self._within_limits(given)
        if type(self).setup is not Model.setup:
            call_user(self.setup, (), "setup()", place(type(self).setup), self)

    def _within_limits(self, given: Mapping[str, Any]) -> None:
        """Raises `UsageError` for a parameter that is outside its limits."""
        for name, (least, most) in type(self).parameter_limits().items():
            if type(given.get(name)) is SymbolicInt:
                continue  # it is assumed to be within its limits
            value = getattr(self, name)
            if value is None:
                continue
            if (least is not None and value < least) or (most is not None and value > most):
                raise UsageError(
                    f"{type(self).title()} does not allow {name}={value}",
                    remedy=f"{name} is {limits_text(least, most)}",
                )

    def setup(self) -> None:
        """Computes data derived from the parameters; called once, before everything else."""

    def state(self) -> State:
        """Declares the state variables."""
        raise ModelError(
            f"{type(self).__name__} declares no state",
            loc=class_place(type(self)),
            remedy="define state(self) returning State(...)",
        )

    def parts(self) -> Any:
        """The machines of a composite, as `Parts`; None for a single machine."""
        return None

    @staticmethod
    def _base(classes: Iterable[type]) -> type[Model]:
        """The first of `classes` that is a model and not a variant."""
        return next(c for c in classes if issubclass(c, Model) and (c is Model or c.__dict__.get("variant") is None))

    @classmethod
    def title(cls) -> str:
        """The model's name."""
        base = cls._base(cls.__mro__)
        return base.__dict__.get("name") or base.__name__.lower()

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """Parameter names and defaults, in the order of declaration."""
        found: dict[str, Any] = {}
        for c in reversed(cls.__mro__):
            if c is Model or not issubclass(c, Model):
                continue
            for name, hint in inspect.get_annotations(c).items():
                if name.startswith("_") or name in _OWN or _CLASS_VARIABLE.match(str(hint)):
                    continue
                if name not in c.__dict__ and name not in found:
                    raise ModelError(
                        f"parameter {name!r} of {c.__name__} has no default",
                        loc=attribute_place(c, name),
                        remedy="give it one: n: int = 2",
                    )
                found[name] = plain(getattr(cls, name))
            for name in c.__dict__:
                if name in found:
                    found[name] = plain(getattr(cls, name))
        return found

    @classmethod
    def parameter_limits(cls) -> dict[str, tuple[int | None, int | None]]:
        """The least and greatest value of each parameter with `limits`, including those of base classes."""
        found: dict[str, tuple[int | None, int | None]] = {}
        for c in reversed(cls.__mro__):
            found.update(c.__dict__.get("limits", {}) if issubclass(c, Model) else {})
        return found

    @classmethod
    def parse(cls, name: str, text: str) -> Any:
        """A parameter value parsed from the command line, according to its annotation."""
        if name not in cls.parameters():
            known = ", ".join(cls.parameters()) or "none"
            raise UsageError(f"{cls.title()} has no parameter {name!r}", remedy=f"its parameters: {known}")
        kind = parameter_types(cls)[name]
        if kind.optional and text.lower() == "none":
            return None
        try:
            if kind.kind is bool:
                return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
            if kind.kind is int:
                return int(text.encode("ascii"))  # no digits of other scripts
        except (KeyError, ValueError):
            raise UsageError(f"{name}={text!r} is not a value of type {kind}", remedy=_example(kind)) from None
        return text

    def settings(self) -> dict[str, Any]:
        """The parameters of this instance and their values."""
        return {name: plain(getattr(self, name)) for name in type(self).parameters()}

    def _repr_html_(self) -> str:
        """The variables, actions and properties of this instance, for a notebook."""
        return type(self).system(**self.settings())._repr_html_()

    @classmethod
    def build(cls, variant: str | None = None, **parameters: Any) -> Self:
        """An instance of the model or one of its variants. Raises `ModelError` if setup() uses random numbers or a clock,
        and two instances differ."""
        from streamproof.language.lower.steadiness import READ_DRAWN, unsteady

        if variant is not None and variant not in cls.variants:
            known = ", ".join(cls.variants) or "none"
            raise UsageError(f"{cls.title()} has no variant {variant!r}", remedy=f"its variants: {known}")
        kind = cls if variant is None else cls.variants[variant]
        if isinstance(kind.setup, types.FunctionType) and unsteady(kind.setup, kind.__mro__):
            if (own := watch()) is not None:
                own.compared.add(kind)
            known_values = {name: value for name, value in parameters.items() if type(value) is not SymbolicInt}
            if len({_shown(kind(**known_values)) for _ in range(READ_DRAWN)}) > 1:
                raise ModelError(
                    f"setup() of {kind.title()} is not deterministic: two calls gave different values",
                    loc=place(kind.setup),
                    remedy="a generator of random numbers needs a seed: random.Random(7)",
                )
        return kind(**parameters)  # type: ignore[return-value]


def _shown(model: Model) -> str:
    """The attributes of an instance as text, without the addresses of objects."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(sorted(vars(model).items())))


def limits_text(least: int | None, most: int | None) -> str:
    """A parameter's limits as text: ``1 or more``, ``0 to 3``."""
    if least is None:
        return "any number" if most is None else f"{most} or less"
    return f"{least} or more" if most is None else f"{least} to {most}"


def _example(kind: ParameterType) -> str:
    said = {bool: "give true or false", int: "give an integer"}.get(kind.kind, "give a text")
    return f"{said}, or none" if kind.optional else said


def marked(cls: type[Model]) -> dict[str, tuple[Any, Callable[..., Any]]]:
    """Rules and properties of a model class: name -> (mark, function), in the order of their first declaration.

    A method that overrides a marked one without a decorator of its own keeps the mark.
    """
    found: dict[str, tuple[Any, Callable[..., Any]]] = {}
    for c in reversed(cls.__mro__):
        if c not in (object, Model):
            check_class(c)
        for name, member in vars(c).items():
            mark = getattr(member, MARK, None)
            before = found.get(name, (None, member))[0]
            if mark is not None:
                if before is not None and isinstance(before, ActionMark) is not isinstance(mark, ActionMark):
                    raise _replaced(c, name, before, found[name][1], "another kind of mark", member)
                found[name] = (mark, member)
            elif before is not None:
                if member is None:
                    del found[name]
                elif callable(member):
                    found[name] = (before, member)
                else:
                    raise _replaced(c, name, before, found[name][1], "something that is not a method", member)
    return found


def progress_of(cls: type[Model]) -> Fairness:
    """The fairness constraint on the next-state relation: the attribute `progress`, if it is none of the model's own names.

    Raises `ModelError` unless it is WEAK, STRONG or none.
    """
    given = getattr(cls, "progress", Fairness.NONE)
    if not isinstance(given, str | tuple | list | PartialFairness) or "progress" in cls.parameters():
        return given if isinstance(given, Fairness) else Fairness.NONE
    raise ModelError(
        f"progress = {given!r} is not a fairness constraint of the whole next-state relation",
        loc=attribute_place(next(c for c in cls.__mro__ if "progress" in vars(c)), "progress"),
        remedy="it is WEAK or STRONG, without quotes; for the steps of one action, write @action(fairness=...)",
    )


def check_progress(model: Model) -> None:
    """Raises `ModelError` if `progress` is a fairness constraint of the instance alone, from ``setup()`` or computed."""
    cls, given = type(model), getattr(model, "progress", None)
    parts = given if isinstance(given, tuple | list | set | frozenset) else (given,)
    stated = given is getattr(cls, "progress", None)
    if stated or not any(isinstance(part, Fairness | PartialFairness) for part in parts):
        return
    computed = next((c for c in cls.__mro__ if "progress" in vars(c) and "progress" not in vars(model)), None)
    raise ModelError(
        "progress is a fairness constraint that is not stated in the class",
        loc=place(cls.setup) if computed is None else attribute_place(computed, "progress"),
        remedy="write progress = WEAK in the class, and in a variant that has another one",
    )


def _remove(cls: type[Model], name: Any) -> None:
    """Removes an inherited rule or property. Raises `ModelError` if there is none of this name."""
    inherited = {n for c in cls.__mro__[1:] for n, member in vars(c).items() if hasattr(member, MARK)}
    if name not in inherited or getattr(cls, name) is None:
        raise ModelError(
            f"{cls.__name__} is declared without {name!r}, which is no inherited rule or property",
            loc=class_place(cls),
            remedy=did_you_mean(str(name), inherited) or f"it inherits {', '.join(sorted(inherited)) or 'none'}",
        )
    if name in vars(cls):
        raise ModelError(
            f"{cls.__name__} is declared without {name!r}, and defines it",
            loc=attribute_place(cls, name),
            remedy="remove the definition, or the name behind without=",
        )
    setattr(cls, name, None)


def _replaced(cls: type, name: str, mark: Any, function: Callable[..., Any], by: str, member: Any) -> ModelError:
    """The error for a subclass attribute that replaces a rule or property by something else."""
    old, new = place(function), place(getattr(member, "fget", member)) or class_place(cls)
    what = "an action" if isinstance(mark, ActionMark) else "a property"
    at = f" of line {old.line}" if old is not None else ""
    return ModelError(
        f"{name!r} of {cls.__name__} replaces {what}{at} by {by}",
        loc=new,
        remedy=f"choose another name; without={name!r} behind the base class removes what is inherited",
    )


__all__ = ["RESERVED", "Model", "check_progress", "class_place", "marked", "progress_of"]
