"""Arguments of verbs: dataclasses whose fields describe their options; a verb's function receives one object."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from streamproof import interrupts
from streamproof.base.errors import UsageError
from streamproof.base.options import flag, flag_name
from streamproof.base.records import dataclass, described
from streamproof.cli.verbs import Option, SecondsType, Verb

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ArgumentGroup:
    """Fields of another class as arguments of a verb: all, or those with `names`. `usual` has their defaults; `changes` are
    help texts, or keywords of `flag`, that differ in this verb."""

    cls: type
    names: tuple[str, ...]
    usual: object
    changes: Mapping[str, str | Mapping[str, Any]]

    def parameters(self) -> Iterator[click.Parameter]:
        """The arguments and options of the fields, in their order, or in that of `names`."""
        known = described(self.cls)
        for name in self.names or known:
            default, about = known[name]
            change = self.changes.get(name, {})
            about = {**about, **({"help": change} if isinstance(change, str) else change)}
            if "part" in about:
                yield from about["part"].parameters()
            else:
                value = default.default if self.usual is None else getattr(self.usual, name)
                yield _parameter(name, str(default.type).removesuffix(" | None"), value, about)

    def collect(self, given: dict[str, Any]) -> Any:
        """The object with the values of the arguments, which are removed from `given`."""
        known, values = described(self.cls), dict[str, Any]()
        for name in self.names or known:
            inner = known[name][1].get("part")
            values[name] = given.pop(name) if inner is None else inner.collect(given)
        return self.cls(**values)


def part(cls: type, *names: str, usual: object = None, **changes: str | Mapping[str, Any]) -> Any:
    """A field that holds an object of options; see `ArgumentGroup`."""
    return field(default=None, metadata={"part": ArgumentGroup(cls, names, usual, changes)})


def argument(**about: Any) -> Any:
    """A field with an argument of the command line, by keywords of `click.Argument`."""
    return field(default=None, metadata={"argument": True, **about})


def json_flag() -> Any:
    """The field for the place of the answer as JSON."""
    text = "Write the result as JSON; - means standard output, and text then goes to standard error."
    return flag(text, "--json", unit="FILE|-")


def certificate_flag() -> Any:
    """The field for the place of a certificate."""
    text = "Write the evidence for the verdicts; streamproof verify-certificate FILE checks it."
    return flag(text, unit="FILE")


def _parameter(name: str, kind: str, default: Any, about: dict[str, Any]) -> click.Parameter:
    """The option, or argument, of a field of a type."""
    if about.pop("argument", False):
        return click.Argument([name], **about)
    read, text, choices = about.pop("read", None), about.pop("text", None), about.pop("choices", ())
    unit, least, most, path = (about.pop(key, None) for key in ("unit", "least", "most", "path"))
    kind, former = about.pop("kind", kind), about.pop("former", ())
    names, _ = [*(about.pop("names") or (flag_name(name, {"names": ()}),)), name], about.pop("again", None)
    more: dict[str, Any] = {"metavar": unit, "former": former}
    if default is not None:
        more |= {"default": default if text is None else text(default), "show_default": True}
    if read is not None:
        more["callback"] = functools.partial(_converted, read)
    match kind:
        case "bool":
            more |= {"is_flag": True, "default": bool(default), "show_default": bool(default)}
        case "int":
            more |= {"type": click.IntRange(1 if least is None else least, most), "metavar": unit or "N"}
        case "float":
            more |= {"type": SecondsType(), "metavar": unit or "SECONDS"}
        case "Path":
            more |= {"type": click.Path(path_type=Path, **(path or {}))}
        case _ if choices:
            more |= {"type": click.Choice(choices)}
        case _ if kind.startswith("tuple"):
            more |= {"multiple": True}
    option: type[click.Option] = about.pop("cls", Option)
    return option(names, **{**more, **about})


def _converted(read: Callable[[Any], Any], _: click.Context, __: click.Parameter, value: Any) -> Any:
    try:
        return None if value is None else read(value)
    except UsageError as error:
        raise click.BadParameter(f"{error.message}; {error.remedy}") from None


def verb(name: str, arguments: type, *, example: str, cls: type[Verb] = Verb) -> Callable[[Callable[..., int]], Verb]:
    """Makes a function a verb: it receives an object of `arguments`, and as keywords the options that `cls` adds."""
    whole = ArgumentGroup(arguments, (), None, {})

    def made(function: Callable[..., int]) -> Verb:
        def called(**given: Any) -> int:
            return function(whole.collect(given), **given)

        return cls(
            name,
            params=list(whole.parameters()),
            callback=called,
            help=inspect.getdoc(function),
            example=example,
        )

    return made


def limited(usual: float | None = None) -> Callable[[F], F]:
    """Limits a verb, including reading the model, to the `time_limit` of its `options`; default: `usual`."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def called(given: Any) -> Any:
            seconds = usual if given.options.time_limit is None else given.options.time_limit
            with interrupts.limited(None if seconds is None or math.isinf(seconds) else seconds):
                return function(given)

        return called  # type: ignore[return-value]

    return decorate


def given_options() -> Sequence[click.Parameter]:
    """The parameters of the running verb that the user gave."""
    context = click.get_current_context()
    words = ParameterSource.COMMANDLINE
    return [p for p in context.command.params if context.get_parameter_source(p.name or "") is words]


def is_given(name: str) -> bool:
    """Whether the user gave a parameter."""
    return any(p.name == name for p in given_options())
