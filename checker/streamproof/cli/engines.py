"""Execution of an engine for a verb: progress on the terminal, violations as they are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from streamproof import interrupts
from streamproof.cli.progress import EngineProgress
from streamproof.engines import RegisteredEngine
from streamproof.system.model import Instance, Kind, State, System
from streamproof.system.options import SearchOptions
from streamproof.system.records import replace
from streamproof.system.verdict import CheckResult, Finding, Verdict

if TYPE_CHECKING:
    from streamproof.explicit import Exploration


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
