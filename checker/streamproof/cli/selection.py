"""Options that several verbs share, and the completion of models, variants, parameters and properties in shells."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from streamproof import interrupts
from streamproof.base.errors import UsageError
from streamproof.base.options import MOST_WORKERS, TIERS, SearchOptions, parse_bytes
from streamproof.cli.verbs import Option, SecondsType
from streamproof.model_registry import Target, bundled, find, first_line

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])


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
