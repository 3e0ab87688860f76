"""Engines for a verb: their registry, the options for the resources of the explicit engine, status lines, violations as they
are found.

An engine is a function in its own file, and an entry in the registry: one interface, from a system and options to a result.
There are no status lines if standard error is not a terminal.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click

from streamproof import interrupts
from streamproof.cli.selection import choice_option, number_option, path_option
from streamproof.system.errors import UsageError
from streamproof.system.model import Instance, Kind, State, System
from streamproof.system.options import (
    DEFAULTS,
    MOST_WORKERS,
    TIERS,
    SearchOptions,
    bytes_text,
    parse_bytes,
    resident_bytes,
)
from streamproof.system.records import dataclass, replace
from streamproof.system.text import inner, visible
from streamproof.system.verdict import CheckResult, Finding, Progress, Verdict

if TYPE_CHECKING:
    from streamproof.explicit import Exploration
    from streamproof.symbolic import Effort


@dataclass(frozen=True, slots=True)
class RegisteredEngine:
    """An engine: its name, its function, and its options."""

    name: str
    place: str
    """``module:function``, loaded on first use."""
    options: frozenset[str]
    """The fields of `SearchOptions` that it supports."""
    because: str
    """The reason why it does not support the others."""

    def expect(self, options: SearchOptions) -> None:
        """Raises `UsageError` for an option that this engine does not support."""
        for name in options.given():
            if name not in self.options:
                flag = "--" + FLAGS.get(name, name).replace("_", "-")
                raise UsageError(f"{self.name} has no {flag}: {REASONS.get(name, self.because)}", remedy="leave it out")

    def run(
        self,
        system: System,
        options: SearchOptions = DEFAULTS,
        *,
        on_progress: Callable[[Any], None] | None = None,
        on_violation: Callable[[Finding], None] | None = None,
    ) -> CheckResult:
        """Decide the properties of a system selected by the options; None: all that the engine can decide.

        `on_progress` is called about once a second with the progress of the engine; `on_violation` with each violation found
        before the end. Ctrl-C ends the engine with the results found so far. The function has this interface, too. Raises
        `UsageError` for an option that this engine does not support.
        """
        self.expect(options)
        module, _, function = self.place.partition(":")
        answer: CheckResult = getattr(import_module(module), function)(
            system, options, on_progress=on_progress, on_violation=on_violation
        )
        return answer


FLAGS: Mapping[str, str] = {
    "time_limit": "timeout",
    "max_depth": "depth",
    "properties": "property",
    "max_k": "k",
    "query_limit": "query_timeout",
}
"""Options with another name on the command line."""
REASONS: Mapping[str, str] = {"max_k": "it is the strength of induction"}
"""Reasons that are those of an option, whatever the engine that lacks it."""

_LIMITS = frozenset({"properties", "max_depth", "time_limit", "query_limit", "stop_when_decided"})
_SEARCH = frozenset(SearchOptions.names()) - {"max_k", "query_limit"}
_VISITS = "it visits no states"

CHECKS: Mapping[str, RegisteredEngine] = {
    engine.name: engine
    for engine in (
        RegisteredEngine("explicit", "streamproof.explicit:explore", _SEARCH, "it is not a solver"),
        RegisteredEngine("bmc", "streamproof.symbolic.bmc:look_ahead", _LIMITS, _VISITS),
    )
}
"""The engines that search for violations, the default first."""

PROVERS: Mapping[str, RegisteredEngine] = {
    name: RegisteredEngine(name, f"streamproof.proving:{name}", _LIMITS | {"max_k"}, _VISITS)
    for name in ("auto", "induction", "discovery", "pdr")
}
"""The engines that prove properties of all behaviours, the default first."""


class Status:
    """A status line: each call replaces its text, and the end of the block removes it."""

    def __init__(self, *, live: bool = True) -> None:
        self._live = live and sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        """Show `text`."""
        if self._live:
            import shutil  # for a terminal only, as its import is slow

            width = shutil.get_terminal_size().columns
            inner(sys.stderr).write(f"\r\x1b[2K{visible(text)[: max(width - 1, 1)]}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line, so that the next output starts on a clean line."""
        if self._live:
            inner(sys.stderr).write("\r\x1b[2K")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.clear()


