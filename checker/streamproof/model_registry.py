"""Lookup of models: by a registered name, by a Python file, or by ``package.module:Name``.

Bundled models are registered in the entry-point group ``streamproof.models``, each as a `Spec` or a `Model` class; packages
of users register theirs in the same way.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from streamproof import entries
from streamproof.base.errors import (
    InputError,
    ModelError,
    StreamproofError,
    SystemFailure,
    TooLarge,
    UsageError,
    did_you_mean,
)
from streamproof.base.options import timely
from streamproof.base.reading import expect_file
from streamproof.base.records import dataclass
from streamproof.entries import Entry, working_folder
from streamproof.language.declare.declarations import check_constructor, check_model
from streamproof.language.declare.model import Model, marked
from streamproof.language.declare.primitives import MARK, PropertyMark, RefinementMark
from streamproof.language.declare.spec import Spec, check_expected
from streamproof.language.lower.model_reader import DEADLOCK, TERMINATION
from streamproof.system.model import Kind, Property, System
from streamproof.system.verdict import Finding, Measure, Verdict
from streamproof.transform.unbounded import Parametric
from streamproof.user_code import error_of_user, import_file, import_module

T = TypeVar("T")

BINDING = "BINDING"
"""The name of the binding in a file of the user."""
GROUP = "streamproof.models"
"""The entry-point group in which packages register their models."""
READING = "reading the model"


MOST_NAMES = 16
"""Largest number of names in a message."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A property as declared, without compiling the model."""

    name: str
    kind: Kind
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """The model of a lookup.

    `text` is the argument of the lookup. `specified`: the model has a `Spec` or is bundled, so it has expected verdicts; a
    bare class has none.
    """

    text: str
    spec: Spec
    specified: bool
    last: dict[tuple[str | None, str], Model] = field(default_factory=dict, compare=False, repr=False)
    """The last instance that facts, warnings and questions were about."""

    @property
    def name(self) -> str:
        """The model's own name."""
        return self.spec.model.title()

    def variant(self, name: str | None) -> type[Model]:
        """The class of a variant; None: of the model itself. Raises `UsageError` for an unknown variant."""
        if name is not None and name not in self.spec.model.variants:
            raise unknown(f"{self.name} has no variant", name, self.spec.model.variants, "its variants")
        found = self.spec.model if name is None else self.spec.model.variants[name]
        check_model(found)
        check_constructor(found)
        return found

    def expectation(self, variant: str | None, prop: str) -> str | None:
        """The expected verdict of a property; None without a specification, and for a variant that was declared in a package
        and a file that the specification does not know."""
        cls, spec = self.variant(variant), self.spec
        if not self.specified:
            return None
        if variant not in spec.expected and variant is not None and spec.loc is not None:
            package = cls.__module__.partition(".")[0] == spec.model.__module__.partition(".")[0]
            file = getattr(sys.modules.get(cls.__module__), "__file__", None) == spec.loc.file
            return spec.expectation(variant, prop) if package or file else None
        return spec.expectation(variant, prop)

    def given(self, variant: str | None, texts: Sequence[str]) -> dict[str, Any]:
        """The parameters in texts ``name=value``. Raises `UsageError` for other texts and names."""
        cls, found = self.variant(variant), dict[str, Any]()
        for text in texts:
            name, equals, value = text.partition("=")
            if not equals:
                raise UsageError(f"-p {text}: no value", remedy="write -p name=value")
            found |= self.meaning(cls, name, value)
        return found

    def meaning(self, cls: type[Model], name: str, value: str) -> Mapping[str, Any]:
        """The parameters that one option sets."""
        if name in self.spec.inputs:
            return self.spec.inputs[name](value)
        if name not in cls.parameters():
            known = {**cls.parameters(), **self.spec.inputs}
            raise unknown(f"{self.name} has no parameter", name, known, "its parameters")
        return {name: cls.parse(name, value)}

    def defaults(self, variant: str | None) -> dict[str, Any]:
        """The default parameters of a variant."""
        return {**self.variant(variant).parameters(), **self.spec.variant_parameters.get(variant or "", {})}

    def properties(
        self, variant: str | None = None, parameters: Mapping[str, Any] = types.MappingProxyType({})
    ) -> tuple[Listed, ...]:
        """The properties, in the order of the compiled system; the parts of a composite may depend on `parameters`."""
        cls = self.variant(variant)
        found: list[Listed] = []
        if cls.parts is not Model.parts:
            given = {**self.spec.variant_parameters.get(variant or "", {}), **parameters}
            model = self._made(variant, parameters, lambda: cls(**given))
            found += _of_parts(model, self.spec.carries)
        found += _own(cls, self.spec.properties)
        if cls.check_deadlock:
            found.append(Listed(DEADLOCK, Kind.DEADLOCK, "Every reachable state has a successor or is terminal."))
        if self.spec.termination:
            found.append(Listed(TERMINATION, Kind.TERMINATION, "Every behaviour is finite."))
        if cls.parts is Model.parts:  # the properties of parts may depend on the parameters
            check_expected(self.spec, variant, [one.name for one in found])
        return tuple(found)

    def warnings(self, variant: str | None, system: System | None) -> list[str]:
        """Probable mistakes in the model or a variant, one line each: functions without decorator that are never called, and
        variables of `system` (if it could be compiled) that no rule and no property reads or writes. A variant may leave out
        rules of its model."""
        from streamproof.language.declare.spec import unmarked, unused

        found = unmarked(self.spec, self.variant(variant))
        return [
            *(f"{loc}: {why}" for loc, why in found),
            *(unused(system) if system is not None and variant is None else ()),
        ]

    def system(self, variant: str | None, parameters: Mapping[str, Any]) -> System:
        """The transition system of a variant at the given parameters, defaults for the others.

        Raises `UsageError` if the model rejects the parameters (a `ValueError` in its ``setup``), and `ModelError`, with the
        line of the user's file, for every other exception of the model's code.
        """
        self.expect_feasible(variant, parameters)
        return self._made(variant, parameters, lambda: self.spec.system(variant, **parameters))

    def read(
        self, variant: str | None, parameters: Mapping[str, Any], compare: Callable[[Spec, Model, System], T]
    ) -> tuple[System, T]:
        """The same, and the result of comparing it with the model; raises as `system` and `compare`."""

        def run() -> tuple[System, T]:
            model, system = self.spec.read(variant, parameters)
            return system, compare(self.spec, model, system)

        self.expect_feasible(variant, parameters)
        return self._made(variant, parameters, run)

    def parametric(self, variant: str | None, parameters: Mapping[str, Any], free: Sequence[str]) -> Parametric:
        """The transition system of a variant with the parameters `free` symbolic; raises as `system`."""
        return self._made(variant, parameters, lambda: self.spec.parametric(free, variant, **parameters))

    def endless(self, variant: str | None, parameters: Mapping[str, Any], free: Sequence[str]) -> Parametric:
        """The same with its temporal properties, for proofs by ranking functions."""
        return self._made(variant, parameters, lambda: self.spec.endless(free, variant, **parameters))

    def quantity(
        self, name: str, variant: str | None, parameters: Mapping[str, Any], free: Sequence[str]
    ) -> Measure | None:
        """The quantity called `name` for every value of the parameters `free`; None if there is none."""
        return self._made(variant, parameters, lambda: self.spec.quantity(name, free, variant, **parameters))

    def bounds_missing(self, variant: str | None, parameters: Mapping[str, Any]) -> str | None:
        """What to declare for unbounded integers of a variant that no search takes, if there are any; raises as `system`."""
        return self._made(variant, parameters, lambda: self.spec.bounds_missing(variant, **parameters))

    def measures(self, variant: str | None, parameters: Mapping[str, Any]) -> tuple[Measure, ...]:
        """The quantities of a variant at the given parameters, defaults for the others; raises as `system`."""
        return self._made(variant, parameters, lambda: self.spec.measured(variant, **parameters))

    def condition(self, text: str, variant: str | None, parameters: Mapping[str, Any]) -> Property:
        """A condition on the states of a variant in a text; see `condition_of`. Raises as `system`."""
        return self._made(variant, parameters, lambda: self.spec.condition(text, variant, **parameters))

    def facts(self, variant: str | None, parameters: Mapping[str, Any]) -> list[str]:
        """What the specification says of an instance; raises as `system`."""
        told = self.spec.facts
        return (
            [] if told is None else self._made(variant, parameters, lambda: [*told(self._model(variant, parameters))])
        )

    def answers(
        self,
        variant: str | None,
        parameters: Mapping[str, Any],
        questions: Sequence[tuple[str, str]],
        sources: Mapping[str, str],
    ) -> list[str]:
        """The answers to questions about an instance, each with the name of its option, given the texts of the options that
        set parameters; raises as `system`."""

        def said() -> list[str]:
            model = self._model(variant, parameters)
            return [line for name, text in questions for line in self.spec.questions[name](model, text, sources)]

        return self._made(variant, parameters, said) if questions else []

    def cautions(self, variant: str | None, parameters: Mapping[str, Any]) -> list[str]:
        """What the specification warns of about an instance; raises as `system`."""
        warned = self.spec.cautions
        return (
            []
            if warned is None
            else self._made(variant, parameters, lambda: [*warned(self._model(variant, parameters))])
        )

    def decided(self, variant: str | None, parameters: Mapping[str, Any]) -> list[Finding]:
        """The deadlock verdicts that an instance alone decides; raises as `system`."""
        judge = self.spec.decided
        if judge is None:
            return []
        found = self._made(variant, parameters, lambda: [*judge(self._model(variant, parameters))])
        words = {True: Verdict.HOLDS, False: Verdict.VIOLATED}
        return [Finding(name, Kind.DEADLOCK, words[holds], because=why) for name, holds, why in found]

    def beside(self, parameters: Mapping[str, Any]) -> list[str]:
        """The variants that are judged beside the model itself at the given parameters; raises as `system`."""
        more = self.spec.beside
        if more is None:
            return []
        known = self.spec.model.variants
        return self._made(None, parameters, lambda: [v for v in more(self._model(None, parameters)) if v in known])

    def expect_feasible(self, variant: str | None, parameters: Mapping[str, Any], *, search: bool = False) -> None:
        """Raises `TooLarge` if the rules of an instance, or a search of all its states, would be too large."""
        judge = self.spec.infeasible
        if judge is None:
            return
        model = self._made(variant, parameters, lambda: self._model(variant, parameters))
        search = search and judge(model, False) is None
        if (why := judge(model, search)) is not None:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in self.spec.questions)
            remedies = [f"check {names} answers single questions"] if names else []
            remedies += ["simulate walks", "--max-states, --depth or --timeout limits the search"] if search else []
            raise TooLarge(why, remedy="; ".join(remedies))

    def _model(self, variant: str | None, parameters: Mapping[str, Any]) -> Model:
        """The instance; the last one is kept, because a large job takes seconds to expand."""
        given = {**self.spec.variant_parameters.get(variant or "", {}), **parameters}
        key = (variant, repr(sorted(given.items())))
        if key not in self.last:
            made = self.spec.model.build(variant, **given)
            self.last.clear()
            self.last[key] = made
        return self.last[key]

    def _made(self, variant: str | None, parameters: Mapping[str, Any], make: Callable[[], T]) -> T:
        self.variant(variant)
        given = {**self.spec.variant_parameters.get(variant or "", {}), **parameters}
        try:
            with timely(READING), working_folder(self.text):
                return make()
        except ModelError as error:
            if parameters and isinstance(error.__cause__, ValueError):
                shown = ", ".join(f"{name}={value}" for name, value in given.items())
                message = str(error.__cause__)
                hints = (*_meant(message, given.values()), f"the model rejects its parameters: {shown}")
                raise UsageError(message, loc=error.loc, remedy="\n  ".join(hints)) from error
            raise
        except (StreamproofError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise error_of_user(error) from error


def _meant(message: str, given: Iterable[Any]) -> Iterator[str]:
    """Suggestions for a text that a model rejects with a message that lists the allowed values."""
    for value in given:
        before, _, allowed = message.partition(repr(value))
        if isinstance(value, str) and before != message:
            yield from filter(None, [did_you_mean(value, re.findall(r"[\w.-]*\w", allowed))])


def _own(cls: type[Model], outside: Sequence[Callable[..., Any]]) -> Iterator[Listed]:
    """The properties of a machine without its parts, those stated outside of the model included."""
    own = [(name, mark, f) for name, (mark, f) in marked(cls).items()]
    own += [(f.__name__, getattr(f, MARK, None), f) for f in outside]
    for name, mark, function in own:
        if isinstance(mark, PropertyMark) and not mark.lemma:
            yield Listed(name, mark.kind, first_line(function.__doc__))
        elif isinstance(mark, RefinementMark):
            from streamproof.language.lower.refinement import promised

            for p in promised(name, mark, first_line(function.__doc__)):
                yield Listed(p.name, p.kind, p.doc)


def stated_by(function: Callable[..., Any]) -> frozenset[str]:
    """The names of the properties of a function outside of a model: its own, or those of a refinement."""
    return frozenset(one.name for one in _own(Model, (function,)))


def _of_parts(model: Model, carries: Mapping[str, Any]) -> list[Listed]:
    """The properties that a composite inherits from its parts; an array of parts has each property once."""
    from streamproof.language.declare.composite import inherited

    found: dict[str, Listed] = {}
    for name, part, functions, deeper in inherited(model, carries):
        for one in (*_of_parts(part, deeper), *_own(type(part), functions)):
            found.setdefault(f"{name}.{one.name}", Listed(f"{name}.{one.name}", one.kind, one.doc))
    return list(found.values())


def bundled() -> Mapping[str, Entry]:
    """The registered models by name, in alphabetical order; imports none of them."""
    return entries.every(GROUP)


def is_registered(name: str) -> bool:
    """Whether an installed package registers a model of this name."""
    return entries.quick(GROUP, name) is not None or name in bundled()


def find(text: str) -> Target:
    """The model named by `text`: a registered name, ``path/to/file.py``, ``file.py:Name`` or ``package.module:Name``.

    Raises `UsageError` (with the nearest names) or `InputError` for an unknown model, `ModelError` with file and line if the
    user's file cannot be imported, and `OutOfTime`.
    """
    with timely(READING), working_folder(text, again=False):
        return _find(text)


def _find(text: str) -> Target:
    entry = entries.quick(GROUP, text)
    if entry is not None:
        return _registered(text, entry)
    if (named := _named_module(text)) is not None:
        return _pick(text, *named)
    registered = bundled()
    if text in registered:
        return _registered(text, registered[text])
    if os.sep in text or Path(text).is_file():
        expect_file(text, "name a file that ends in .py")
        raise InputError(f"{text} is not a Python file", remedy="name a file that ends in .py")
    raise unknown(
        "unknown model",
        text,
        registered,
        "",
        "streamproof models lists the bundled ones; or give a file.py, or package.module:Name",
    )


def _named_module(text: str) -> tuple[str, types.ModuleType, str] | None:
    """The place and the module in ``path/to/file.py``, ``file.py:Name`` or ``package.module:Name``, and the name, if any.

    None for a text of another form.
    """
    place, _, name = (text, "", "") if text.endswith(".py") and Path(text).is_file() else text.partition(":")
    if place.endswith(".py"):
        return place, import_file(Path(place)), name
    if name and all(part.isidentifier() for part in place.split(".")):
        return place, import_module(place), name
    return None


def target_of(model: str | Spec | type[Model]) -> Target:
    """The target of a text, as `find`, or of a specification or a model class, which may be a variant's."""
    if isinstance(model, str):
        return find(model)
    cls = model.model if isinstance(model, Spec) else model
    if isinstance(cls, type) and issubclass(cls, Model) and cls is not Model:
        base = next(c for c in cls.__mro__ if issubclass(c, Model) and c.variant is None)
        text = f"{base.__module__}:{base.__qualname__}"
        return Target(text, model, True) if isinstance(model, Spec) else _of_class(text, base)
    raise UsageError(f"{model!r} is neither a Spec nor a Model class", remedy="give one, or the name of a model")


def find_binding(text: str) -> object:
    """The object called BINDING, or as stated, in ``path/to/file.py``, ``file.py:NAME`` or ``package.module:NAME``; where
    there is none of that name, the `Spec` of the model that `text` names.

    Raises as `find`.
    """
    with timely(READING), working_folder(text, again=False):
        named = _named_module(text)
        if named is None:
            return _find(text).spec
        place, module, name = named
        found = getattr(module, name or BINDING, None)
        return _pick(text, place, module, name).spec if found is None or isinstance(found, type | Spec) else found


def titled(name: str) -> Target | None:
    """The bundled model with the title `name`, which may differ from its registered name."""
    registered = bundled()
    if name in registered:
        return _registered(name, registered[name])
    for key, entry in registered.items():
        with suppress(StreamproofError):  # skip packages that cannot be loaded
            target = _registered(key, entry)
            if target.name == name:
                return target
    return None


def unknown(message: str, name: str, known: Collection[str], kind: str, more: str = "") -> UsageError:
    """The error for an unknown name: the nearest names, then the list of known names of this `kind`, then `more`."""
    names = list(known)
    shown = ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
    hints = (did_you_mean(name, names), f"{kind}: {shown or 'none'}" if kind else "", more)
    return UsageError(f"{message} {name!r}", remedy="\n  ".join(filter(None, hints)))


def first_line(doc: str | None) -> str:
    """The first line of a docstring; empty without docstring."""
    return inspect.cleandoc(doc).partition("\n")[0] if doc else ""


@cache
def _registered(name: str, entry: Entry) -> Target:
    try:
        value = entry.load()
    except StreamproofError:
        raise
    except Exception as error:
        raise SystemFailure(
            f"the registered model {name} cannot be loaded from {entry.value}: {type(error).__name__}: {error}",
            remedy="install its package again, or remove it",
        ) from error
    target = _target(name, value, specified=True)
    if target is None:
        raise SystemFailure(f"{entry.value}, registered as {name}, is neither a Spec nor a Model class")
    return target


def _target(
    text: str, value: object, *, specified: bool = False, home: types.ModuleType | None = None
) -> Target | None:
    if isinstance(value, Spec):
        return Target(text, value, True)
    if isinstance(value, type) and issubclass(value, Model) and value is not Model:
        if value.variant is not None:
            raise UsageError(
                f"{value.__name__} is the variant {value.variant!r} of {value.title()}",
                remedy=f"check the model with --variant {value.variant}",
            )
        return Target(text, Spec(model=value), specified) if specified else _of_class(text, value, home)
    return None


def _of_class(text: str, cls: type[Model], home: types.ModuleType | None = None) -> Target:
    """The target of a class: with the specification of the class, in the module `home`, beside its definition or registered,
    or else with the properties of the specification of the nearest model that it extends."""
    for base in cls.__mro__:
        named = isinstance(base.__module__, str)  # else it is refused when it is read
        if issubclass(base, Model) and base is not Model and named:
            spec = _declared(base, home) or _declared(base, sys.modules.get(base.__module__)) or _registered_for(base)
            if spec is not None and base is cls:
                return Target(text, spec, True)
            if spec is not None:
                return Target(text, spec.of_subclass(cls), False)
    return Target(text, Spec(model=cls), False)


def _declared(cls: type[Model], module: types.ModuleType | None) -> Spec | None:
    """The specification of a class in a module, its own before imported ones; raises `UsageError` if there are several."""
    names = vars(module) if isinstance(module, types.ModuleType) else {}
    every = {id(v): (n, v) for n, v in list(names.items()) if isinstance(v, Spec)}.values()
    found = [(name, spec) for name, spec in every if spec.model is cls]
    own = [(n, v) for n, v in found if v.loc is not None and v.loc.file == getattr(module, "__file__", None)]
    if len(own or found) > 1:
        listed = ", ".join(name for name, _ in own or found)
        raise UsageError(f"{cls.__name__} has several specifications", remedy=f"name one of them: {listed}")
    return next((spec for _, spec in own or found), None)


def _registered_for(cls: type[Model]) -> Spec | None:
    """The registered specification of a class; a class of the user's own files has none."""
    entry = entries.quick(GROUP, cls.title())
    others = {} if entries.is_neighbour(cls.__module__) else bundled()
    for name, one in {**({} if entry is None else {cls.title(): entry}), **others}.items():
        with suppress(StreamproofError):  # skip packages that cannot be loaded
            if (spec := _registered(name, one).spec).model is cls:
                return spec
    return None


def _pick(text: str, place: str, module: types.ModuleType, name: str) -> Target:
    """The object called `name`, or the only model of the module."""
    if name:
        if not hasattr(module, name):
            raise unknown(f"{place} has no", name, _candidates(module), "its models")
        value = getattr(module, name)
        target = _target(text, value, home=module)
        if target is None:
            kind = type(value).__name__
            raise UsageError(f"{name} in {place} is a {kind}, neither a Spec nor a Model class")
        return target
    found = _candidates(module) or _stateless(module) or _varied(module)
    if not found:
        classes = {n: v for n, v in vars(module).items() if isinstance(v, type) and issubclass(v, Model)}
        imported = ", ".join(f"{place}:{n}" for n, v in classes.items() if v is not Model and v.variant is None)
        remedy = f"name one that it imports: {imported}" if imported else "define one: class MyModel(streamproof.Model)"
        raise InputError(f"{place} defines no model", remedy=remedy)
    if len(found) > 1:
        raise UsageError(
            f"{place} defines {len(found)} models",
            remedy=f"name one of them: {', '.join(f'{place}:{n}' for n in found)}",
        )
    target = _target(text, next(iter(found.values())), home=module)
    assert target is not None, "candidates are models"
    return target


def _candidates(module: types.ModuleType) -> dict[str, Spec | type[Model]]:
    """The models of a module: its specifications, and its model classes without a specification."""
    every = {id(v): (n, v) for n, v in vars(module).items() if isinstance(v, Spec)}.values()
    own = [(n, v) for n, v in every if v.model.__module__ == module.__name__]
    specs: dict[str, Spec | type[Model]] = dict(own or every)
    covered = tuple(c for v in specs.values() if isinstance(v, Spec) for c in (v.model, *_refined(v)))
    models = {
        n: v
        for n, v in vars(module).items()
        if isinstance(v, type) and issubclass(v, Model) and v.__module__ == module.__name__
        if v.variant is None and v.state is not Model.state and not any(issubclass(c, v) for c in covered)
    }
    return {**specs, **models}


def _refined(spec: Spec) -> Iterator[type[Model]]:
    """The abstract models of the refinement properties of a specification."""
    for function in (*spec.properties, *(f for c in spec.model.__mro__ for f in vars(c).values())):
        mark = getattr(function, MARK, None)
        if isinstance(mark, RefinementMark):
            yield mark.model


def _stateless(module: types.ModuleType) -> dict[str, Spec | type[Model]]:
    """The model classes of a module without state."""
    own = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Model)]
    return {v.__name__: v for v in own if v.__module__ == module.__name__ and v.variant is None}


def _varied(module: types.ModuleType) -> dict[str, Spec | type[Model]]:
    """The models of other modules of which a module declares variants."""
    own = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Model) and v.variant is not None]
    bases = [next(c for c in v.__mro__ if issubclass(c, Model) and c.variant is None) for v in own]
    return {b.__name__: b for b, v in zip(bases, own, strict=True) if v.__module__ == module.__name__}
