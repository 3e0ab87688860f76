"""The engines behind one question: given a system, limits and properties, what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from streamproof import interrupts
from streamproof.cli.progress import Status
from streamproof.cli.resources import DEFAULTS, Resources
from streamproof.system.errors import EvaluationError, UsageError
from streamproof.system.model import Instance, Kind, State, System
from streamproof.system.records import dataclass
from streamproof.system.verdict import Counts, Coverage, Finding, Reduction, Trace, Verdict

if TYPE_CHECKING:
    from streamproof.explicit import Exploration
    from streamproof.symbolic import Effort

EXPLICIT, BMC = "explicit", "bmc"
ENGINES = (EXPLICIT, BMC)
"""Engines by the name that ``--engine`` takes, the default first."""
DEFAULT_DEPTH = 20
"""How many steps `bmc` looks ahead when nobody says how many."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Where an engine stops. Raises `UsageError` for a limit that the engine does not have."""

    engine: str = EXPLICIT
    max_states: int | None = None
    max_depth: int | None = None
    depth: int | None = None
    time_limit: float | None = None
    symmetry: bool = False
    por: bool = False
    resources: Resources = DEFAULTS
    max_violations: int | None = None

    def __post_init__(self) -> None:
        if self.engine == BMC and (self.max_states is not None or self.max_depth is not None):
            raise UsageError("bmc counts no states", remedy="limit it with --depth or --timeout")
        if self.engine == BMC and (self.symmetry or self.por):
            raise UsageError("bmc does not reduce: it visits no states", remedy="leave out --symmetry and --por")
        if self.engine == BMC and self.max_violations is not None:
            raise UsageError(
                "bmc looks for all counterexamples at once", remedy="leave out --first, or name a property"
            )
        if self.engine == BMC and self.resources.given:
            raise UsageError(f"bmc has no {self.resources.given[0]}: it visits no states", remedy="leave it out")

    @property
    def words(self) -> tuple[str, ...]:
        """The options that set the same limits again."""
        given = {
            "--engine": None if self.engine == EXPLICIT else self.engine,
            "--max-states": self.max_states,
            "--depth": self.depth if self.max_depth is None else self.max_depth - 1,
            "--timeout": None if self.time_limit is None else f"{self.time_limit:g}",
        }
        flags = {"--symmetry": self.symmetry, "--por": self.por}
        words = [word for name, value in given.items() if value is not None for word in (name, str(value))]
        return (*words, *self.resources.words, *(name for name, wanted in flags.items() if wanted))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an engine found.

    `mistake` is the model's own mistake that ended the search, with the way to it. `graph` draws the reachable states,
    so many at most, as DOT text. Engines that do not count states have no counts, coverage and graph. `shortest`: whether
    its traces are. `notes` are more to tell people, a sentence each.
    """

    findings: tuple[Finding, ...]
    counts: Counts | None
    coverage: Coverage | None
    mistake: tuple[Trace, EvaluationError] | None
    interrupted: bool
    compile_seconds: float
    explore_seconds: float
    graph: Callable[[int], str] | None
    shortest: bool = True
    notes: tuple[str, ...] = ()
    reductions: tuple[Reduction, ...] = ()
    liveness_seconds: float = 0.0
    explored: Exploration | None = None
    """The search of engines that visit states."""
    stopped: str | None = None
    """Why that search left out states; None where it left out none."""

    def finding(self, name: str) -> Finding:
        """The finding for the property called `name`; raises `KeyError`."""
        for finding in self.findings:
            if finding.property == name:
                return finding
        raise KeyError(name)


def run_engine(
    limits: EngineLimits,
    system: System,
    properties: tuple[str, ...] | None,
    *,
    quiet: bool = True,
    detailed: bool = False,
    when_decided: bool = False,
    on_violation: Callable[[Finding], None] | None = None,
) -> Outcome:
    """Decide `properties` of `system`, for None all that the engine can decide; shows progress unless `quiet`.

    `detailed` counts the conditions of guards too, where the engine counts states. With `when_decided`, a search ends once
    every property is decided. `on_violation` is called with each violation that a search finds, while it goes on.
    """
    if limits.engine == BMC:
        return _bmc(limits, system, properties, quiet=quiet)
    return _explicit(limits, system, properties, quiet, detailed, when_decided, on_violation)


def _explicit(
    limits: EngineLimits,
    system: System,
    properties: tuple[str, ...] | None,
    quiet: bool,
    detailed: bool,
    when_decided: bool,
    on_violation: Callable[[Finding], None] | None,
) -> Outcome:
    from streamproof.explicit import explore
    from streamproof.report.console import ProgressPrinter

    progress = None if quiet else ProgressPrinter()

    def tell(finding: Finding) -> None:
        if progress is not None:
            progress.close()
        if on_violation is not None:
            on_violation(finding)

    try:
        found = explore(
            system,
            properties=properties,
            max_states=limits.max_states,
            max_depth=limits.max_depth,
            time_limit=limits.time_limit,
            on_progress=progress,
            stop_when_decided=when_decided,
            max_violations=limits.max_violations,
            on_violation=tell,
            symmetry=limits.symmetry,
            por=limits.por,
            tier=limits.resources.tier,
            workers=limits.resources.workers,
            checkpoint=limits.resources.checkpoint,
            resume=limits.resources.resume,
            memory=limits.resources.memory,
            spill=limits.resources.spill,
        )
    finally:
        if progress is not None:
            progress.close()
    mistake = found.mistake
    return Outcome(
        findings=found.findings,
        counts=found.counts,
        coverage=found.detailed_coverage() if detailed else found.coverage,
        mistake=None if mistake is None else (mistake.trace, mistake.error),
        interrupted=found.stopped == "interrupted" or interrupts.requested(),
        compile_seconds=found.compile_seconds,
        explore_seconds=found.explore_seconds,
        graph=lambda limit: _graph(found, limit),
        reductions=found.reductions,
        liveness_seconds=found.liveness_seconds,
        explored=found,
        stopped=found.stopped,
    )


def _bmc(limits: EngineLimits, system: System, properties: tuple[str, ...] | None, *, quiet: bool) -> Outcome:
    from streamproof.symbolic import bmc

    if properties is None:
        # Endless behaviours have no depth: unless asked for by name, a property that bmc can never decide is left out.
        properties = tuple(p.name for p in system.properties if p.kind not in (Kind.TERMINATION, Kind.TEMPORAL))
    with Status(live=not quiet) as status:
        found = bmc(
            system,
            DEFAULT_DEPTH if limits.depth is None else limits.depth,
            properties,
            seconds=limits.time_limit,
            on_progress=lambda effort: status(effort_text(effort)),
        )
    return Outcome(found.findings, None, None, None, found.interrupted, 0.0, found.seconds, None)


def effort_text(effort: Effort, later: float = 0.0) -> str:
    """One line about how far the solver is, so many seconds later."""
    return (
        f"{effort.elapsed + later:.0f} s: {effort.doing}, depth {effort.depth}, {effort.queries} queries, "
        f"{effort.undecided} undecided"
    )


def _graph(found: Exploration, limit: int) -> str:
    """The graph of the states found, as DOT text. Raises `TooLarge` when there are more than `limit`."""
    from streamproof.exchange.dot import graph_dot
    from streamproof.system.interpreter import Interpreter

    interpreter = Interpreter(found.system)

    def edges() -> Iterator[tuple[State, Instance, State]]:
        for state in found.states():
            for step in interpreter.steps(state):
                yield state, step.instance, step.state

    return graph_dot(
        found.system,
        edges(),
        initial=interpreter.initial_states(),
        violating={
            finding.trace.states[-1]
            for finding in found.findings
            if finding.verdict is Verdict.VIOLATED and finding.trace and finding.kind in (Kind.INVARIANT, Kind.DEADLOCK)
        },
        limit=limit,
    )
