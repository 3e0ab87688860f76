"""Suites: few scripts that cover what a model can do and what it must refuse.

Goals are every instance of an action that occurs, every pair of actions of which one follows the other, both outcomes of
every condition inside a rule, as far as they occur, and every refusal: for each action with its arguments, and each
condition of its guard, a state in which this condition alone forbids it, or any state where it is forbidden. Paths go along
shortest ones of the state graph, deepest goals first; each is then prolonged while a new goal is near. A script that is a
part of another one is left out. A step covers at most one instance and one pair, so that no set of scripts has fewer steps
than there are goals of either kind (`Suite.least`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from streamproof.base.errors import StreamproofError, TooLarge
from streamproof.base.options import SearchOptions
from streamproof.base.records import dataclass, replace
from streamproof.conformance.event import Event
from streamproof.conformance.event_log import EventLog
from streamproof.driving.covering import Covering, OpenBranches
from streamproof.driving.drive_subject import Subject
from streamproof.driving.following import DriveRules, Following, UndecidedStep
from streamproof.driving.script import Asked, CallScript, events_of, group_of, sizes
from streamproof.explicit.exploration import Exploration, explore
from streamproof.explicit.simulation import simulate
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Instance, State, System
from streamproof.system.verdict import Trace, Verdict

MOST_STATES = 20_000
"""Number of states up to which `drive` makes a suite by itself."""
EXAMINED = 200_000
"""Number of guards that are evaluated in search of refusals."""
VARIANT_STATES = 100_000
"""Largest number of states of a variant that are searched for its counterexample."""


@dataclass(frozen=True, slots=True)
class SuiteRefusal:
    """A call that must be refused, and why; `alone`: for a single false condition."""

    instance: Instance
    because: str
    alone: bool


@dataclass(frozen=True, slots=True)
class SuiteScript:
    """A behaviour, and by number of a state what must be refused there."""

    name: str
    trace: Trace
    refused: dict[int, list[SuiteRefusal]]

    def script(self) -> CallScript:
        """Its calls."""
        calls: list[Asked] = []
        for at in range(len(self.trace.states)):
            if at:
                calls.append(Asked.of(self.trace.steps[at - 1]))
            calls += [Asked.of(one.instance, refused=True) for one in self.refused.get(at, ())]
        return CallScript(self.name, tuple(calls))

    def events(self, system: System) -> Iterator[Event]:
        """The script as a trace of an event log."""
        return events_of(
            system, self.name, self.trace, {at: [one.instance for one in own] for at, own in self.refused.items()}
        )


@dataclass(frozen=True, slots=True)
class BadLog:
    """A log that is wrong at its last line, and why."""

    name: str
    events: tuple[Event, ...]
    because: str


@dataclass(frozen=True, slots=True)
class Suite:
    """The scripts, the wrong logs, and the numbers of goals covered and in all."""

    system: System
    scripts: tuple[SuiteScript, ...]
    bad: tuple[BadLog, ...]
    states: int
    instances: int
    """Instances that occur in some state; all are covered."""
    pairs: int
    """Pairs of actions that follow each other in some behaviour; all are covered."""
    refusals: int
    """Covered refusals; see `examined`."""
    examined: int
    """Number of states in which refusals were looked for."""
    branches: int = 0
    """Outcomes of conditions inside rules that are taken."""
    beyond: int = 0
    """Refusals left out because a larger instance of the model permits them."""
    harmless: tuple[str, ...] = ()
    """Variants whose counterexample has only events that the model has, too."""
    complete: bool = True
    """Whether the goals are those of the whole state graph; walks know only what they visited."""

    @property
    def steps(self) -> int:
        """Number of steps of all scripts."""
        return sum(len(s.trace.steps) for s in self.scripts)

    @property
    def least(self) -> int:
        """A number of steps that no set of scripts with the same goals goes below."""
        return max(self.instances, self.pairs)


def occurring(subject: Subject, scripts: Sequence[CallScript]) -> frozenset[str] | None:
    """The actions that occur in some reachable state, from the scripts of a suite; None if they are not known: of a model
    that was not searched, or within a constraint only."""
    if not scripts or _is_limited(subject):
        return None
    return frozenset(call.action for script in scripts for call in script.calls if not call.refused)


def reachable(subject: Subject, suite: Suite | None) -> int | None:
    """The number of reachable states, from a suite; None if it is not known: of a model that was not searched, or within a
    constraint only."""
    return None if suite is None or not suite.complete or _is_limited(subject) else suite.states


def _is_limited(subject: Subject) -> bool:
    return subject.searched is not None and subject.searched.constraint is not None


def drive_suite(subject: Subject, most: int) -> Suite | None:
    """A suite without wrong logs of variants; None for a model with more states."""
    try:
        return make_suite(subject, most, variants=False)
    except TooLarge:
        return None


def suite_or_none(subject: Subject, most: int) -> list[CallScript]:
    """The scripts of a suite; none for a model with more states."""
    return scripts_of_suite(drive_suite(subject, most))


def scripts_of_suite(suite: Suite | None) -> list[CallScript]:
    """The scripts of a suite, if there is one."""
    return [script.script() for script in suite.scripts] if suite is not None else []


def make_suite(subject: Subject, most: int, *, variants: bool = True) -> Suite:
    """A suite for all reachable states. Raises `TooLarge` for more than `most`."""
    system, searched = subject.system, subject.searched or subject.system
    if len(searched.variables) != len(system.variables):
        raise TooLarge(f"{system.name} has a constraint on steps", remedy="write --random N for random walks")
    plain = replace(searched, properties=(), lemmas=())
    explored = explore(plain, SearchOptions(max_states=most, deadlock=False))
    if explored.mistake is not None:
        raise explored.mistake.error
    if not explored.complete:
        raise TooLarge(
            f"{system.name} has more than {most:,} states, or a limit was reached ({explored.stopped})",
            remedy="raise --max-states, choose smaller parameters, or write --random N for random walks",
        )
    covering = Covering(explored)
    branches, traces = OpenBranches(plain), [*covering.traces()]
    numbers = {instance.key: at for at, instance in enumerate(plain.instances)}
    for trace in traces:
        _take(branches, numbers, trace)
    for trace in covering.taking(branches):
        _take(branches, numbers, trace)
        traces.append(trace)
    scripts = [SuiteScript(f"script-{at:04}", trace, {}) for at, trace in enumerate(traces, 1)]
    refusals = _Refusals(system)
    for script in scripts:
        for at, state in enumerate(script.trace.states):
            refusals.look(script, at, state)
    _deeper(explored, refusals, scripts)
    refusals.tidy(scripts)
    kept = _not_contained(scripts)
    made = Suite(
        system,
        tuple(replace(script, name=f"script-{at:04}") for at, script in enumerate(kept, 1)),
        (),
        explored.counts.distinct,
        covering.instances,
        covering.pairs,
        0,
        len(refusals.seen),
        branches.taken,
    )
    return _finished(subject, made, variants=variants)


def _take(branches: OpenBranches, numbers: Mapping[tuple[object, ...], int], trace: Trace) -> None:
    for state, step in zip(trace.states, trace.steps, strict=False):
        if branches.is_open(number := numbers[step.key]):
            branches.take(number, state)


def random_suite(subject: Subject, walks: int, steps: int, seed: int) -> Suite:
    """A suite of random walks, for state spaces that are too large to search."""
    system = subject.system
    scripts: list[SuiteScript] = []
    refusals = _Refusals(system)
    pairs: set[tuple[str, str]] = set()
    taken: set[Any] = set()
    branches = OpenBranches(system)
    numbers = {instance.key: at for at, instance in enumerate(system.instances)}

    def walked(trace: Trace) -> None:
        script = SuiteScript(f"walk-{len(scripts) + 1:04}", trace, {})
        scripts.append(script)
        for at, state in enumerate(trace.states):
            refusals.look(script, at, state)
        pairs.update((a.action, b.action) for a, b in pairwise(trace.steps))
        taken.update(step.key for step in trace.steps)
        _take(branches, numbers, trace)

    found = simulate(system, seed=seed, properties=(), walks=walks, steps=steps, on_walk=walked)
    if found.mistake is not None:
        raise found.mistake.error
    refusals.tidy(scripts)
    made = Suite(
        system, tuple(scripts), (), found.distinct, len(taken), len(pairs), 0, len(refusals.seen), branches.taken,
        complete=False,
    )  # fmt: skip
    return _finished(subject, made, variants=False)


class _Refusals:
    """The refusals of a system, each assigned to the first state that shows it."""

    def __init__(self, system: System) -> None:
        self.system, self.interpreter = system, Interpreter(system)
        self.known: set[tuple[object, ...]] = set()
        self.seen: set[State] = set()
        self.looked = 0
        self.groups: dict[tuple[object, ...], list[Instance]] = {}
        for instance in system.instances:
            self.groups.setdefault(group_of(instance), []).append(instance)

    def look(self, script: SuiteScript, at: int, state: State) -> None:
        """Adds the refusals that a state shows first to a script."""
        found = self.shown(state)
        if found:
            script.refused.setdefault(at, []).extend(found)

    def shown(self, state: State) -> list[SuiteRefusal]:
        """The refusals that a state shows first."""
        if state in self.seen or self.looked > EXAMINED:
            return []
        self.seen.add(state)
        evaluation, found = self.interpreter.evaluation(state), list[SuiteRefusal]()
        for group, instances in self.groups.items():
            self.looked += len(instances)
            reasons = [self._false(instance, evaluation) for instance in instances]
            if not all(reasons):
                continue
            single = next((own[0] for own in reasons if own is not None and len(own) == 1), None)
            if (*group, single) not in self.known:
                self.known.add((*group, single))
                because = single or " and ".join(reasons[0] or ())
                found.append(SuiteRefusal(instances[0], because, single is not None))
        return found

    def tidy(self, scripts: Sequence[SuiteScript]) -> None:
        """Removes refusals by several conditions of calls that a single condition forbids elsewhere."""
        alone = {key[:-1] for key in self.known if key[-1] is not None}
        for script in scripts:
            for at, own in script.refused.items():
                script.refused[at] = [r for r in own if r.alone or group_of(r.instance) not in alone]

    def _false(self, instance: Instance, evaluation: Any) -> list[str] | None:
        """The conditions of the guard that are false; None if the instance is enabled, or its guard has an error."""
        if any(evaluation.value(check.condition) for check in instance.guard_checks):
            return None
        return [c.denied or "its guard is false" for c in instance.guard if not evaluation.value(c.expr)] or None


def _deeper(explored: Exploration, refusals: _Refusals, scripts: list[SuiteScript]) -> None:
    """Adds scripts for refusals that no state of the scripts shows, in breadth-first order as far as the limit allows."""
    from streamproof.explicit.witness import Witnesses

    search = explored.search
    witnesses = Witnesses(search.scalarised, search.state, search.parent)
    for number in range(search.known):
        if refusals.looked > EXAMINED:
            return
        state = search.scalarised.decode(search.state(number))
        found = refusals.shown(state)
        if found:
            trace = witnesses.to(number)
            scripts.append(SuiteScript(f"script-{len(scripts) + 1:04}", trace, {len(trace.steps): found}))


def _not_contained(scripts: Sequence[SuiteScript]) -> list[SuiteScript]:
    """The scripts without those whose states and steps are a part of another one, which gets their refusals."""
    kept: list[SuiteScript] = []
    places: dict[State, list[tuple[SuiteScript, int]]] = {}
    for script in sorted(scripts, key=lambda s: -len(s.trace.steps)):
        states, steps = script.trace.states, [step.key for step in script.trace.steps]
        for other, at in places.get(states[0], ()):
            end, longer = at + len(steps), other.trace
            if longer.states[at : end + 1] == states and [step.key for step in longer.steps[at:end]] == steps:
                for number, own in script.refused.items():
                    other.refused.setdefault(at + number, []).extend(own)
                break
        else:
            kept.append(script)
            for at, state in enumerate(states):
                places.setdefault(state, []).append((script, at))
    return sorted(kept, key=lambda s: (len(s.name), s.name))


def _finished(subject: Subject, made: Suite, *, variants: bool) -> Suite:
    """The suite without refusals that only this instance has, and with wrong logs."""
    beyond = 0
    for log in map(EventLog, subject.larger()):
        for script in made.scripts:
            beyond += _permitted(log, script)
    bad = [bad for script in made.scripts for bad in _wrong(made.system, script)]
    refuted, harmless = _refuted(subject) if variants else ([], [])
    count = sum(len(own) for script in made.scripts for own in script.refused.values())
    return replace(made, bad=(*bad, *refuted), refusals=count, beyond=beyond, harmless=tuple(harmless))


def _permitted(log: EventLog, script: SuiteScript) -> int:
    """Removes the refusals of a script that a larger instance permits, or does not decide; returns their number."""
    following, removed, lost = Following(DriveRules(log), script.name), 0, False
    for at in range(len(script.trace.states)):
        if at and not lost:
            step = script.trace.steps[at - 1]
            try:
                happened = _event(script.name, step)
                lost = following.take([(happened, {})]) is not None
            except (StreamproofError, UndecidedStep):
                lost = True
        kept: list[SuiteRefusal] = []
        for refusal in script.refused.get(at, ()):
            try:
                asked = log.observation(_event(script.name, refusal.instance))
                known = any(log.steps.along(way, s) for way in asked.alternatives for s in following.states)
            except StreamproofError:
                known = True
            if not (lost or known):
                kept.append(refusal)
        removed += len(script.refused.get(at, ())) - len(kept)
        if at in script.refused:
            script.refused[at] = kept
    return removed


def _event(trace: str, instance: Instance) -> Event:
    """The event of an instance, whatever its choices."""
    asked = Asked.of(instance)
    return Event(trace, "model", 0, asked.action, asked.args)


def _wrong(system: System, script: SuiteScript) -> Iterator[BadLog]:
    """For each refusal, the log in which the action happened."""
    before: list[Event] = []
    reasons = iter([one.because for at in sorted(script.refused) for one in script.refused[at]])
    number = 0
    for event in script.events(system):
        if event.refused:
            number += 1
            name = f"{script.name}-bad-{number:02}"
            events = [replace(e, trace=name, seq=at) for at, e in enumerate([*before, replace(event, refused=None)])]
            yield BadLog(name, tuple(events), f"{event.event} is not possible: {next(reasons)}")
        else:
            before.append(event)


def _refuted(subject: Subject) -> tuple[list[BadLog], list[str]]:
    """The counterexamples of variants as wrong logs, up to the first event that the model with their sizes does not have."""
    found: list[BadLog] = []
    harmless: list[str] = []
    if subject.spec is None or subject.variant is not None:
        return found, harmless
    for variant in subject.spec.model.variants:
        with suppress(StreamproofError):
            system = subject.spec.system(variant, **subject.parameters)
            options = SearchOptions(max_states=VARIANT_STATES, max_violations=1)
            traces = [f.trace for f in explore(system, options).findings if f.verdict is Verdict.VIOLATED and f.trace]
            for trace in traces[:1]:
                bad = _first_wrong(_with_sizes_of(system, subject), system, f"variant-{variant}", trace)
                if bad is None:
                    harmless.append(variant)
                else:
                    found.append(bad)
    return found, harmless


def _with_sizes_of(variant: System, subject: Subject) -> System:
    """The model with the parameters of a variant, which may have others by default. Raises `StreamproofError`."""
    system = subject.system
    given = {name: variant.parameters[name] for name in system.parameters if name in variant.parameters}
    if subject.spec is None or given == {name: system.parameters[name] for name in given}:
        return system
    return subject.spec.system(None, **given).unconstrained


def _first_wrong(system: System, variant: System, name: str, trace: Trace) -> BadLog | None:
    common = {v.name for v in system.variables if v in variant.variables}
    following, events = Following(DriveRules(EventLog(system)), name), list[Event]()
    for event in events_of(variant, name, replace(trace, loop=None, steps=trace.steps[: len(trace.states) - 1]), {}):
        state = {name: value for name, value in (event.state or {}).items() if name in common}
        event = replace(event, state=state, picks=None, parameters=None if events else sizes(system))
        events.append(event)
        try:
            rejection = following.take([(event, {})])
        except UndecidedStep:
            return None
        if rejection is not None:
            return BadLog(name, tuple(events), rejection.message)
    return None
