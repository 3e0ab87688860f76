"""Asking each engine for its result. What an engine finds and the interpreter refutes is part of the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamproof.agree.digest import digest
from streamproof.agree.result import Answer, EngineResult, no_answer
from streamproof.base.errors import Exit, StreamproofError, SystemFailure
from streamproof.base.options import SearchOptions
from streamproof.exchange.promela import spin
from streamproof.exchange.tla import tlc
from streamproof.explicit.exploration import explore
from streamproof.symbolic.bmc import bmc
from streamproof.symbolic.proof import prove
from streamproof.system.model import Kind, System

if TYPE_CHECKING:
    from streamproof.exchange.promela.spin import SpinOptions
    from streamproof.exchange.tla.tlc import TlcOptions
    from streamproof.exchange.tool_run import ToolVerdict

PROVABLE = (Kind.INVARIANT, Kind.STEP, Kind.DEADLOCK)


def explored(system: System, tier: str, workers: int = 1, *, seconds: float | None = None) -> EngineResult:
    """The explicit engine, with one of its tiers."""
    name = f"{tier}, {workers} workers" if workers > 1 else tier

    def run() -> EngineResult:
        found = explore(system, SearchOptions(tier=tier, workers=workers, time_limit=seconds))
        if not found.complete and found.mistake is None:
            return no_answer(name, f"stopped: {found.stopped}")
        counts, mistake = found.counts.inside, found.mistake
        return EngineResult(
            name,
            {f.property: Answer.of(f) for f in found.findings},
            counts.distinct,
            counts.generated,
            counts.depth,
            counts.levels,
            None if mistake is not None else digest(system.variables, found.states(), found.counts.levels),
            None if mistake is None else len(mistake.trace),
            tells_mistakes=True,
            in_order=workers == 1,
            states=found.states,
        )

    return _timed(name, run)


def bounded(system: System, depth: int, *, seconds: float | None = None, integers: bool = False) -> EngineResult:
    """Bounded model checking, for behaviours of at most `depth` steps."""

    def run() -> EngineResult:
        result = bmc(system, depth, seconds=seconds, integers=integers)
        return EngineResult(
            "bmc",
            {f.property: Answer.of(f) for f in result.findings},
            horizon=result.depth + 1,
            complete=result.complete,
            why={"all": f"bounded to {result.depth} step{'' if result.depth == 1 else 's'}; does not count states"},
        )

    return _timed("bmc", run)


def proved(system: System, depth: int, *, seconds: float | None = None) -> EngineResult:
    """The symbolic engine, by induction, for all behaviours."""
    asked = [p.name for p in system.properties if p.kind in PROVABLE]
    if not asked:
        return no_answer("induction", "there is no invariant, step property or deadlock to prove")

    def run() -> EngineResult:
        result = prove(system, asked, depth=depth, seconds=seconds)
        answers = {f.property: Answer.of(f) for f in result.findings}
        return EngineResult("induction", answers, horizon=result.depth + 1, why={"all": "not supported by induction"})

    return _timed("induction", run)


def run_spin(system: System, options: SpinOptions | None = None, *, seconds: float | None = None) -> EngineResult:
    """Spin, breadth first; with `seconds`, not asked about endless behaviours when they are over."""
    return _other_checker_result("Spin", spin, system, spin.SpinOptions() if options is None else options, seconds)


def run_tlc(system: System, options: TlcOptions | None = None, *, seconds: float | None = None) -> EngineResult:
    """TLC, on the system's TLA+ text; its behaviours are taken by the interpreter. `seconds` as for `run_spin`."""
    return _other_checker_result("TLC", tlc, system, tlc.TlcOptions() if options is None else options, seconds)


def _other_checker_result(name: str, checker: Any, system: System, options: Any, seconds: float | None) -> EngineResult:
    """The result of another model checker: `checker` is the module that runs it."""
    begun = time.perf_counter()
    missing = checker.installed()
    if missing is not None:
        return no_answer(name, missing)

    def run() -> EngineResult:
        counted = checker.count(system, options if seconds is None else replace(options, seconds=seconds))
        answers, why = _decided(checker.decide, system, options, begun, seconds)
        if name == "Spin" and counted.truncated is not None:
            return no_answer(name, f"its search was cut short: {counted.truncated}")
        # Spin counts the states outside a constraint too.
        inside = counted.truncated is None and (name != "Spin" or system.constraint is None)
        return EngineResult(
            name,
            answers,
            counted.distinct if inside else None,
            counted.generated if counted.truncated is None else None,
            counted.depth if inside else None,
            mistake=counted.mistake,
            tells_mistakes=True,
            why=why | {"all": f"not reported by {name}"},
        )

    return _timed(name, run)


def _decided(
    decide: Callable[[System, Sequence[str] | None, Any], Sequence[ToolVerdict]],
    system: System,
    options: Any,
    begun: float,
    seconds: float | None,
) -> tuple[dict[str, Answer], dict[str, str]]:
    """The answers of another checker, and why there is none for the other properties.

    With `seconds`, what speaks of endless behaviours comes last, one by one, while there is time left since `begun`.
    """
    if seconds is None:
        return _answers_and_reasons(decide(system, None, options))
    endless = [p.name for p in system.properties if p.kind in (Kind.TEMPORAL, Kind.TERMINATION)]
    answers: dict[str, Answer] = {}
    why: dict[str, str] = {}
    for names in ([p.name for p in system.properties if p.name not in endless], *([name] for name in endless)):
        left = seconds - (time.perf_counter() - begun)
        if left < 1:
            why |= dict.fromkeys(names, f"not run: the time limit of {seconds:g} s was reached")
            continue
        try:
            found = decide(system, names, replace(options, seconds=min(left, options.seconds)))
        except SystemFailure as error:
            why |= dict.fromkeys(names, error.message)
            continue
        told, open_ = _answers_and_reasons(found)
        answers |= told
        why |= open_
    return answers, why


def _answers_and_reasons(found: Sequence[ToolVerdict]) -> tuple[dict[str, Answer], dict[str, str]]:
    """The answers of a tool, and the reasons that it gives."""
    return {d.property: Answer(d.verdict, d.length) for d in found}, {d.property: d.because for d in found if d.because}


def _timed(engine: str, run: Callable[[], EngineResult]) -> EngineResult:
    """The result of an engine, with its time; none if it cannot answer, or the interpreter refuted what it found."""
    begun = time.perf_counter()
    try:
        result = run()
    except StreamproofError as error:
        result = no_answer(engine, error.message)
        if error.exit_code in (Exit.DISAGREE, Exit.EVALUATION):  # a mistake of the model is found, not raised
            result = EngineResult(engine, unconfirmed=error.message, why={"all": "refuted by the interpreter"})
    return replace(result, seconds=time.perf_counter() - begun)
