"""A chosen system: the model, variant, parameters and properties that a verb or a function of the API is about."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from streamproof.base.errors import UsageError
from streamproof.base.records import dataclass, replace
from streamproof.language.declare.model import Model
from streamproof.language.declare.spec import Spec
from streamproof.language.lower.model_reader import DEADLOCK
from streamproof.model_registry import Listed, Target, find, target_of, unknown
from streamproof.system.model import System
from streamproof.system.verdict import Finding, Measure

if TYPE_CHECKING:
    from streamproof.agree.plain_python import PlainPython


@dataclass(frozen=True, slots=True)
class Selection:
    """A chosen system. `given` are the parameters set by the command line; `properties` None means all."""

    target: Target
    variant: str | None = None
    given: dict[str, Any] = field(default_factory=dict)
    properties: tuple[str, ...] | None = None
    options: tuple[str, ...] = ()
    """The command-line words of this selection, for a command that repeats it."""
    questions: tuple[tuple[str, str], ...] = ()
    """Questions about the instance: the name of the option, and its text."""
    sources: Mapping[str, str] = MappingProxyType({})
    """The texts of the options of the specification that set parameters, such as the path of a file."""

    @property
    def name(self) -> str:
        """Model and variant as one word."""
        return f"{self.target.name}-{self.variant}" if self.variant else self.target.name

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters with their values."""
        return {**self.target.defaults(self.variant), **self.given}

    def listed(self) -> tuple[Listed, ...]:
        """The chosen properties, in the system's order."""
        every = self.target.properties(self.variant, self.parameters)
        return every if self.properties is None else tuple(p for p in every if p.name in self.properties)

    def only(self, prop: str) -> Selection:
        """This selection with one property."""
        return replace(self, properties=(prop,))

    def system(self) -> System:
        """The chosen transition system."""
        return self.target.system(self.variant, self.given)

    def compared(self) -> tuple[System, PlainPython]:
        """The chosen transition system after a comparison with plain Python. Raises `ReadingDiffers`."""
        from streamproof.agree.plain_python import compare_with_python

        return self.target.read(self.variant, self.given, compare_with_python)

    def facts(self) -> list[str]:
        """What the specification says of the chosen instance, in lines."""
        return self.target.facts(self.variant, self.parameters)

    def answers(self) -> list[str]:
        """The answers to the questions, in lines."""
        return self.target.answers(self.variant, self.parameters, self.questions, self.sources)

    def decided(self) -> list[Finding]:
        """The deadlock verdicts that the chosen instance alone decides; none if a variant or other properties are chosen."""
        asked = self.variant is None and (self.properties is None or DEADLOCK in self.properties)
        return self.target.decided(self.variant, self.parameters) if asked else []

    def cautions(self) -> tuple[str, ...]:
        """What the specification warns of about the chosen instance."""
        return tuple(self.target.cautions(self.variant, self.parameters))

    def beside(self) -> Iterable[Selection]:
        """The variants that are judged beside the chosen instance of the model itself: their deadlocks if these are among
        the chosen properties, else the chosen properties."""
        for name in self.target.beside(self.parameters) if self.variant is None else ():
            known = {prop.name for prop in self.target.properties(name, self.parameters)}
            hangs = DEADLOCK in known and (self.properties is None or DEADLOCK in self.properties)
            words, asked = ("--variant", name, *self.options), (DEADLOCK,) if hangs else self.properties
            yield replace(self, variant=name, options=words, questions=(), properties=asked)

    def measures(self) -> tuple[Measure, ...]:
        """The quantities of the chosen system; none if single properties are chosen."""
        return () if self.properties is not None else self.target.measures(self.variant, self.given)

    def expected(self, prop: str) -> str | None:
        """The expected verdict of a property; None if there is none.

        Violations of a variant are expected at its own parameters only. Properties of the model itself hold at all of them.
        """
        if self.variant is not None and self.parameters != self.target.defaults(self.variant):
            return None
        return self.target.expectation(self.variant, prop)

    def command(self, verb: str, *more: str) -> str:
        """The command that repeats this selection."""
        chosen = [word for name in self.properties or () for word in ("--property", name)]
        return shlex.join(["streamproof", verb, self.target.text, *self.options, *chosen, *more])


