"""Replay: the interpreter executes a trace again and confirms every step, or reports the first invalid one.

No counterexample is shown before `verify` has passed it; this makes an engine's verdict `violated` independent of the
engine. The instances of a trace are identified by action, parameters and picks, with the meaning of the current system,
so a trace from a file or an older version is checked like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from streamproof.base.errors import EvaluationError, Exit, Loc, StreamproofError, UsageError, nearest
from streamproof.base.records import dataclass
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Conjunct, Instance, Kind, Property, State, System
from streamproof.system.sorts import contains, show
from streamproof.system.verdict import CheckResult, Finding, Trace, Verdict
from streamproof.traces.explain import last_step, why_false
from streamproof.traces.places import changes

if TYPE_CHECKING:
    from streamproof.traces.labels import Label


class Unconfirmed(StreamproofError):
    """An engine's trace that the interpreter does not confirm: one of the two is wrong, and no verdict is given."""

    exit_code = Exit.DISAGREE


def confirm_finding(system: System, finding: Finding, engine: str) -> EvaluationError | None:
    """Confirms the trace of a finding, if it has one; returns the evaluation error that it leads to, if that is the finding.

    Raises `Unconfirmed`.
    """
    if finding.trace is None:
        return None
    prop = system.property(finding.property)
    try:
        if finding.verdict is not Verdict.ERROR:
            verify(system, prop, finding.trace)
            return None
        replay(system, finding.trace)
        return _mistake(system, prop, finding.trace)
    except ReplayError as failure:
        raise Unconfirmed(
            f"the {engine} engine's trace for {prop.name} is not confirmed by the interpreter: {failure.message}",
            remedy="this is a defect of streamproof; please report it with the model",
        ) from failure


def confirm_result(system: System, result: CheckResult, engine: str) -> None:
    """Confirms the traces of all findings of a result, and the one to an evaluation error of the model. Raises
    `Unconfirmed`, and `ReplayError` for the latter."""
    if result.mistake is not None:
        replay(system, result.mistake.trace)
    for finding in result.findings:
        if result.mistake is None or finding.verdict is not Verdict.ERROR:  # else it is the error of the model
            confirm_finding(system, finding, engine)


def _mistake(system: System, prop: Property, trace: Trace) -> EvaluationError:
    """The evaluation error at the end of a trace: of a step from its last state, or of the property. Raises `ReplayError`."""
    interpreter = Interpreter(system)
    try:
        for _ in interpreter.steps(trace.states[-1]):
            pass
        if prop.kind is not Kind.STEP:
            interpreter.holds(prop, trace.states[-1])
        elif len(trace.states) > 1:
            interpreter.holds(prop, trace.states[-2], trace.states[-1])
    except EvaluationError as error:
        return error
    raise ReplayError("no evaluation error shows at its end")


Step: TypeAlias = str | Instance | tuple[str, Mapping[str, Any]] | tuple[str, Mapping[str, Any], Mapping[str, Any]]
"""A step to replay: a label such as ``send(c=1)[lost=True]`` (parameters and picks may be omitted if unambiguous), an
instance, or action, parameters and picks separately."""


class ReplayError(StreamproofError):
    """A trace that is not a behaviour of the system, or does not show the property's event.

    `step` counts from 1; 0 is the initial state; None refers to the whole trace.
    """

    exit_code = Exit.REJECTED

    def __init__(self, message: str, *, step: int | None = None, loc: Loc | None = None, remedy: str = "") -> None:
        self.step = step
        where = "" if step is None else "initial state: " if step == 0 else f"step {step}: "
        super().__init__(where + message, loc=loc, remedy=remedy)


def replay(system: System, trace: Trace) -> None:
    """Checks that `trace` is a behaviour of `system`.

    The first state must be initial, each step enabled with exactly the next state as its result, and the loop, if any,
    must close. Raises `ReplayError` otherwise, and `EvaluationError` for a model error on the way.
    """
    _shape(system, trace)
    interpreter = Interpreter(system)
    _initial(interpreter, trace.states[0])
    own: dict[Any, list[Instance]] = {}
    for one in system.instances:  # an action that is fair in part has two instances of each label
        own.setdefault(one.key, []).append(one)
    for number, given in enumerate(trace.steps, start=1):
        candidates = own.get(given.key, [])
        if not candidates:
            raise ReplayError(f"the system has no action {given.label}", step=number, remedy=_nearest(system, given))
        before = trace.states[number - 1]
        expected = trace.states[number] if number < len(trace.states) else trace.states[trace.loop or 0]
        taken = [(i, after) for i in candidates if (after := _take(interpreter, i, before, number)) is not None]
        if not taken:
            raise _not_enabled(system, candidates[0], before, number)
        instance, reached = taken[0]
        if reached != expected:
            goal = "the next state of the trace" if number < len(trace.states) else "the state where the loop begins"
            differ = "; ".join(f"{c.text} is {c.new} there, {c.old} here" for c in changes(system, reached, expected))
            raise ReplayError(f"{instance.label} does not lead to {goal}", step=number, remedy=differ)


