"""Spin as a second engine: an exported system is counted and checked by Spin's verifier, which shares no code with ours.

Every search is exhaustive and without reductions. An incomplete search never gives a verdict of absence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from streamproof.base.errors import TooLarge, UsageError
from streamproof.base.records import dataclass
from streamproof.exchange.promela.bits import with_bits
from streamproof.exchange.promela.claims import truncated
from streamproof.exchange.promela.model import ALL, MISTAKE, Promela, SpinQuery, export
from streamproof.exchange.promela.spin_run import SearchOrder, SpinGoal, SpinOptions, SpinReport, installed, run
from streamproof.exchange.promela.spin_trail import behaviour, read
from streamproof.exchange.tool_run import Refuted, ToolCounts, ToolVerdict
from streamproof.system import build as b
from streamproof.system.formula import AndF, Atom, Formula, folded, written
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Kind, Property, System
from streamproof.system.temporal import fairness_of, true_of
from streamproof.system.verdict import Trace, Verdict
from streamproof.transform.fair_scheduler import Scheduled, scheduled

__all__ = [
    "SearchOrder",
    "SpinOptions",
    "SpinReport",
    "claimed",
    "count",
    "counterexample",
    "decide",
    "installed",
]

DEFAULT = SpinOptions()


def count(system: System, options: SpinOptions = DEFAULT) -> ToolCounts[SpinReport]:
    """Counts the reachable states and the steps with Spin.

    Raises `SystemFailure` if Spin or a C compiler is missing or fails, `TooLarge` if the system cannot be exported or
    Spin rounds its counts, `ModelError` for a system without initial states.
    """
    model = export(system)
    report = run(model, options)
    spare = 1 if model.opening else 0
    if spare and options.order is SearchOrder.DEPTH_FIRST:
        # Depth first, choices of initial values that the initial condition excludes are also counted.
        spare += model.candidates - sum(1 for _ in Interpreter(system).initial_states())
    if not report.exact:
        raise TooLarge("Spin rounds counts of more than eight digits", remedy="compare smaller parameters")
    wrong = report.found.get(_ASSERTED + MISTAKE)
    return ToolCounts(
        distinct=report.stored - spare,
        generated=report.stored + report.matched - spare,
        depth=_level(model, report.depth) if options.order is SearchOrder.BREADTH_FIRST else None,
        mistake=None if wrong is None else _level(model, wrong),
        truncated=report.truncated,
        report=report,
    )


def decide(
    system: System, properties: Collection[str] | None = None, options: SpinOptions = DEFAULT
) -> tuple[ToolVerdict, ...]:
    """Checks `properties` (None: all that Spin supports) with Spin, in the order of declaration.

    As in our own engines, a model error is the result for every property not decided on its level or before;
    termination and temporal properties of a model with an error are inconclusive. Raises as `count` does, except for
    counts.
    """
    model = export(system)
    queries = {name: a for name, a in model.queries.items() if properties is None or name in properties}
    temporal = [
        p for p in system.properties if p.kind is Kind.TEMPORAL and (properties is None or p.name in properties)
    ]
    asserted = {name: a for name, a in queries.items() if a.kind not in (Kind.DEADLOCK, Kind.TERMINATION)}
    answers: dict[str, ToolVerdict] = {}
    if asserted:
        macros = [ALL] if len(asserted) > 1 else [a.macro for a in asserted.values()]
        report = run(model, options, macros)
        answers |= {name: _asserted(_SpinJudge(model, options, report), name, a) for name, a in asserted.items()}
    for name, query in queries.items():
        if query.kind is Kind.DEADLOCK:
            judge = _SpinJudge(model, options, run(model, options, [query.macro], SpinGoal.STUCK_STATES))
            answers[name] = judge.answer(name, query.kind, _STUCK, Verdict.VIOLATED)
        elif query.kind is Kind.TERMINATION:
            answers[name] = _of_cycles(name, run(model, options, goal=SpinGoal.CYCLES))
    for prop in temporal:
        texts = claimed(system, prop.name)
        answer = _of_claims(prop, (run(text, options, goal=SpinGoal.CLAIM) for text in texts))
        answers[prop.name] = _with_mistakes(answer, texts[0], options) if prop.checks else answer
    return tuple(answers[p.name] for p in system.properties if p.name in answers)


def claimed(system: System, name: str) -> tuple[Promela, ...]:
    """The texts for a temporal property, with fairness and stuttering explicit (`system.fair_scheduler`): one for
    each conjunct, because Spin's automaton for a claim grows exponentially.

    Raises `UsageError` for another kind of property, and as `export` does.
    """
    prop = system.property(name)
    if prop.formula is None:
        raise UsageError(f"{name} is not a temporal property", remedy="it is in the text of the model itself")
    return tuple(_claim(prop, form)[1] for form in _forms(system, prop))


def _forms(system: System, prop: Property) -> Iterator[Scheduled]:
    """The claim of each conjunct, from the formula as the user wrote it."""
    formula, limit = prop.formula, system.constraint
    assert formula is not None, "a temporal property has a formula"
    if limit is not None:
        kept = folded(limit.own_formula(prop.name))
        kept = Atom(b.truth(kept)) if isinstance(kept, bool) else kept
        formula = truncated(kept, b.not_(b.and_(c.expr for c in limit.conjuncts)))
    for part in formula.args if isinstance(formula, AndF) else (formula,):
        yield scheduled(system, part, prop.name, apart=True)


LONGEST = 1_000
"""Maximum length of a formula given to Spin unchanged; it reads about two thousand characters."""


def _claim(prop: Property, form: Scheduled) -> tuple[Scheduled, Promela]:
    """The text for the claim of `form`, with a bit for each long condition if the formula is too long."""
    title = f"The temporal property {prop.name}: {_property_text(prop)}"
    limit = form.original.constraint
    if limit is not None:
        title += f"""
