"""The program: runs the verb, and converts every error to a message and an exit code."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Sequence

import click

from streamproof import interrupts
from streamproof.cli.verbs import TRACEBACK, Verbs, complaint
from streamproof.supervisor import little_memory
from streamproof.system.errors import Exit, Loc, ModelError, StreamproofError, text_of
from streamproof.system.foreign import code_of_others, visible_output
from streamproof.version import version_line

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
rejected, 162 engines disagree, 130 interrupted.
"""

_MODULES = {
    name.replace("_", "-"): f"streamproof.cli.{name}"
    for name in (
        "models",
        "check",
        "compare",
        "prove",
        "verify_certificate",
        "sweep",
        "simulate",
        "replay",
        "export",
        "validate",
        "run",
        "report",
        "counterexamples",
        "completion",
    )
}

cli = Verbs(
    NAME,
    modules=_MODULES,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[
        click.Option(["--traceback"], is_flag=True, hidden=True, help="Show Python's traceback of errors."),
    ],
    callback=lambda traceback: click.get_current_context().meta.update({TRACEBACK: traceback}),
)


def _version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """Print the version and the commit, and end."""
    if wanted and not context.resilient_parsing:
        click.echo(f"{NAME} {version_line()}")
        context.exit()


cli.params.append(
    click.Option(
        ["-V", "--version"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_version,
        help="Show the version and exit.",
    )
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
            _complain("interrupted")
            return Exit.INTERRUPTED
        case interrupts.TimeUp():
            _complain(f"time limit of {interrupts.limit():g} s reached", "nothing was decided; raise the limit")
            return Exit.INCONCLUSIVE
        case StreamproofError():
            _complain(message_of(error), error.remedy)
            return error.exit_code
        case MemoryError():
            _complain("out of memory", "choose smaller parameters, or limit the search with --max-states")
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


def message_of(error: StreamproofError) -> str:
    """The error with its place, with short file names."""
    if error.loc is None:
        return error.message
    return f"{error.loc.short}: {error.message}"


def _complain(message: str, remedy: str = "") -> None:
    # Untrusted text in a message may have line breaks: its lines never look like lines of our own.
    message, remedy = (re.sub(r"\n(?!\s)", "\n  ", text) for text in (message, remedy))
    text = f"{NAME}: error: {message}\n" + (f"  {remedy}\n" if remedy else "")
    sys.stderr.write(text.encode(sys.stderr.encoding or "utf-8", "replace").decode(sys.stderr.encoding or "utf-8"))