class EngineProgress:
    """Shows the progress of an engine: counts of states or a solver's effort. Close it before other output.

    Counts are shown once a second in place on a terminal, otherwise in one line per minute. Rates are measured since the
    previous line.
    """

    def __init__(self) -> None:
        self._status = Status()
        self._live = sys.stderr.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")
        self._printed = time.monotonic()
        self._before = Progress(0.0, 0, 0, 0, 0)

    def __call__(self, progress: Progress | Effort) -> None:
        """Show the progress; counts if the last line is old enough."""
        if not isinstance(progress, Progress):
            self._status(effort_text(progress))
            return
        now = time.monotonic()
        if now - self._printed < (1.0 if self._live else 60.0):
            return
        from streamproof.report.console import progress_text

        text = progress_text(progress, self._before, resident_bytes())
        self._printed, self._before = now, progress
        if self._live:
            self._status(text)
        else:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def close(self) -> None:
        """Remove the status line."""
        self._status.clear()


def effort_text(effort: Effort, later: float = 0.0) -> str:
    """One line about the solver's effort, `later` seconds after it was reported."""
    return (
        f"{effort.elapsed + later:.0f} s: {effort.doing}, depth {effort.depth}, {effort.queries} queries, "
        f"{effort.undecided} undecided"
    )


def option_words(engine: str, options: SearchOptions) -> tuple[str, ...]:
    """The command-line words for the engine and its options; --resume is left out, so a repetition starts from the
    beginning."""
    given = {
        "--engine": None if engine == next(iter(CHECKS)) else engine,
        "--max-states": options.max_states,
        "--depth": None if options.max_depth is None else options.max_depth - 1,
        "--timeout": None if options.time_limit is None else f"{options.time_limit:g}",
        "--tier": None if options.tier == TIERS[0] else options.tier,
        "--workers": options.workers,
        "--memory": None if options.memory is None else bytes_text(options.memory),
        "--spill": options.spill,
    }
    flags = {"--symmetry": options.symmetry, "--por": options.por}
    words = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    return (*words, *(name for name, wanted in flags.items() if wanted))


def amount(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """The value of an option in bytes."""
    try:
        return None if text is None else parse_bytes(text)
    except UsageError as error:
        raise click.BadParameter(f"{error.message}; {error.remedy}") from None


RESOURCES = ("tier", "workers", "memory", "spill", "checkpoint", "resume")


def resource_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which receives them as the argument `resources`: a `SearchOptions` with these set."""

    @wraps(command)
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


def run_engine(
    engine: RegisteredEngine,
    system: System,
    options: SearchOptions,
    *,
    quiet: bool = True,
    detailed: bool = False,
    on_violation: Callable[[Finding], None] | None = None,
) -> CheckResult:
    """The result of an engine; shows progress unless `quiet`.

    `detailed` also counts the conjuncts of guards, if the engine visits states. `on_violation` is called with each violation
    found while the engine runs.
    """
    progress = None if quiet else EngineProgress()

    def report(finding: Finding) -> None:
        if progress is not None:
            progress.close()
        if on_violation is not None:
            on_violation(finding)

    try:
        found = engine.run(system, options, on_progress=progress, on_violation=report)
    finally:
        if progress is not None:
            progress.close()
    states = explored(found)
    coverage = states.detailed_coverage() if states is not None and detailed else found.coverage
    return replace(found, coverage=coverage, interrupted=found.interrupted or interrupts.requested())


def explored(found: CheckResult) -> Exploration | None:
    """The result of an engine that visits states; None for other engines."""
    if found.counts is None:
        return None
    from streamproof.explicit import Exploration

    return found if isinstance(found, Exploration) else None


def graph_text(found: CheckResult, limit: int) -> str:
    """The state graph as DOT text. Raises `TooLarge` for more than `limit` states."""
    from streamproof.exchange.dot import graph_dot
    from streamproof.system.interpreter import Interpreter

    states = explored(found)
    assert states is not None, "drawing is refused for engines that visit no states"
    interpreter = Interpreter(states.system)

    def edges() -> Iterator[tuple[State, Instance, State]]:
        for state in states.states():
            for step in interpreter.steps(state):
                yield state, step.instance, step.state

    return graph_dot(
        states.system,
        edges(),
        initial=interpreter.initial_states(),
        violating={
            finding.trace.states[-1]
            for finding in found.findings
            if finding.verdict is Verdict.VIOLATED and finding.trace and finding.kind in (Kind.INVARIANT, Kind.DEADLOCK)
        },
        limit=limit,
    )
