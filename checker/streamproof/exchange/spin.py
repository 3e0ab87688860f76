"""Spin as a second opinion: an exported system is counted and decided by Spin's verifier, which shares no code with ours.

Every search is exhaustive and without reductions. One that Spin cut short never gives the verdict that nothing is there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from streamproof.exchange.promela import ALL, MISTAKE, Asked, Promela, export
from streamproof.exchange.spin_run import Goal, Options, Order, Report, Seconds, installed, run
from streamproof.system.errors import TooLarge
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Kind, System
from streamproof.system.verdict import Verdict

__all__ = ["Counted", "Decided", "Options", "Order", "Report", "Seconds", "count", "decide", "installed"]

DEFAULT = Options()


@dataclass(frozen=True, slots=True)
class Counted:
    """What Spin counted, in our terms. It compares where the search is not `truncated` and the model made no `mistake`."""

    distinct: int
    generated: int
    depth: int | None
    """Levels, the initial one being 1; None after a depth-first search."""
    mistake: int | None
    """The level of the first state (depth first: of some state) in which the model makes a mistake."""
    truncated: str | None
    """Why the search is incomplete, if it is."""
    report: Report


@dataclass(frozen=True, slots=True)
class Decided:
    """Spin's answer for one property, and the number of states of the behaviour that shows it.

    Breadth first, that behaviour is a shortest one; depth first, and for cycles, no length is given.
    """

    property: str
    kind: Kind
    verdict: Verdict
    length: int | None = None


def count(system: System, options: Options = DEFAULT) -> Counted:
    """Count the reachable states and the steps with Spin.

    Raises `SystemFailure` when Spin or a C compiler is missing or fails, `TooLarge` when the system cannot be exported or
    Spin rounds its counts, `ModelError` when no state is initial.
    """
    model = export(system)
    report = run(model, options)
    spare = 1 if model.opening else 0
    if spare and options.order is Order.DEPTH_FIRST:
        # Depth first, the choices of initial values that the initial condition excludes are counted too.
        spare += model.candidates - sum(1 for _ in Interpreter(system).initial_states())
    if not report.exact:
        raise TooLarge("Spin rounds counts of more than eight digits", remedy="compare smaller parameters")
    wrong = report.found.get(_ASSERTED + MISTAKE)
    return Counted(
        distinct=report.stored - spare,
        generated=report.stored + report.matched - spare,
        depth=_level(model, report.depth) if options.order is Order.BREADTH_FIRST else None,
        mistake=None if wrong is None else _level(model, wrong),
        truncated=report.truncated,
        report=report,
    )


def decide(
    system: System, properties: Collection[str] | None = None, options: Options = DEFAULT
) -> tuple[Decided, ...]:
    """Decide `properties` (None: all that Spin can decide) with Spin, in the order of declaration.

    As in our own engines, a mistake of the model is the answer for what is not decided in a state of its level or before;
    whether a model with a mistake terminates is inconclusive. Raises as `count` does, counts apart.
    """
    model = export(system)
    asked = {name: a for name, a in model.asked.items() if properties is None or name in properties}
    asserted = {name: a for name, a in asked.items() if a.kind not in (Kind.DEADLOCK, Kind.TERMINATION)}
    answers: dict[str, Decided] = {}
    if asserted:
        macros = [ALL] if len(asserted) > 1 else [a.macro for a in asserted.values()]
        report = run(model, options, macros)
        answers |= {name: _asserted(_Judge(model, options, report), name, a) for name, a in asserted.items()}
    for name, ask in asked.items():
        if ask.kind is Kind.DEADLOCK:
            judge = _Judge(model, options, run(model, options, [ask.macro], Goal.STUCK_STATES))
            answers[name] = judge.answer(name, ask.kind, _STUCK, Verdict.VIOLATED)
        elif ask.kind is Kind.TERMINATION:
            answers[name] = _of_cycles(name, run(model, options, goal=Goal.CYCLES))
    return tuple(answers[name] for name in asked)


_ASSERTED = "assertion violated "
_STUCK = "invalid end state"
_CYCLE = "non-progress cycle"


def _level(model: Promela, depth: int) -> int:
    """The level, from 1, of the state in which something was found at this depth of a breadth-first search."""
    return depth + 1 - model.opening


@dataclass(frozen=True, slots=True)
class _Judge:
    model: Promela
    options: Options
    report: Report

    def answer(self, name: str, kind: Kind, event: str, shown: Verdict) -> Decided:
        """The answer `shown` if the event was found, unless the model made a mistake before."""
        steps = 1 if kind is Kind.STEP else 0
        depth = self.report.found.get(event)
        wrong = self.report.found.get(_ASSERTED + MISTAKE)
        if depth is not None and (wrong is None or depth + steps <= wrong):
            return Decided(name, kind, shown, self._length(depth + steps))
        if wrong is not None:
            return Decided(name, kind, Verdict.ERROR, self._length(wrong))
        if self.report.truncated is not None:
            return Decided(name, kind, Verdict.INCONCLUSIVE)
        return Decided(name, kind, Verdict.VIOLATED if kind is Kind.REACHABLE else Verdict.HOLDS)

    def _length(self, depth: int) -> int | None:
        return _level(self.model, depth) if self.options.order is Order.BREADTH_FIRST else None


def _asserted(judge: _Judge, name: str, asked: Asked) -> Decided:
    """The answer for a property whose assertion may have failed, or that of a mistake in the property, which may be first."""
    found = judge.report.found.get(_ASSERTED + asked.decided)
    mistaken = judge.report.found.get(_ASSERTED + asked.mistaken)
    if mistaken is not None and (found is None or mistaken < found):
        return judge.answer(name, asked.kind, _ASSERTED + asked.mistaken, Verdict.ERROR)
    reached = asked.kind is Kind.REACHABLE
    return judge.answer(name, asked.kind, _ASSERTED + asked.decided, Verdict.HOLDS if reached else Verdict.VIOLATED)


def _of_cycles(name: str, report: Report) -> Decided:
    if _CYCLE in report.found:
        return Decided(name, Kind.TERMINATION, Verdict.VIOLATED)
    incomplete = report.truncated is not None or _ASSERTED + MISTAKE in report.found
    return Decided(name, Kind.TERMINATION, Verdict.INCONCLUSIVE if incomplete else Verdict.HOLDS)
