"""Spin as a second opinion: an exported system is counted and decided by Spin's verifier, which shares no code with ours.

Every search is exhaustive and without reductions. One that Spin cut short never gives the verdict that nothing is there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from streamproof.exchange.promela import ALL, MISTAKE, Promela, SpinQuery, export
from streamproof.exchange.promela_bits import with_bits
from streamproof.exchange.spin_run import SearchOrder, SpinGoal, SpinOptions, SpinReport, installed, run
from streamproof.exchange.spin_trail import StrayTrail, behaviour, read
from streamproof.system.errors import TooLarge, UsageError
from streamproof.system.explicit_fairness import Scheduled, scheduled
from streamproof.system.formula import AndF, Formula, written
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Kind, Property, System
from streamproof.system.records import dataclass
from streamproof.system.temporal import fairness_of, true_of
from streamproof.system.verdict import Trace, Verdict

__all__ = [
    "SearchOrder",
    "SpinCounts",
    "SpinDecided",
    "SpinOptions",
    "SpinReport",
    "StrayTrail",
    "claimed",
    "count",
    "counterexample",
    "decide",
    "installed",
]

DEFAULT = SpinOptions()


@dataclass(frozen=True, slots=True)
class SpinCounts:
    """What Spin counted, in our terms. It compares where the search is not `truncated` and the model made no `mistake`."""

    distinct: int
    generated: int
    depth: int | None
    """Levels, the initial one being 1; None after a depth-first search."""
    mistake: int | None
    """The level of the first state (depth first: of some state) in which the model makes a mistake."""
    truncated: str | None
    """Why the search is incomplete, if it is."""
    report: SpinReport


@dataclass(frozen=True, slots=True)
class SpinDecided:
    """Spin's answer for one property, and the number of states of the behaviour that shows it.

    Breadth first, that behaviour is a shortest one; depth first, and for cycles, no length is given.
    """

    property: str
    kind: Kind
    verdict: Verdict
    length: int | None = None


def count(system: System, options: SpinOptions = DEFAULT) -> SpinCounts:
    """Count the reachable states and the steps with Spin.

    Raises `SystemFailure` when Spin or a C compiler is missing or fails, `TooLarge` when the system cannot be exported or
    Spin rounds its counts, `ModelError` when no state is initial.
    """
    model = export(system)
    report = run(model, options)
    spare = 1 if model.opening else 0
    if spare and options.order is SearchOrder.DEPTH_FIRST:
        # Depth first, the choices of initial values that the initial condition excludes are counted too.
        spare += model.candidates - sum(1 for _ in Interpreter(system).initial_states())
    if not report.exact:
        raise TooLarge("Spin rounds counts of more than eight digits", remedy="compare smaller parameters")
    wrong = report.found.get(_ASSERTED + MISTAKE)
    return SpinCounts(
        distinct=report.stored - spare,
        generated=report.stored + report.matched - spare,
        depth=_level(model, report.depth) if options.order is SearchOrder.BREADTH_FIRST else None,
        mistake=None if wrong is None else _level(model, wrong),
        truncated=report.truncated,
        report=report,
    )


def decide(
    system: System, properties: Collection[str] | None = None, options: SpinOptions = DEFAULT
) -> tuple[SpinDecided, ...]:
    """Decide `properties` (None: all that Spin can decide) with Spin, in the order of declaration.

    As in our own engines, a mistake of the model is the answer for what is not decided in a state of its level or before;
    whether a model with a mistake terminates is inconclusive, as are its temporal properties. Raises as `count` does, counts
    apart.
    """
    model = export(system)
    asked = {name: a for name, a in model.asked.items() if properties is None or name in properties}
    temporal = [
        p for p in system.properties if p.kind is Kind.TEMPORAL and (properties is None or p.name in properties)
    ]
    asserted = {name: a for name, a in asked.items() if a.kind not in (Kind.DEADLOCK, Kind.TERMINATION)}
    answers: dict[str, SpinDecided] = {}
    if asserted:
        macros = [ALL] if len(asserted) > 1 else [a.macro for a in asserted.values()]
        report = run(model, options, macros)
        answers |= {name: _asserted(_Judge(model, options, report), name, a) for name, a in asserted.items()}
    for name, ask in asked.items():
        if ask.kind is Kind.DEADLOCK:
            judge = _Judge(model, options, run(model, options, [ask.macro], SpinGoal.STUCK_STATES))
            answers[name] = judge.answer(name, ask.kind, _STUCK, Verdict.VIOLATED)
        elif ask.kind is Kind.TERMINATION:
            answers[name] = _of_cycles(name, run(model, options, goal=SpinGoal.CYCLES))
    for prop in temporal:
        reports = (run(text, options, goal=SpinGoal.CLAIM) for text in claimed(system, prop.name))
        answers[prop.name] = _of_claims(prop, reports)
    return tuple(answers[p.name] for p in system.properties if p.name in answers)


def claimed(system: System, name: str) -> tuple[Promela, ...]:
    """The texts for a temporal property, with fairness and stuttering spelt out (`system.scheduled`): one for each part of
    a conjunction, as Spin makes of a claim an automaton that grows exponentially.

    Raises `UsageError` for another kind of property, and as `export` does.
    """
    prop = system.property(name)
    if prop.formula is None:
        raise UsageError(f"{name} is no temporal property", remedy="it is in the text of the model itself")
    return tuple(_claim(prop, scheduled(system, part, name))[1] for part in _parts(prop.formula))


def _parts(formula: Formula) -> tuple[Formula, ...]:
    return formula.args if isinstance(formula, AndF) else (formula,)


LONGEST = 1_000
"""Characters of a formula that Spin is given as it stands; it reads some two thousand."""


def _claim(prop: Property, form: Scheduled) -> tuple[Scheduled, Promela]:
    """The text for what `form` asks; with a bit for each long condition, in the form too, where the formula is too long."""
    title = f"The temporal property {prop.name}: {_said(prop)}"
    for spelt in (form, with_bits(form)):
        text = export(replace(spelt.system, properties=_checked(prop)), spelt.stepwise, title)
        if len(text.text.rstrip().rpartition("\n")[2]) <= LONGEST:
            break
    return spelt, text


def _said(prop: Property) -> str:
    assert prop.formula is not None
    return prop.doc.strip().splitlines()[0] if prop.doc else written(prop.formula)


def counterexample(system: System, name: str, options: SpinOptions = DEFAULT) -> Trace | None:
    """The behaviour by which Spin violates (or reaches) a property, read back and confirmed by the interpreter; None where
    Spin finds none, or a mistake of the model.

    Raises as `decide` does, and `StrayTrail` where what Spin found is no behaviour of the system.
    """
    prop = system.property(name)
    if prop.formula is not None:
        return _lasso_against(system, prop, prop.formula, options)
    model = export(system, marked=True)
    if name not in model.asked:
        return None
    asked = model.asked[name]
    goal = {Kind.DEADLOCK: SpinGoal.STUCK_STATES, Kind.TERMINATION: SpinGoal.CYCLES}.get(
        asked.kind, SpinGoal.ASSERTIONS
    )
    report = run(model, options, [] if goal is SpinGoal.CYCLES else [asked.macro], goal, trail=True)
    event = {Kind.DEADLOCK: _STUCK, Kind.TERMINATION: _CYCLE}.get(asked.kind, _ASSERTED + asked.decided)
    if event not in report.found:
        return None
    trace = behaviour(system, model, read(report.trail))
    if asked.kind is Kind.TERMINATION and trace.stutters:
        return _staying(system, trace)
    return _broken(system, prop, trace) if asked.kind is Kind.STEP else trace


def _lasso_against(system: System, prop: Property, formula: Formula, options: SpinOptions) -> Trace | None:
    for part in _parts(formula):
        form, model = _claim(prop, scheduled(system, part, prop.name))
        report = run(model, options, goal=SpinGoal.CLAIM, trail=True)
        if not _claim_broken(report):
            continue
        trace = form.trace(_lasso(behaviour(form.system, model, read(report.trail))))
        if true_of(system, formula, trace) or not all(owed.paid for owed in fairness_of(system, trace)):
            raise StrayTrail(f"the cycle that Spin found does not violate {prop.name}, or is not fair")
        return trace
    return None


def _lasso(trace: Trace) -> Trace:
    return trace if trace.loop is not None else replace(trace, loop=len(trace.states) - 1)


def _staying(system: System, trace: Trace) -> Trace:
    """With the step that leads from the last state back to it."""
    for step in Interpreter(system).steps(trace.states[-1]):
        if step.state == trace.states[-1]:
            return replace(trace, steps=(*trace.steps, step.instance))
    raise StrayTrail("the cycle that Spin found is none")


def _broken(system: System, prop: Property, trace: Trace) -> Trace:
    """With the step that breaks a property of steps, where Spin did not finish it."""
    interpreter = Interpreter(system)
    if trace.steps and not interpreter.holds(prop, trace.states[-2], trace.states[-1]):
        return trace
    for step in interpreter.steps(trace.states[-1]):
        if not interpreter.holds(prop, trace.states[-1], step.state):
            return Trace((*trace.states, step.state), (*trace.steps, step.instance))
    raise StrayTrail(f"no step after what Spin found breaks {prop.name}")


def _checked(prop: Property) -> tuple[Property, ...]:
    """What is asserted beside a claim: that deciding it is no mistake."""
    return () if not prop.checks else (replace(prop, kind=Kind.INVARIANT, formula=None),)


_ASSERTED = "assertion violated "
_STUCK = "invalid end state"
_CYCLE = "non-progress cycle"
_ACCEPTED = "acceptance cycle"


def _level(model: Promela, depth: int) -> int:
    """The level, from 1, of the state in which something was found at this depth of a breadth-first search."""
    return depth + 1 - model.opening


@dataclass(frozen=True, slots=True)
class _Judge:
    model: Promela
    options: SpinOptions
    report: SpinReport

    def answer(self, name: str, kind: Kind, event: str, shown: Verdict) -> SpinDecided:
        """The answer `shown` if the event was found, unless the model made a mistake before."""
        steps = 1 if kind is Kind.STEP else 0
        depth = self.report.found.get(event)
        wrong = self.report.found.get(_ASSERTED + MISTAKE)
        if depth is not None and (wrong is None or depth + steps <= wrong):
            return SpinDecided(name, kind, shown, self._length(depth + steps))
        if wrong is not None:
            return SpinDecided(name, kind, Verdict.ERROR, self._length(wrong))
        if self.report.truncated is not None:
            return SpinDecided(name, kind, Verdict.INCONCLUSIVE)
        return SpinDecided(name, kind, Verdict.VIOLATED if kind is Kind.REACHABLE else Verdict.HOLDS)

    def _length(self, depth: int) -> int | None:
        return _level(self.model, depth) if self.options.order is SearchOrder.BREADTH_FIRST else None


def _asserted(judge: _Judge, name: str, asked: SpinQuery) -> SpinDecided:
    """The answer for a property whose assertion may have failed, or that of a mistake in the property, which may be first."""
    found = judge.report.found.get(_ASSERTED + asked.decided)
    mistaken = judge.report.found.get(_ASSERTED + asked.mistaken)
    if mistaken is not None and (found is None or mistaken < found):
        return judge.answer(name, asked.kind, _ASSERTED + asked.mistaken, Verdict.ERROR)
    reached = asked.kind is Kind.REACHABLE
    return judge.answer(name, asked.kind, _ASSERTED + asked.decided, Verdict.HOLDS if reached else Verdict.VIOLATED)


def _of_cycles(name: str, report: SpinReport) -> SpinDecided:
    if _CYCLE in report.found:
        return SpinDecided(name, Kind.TERMINATION, Verdict.VIOLATED)
    incomplete = report.truncated is not None or _ASSERTED + MISTAKE in report.found
    return SpinDecided(name, Kind.TERMINATION, Verdict.INCONCLUSIVE if incomplete else Verdict.HOLDS)


def _claim_broken(report: SpinReport) -> bool:
    """Whether a behaviour makes the claim false: by a cycle or, of a claim that states can break, in a state.

    The latter Spin tells as an assertion that fails, one that it wrote itself and that has the claim's condition for a text.
    """
    in_states = (what for what in report.found if what.startswith(_ASSERTED) and what != _ASSERTED + MISTAKE)
    return _ACCEPTED in report.found or any(in_states)


def _of_claims(prop: Property, reports: Iterable[SpinReport]) -> SpinDecided:
    """By the reports on all parts of what is claimed, up to the first that is broken."""
    verdict = Verdict.HOLDS
    for report in reports:
        if _claim_broken(report):
            return SpinDecided(prop.name, Kind.TEMPORAL, Verdict.VIOLATED)
        if report.truncated is not None or _ASSERTED + MISTAKE in report.found:
            verdict = Verdict.INCONCLUSIVE
    return SpinDecided(prop.name, Kind.TEMPORAL, verdict)
