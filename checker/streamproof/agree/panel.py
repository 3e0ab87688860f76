"""The panel: every engine runs on one system, within its own limits, and the results are compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from streamproof.agree.comparing import differences
from streamproof.agree.interpreter_result import NAME as INTERPRETER
from streamproof.agree.interpreter_result import interpreter_result
from streamproof.agree.panel_engines import bounded, explored, proved, run_spin, run_tlc
from streamproof.agree.result import Answer, EngineResult, Expected, ResultDifference, no_answer
from streamproof.base.records import dataclass
from streamproof.system.model import System
from streamproof.system.verdict import Verdict

PYTHON, COMPILED, BMC, INDUCTION, SPIN, TLC = "python", "compiled", "bmc", "induction", "Spin", "TLC"
TLC_JAR = "TLA2TOOLS_JAR"
"""The environment variable with the path of TLC."""


@dataclass(frozen=True, slots=True)
class PanelLimits:
    """Limits of the engines: maximum number of states, depth of bmc in steps, and seconds per engine."""

    interpreter: int = 20_000
    python: int = 1_000_000
    spin: int = 1_000_000
    tlc: int = 1_000_000
    depth: int = 10
    seconds: float = 60.0


LIMITED = ("interpreter", "python", "spin", "tlc")
"""The engines with a maximum number of states."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The results of all engines, the interpreter's first, and every difference."""

    system: System
    results: tuple[EngineResult, ...]
    differences: tuple[ResultDifference, ...]

    def answer(self, name: str) -> Answer:
        """The answer of the first engine that decided a property; inconclusive if none did."""
        for unbounded in (True, False):
            for result in self.results:
                answer = result.answers.get(name)
                if answer and answer.verdict is not Verdict.INCONCLUSIVE and (result.horizon is None) >= unbounded:
                    return answer
        return Answer(Verdict.INCONCLUSIVE)


def agree(
    system: System,
    limits: PanelLimits,
    report: Callable[[str], None] = lambda _: None,
    answered: Callable[[EngineResult], None] = lambda _: None,
) -> Agreement:
    """Runs all engines on all properties of `system`. `report` receives progress, `answered` each result immediately."""
    results: dict[str, EngineResult] = {}

    def run(name: str, most: int | None, question: Callable[[], EngineResult]) -> None:
        size = next((o.distinct for o in results.values() if o.distinct is not None), None)
        if most is not None and size is not None and size > most:
            results[name] = no_answer(name, f"not run: {size:,} states, its limit is {most:,}")
        elif most is not None and size is None and name == INTERPRETER:
            results[name] = no_answer(name, "not run: no engine counted the states")
        else:
            report(f"running {name}")
            results[name] = question()
        answered(results[name])

    seconds = limits.seconds
    run(COMPILED, None, lambda: explored(system, COMPILED, seconds=seconds))
    run(f"{COMPILED}, 2 workers", None, lambda: explored(system, COMPILED, 2, seconds=seconds))
    run(PYTHON, limits.python, lambda: explored(system, PYTHON, seconds=seconds))
    allowed: list[Mapping[str, Expected]] = []

    def refereed() -> EngineResult:
        said = interpreter_result(system, thorough=False)
        allowed.append(said.expected)
        return said.result

    run(INTERPRETER, limits.interpreter, refereed)
    run(BMC, None, lambda: bounded(system, limits.depth, seconds=seconds))
    run(INDUCTION, None, lambda: proved(system, limits.depth, seconds=seconds))
    run(SPIN, limits.spin, lambda: run_spin(system, seconds=seconds))
    if os.environ.get(TLC_JAR):
        run(TLC, limits.tlc, lambda: run_tlc(system, seconds=seconds))
    else:
        results[TLC] = no_answer(TLC, f"not run: {TLC_JAR} is not set")
        answered(results[TLC])
    order = (INTERPRETER, PYTHON, COMPILED, f"{COMPILED}, 2 workers", BMC, INDUCTION, SPIN, TLC)
    ordered = tuple(results[name] for name in order)
    return Agreement(system, ordered, tuple(differences(system, ordered, next(iter(allowed), None))))
