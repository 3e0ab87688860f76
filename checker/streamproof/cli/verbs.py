"""The program: runs the verb, and converts every error to a message and an exit code.

Verbs are loaded when they are used; their help has option groups and an example.
"""

from __future__ import annotations

import errno
import importlib
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamproof import interrupts
from streamproof.base.errors import Exit, Loc, ModelError, StreamproofError, UsageError, did_you_mean, text_of
from streamproof.base.options import CommandLine, command_line, setting
from streamproof.base.text import code_of_others, encodable, reserved_output, visible_output
from streamproof.supervisor import little_memory

if TYPE_CHECKING:
    from streamproof.language.declare.spec import Spec

_FILE_OR_STANDARD = "FILE|-"
"""Metavariable of options that write to a file, or to standard output for ``-``."""
FEW = 12
"""Largest number of options that are listed without groups."""
_GROUPS = {
    "System": (
        *("variant", "variants", "listed", "size", "parameters", "properties", "explore_only", "free"),
        *("job_graph", "what_if"),
    ),
    "Cluster": ("simulate", "kills", "restarts", "taskmanagers", "slots"),
    "Limits": (
        *("walks", "steps", "limit", "depth", "max_k", "max_states", "max_depth", "query_limit", "time_limit"),
        "timeout",
    ),
    "Memory": ("memory", "spill", "checkpoint", "resume"),
    "Search": (
        *("engine", "max_violations", "first", "symmetry", "por", "tier", "workers", "agree", "agree_limits", "rank"),
        *("seed", "guided", "seeds", "faults", "shrink", "script", "spark", "master", "again"),
    ),
    "Evidence": ("out", "dot", "coverage", "certificate"),
    "Output": (),
}
"""Groups of options in the help of a verb, by the names of parameters in their order; the others are about output."""


class Option(click.Option):
    """An option that may be given once, unless it is `multiple`, also by its `former` names, which the help does not list."""

    def __init__(self, *args: Any, former: Sequence[str] = (), group: str | None = None, **more: Any) -> None:
        """`group`: the group in the help, if it is not that of the parameter's name."""
        super().__init__(*args, **more)
        self.former, self.group = tuple(former), group

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Make the parser accept the option by all of its names."""
        shown = self.opts
        self.opts = [*shown, *self.former]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = shown


class SecondsType(click.FloatRange):
    """A number of seconds above 0, or ``inf``."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; fails for other text."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number of seconds", param, ctx)
        return number


