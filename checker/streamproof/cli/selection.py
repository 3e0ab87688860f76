"""The model, variant, parameters and properties chosen by a command line, and their completion in shells; options that
several verbs share."""

from __future__ import annotations

import functools
import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from streamproof import interrupts
from streamproof.base.errors import UsageError
from streamproof.base.options import MOST_WORKERS, TIERS, SearchOptions, parse_bytes
from streamproof.base.records import dataclass, replace
from streamproof.cli.verbs import Option, SecondsType
from streamproof.model_registry import Listed, Target, bundled, find, first_line, unknown
from streamproof.system.model import System
from streamproof.system.verdict import Measure

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from streamproof.agree.plain_python import PlainPython

F = TypeVar("F", bound=Callable[..., Any])


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
        """What the specification says of the chosen instance, and its answers to the questions, in lines."""
        return self.target.facts(self.variant, self.parameters, self.questions)

    def cautions(self) -> tuple[str, ...]:
        """What the specification warns of about the chosen instance."""
        return tuple(self.target.cautions(self.variant, self.parameters))

    def beside(self) -> Iterable[Selection]:
        """The variants that are judged beside the chosen instance of the model itself."""
        for name in self.target.beside(self.parameters) if self.variant is None else ():
            yield replace(self, variant=name, options=("--variant", name, *self.options), questions=())

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
        options += ["-p", text]
    every = [p.name for p in target.properties(variant, given)]
    for name in properties:
        if name not in every:
            raise unknown(f"{target.name} has no property", name, every, "its properties")
    # Each once, in the system's order.
    chosen = tuple(name for name in every if name in properties) if properties else None
    return Selection(target, variant, given, chosen, tuple(options), tuple(questions))


def expect_once(parameters: Sequence[str]) -> Sequence[str]:
    """The texts ``name=value`` as given. Raises `UsageError` where one name occurs twice."""
    for name, count in Counter(text.partition("=")[0] for text in parameters).items():
        if count > 1:
            raise UsageError(f"the parameter {name} is given {count} times", remedy="give it once")
    return parameters


def limited_by(option: str, usual: float | None = None) -> Callable[[F], F]:
    """Limits a verb, including reading the model, to the seconds of an option; default: `usual`."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def called(*args: Any, **given: Any) -> Any:
            seconds = usual if given[option] is None else given[option]
            with interrupts.limited(None if seconds is None or math.isinf(seconds) else seconds):
                return function(*args, **given)

        return cast(F, called)

    return decorate


# --- shell completion: it never fails, and offers no names after an error

Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def complete_models(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The bundled models, and files completed by the shell."""
    names = [_item(name) for name in bundled() if name.startswith(incomplete)]
    return names or [_item(incomplete, type="file")]


def _item(text: str, **more: Any) -> CompletionItem:
    from click.shell_completion import CompletionItem  # used for completion only

    return CompletionItem(text, **more)


def _of_target(offer: Callable[[Target, str | None], Iterable[tuple[str, str]]]) -> Complete:
    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        # While an option still lacks its value, click leaves the arguments before it unassigned.
        model = ctx.params.get("model") or next(iter(ctx.args), None)
        if not model:
            return []
        try:
            target = find(model)
            offered = list(offer(target, ctx.params.get("variant")))
        except Exception:  # a message in the middle of a command line is useless
            return []
        return [_item(name, help=doc or None) for name, doc in offered if name.startswith(incomplete)]

    return complete


complete_variants = _of_target(lambda t, _: ((n, first_line(c.__doc__)) for n, c in t.spec.model.variants.items()))
"""The variants of the model named on the line."""
complete_sizes = _of_target(lambda t, variant: ((name, "") for name in t.variant(variant).sizes))
"""The sizes of the model named on the line."""
complete_properties = _of_target(lambda t, variant: ((p.name, p.kind.value) for p in t.properties(variant)))
"""The properties of the model named on the line."""
complete_parameters = _of_target(lambda t, variant: ((f"{n}=", f"default {v}") for n, v in t.defaults(variant).items()))
"""The parameters of the model named on the line."""