def select(
    model: str,
    variant: str | None = None,
    size: str | None = None,
    parameters: Sequence[str] = (),
    properties: Sequence[str] = (),
    *,
    answering: bool = False,
) -> Selection:
    """The selection of a command line. Raises `UsageError` for an unknown name, with the nearest ones, and, unless
    `answering`, for a question."""
    target = find(model)
    cls = target.variant(variant)
    options: list[str] = []
    given: dict[str, Any] = {}
    if variant is not None:
        options += ["--variant", variant]
    if size is not None:
        if size not in cls.sizes:
            raise unknown(f"{target.name} has no size", size, cls.sizes, "its sizes")
        given.update(cls.sizes[size])
        options += ["--size", size]
    chosen_by: dict[str, str] = {}
    questions: list[tuple[str, str]] = []
    sources: dict[str, str] = {}
    for text in expect_once(parameters):
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"-p {text}: no value", remedy="write -p name=value")
        if name in target.spec.questions:
            if not answering:
                option = "--" + name.replace("_", "-")
                raise UsageError(f"{option} is a question that only check answers", remedy="leave it out")
            questions.append((name, value))
        else:
            for one, meant in target.meaning(cls, name, value).items():
                if one in chosen_by:
                    both = " and ".join("--" + word.replace("_", "-") for word in (chosen_by[one], name))
                    raise UsageError(f"{both} exclude each other", remedy="leave out one of the two")
                chosen_by[one], given[one] = name, meant
            if name in target.spec.inputs:
                sources[name] = value
        options += ["-p", text]
    every = [p.name for p in target.properties(variant, given)]
    for name in properties:
        if name not in every:
            raise unknown(f"{target.name} has no property", name, every, "its properties")
    # Each once, in the system's order.
    chosen = tuple(name for name in every if name in properties) if properties else None
    return Selection(target, variant, given, chosen, tuple(options), tuple(questions), sources)


def selected(
    model: str | type[Model] | Model | Spec,
    variant: str | None = None,
    size: str | None = None,
    parameters: Mapping[str, Any] = MappingProxyType({}),
    properties: Iterable[str] | None = None,
) -> Selection:
    """The selection of a program: a model by its name or file, its class, an instance with its parameters, or a `Spec`.

    `properties` None means all. Raises `UsageError` for an unknown name, with the nearest ones.
    """
    given: dict[str, Any] = {}
    if isinstance(model, Model):
        given, model = model.settings(), type(model)
    if isinstance(model, type) and issubclass(model, Model) and model.variant is not None:
        if variant not in (None, model.variant):
            raise UsageError(f"{model.__name__} is the variant {model.variant!r}", remedy="leave out the other one")
        variant = model.variant
    target = target_of(model)
    cls = target.variant(variant)
    if size is not None:
        if size not in cls.sizes:
            raise unknown(f"{target.name} has no size", size, cls.sizes, "its sizes")
        given |= cls.sizes[size]
    sources = {name: str(value) for name, value in parameters.items() if name in target.spec.inputs}
    for name, value in parameters.items():
        given |= target.meaning(cls, name, value) if isinstance(value, str) else {name: value}
        if name not in cls.parameters() and name not in target.spec.inputs:
            raise unknown(f"{target.name} has no parameter", name, cls.parameters(), "its parameters")
    options = [
        word for option, value in (("--variant", variant), ("--size", size)) if value for word in (option, value)
    ]
    options += [word for name, value in parameters.items() for word in ("-p", f"{name}={value}")]
    every = [p.name for p in target.properties(variant, given)]
    wanted = None if properties is None else [properties] if isinstance(properties, str) else list(properties)
    for name in wanted or ():
        if name not in every:
            raise unknown(f"{target.name} has no property", name, every, "its properties")
    chosen = None if wanted is None else tuple(name for name in every if name in wanted)
    return Selection(target, variant, given, chosen, tuple(options), sources=sources)


def expect_once(parameters: Sequence[str]) -> Sequence[str]:
    """The texts ``name=value`` as given. Raises `UsageError` where one name occurs twice."""
    for name, count in Counter(text.partition("=")[0] for text in parameters).items():
        if count > 1:
            raise UsageError(f"the parameter {name} is given {count} times", remedy="give it once")
    return parameters
