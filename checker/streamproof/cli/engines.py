"""The engines behind one question: given a system, limits and properties, what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamproof.system.errors import EvaluationError
from streamproof.system.model import Instance, Kind, State, System
from streamproof.system.verdict import Counts, Coverage, Finding, Progress, Trace, Verdict

if TYPE_CHECKING:
    from streamproof.explicit import Exploration

ENGINES = ("explicit",)
"""Engines by the name that ``--engine`` takes, the default first."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Where an engine stops. Raises `UsageError` for a limit that it does not have."""

    engine: str = ENGINES[0]
    max_states: int | None = None
    max_depth: int | None = None
    time_limit: float | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The options that set the same limits again."""
        given = {
            "--engine": None if self.engine == ENGINES[0] else self.engine,
            "--max-states": self.max_states,
            "--max-depth": self.max_depth,
            "--time-limit": None if self.time_limit is None else f"{self.time_limit:g}",
        }
        return tuple(word for name, value in given.items() if value is not None for word in (name, str(value)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an engine found.

    `mistake` is the model's own mistake that ended the search, with the way to it. `shortest` says that no shorter trace
    shows the same. `graph` draws the reachable states, so many at most, as DOT text, where the engine has them.
    """

    findings: tuple[Finding, ...]
    counts: Counts | None
    coverage: Coverage | None
    mistake: tuple[Trace, EvaluationError] | None
    interrupted: bool
    compile_seconds: float
    explore_seconds: float
    shortest: bool
    graph: Callable[[int], str] | None

    def finding(self, name: str) -> Finding:
        """The finding for the property called `name`; raises `KeyError`."""
        for finding in self.findings:
            if finding.property == name:
                return finding
        raise KeyError(name)


def run_engine(
    limits: Limits,
    system: System,
    properties: tuple[str, ...] | None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Decide `properties` of `system`, all of them for None."""
    return _explicit(limits, system, properties, on_progress)


def _explicit(
    limits: Limits,
    system: System,
    properties: tuple[str, ...] | None,
    on_progress: Callable[[Progress], None] | None,
) -> Outcome:
    from streamproof.explicit import explore

    found = explore(
        system,
        properties=properties,
        max_states=limits.max_states,
        max_depth=limits.max_depth,
        time_limit=limits.time_limit,
        on_progress=on_progress,
    )
    mistake = found.mistake
    return Outcome(
        findings=found.findings,
        counts=found.counts,
        coverage=found.coverage,
        mistake=None if mistake is None else (mistake.trace, mistake.error),
        interrupted=found.stopped == "interrupted",
        compile_seconds=found.compile_seconds,
        explore_seconds=found.explore_seconds,
        shortest=True,
        graph=lambda limit: draw(found, limit),
    )


def draw(found: Exploration, limit: int) -> str:
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