def verify(system: System, prop: Property | str, trace: Trace) -> None:
    """Checks that `trace` is a behaviour of `system` and a counterexample to (or witness of) `prop`.

    Invariant: false in the last state. Step property: false for the last step. Deadlock: the last state has no enabled
    instance and is not terminal. Termination: the trace ends in a loop of steps. Reachability: true in the last state.
    Temporal: the behaviour violates the formula, and is fair; within a constraint, it may be a finite prefix that refutes the
    formula, whatever follows. Raises `ReplayError` otherwise, and `UsageError` for an
    unknown property.
    """
    prop = _property(system, prop) if isinstance(prop, str) else prop
    replay(system, trace)
    interpreter = Interpreter(system)
    last = trace.states[-1]
    match prop.kind:
        case Kind.INVARIANT:
            if interpreter.holds(prop, last):
                raise ReplayError(f"{prop.name} is true in the last state, so the trace does not violate it")
        case Kind.REACHABLE:
            if not interpreter.holds(prop, last):
                reason = why_false(system, prop.conjuncts or (Conjunct(prop.expr, prop.name, prop.loc),), last)
                raise ReplayError(
                    f"{prop.name} is not reached by the trace: its last state makes it false",
                    remedy=str(reason) if reason else "",
                )
        case Kind.STEP:
            if not trace.steps:
                raise ReplayError(f"{prop.name} speaks of steps, and the trace has none")
            before, after = last_step(trace)
            if interpreter.holds(prop, trace.states[before], trace.states[after]):
                raise ReplayError(f"{prop.name} is true of the last step, so the trace does not violate it")
        case Kind.DEADLOCK:
            enabled = next((i for i in system.instances if interpreter.enabled(i, last)), None)
            if enabled is not None:
                raise ReplayError(f"the last state is not a deadlock: {enabled.label} is enabled there")
            if interpreter.terminal(last):
                raise ReplayError("the last state is not a deadlock: it is terminal")
        case Kind.TERMINATION:
            if trace.loop is None or trace.stutters:
                raise ReplayError(f"{prop.name} is violated by an endless behaviour only, and the trace has no loop")
        case Kind.TEMPORAL:
            _temporal(system, prop, trace)
        case _:
            assert_never(prop.kind)


def _temporal(system: System, prop: Property, trace: Trace) -> None:
    from streamproof.system.temporal import fairness_of, refuting_prefix, true_of

    assert prop.formula is not None, "a temporal property has a formula"
    if trace.loop is None:
        if system.constraint is None:
            raise ReplayError(f"{prop.name} speaks of endless behaviours, and the trace has no loop")
        if refuting_prefix(system, prop.formula, trace) is None:
            raise ReplayError(
                f"{prop.name} speaks of endless behaviours: the trace has no loop, and within the constraint it does not "
                "refute the formula"
            )
        return
    if true_of(system, prop.formula, trace):
        raise ReplayError(f"{prop.name} is true of the behaviour, so the trace does not violate it")
    for evidence in fairness_of(system, trace):
        if not evidence.satisfied:
            raise ReplayError(
                f"the behaviour is not {evidence.fairness.value}ly fair to {evidence.label}: {evidence.because}"
            )


@dataclass(frozen=True, slots=True)
class _Path:
    """A behaviour under construction, linked backwards."""

    state: State
    before: _Path | None = None
    by: Instance | None = None

    def trace(self) -> tuple[tuple[State, ...], tuple[Instance, ...]]:
        states, steps, at = [], [], self
        while at.before is not None and at.by is not None:
            states.append(at.state)
            steps.append(at.by)
            at = at.before
        return (at.state, *reversed(states)), tuple(reversed(steps))


def replay_labels(system: System, steps: Sequence[Step], *, loop: int | None = None) -> Trace:
    """The behaviour that takes `steps` from an initial state; with `loop`, the last one leads back to that state.

    Omitted parameters, picks and initial states are found by search: a choice that makes a later step impossible is
    dropped. Raises `UsageError` for an unknown name or an ambiguous behaviour, `ReplayError` if there is none, and
    `EvaluationError` for a model error.
    """
    from streamproof.traces.labels import matching

    interpreter = Interpreter(system)
    paths = [_Path(state) for state in interpreter.initial_states()]
    if not paths:
        raise ReplayError("the system has no initial state", step=0)
    for number, pattern in enumerate(steps, start=1):
        candidates = matching(system, _label(pattern))
        reached: dict[State, list[_Path]] = {}
        for path in paths:
            for instance in candidates:
                after = _take(interpreter, instance, path.state, number)
                if after is not None:
                    reached.setdefault(after, []).append(_Path(after, path, instance))
        if not reached:
            state = paths[0].state
            raise _not_enabled(system, _nearest_enabled(interpreter, candidates, state), state, number, len(candidates))
        # Two paths into one state have the same continuations; the first in declaration order represents both.
        paths = [ways[0] for ways in reached.values()]
    found = [path.trace() for path in paths]
    if loop is not None:
        if not 0 <= loop < len(steps):
            raise UsageError(f"loop {loop} is not a state before the last step", remedy=f"give 0 to {len(steps) - 1}")
        found = [(states, taken) for states, taken in found if states[-1] == states[loop]]
        if not found:
            raise ReplayError(f"the last step does not lead back to the state after step {loop}", step=len(steps))
    if len(found) > 1:
        raise _ambiguous(found)
    states, taken = found[0]
    return Trace(states, taken) if loop is None else Trace(states[:-1], taken, loop)