class Verb(click.Command):
    """A command whose help ends with an example. Its function returns an exit code (None is 0)."""

    def __init__(self, *args: Any, example: str, **kwargs: Any) -> None:
        kwargs.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        super().__init__(*args, **kwargs)
        self.example = example
        self.params.append(_traceback_option())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; an option with one value may be given once, and a path may be used for one output."""
        try:
            given, _, order = self.make_parser(ctx).parse_args(list(args))
        except click.NoSuchOption:
            args = self._with_parameters(ctx, args)
            given, _, order = self.make_parser(ctx).parse_args(list(args))
        for option, count in Counter(order).items():
            if count > 1 and isinstance(option, click.Option) and not (option.multiple or option.is_flag):
                name = max(option.opts, key=len)
                raise click.UsageError(f"{name} is given {count} times; give it once", ctx)
        _expect_ascii_numbers([(option, given[option.name]) for option in dict.fromkeys(order) if option.name in given])
        _expect_apart([(option, given[option.name]) for option in dict.fromkeys(order) if option.name in given])
        return super().parse_args(ctx, args)

    def option_names(self, ctx: click.Context) -> set[str]:
        """All names of options, former names included."""
        return {name for option in self.get_params(ctx) for name in (*option.opts, *getattr(option, "former", ()))}

    def unknown_options(self, ctx: click.Context, args: Sequence[str]) -> list[str]:
        """The long options among the words that the verb does not have: they may be parameters of the model."""
        words = dict.fromkeys(word.partition("=")[0] for word in args)
        known = self.option_names(ctx)
        return [word for word in words if word[:2] == "--" != word and word not in known]

    def named_model(self, ctx: click.Context, args: Sequence[str], unknown: Sequence[str]) -> Spec | None:
        """The specification of the model named by the words, `unknown` options ignored; None without a model."""
        parser = self.make_parser(ctx)
        for number, word in enumerate(unknown):
            click.Option([word, f"unknown_{number}"]).add_to_parser(parser, ctx)
        with suppress(click.UsageError):  # errors are reported when the verb runs
            return named(parser.parse_args([*args, ""])[0].get("model"))  # the last option may lack its value
        return None

    def _with_parameters(self, ctx: click.Context, args: Sequence[str]) -> list[str]:
        """The words with ``-p NAME=VALUE`` in place of ``--NAME VALUE`` where NAME is a parameter of the model."""
        unknown = self.unknown_options(ctx, args)
        spec = self.named_model(ctx, args, unknown) if "-p" in self.option_names(ctx) else None
        names: Collection[str] = () if spec is None else {*spec.model.parameters(), *spec.inputs, *spec.questions}
        found: list[str] = []
        rest = iter(args)
        for word in rest:
            option, equals, value = word.partition("=")
            name = option[2:].replace("-", "_")
            if option in unknown and name in names:
                found += ["-p", *(f"{name}={given}" for given in ([value] if equals else islice(rest, 1)))]
            else:
                found.append(word)
        return found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options, in groups if there are many."""
        group_of = {name: group for group, names in _GROUPS.items() for name in names}
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in _GROUPS}
        order = list(group_of)
        for param in sorted(
            self.get_params(ctx), key=lambda p: order.index(p.name) if p.name in group_of else len(order)
        ):
            record = param.get_help_record(ctx)
            if record is not None and not isinstance(param, click.Argument):
                own = getattr(param, "group", None) or group_of.get(param.name or "", "Output")
                groups[own].append(record)
        if sum(map(len, groups.values())) <= FEW:
            groups = {"Options": [record for records in groups.values() for record in records]}
        for group, records in groups.items():
            if records:
                with formatter.section(group):
                    formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; standard output is reserved for its result."""
        words, source = ParameterSource.COMMANDLINE, ctx.get_parameter_source
        given = frozenset(name for p in self.get_params(ctx) if source(p.name or "") is words for name in p.opts)
        with reserved_output(), setting(command_line, CommandLine(frozenset(self.option_names(ctx)), given)):
            return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The example, never wrapped."""
        with formatter.section("Example"):
            formatter.write(f"{'':{formatter.current_indent}}{self.example}\n")


def named(model: Any) -> Spec | None:
    """The specification of a model; None for an unknown model, which is reported when the verb runs."""
    from streamproof.model_registry import find

    with suppress(StreamproofError), reserved_output():
        return find(model).spec if isinstance(model, str) else None
    return None