def model_options(function: F) -> F:
    """The argument MODEL and the options that choose a variant and its parameters."""
    for decorate in (
        click.option(
            "-p",
            "parameters",
            metavar="NAME=VALUE",
            multiple=True,
            shell_complete=complete_parameters,
            help="Set one parameter; may be repeated. --NAME VALUE is short for it.",
        ),
        click.option(
            "--size",
            metavar="small|medium|large",
            shell_complete=complete_sizes,
            help="Named set of parameter values.",
        ),
        click.option(
            "--variant",
            metavar="NAME",
            shell_complete=complete_variants,
            help="A variant instead of the model itself.",
        ),
        click.argument("model", shell_complete=complete_models),
    ):
        function = decorate(function)
    return function


property_option = click.option(
    "--property",
    "properties",
    metavar="NAME",
    multiple=True,
    shell_complete=complete_properties,
    help="Only this property; may be repeated.",
)
"""The option that chooses properties by name."""


def _no_limit(_: click.Context, __: click.Parameter, seconds: float | None) -> float | None:
    return None if seconds == math.inf else seconds


def timeout_option(help: str, name: str = "timeout", default: float | None = None) -> Callable[[F], F]:
    """The option for a time limit, which the function receives as `name`."""
    return click.option(
        "--timeout",
        name,
        cls=Option,
        former=("--time-limit",),
        type=SecondsType(),
        default=default,
        show_default=default is not None,
        callback=_no_limit if name == "time_limit" else None,
        metavar="SECONDS",
        help=help,
    )


def path_option(name: str, metavar: str, help: str, **kind: Any) -> Callable[[F], F]:
    """The option for a path, ``FILE`` or ``DIR``; `kind` are arguments of `click.Path`."""
    return click.option(name, type=click.Path(path_type=Path, **kind), metavar=metavar, help=help)


def choice_option(*names: str, choices: Iterable[str], help: str, **more: Any) -> Callable[[F], F]:
    """The option for one of some words, by default the first."""
    words = list(choices)
    return click.option(*names, type=click.Choice(words), default=words[0], show_default=True, help=help, **more)


def number_option(
    *names: str, help: str, least: int = 1, most: int | None = None, default: int | None = None, **more: Any
) -> Callable[[F], F]:
    """The option for a whole number from `least` to `most`."""
    kind, shown = click.IntRange(least, most), default is not None
    return click.option(*names, type=kind, metavar="N", default=default, show_default=shown, help=help, **more)


certificate_option = path_option(
    "--certificate", "FILE", "Write the evidence for the verdicts; streamproof verify-certificate FILE checks it."
)
"""The option that writes a certificate."""


json_option = click.option(
    "--json",
    "json_to",
    metavar="FILE|-",
    help="Write the result as JSON; - means standard output, and text then goes to standard error.",
)
"""The option that writes the answer as JSON."""


def amount(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """The value of an option in bytes."""
    try:
        return None if text is None else parse_bytes(text)
    except UsageError as error:
        raise click.BadParameter(f"{error.message}; {error.remedy}") from None


RESOURCES = ("tier", "workers", "memory", "spill", "checkpoint", "resume")


def resource_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which receives them as the argument `resources`: a `SearchOptions` with these set."""

    @functools.wraps(command)
    def collected(*args: Any, **given: Any) -> Any:
        resources = SearchOptions(**{name: given.pop(name) for name in RESOURCES})
        return command(*args, resources=resources, **given)

    options = (
        choice_option(
            "--tier",
            choices=TIERS,
            help="Generated Python or compiled code; auto: compiled code for large state spaces.",
        ),
        number_option(
            "--workers",
            help="Number of threads of compiled code.  [default: one for each processor, at most 8]",
            most=MOST_WORKERS,
        ),
        click.option(
            "--memory",
            callback=amount,
            metavar="SIZE",
            help="Memory limit of the process (500MB, 4GB, 4GiB).  [default: four fifths of the machine's memory]",
        ),
        path_option("--spill", "DIR", "At the memory limit, continue on disk in DIR."),
        path_option(
            "--checkpoint",
            "DIR",
            "Write a checkpoint to DIR once a minute, and when a limit ends the search.",
            file_okay=False,
        ),
        path_option("--resume", "DIR", "Continue from the checkpoint in DIR, and keep writing it.", file_okay=False),
    )
    for option in reversed(options):
        collected = option(collected)
    return collected
