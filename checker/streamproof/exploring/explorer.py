"""Behaviours that somebody walks along: steps forth and back, what is enabled, what is not and why, and searches for a goal.

A search is one of the explicit engine from the viewed state; the interpreter replays what it finds. It gives no verdict: that
nothing was found is reported with the bound of the search.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice

from streamproof.api.origin import origin_of
from streamproof.api.replay import confirmed, with_recorded
from streamproof.base.errors import EvaluationError, InputError, StreamproofError, UsageError, did_you_mean
from streamproof.base.options import SearchOptions
from streamproof.base.records import dataclass, replace
from streamproof.engines.registry import CHECKS
from streamproof.exchange.itf.reading import load, read_meta
from streamproof.exchange.itf.writing import Origin
from streamproof.report.token_graph import TokenGraph
from streamproof.selection import Selection, select
from streamproof.system.build import TRUE, and_, or_
from streamproof.system.interpreter import Interpreter, with_derived
from streamproof.system.model import Instance, Kind, Property, State, System, fairness_constraints
from streamproof.system.temporal import true_of
from streamproof.system.verdict import CheckResult, Finding, Trace, Verdict, number_of
from streamproof.traces.explain import Blocked, Past, Reason, blocked, explain, why_false
from streamproof.traces.labels import matching
from streamproof.traces.places import Change, changes, leaves, look
from streamproof.traces.render import Treatment, treatments
from streamproof.traces.replay import ReplayError, confirm_finding, verify

INITIAL = 10_000
"""Largest number of initial states that are numbered."""
DEEP = 100
"""Number of steps to a random deep state."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A behaviour, and the number of its state that is viewed; `note` is about how it came to be.

    `prop` is the name of the property that it is said to violate or reach.
    """

    trace: Trace
    at: int
    note: str = ""
    prop: str = ""

    def shows(self, system: System) -> Property | None:
        """The property that it violates or reaches; None if there is none, or if that is not so."""
        with suppress(StreamproofError):
            if self.prop:
                verify(system, self.prop, self.trace)
                return system.property(self.prop)
        return None

    @property
    def state(self) -> State:
        """The viewed state."""
        return self.trace.states[self.at]

    @property
    def past(self) -> Trace:
        """The behaviour up to the viewed state."""
        return Trace(self.trace.states[: self.at + 1], self.trace.steps[: self.at])

    def move(self, at: int) -> Visit:
        """The same behaviour, viewed at another state, or at the nearest that there is."""
        return replace(self, at=min(max(at, 0), len(self.trace) - 1), note="")

    def after(self, more: Trace, note: str = "") -> Visit:
        """The behaviour up to the viewed state, and then another one that begins there; its last state is viewed."""
        past = self.past
        states = past.states[:-1] + more.states
        return Visit(Trace(states, past.steps + more.steps), len(states) - 1, note)


@dataclass(frozen=True, slots=True)
class Enabled:
    """A step from the viewed state: its label, the next state, and the changes."""

    label: str
    instance: Instance
    after: State
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Moves:
    """What is possible in a state, what is not and why, and the instances that are evaluation errors of the model there."""

    enabled: tuple[Enabled, ...]
    blocked: tuple[Blocked, ...]
    errors: tuple[tuple[str, EvaluationError], ...]
    terminal: bool


@dataclass(frozen=True, slots=True)
class StateRow:
    """A variable, or a part of one, in the viewed state; `old` is its value in the state before, None if that is the same."""

    text: str
    value: str
    old: str | None


@dataclass(frozen=True, slots=True)
class Forever:
    """A behaviour without end: its treatment of fair instances, and the temporal properties that are false of it, with why.

    A property is violated only by a fair behaviour.
    """

    treatments: tuple[Treatment, ...]
    false: tuple[tuple[Property, tuple[tuple[str, Reason], ...]], ...]

    @property
    def fair(self) -> bool:
        """Whether it meets all fairness constraints."""
        return all(one.fair for one in self.treatments)


class Explorer:
    """A chosen system that is explored; `options` has the limits of one search."""

    def __init__(self, selection: Selection, system: System, options: SearchOptions) -> None:
        self.selection, self.system, self.options = selection, system, options
        self.interpreter = Interpreter(system)
        self._instances: dict[str, list[Instance]] = {}
        for one in system.instances:  # an action that is fair in part has two instances of each label
            self._instances.setdefault(one.label, []).append(one)

    @cached_property
    def origin(self) -> Origin | None:
        """The origin of saved behaviours."""
        return origin_of(self.selection.target.text)

    @cached_property
    def tokens(self) -> TokenGraph:
        """The drawing of states on the graph of processes and channels."""
        return TokenGraph(self.system)

    @cached_property
    def initial(self) -> tuple[State, ...]:
        """The initial states, at most `INITIAL`. Raises `ReplayError` if there is none."""
        found = tuple(islice(self.interpreter.initial_states(), INITIAL))
        if not found:
            raise ReplayError("the system has no initial state", step=0)
        return found

    def begin(self, number: int = 0) -> Visit:
        """The behaviour of one initial state. Raises `UsageError` for a number without one."""
        if not 0 <= number < len(self.initial):
            raise UsageError(f"no initial state {number}", remedy=f"give 0 to {len(self.initial) - 1}")
        return Visit(Trace((self.initial[number],), ()), 0)

    def walk(self, number: int, labels: Sequence[str], loop: int | None = None, at: int | None = None) -> Visit:
        """The behaviour of these steps, as far as they are possible; the note says which one is not."""
        visit = self.begin(number)
        for label in labels:
            try:
                visit = self.take(visit, label)
            except StreamproofError as error:
                return replace(
                    visit, note=f"step {visit.at + 1}: " + "; ".join(filter(None, (error.message, error.remedy)))
                )
        trace = visit.trace
        if loop is not None:
            looped = replace(trace, loop=loop)
            if loop < len(labels):
                looped = Trace(trace.states[:-1], trace.steps, loop)
            if not 0 <= loop <= len(labels) or (not looped.stutters and trace.states[-1] != trace.states[loop]):
                return replace(visit, note=f"the last step does not lead back to state {loop}")
            visit = Visit(looped, len(looped) - 1)
        return visit if at is None else visit.move(at)

    def take(self, visit: Visit, label: str) -> Visit:
        """The behaviour up to the viewed state and one more step; parts of a label may be left out where one step fits.

        Raises `UsageError` for an unknown or ambiguous label, `ReplayError` for a step that is not enabled, and
        `EvaluationError`.
        """
        trace, at = visit.trace, visit.at
        if at < len(trace.steps) and trace.steps[at].label == label:
            return visit.move(at + 1 if at + 1 < len(trace) else trace.loop or 0)
        fitting = self._instances.get(label) or matching(self.system, label)
        found = {i.label: (i, s) for i in fitting if (s := self.interpreter.take(i, visit.state)) is not None}
        if not found:
            reason = why_false(self.system, fitting[0].guard, visit.state)
            raise ReplayError(f"{label} is not enabled in state {at}", remedy=str(reason or ""))
        if len(found) > 1:
            raise UsageError(f"{label} fits {len(found)} steps", remedy=f"name one of them: {', '.join(found)}")
        instance, after = next(iter(found.values()))
        return visit.after(Trace((visit.state, after), (instance,)))

    def number(self, state: State) -> int:
        """The number of an initial state. Raises `UsageError` for one that has none."""
        if state not in self.initial:
            raise UsageError(f"not one of the first {INITIAL:,} initial states", remedy="save it as ITF")
        return self.initial.index(state)

    def labels(self, visit: Visit) -> list[str]:
        """The labels of all steps of the behaviour."""
        return [step.label for step in visit.trace.steps]

    # --- the viewed state

    def moves(self, visit: Visit) -> Moves:
        """What is enabled in the viewed state, and why the other instances are not."""
        state, evaluation = visit.state, self.interpreter.evaluation(visit.state)
        enabled: dict[str, Enabled] = {}
        errors: dict[str, EvaluationError] = {}
        instances = self.system.instances
        for instance, after in zip(instances, self.interpreter.outcomes(instances, state, evaluation), strict=True):
            label = instance.label
            if isinstance(after, EvaluationError):
                errors[label] = after
            elif after is not None:
                enabled.setdefault(label, Enabled(label, instance, after, changes(self.system, state, after)))
        why = blocked(self.interpreter, state, Past(visit.past, visit.at))
        possible = {*enabled, *errors}
        shown = (replace(b, labels=tuple(n for n in b.labels if n not in possible)) for b in why)
        return Moves(
            tuple(enabled.values()),
            tuple(b for b in shown if b.labels),
            tuple(errors.items()),
            self.interpreter.terminal(state),
        )

    def rows(self, visit: Visit) -> Iterator[StateRow]:
        """The viewed state with its derived values, by places, and what the last step changed."""
        system, trace = with_derived(self.system, visit.past)
        for place, seen in leaves(system, trace.states[-1]):
            before = look(system, place, trace.states[-2]).shown if visit.at else seen.shown
            yield StateRow(seen.text, seen.shown, None if before == seen.shown else before)

    def false(self, visit: Visit) -> Iterator[tuple[Property, tuple[Reason, ...]]]:
        """The invariants that are false in the viewed state, and the conditions on steps that the last step breaks."""
        past = visit.past
        for prop in self.system.properties:
            if prop.kind is Kind.INVARIANT or (prop.kind is Kind.STEP and past.steps):
                found = self.interpreter.decided(prop, past)
                if found is not None and found.verdict is Verdict.VIOLATED:
                    yield prop, explain(self.system, prop, past).reasons

    def forever(self, visit: Visit) -> Forever | None:
        """What a behaviour without end means: its fairness, and the temporal properties that are false of it.

        None: it has an end, or the rules of the model fail on it.
        """
        system, trace = self.system, visit.trace
        if trace.loop is None:
            return None
        try:
            found = treatments(system, trace)
            formulas = [p for p in system.properties if p.formula is not None and p.kind is Kind.TEMPORAL]
            false = [p for p in formulas if p.formula is not None and not true_of(system, p.formula, trace)]
            return Forever(found, tuple((p, explain(system, p, trace).unmet) for p in false))
        except EvaluationError:
            return None

    @cached_property
    def fairness(self) -> dict[str, str]:
        """The strength of the fairness constraints on the steps of each label that has some."""
        found: dict[str, dict[str, None]] = {}
        for one in fairness_constraints(self.system):
            for number in one.numbers:
                found.setdefault(self.system.instances[number].label, {})[one.fairness.value] = None
        return {label: ", ".join(strengths) for label, strengths in found.items()}

    # --- searches

    def find(self, visit: Visit, text: str) -> Visit:
        """The fewest steps from the viewed state to one where a condition in the model's language is true.

        Raises `ModelError` for another text, and `UsageError`, with the bound of the search, if no such state was found.
        """
        chosen = self.selection
        prop = chosen.target.condition(text, chosen.variant, chosen.given)
        more = self._search(visit.state, prop, f"state with {text}")
        return visit.after(more, f"{number_of(len(more.steps), 'step')} to a state with {text}")

    def reach(self, visit: Visit, action: str | None = None) -> Visit:
        """The fewest steps from the viewed state that end with an action; None: with one that the behaviour does not have.

        Raises `UsageError`, with the bound of the search, if no such step was found.
        """
        names = [a.name for a in self.system.actions]
        if action is not None and action not in names:
            raise UsageError(
                f"no action {action!r}", remedy=did_you_mean(action, names) or f"it has: {', '.join(names)}"
            )
        taken = {step.action for step in visit.trace.steps}
        wanted = [i for i in self.system.instances if (i.action not in taken if action is None else i.action == action)]
        if not wanted:
            raise UsageError("the behaviour has a step of every action", remedy="go back to a state before them")
        goal = Property("enabled", Kind.REACHABLE, or_(and_(c.expr for c in one.guard) for one in wanted))
        what = f"step of {action}" if action is not None else "step of an action that the behaviour lacks"
        try:
            there = visit.after(self._search(visit.state, goal, what))
        except UsageError:
            if not visit.at:
                raise
            there = visit.move(0).after(self._search(visit.trace.states[0], goal, what))
        found = self.take(there, next(i.label for i in wanted if self.interpreter.enabled(i, there.state)))
        return replace(found, note=f"{found.trace.steps[-1].action} is possible after {number_of(there.at, 'step')}")

    def violate(self, name: str | None = None) -> Visit:
        """A behaviour that violates a property, or reaches it if that is its kind; None: some violated property.

        Raises `UsageError`, with the bound of the search, if none was found.
        """
        every = [p.name for p in self.system.properties]
        if name is not None and name not in every:
            raise UsageError(f"no property {name!r}", remedy=did_you_mean(name, every) or f"it has: {', '.join(every)}")
        chosen = {"max_violations": 1} if name is None else {"properties": (name,)}
        result = self._run(self.system, replace(self.options, **chosen))
        wanted = [f for f in result.findings if f.trace and (f.verdict is not Verdict.HOLDS or name is not None)]
        if not wanted:
            raise self._nothing(result, "violation" if name is None else f"trace of {name}", "the initial states")
        found = min(wanted, key=lambda f: len(f.trace or ()))
        confirm_finding(self.system, found, "explicit")
        assert found.trace is not None, "chosen above"
        note = f"{found.property}: {found.text()}; {found.because}".strip("; ")
        return Visit(found.trace, len(found.trace) - 1, note, found.property)

    def deep(self, visit: Visit) -> Visit:
        """A random walk of at most `DEEP` steps from the viewed state; it prefers states that it has not met."""
        chance, end = random.SystemRandom(), time.monotonic() + (self.options.time_limit or float("inf"))
        states, steps = [visit.state], list[Instance]()
        instances = self.system.instances
        while len(steps) < DEEP and time.monotonic() < end:
            here = states[-1]
            outcomes = self.interpreter.outcomes(instances, here, self.interpreter.evaluation(here))
            possible = [
                (i, s) for i, s in zip(instances, outcomes, strict=True) if s and not isinstance(s, EvaluationError)
            ]
            new = [(i, s) for i, s in possible if s not in states]
            if not possible:
                break
            instance, after = chance.choice(new or possible)
            states.append(after)
            steps.append(instance)
        return visit.after(Trace(tuple(states), tuple(steps)), f"a random walk of {number_of(len(steps), 'step')}")

    def _from(self, state: State) -> System:
        """The system with one initial state, without properties."""
        variables = (replace(v, initial=(value,)) for v, value in self.system.named(state))
        return replace(
            self.system, variables=tuple(variables), initially=TRUE, properties=(), lemmas=(), constraint=None
        )

    def _search(self, state: State, goal: Property, what: str) -> Trace:
        """A shortest behaviour from a state to one with `goal`; raises as `find`."""
        system = replace(self._from(state), properties=(goal,))
        result = self._run(system, self.options)
        found: Finding | None = next((f for f in result.findings if f.trace and f.verdict is Verdict.HOLDS), None)
        if found is None or found.trace is None:
            raise self._nothing(result, what, "this state")
        confirm_finding(system, found, "explicit")
        return found.trace

    def _run(self, system: System, options: SearchOptions) -> CheckResult:
        result = CHECKS["explicit"].run(system, options)
        if result.interrupted:
            raise KeyboardInterrupt
        if result.mistake is not None:
            steps = number_of(len(result.mistake.trace.steps), "step")
            error = result.mistake.error
            raise EvaluationError(f"{error.message}, after {steps}", loc=error.loc, remedy=error.remedy)
        return result

    def _nothing(self, result: CheckResult, what: str, where: str) -> UsageError:
        count = result.counts.distinct if result.counts else 0
        within = "" if self.system.constraint is None else " within the constraint"
        undecided = [f for f in result.findings if f.verdict is Verdict.INCONCLUSIVE]
        if result.stopped is None and not undecided:
            return UsageError(
                f"no {what}: the search met all {number_of(count, 'state')} reachable from {where}{within}"
            )
        why = result.stopped or undecided[0].because
        return UsageError(
            f"no {what} in the first {number_of(count, 'state')} from {where}{within}, which decides nothing: {why}",
            remedy="raise --max-states or --timeout",
        )


def explorer_of(
    model: str,
    variant: str | None,
    size: str | None,
    parameters: Sequence[str],
    trace: str | None,
    options: SearchOptions,
) -> tuple[Explorer, Visit]:
    """The explorer of a model, and the behaviour of a trace file, or of no step; the file may choose variant and parameters.

    Raises as `select`, and `InputError` or `ReplayError` for a file that has no behaviour of the model.
    """
    if trace is None:
        explorer = _explorer(select(model, variant, size, parameters), options)
        return explorer, explorer.begin()
    document = load(trace)
    meta = read_meta(document)
    selection = select(model, variant, size, parameters)
    try:
        if variant is None and meta.variant is not None:
            selection = select(model, meta.variant, size, parameters)
        explorer = _explorer(with_recorded(document, selection), options)
        found = confirmed(document, explorer.system, None).trace
    except StreamproofError as error:
        if meta.model in (None, selection.target.name):
            raise
        raise InputError(
            f"{document.name} is a trace of {meta.model}, not of {selection.target.name}: {error.message}",
            remedy="name the model of the trace",
        ) from error
    return explorer, Visit(found, len(found) - 1, prop=meta.property or "")


def _explorer(selection: Selection, options: SearchOptions) -> Explorer:
    return Explorer(selection, selection.system(), options)