Its formula: {written(limit.own_formula(prop.name))}
Within the constraint {limit.text}: from the first state outside on, every condition counts as true,
negated or not, so that a behaviour that leaves violates the formula only by what it did before."""
    for spelt in (form, with_bits(form)):
        text = export(replace(spelt.system, properties=_checked(prop)), spelt.stepwise, title)
        if len(text.text.rstrip().rpartition("\n")[2]) <= LONGEST:
            break
    return spelt, text


def _property_text(prop: Property) -> str:
    assert prop.formula is not None
    return prop.doc.strip().splitlines()[0] if prop.doc else written(prop.formula)


def counterexample(system: System, name: str, options: SpinOptions = DEFAULT) -> Trace | None:
    """The behaviour by which Spin violates (or reaches) a property, read from its trail and replayed by the
    interpreter; None if Spin finds none, or a model error.

    Raises as `decide` does, and `Refuted` if the trail is not a behaviour of the system.
    """
    prop = system.property(name)
    if prop.formula is not None:
        return _lasso_against(system, prop, prop.formula, options)
    model = export(system, marked=True)
    if name not in model.queries:
        return None
    query = model.queries[name]
    goal = {Kind.DEADLOCK: SpinGoal.STUCK_STATES, Kind.TERMINATION: SpinGoal.CYCLES}.get(
        query.kind, SpinGoal.ASSERTIONS
    )
    report = run(model, options, [] if goal is SpinGoal.CYCLES else [query.macro], goal, trail=True)
    event = {Kind.DEADLOCK: _STUCK, Kind.TERMINATION: _CYCLE}.get(query.kind, _ASSERTED + query.decided)
    if event not in report.found:
        return None
    trace = behaviour(system, model, read(report.trail))
    if query.kind is Kind.TERMINATION and trace.stutters:
        return _staying(system, trace)
    return _broken(system, prop, trace) if query.kind is Kind.STEP else trace


def _lasso_against(system: System, prop: Property, formula: Formula, options: SpinOptions) -> Trace | None:
    for each in _forms(system, prop):
        form, model = _claim(prop, each)
        report = run(model, options, goal=SpinGoal.CLAIM, trail=True)
        if not _claim_broken(report):
            continue
        trace = form.trace(_lasso(behaviour(form.system, model, read(report.trail))))
        if true_of(system, formula, trace) or not all(evidence.satisfied for evidence in fairness_of(system, trace)):
            raise Refuted(f"the cycle that Spin found does not violate {prop.name}, or is not fair")
        return trace
    return None


def _lasso(trace: Trace) -> Trace:
    return trace if trace.loop is not None else replace(trace, loop=len(trace.states) - 1)


def _staying(system: System, trace: Trace) -> Trace:
    """Adds the step that leads from the last state back to it."""
    step = Interpreter(system).leading(system.instances, trace.states[-1], trace.states[-1])
    if step is None:
        raise Refuted("the cycle that Spin found is none")
    return replace(trace, steps=(*trace.steps, step))


def _broken(system: System, prop: Property, trace: Trace) -> Trace:
    """Adds the step that breaks a step property, if Spin did not finish it."""
    interpreter = Interpreter(system)
    if trace.steps and not interpreter.holds(prop, trace.states[-2], trace.states[-1]):
        return trace
    for step in interpreter.steps(trace.states[-1]):
        if not interpreter.holds(prop, trace.states[-1], step.state):
            return Trace((*trace.states, step.state), (*trace.steps, step.instance))
    raise Refuted(f"no step after Spin's trail breaks {prop.name}")


def _checked(prop: Property) -> tuple[Property, ...]:
    """The assertion beside a claim: that its evaluation is not an error."""
    return () if not prop.checks else (replace(prop, kind=Kind.INVARIANT, formula=None),)


_ASSERTED = "assertion violated "
_STUCK = "invalid end state"
_CYCLE = "non-progress cycle"
_ACCEPTED = "acceptance cycle"


def _level(model: Promela, depth: int) -> int:
    """The level, from 1, of the state at this depth of a breadth-first search."""
    return depth + 1 - model.opening


@dataclass(frozen=True, slots=True)
class _SpinJudge:
    model: Promela
    options: SpinOptions
    report: SpinReport

    def answer(self, name: str, kind: Kind, event: str, shown: Verdict) -> ToolVerdict:
        """The verdict `shown` if the event was found, unless a model error was found before."""
        steps = 1 if kind is Kind.STEP else 0
        depth = self.report.found.get(event)
        wrong = self.report.found.get(_ASSERTED + MISTAKE)
        if depth is not None and (wrong is None or depth + steps <= wrong):
            return ToolVerdict(name, kind, shown, self._length(depth + steps))
        if wrong is not None:
            return ToolVerdict(name, kind, Verdict.ERROR, self._length(wrong))
        if self.report.truncated is not None:
            return ToolVerdict(name, kind, Verdict.INCONCLUSIVE)
        return ToolVerdict(name, kind, Verdict.VIOLATED if kind is Kind.REACHABLE else Verdict.HOLDS)

    def _length(self, depth: int) -> int | None:
        return _level(self.model, depth) if self.options.order is SearchOrder.BREADTH_FIRST else None


def _asserted(judge: _SpinJudge, name: str, query: SpinQuery) -> ToolVerdict:
    """The verdict for a property whose assertion may have failed, or for an earlier evaluation error of the property."""
    found = judge.report.found.get(_ASSERTED + query.decided)
    mistaken = judge.report.found.get(_ASSERTED + query.mistaken)
    if mistaken is not None and (found is None or mistaken < found):
        return judge.answer(name, query.kind, _ASSERTED + query.mistaken, Verdict.ERROR)
    reached = query.kind is Kind.REACHABLE
    return judge.answer(name, query.kind, _ASSERTED + query.decided, Verdict.HOLDS if reached else Verdict.VIOLATED)


def _of_cycles(name: str, report: SpinReport) -> ToolVerdict:
    if _CYCLE in report.found:
        return ToolVerdict(name, Kind.TERMINATION, Verdict.VIOLATED)
    incomplete = report.truncated is not None or _ASSERTED + MISTAKE in report.found
    return ToolVerdict(name, Kind.TERMINATION, Verdict.INCONCLUSIVE if incomplete else Verdict.HOLDS)


def _claim_broken(report: SpinReport) -> bool:
    """Whether a behaviour violates the claim: by a cycle or, for a claim that a finite prefix can violate, in a state.

    Spin reports the latter as a failed assertion of its own, with the claim's condition as its text.
    """
    in_states = (what for what in report.found if what.startswith(_ASSERTED) and what != _ASSERTED + MISTAKE)
    return _ACCEPTED in report.found or any(in_states)


def _with_mistakes(answer: ToolVerdict, text: Promela, options: SpinOptions) -> ToolVerdict:
    """The verdict on a claim, after a search for states in which its evaluation is an error, without the claim: Spin's search
    for cycles does not visit all states. Inconclusive if there is an error and a violation, one of which is first."""
    query = text.queries[answer.property]
    report = run(text, options, [query.macro], SpinGoal.ASSERTIONS)
    if _ASSERTED + query.mistaken in report.found:
        return answer._replace(verdict=Verdict.ERROR if answer.verdict is Verdict.HOLDS else Verdict.INCONCLUSIVE)
    cut = report.truncated is not None and answer.verdict is Verdict.HOLDS
    return answer._replace(verdict=Verdict.INCONCLUSIVE) if cut else answer


def _of_claims(prop: Property, reports: Iterable[SpinReport]) -> ToolVerdict:
    """The verdict from the reports on all conjuncts of the claim, up to the first violated one."""
    verdict = Verdict.HOLDS
    for report in reports:
        if _claim_broken(report):
            return ToolVerdict(prop.name, Kind.TEMPORAL, Verdict.VIOLATED)
        if report.truncated is not None or _ASSERTED + MISTAKE in report.found:
            verdict = Verdict.INCONCLUSIVE
    return ToolVerdict(prop.name, Kind.TEMPORAL, verdict)