def _shape(system: System, trace: Trace) -> None:
    if not trace.states:
        raise ReplayError("the trace has no state")
    steps = len(trace.states) - (trace.loop is None)
    if len(trace.steps) != steps and not trace.stutters:
        raise ReplayError(f"{len(trace.states)} states need {steps} steps, the trace has {len(trace.steps)}")
    if trace.loop is not None and not 0 <= trace.loop < len(trace.states):
        raise ReplayError(f"the loop goes back to state {trace.loop}, the trace has 0 to {len(trace.states) - 1}")
    for number, state in enumerate(trace.states):
        if len(state) != len(system.variables):
            raise ReplayError(
                f"the state has {len(state)} values, the system {len(system.variables)} variables", step=number
            )
        for variable, value in system.named(state):
            if not contains(variable.sort, value):
                raise ReplayError(f"{variable.name} = {value!r} is not a value of {variable.sort}", step=number)


def _initial(interpreter: Interpreter, state: State) -> None:
    system = interpreter.system
    for variable, value in system.named(state):
        if value not in variable.initial:
            allowed = ", ".join(show(variable.sort, v) for v in variable.initial[:5])
            more = f" and {len(variable.initial) - 5} more" if len(variable.initial) > 5 else ""
            raise ReplayError(
                f"{variable.name} = {show(variable.sort, value)} is not how {variable.name} starts",
                step=0,
                loc=variable.loc,
                remedy=f"it starts as {allowed}{more}",
            )
    if not interpreter.value(system.initially, state):
        reason = why_false(system, (Conjunct(system.initially, "the initial condition", None),), state)
        raise ReplayError("the initial condition is false here", step=0, remedy=str(reason))


def _take(interpreter: Interpreter, instance: Instance, state: State, number: int) -> State | None:
    try:
        return interpreter.take(instance, state)
    except EvaluationError as error:
        raise EvaluationError(f"step {number}: {error.message}", loc=error.loc, remedy=error.remedy) from error


def _label(pattern: Step) -> Label | str:
    from streamproof.traces.labels import Label

    match pattern:
        case str():
            return pattern
        case Instance(action=action, args=args, picks=picks):
            return Label(action, (), args, picks)
        case (action, args):
            return Label(action, (), tuple(args.items()), ())
        case (action, args, picks):
            return Label(action, (), tuple(args.items()), tuple(picks.items()))


def _nearest(system: System, given: Instance) -> str:
    labels = nearest(given.label, (i.label for i in system.instances), 3, cutoff=0.5)
    return f"the nearest it has: {', '.join(labels)}" if labels else ""


def _nearest_enabled(interpreter: Interpreter, candidates: Sequence[Instance], state: State) -> Instance:
    return min(candidates, key=lambda i: sum(not interpreter.value(c.expr, state) for c in i.guard))


def _not_enabled(system: System, instance: Instance, state: State, number: int, of: int = 1) -> ReplayError:
    reason = why_false(system, instance.guard, state)
    assert reason is not None, "an instance that cannot be taken has a false guard conjunct"
    which = f"{instance.label} is not enabled" if of == 1 else f"none of {of} instances is, nearest {instance.label}"
    return ReplayError(which, step=number, loc=reason.loc, remedy=str(reason))


def _ambiguous(found: Sequence[tuple[tuple[State, ...], tuple[Instance, ...]]]) -> UsageError:
    """The first step (or the initial state) in which the behaviours differ, with the candidates."""
    for number in range(len(found[0][1])):
        labels = sorted({taken[number].label for _, taken in found})
        if len(labels) > 1:
            some = ", ".join(labels[:6]) + (f" and {len(labels) - 6} more" if len(labels) > 6 else "")
            return UsageError(
                f"step {number + 1} can be taken in {len(labels)} ways: {some}",
                remedy="give its parameters and picks: name(parameter=value)[pick=value]",
            )
    return UsageError(
        f"the same steps are possible from {len(found)} initial states",
        remedy="fix the first values in the model, or read the trace from an ITF file, which has them",
    )


def _property(system: System, name: str) -> Property:
    for prop in (*system.properties, *system.lemmas):
        if prop.name == name:
            return prop
    known = ", ".join(p.name for p in system.properties) or "none"
    raise UsageError(f"{system.name} has no property {name!r}", remedy=f"it has: {known}")