class Verbs(click.Group):
    """The verbs by name; a verb's module is imported when it is called or its help is shown."""

    def __init__(self, *args: Any, verbs: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order of the help."""
        return list(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb `cmd_name`; None if there is none."""
        if cmd_name not in self._verbs:
            return None
        command = importlib.import_module(f"streamproof.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, Verb), f"the module of {cmd_name} has a verb"
        command.short_help = self._verbs[cmd_name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs, of which no module is loaded."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._verbs.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb named by the first word. Raises `UsageError`, with the nearest verb, for an unknown one."""
        if args[0] not in self._verbs and not args[0].startswith("-"):
            remedy = did_you_mean(args[0], self._verbs) or f"{ctx.command_path} --help lists the verbs"
            raise UsageError(f"no such verb {args[0]!r}", remedy=remedy)
        return super().resolve_command(ctx, args)


def complaint(error: click.ClickException) -> tuple[str, str]:
    """The message and the remedy of a usage error of click, in the style of our messages."""
    message, remedy = error.format_message().replace("\n\t", " "), ""
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and context is not None:
        message = f"no such option {error.option_name}"
        remedy = did_you_mean(error.option_name.lstrip("-"), _options(context), "--")
    path = context.command_path if context is not None else "streamproof"
    return message[:1].lower() + message[1:].removesuffix("."), remedy or f"{path} --help explains"


def _expect_ascii_numbers(given: Sequence[tuple[click.Parameter, Any]]) -> None:
    """Raises `UsageError` for a number in digits of another script, which Python's `int` would accept."""
    numbers = (click.types.IntParamType, click.types.FloatParamType)
    for option, values in given:
        for text in values if isinstance(values, list | tuple) else (values,):
            if isinstance(option.type, numbers) and isinstance(text, str) and not text.isascii():
                name = max(option.opts, key=len)
                raise UsageError(f"{name}: {text!r} is not a number", remedy="write the digits 0 to 9")


def _expect_apart(given: Sequence[tuple[click.Parameter, Any]]) -> None:
    """Raises `UsageError` if two outputs have the same path, or an output that does not support it is standard output."""
    outputs: dict[str, tuple[str, bool]] = {}
    for option, text in ((o, t) for o, t in given if isinstance(o, click.Option)):
        kind, form = option.type, option.metavar or ""
        written = isinstance(kind, click.Path) and not kind.exists
        if not isinstance(text, str) or not (written or form == _FILE_OR_STANDARD):
            continue
        name = max(option.opts, key=len)
        if text == "-":
            if "|" not in form:  # other verbs check their outputs themselves
                raise UsageError(f"{name} does not write to standard output", remedy="name a path; ./- is one")
            continue
        path, file = os.path.realpath(text), "FILE" in form
        for other, (first, also) in outputs.items():
            if path == other and (file or also):
                raise UsageError(f"{first} and {name} have the same path, {text}", remedy="give different paths")
        outputs[path] = name, file


def _options(ctx: click.Context) -> list[str]:
    """The long names of a command's options without dashes, except hidden ones."""
    shown = [p for p in ctx.command.get_params(ctx) if isinstance(p, click.Option) and not p.hidden]
    return [name[2:] for option in shown for name in option.opts if name.startswith("--")]


TRACEBACK = "streamproof.traceback"
"""Key of the context's `meta` for the hidden option --traceback."""


def _traceback_option() -> click.Option:
    """The option that shows Python's traceback of errors; it may be given before and after the verb."""

    def ask(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value:
            ctx.find_root().meta[TRACEBACK] = True

    return click.Option(["--traceback"], is_flag=True, hidden=True, expose_value=False, callback=ask)


NAME = "streamproof"
COMPLETE = "_STREAMPROOF_COMPLETE"
"""The environment variable by which a shell requests completions."""
BROKEN_PIPE = 141
"""Exit code after a broken pipe: 128 + SIGPIPE."""

_HELP = """Prove and refute the coordination protocols of stream processors, and check real runs against them.

A MODEL is the name of a bundled model (`streamproof models` lists them), a Python file, file.py:Name, or
package.module:Name.

\b
Exit codes: 0 holds, 2 wrong usage or input, 11 deadlock, 12 safety violated,
13 termination violated, 75 evaluation error, 150 malformed model,
152 too large, 153 system failure, 160 inconclusive, 161 trace or certificate
rejected, 162 engines disagree, 163 behaviours differ, 164 verdicts differ
(both of diff), 130 interrupted.
"""

VERBS = {
    "init": "Write a first model, its test and a CI file.",
    "models": "List the bundled models, or describe one.",
    "check": "Decide every property of a model.",
    "compare": "Compare designs, and judge claims about them.",
    "prove": "Prove safety by induction, without a bound.",
    "verify-certificate": "Accept or reject the evidence for verdicts.",
    "sweep": "Map the configurations at which properties hold.",
    "simulate": "Look for violations on random walks.",
    "mutate": "Change the rules, and see which properties notice it.",
    "diff": "Compare two models: what was gained and lost.",
    "replay": "Replay a recorded trace.",
    "explain": "Explain a recorded trace: text, diagram, page or test.",
    "explore": "Walk through a model on a local page.",
    "step": "Walk through a model on a terminal.",
    "export": "Write traces, graphs, and models for other tools.",
    "validate": "Check recorded runs against a model.",
    "incident": "Explain what happened in a recorded run.",
    "drive": "Call an implementation step by step, and compare it with a model.",
    "suite": "Write scripts that cover a model, and wrong logs.",
    "contract": "Describe the events that an implementation logs.",
    "run": "Run a job on the reference runtime.",
    "report": "Write one page about many recorded runs.",
    "counterexamples": "Find every expected violation again.",
    "bugbench": "Check known defects before and after their fix.",
    "completion": "Print the completion script of a shell.",
}
"""The verbs in the order of the help, each with one line about it; the module of a verb has its name."""


def _version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """Print the version and the commit, and end."""
    if wanted and not context.resilient_parsing:
        from streamproof.version import version_line

        click.echo(f"{NAME} {version_line()}")
        context.exit()


cli = Verbs(
    NAME,
    verbs=VERBS,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[
        _traceback_option(),
        click.Option(
            ["-V", "--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_version,
            help="Show the version and exit.",
        ),
    ],
)


@visible_output()
def run(arguments: Sequence[str]) -> int:
    """Run the command line `arguments`; writes errors to standard error and returns the exit code."""
    if os.environ.get(COMPLETE):
        cli.main(list(arguments), prog_name=NAME, complete_var=COMPLETE)
    context: click.Context | None = None
    code_of_others.clear()
    try:
        try:
            with cli.make_context(NAME, list(arguments)) as context:
                code = cli.invoke(context)
        except click.exceptions.Exit as done:
            code = done.exit_code
        sys.stdout.flush()
        if code == Exit.INTERRUPTED:
            sys.stderr.write(f"{NAME}: interrupted; the results found so far are above\n")
        elif interrupts.requested():  # too late to stop anything, but acknowledged
            raise KeyboardInterrupt
        return int(code or 0)
    except BaseException as error:
        if context is not None and context.meta.get(TRACEBACK):
            import traceback

            traceback.print_exception(error)
        if interrupts.requested() and isinstance(error, Exception):  # libraries may convert an interrupt to an error
            error = KeyboardInterrupt()
        try:
            return int(_explain(error))
        except Exception:
            if not code_of_others:
                raise
            os.write(2, b"streamproof: error: the model has changed Python itself: no message could be made\n")
            return Exit.MALFORMED


def _explain(error: BaseException) -> int:
    """Print an error; returns the exit code."""
    match error:
        case BrokenPipeError():
            # The reader has closed the pipe; flushing the buffer at the end of Python must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return BROKEN_PIPE
        case click.exceptions.NoArgsIsHelpError():
            click.echo(error.ctx.get_help() if error.ctx else "", err=True)
            return Exit.USAGE
        case click.ClickException():
            _complain(*complaint(error))
            return Exit.USAGE
        case KeyboardInterrupt() | click.Abort():
            stage = interrupts.stage()
            _complain("interrupted" + (f" while {stage}" if stage else ""))
            return Exit.INTERRUPTED
        case interrupts.TimeUp():
            _complain(f"time limit of {interrupts.limit():g} s reached", "nothing was decided; raise the limit")
            return Exit.INCONCLUSIVE
        case StreamproofError():
            at = "" if error.loc is None else f"{error.loc.short}: "
            _complain(f"{at}{error.message}", error.remedy)
            return error.exit_code
        case MemoryError():
            _complain("out of memory", "choose smaller parameters or a smaller input")
            return Exit.TOO_LARGE
        case OSError() if not (error.errno in (None, errno.ENOMEM) and little_memory()):
            at = f"{error.filename}: " if error.filename else ""
            _complain(f"{at}{error.strerror or error}", "check the disk and the permissions")
            return Exit.SYSTEM
        case ImportError() if "failed to map segment" in text_of(error):
            return _explain(MemoryError())
        case _ if short := little_memory():
            _complain(f"unexpected {type(error).__name__}: {text_of(error)}".rstrip(": "), short)
            return Exit.TOO_LARGE
        case _ if code_of_others:
            what = f"unexpected {type(error).__name__}: {text_of(error)}".rstrip(": ")
            remedy = (
                f"either the model changes Python for the whole program, or this is a defect of {NAME}; see --traceback"
            )
            return _explain(ModelError(what, loc=_last_line(error), remedy=remedy))
        case _:
            _complain(
                f"internal error: {type(error).__name__}: {text_of(error)}",
                f"this is a defect of {NAME}; please report it with the output of --traceback",
            )
            return Exit.SYSTEM


def _last_line(error: BaseException) -> Loc | None:
    """The innermost line of a user's file in the traceback of an exception."""
    found, trace = None, error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        found = Loc(file, trace.tb_lineno) if file in code_of_others else found
        trace = trace.tb_next
    return found


def _complain(message: str, remedy: str = "") -> None:
    # Untrusted text in a message may have line breaks: its lines never look like lines of our own.
    message, remedy = (re.sub(r"\n(?!\s)", "\n  ", text) for text in (message, remedy))
    sys.stderr.write(encodable(f"{NAME}: error: {message}\n" + (f"  {remedy}\n" if remedy else ""), sys.stderr))
