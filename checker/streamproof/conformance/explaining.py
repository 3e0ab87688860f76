"""Explanation of a rejected event: its possible meanings, why each is impossible, and the events acceptable instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streamproof.base.records import dataclass
from streamproof.conformance.binding import Move, Observation, StateReader, Task, first_unmet
from streamproof.conformance.moves import SystemMoves
from streamproof.conformance.run_verdict import Candidate, Frontier, PartialMatch, Rejection
from streamproof.system import EvaluationError, Instance, State, System
from streamproof.system.sorts import show
from streamproof.traces.explain import why_false

EXAMINED = 6
"""Maximum number of states of the belief used for an explanation."""

SHOWN = 3
"""Maximum number of states of the belief shown in a rejection."""

EXPECTED = 8
"""Maximum number of acceptable events named."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An observation that is impossible in every state of the belief."""

    steps: SystemMoves
    task: Task
    observation: Observation
    belief: tuple[State, ...]
    accepted: int


def explained_refusal(refusal: Refusal) -> Rejection:
    """The text of the explanation."""
    observation = refusal.observation
    states = refusal.belief[:EXAMINED]
    near = _nearest(refusal, states)
    candidates: tuple[Candidate, ...] = ()
    frontier: Frontier | None = None
    if observation.impossible is not None:
        kind, message = "contradiction", observation.impossible
    else:
        matches = list(_matches(refusal, states))
        frontier = Frontier(_differing(refusal.steps.system, states), tuple(dict.fromkeys(m for m, _ in matches)))
        found = sorted((candidate for _, candidate in matches), key=lambda c: c.distance)
        constraints = [c for c in found if c.demand]
        kind = "state" if constraints else "action"
        message = (constraints or found or [Candidate("", "the machine has no action for this event")])[0].because
        candidates = tuple(dict.fromkeys(c for c in found if c.demand or not constraints))
    instead = _instead(refusal, states)
    nearest = instead or (near[0] if near else None)
    return Rejection(
        refusal.accepted,
        observation.event,
        kind,
        _plain(message),
        candidates,
        nearest,
        tuple(near[:EXPECTED]),
        len(refusal.belief),
        shown_states(refusal.steps.system, refusal.belief),
        frontier,
    )


def _plain(because: str) -> str:
    """The sentence before the machine's own condition."""
    return because.partition(" [")[0] if because.endswith("]") else because


def _matches(refusal: Refusal, states: Sequence[State]) -> Iterator[tuple[PartialMatch, Candidate]]:
    """How far each meaning of the event gets from each state, with the action that is impossible."""
    observation, steps = refusal.observation, refusal.steps
    for number, state in enumerate(states):
        look = StateReader(steps.system, state)
        wrong = observation.unmet_before(look)
        if wrong is not None:
            unmet = wrong.said(look)
            for way in observation.alternatives or ((),):
                yield PartialMatch(number, (), _actions_text(way), unmet), Candidate(_actions_text(way), unmet, 0, True)
            continue
        for way in observation.alternatives:
            at = [state]
            for place, move in enumerate(way):
                reached = [end for s in at for end, _ in steps.along((move,), s)]
                if not reached:
                    taken = tuple(map(str, way[:place]))
                    for candidate in _blocked(refusal, move, at, len(way) - place):
                        yield PartialMatch(number, taken, candidate.action, candidate.because), candidate
                    break
                at = reached
            else:
                for end in at:
                    look = StateReader(steps.system, end)
                    wrong = first_unmet(observation.constraints, look)
                    if wrong is not None:
                        unmet, taken = wrong.said(look), tuple(map(str, way))
                        yield PartialMatch(number, taken, "", unmet), Candidate(_actions_text(way), unmet, 0, True)


def _differing(system: System, states: Sequence[State]) -> tuple[tuple[str, ...], ...]:
    """Each state by the variables in which the states differ."""
    named = [{v.name: show(v.sort, value) for v, value in system.named(state)} for state in states]
    varying = [name for name in (named[0] if named else ()) if len({one[name] for one in named}) > 1]
    return tuple(tuple(f"{name} = {one[name]}" for name in varying) for one in named)


def _actions_text(way: Sequence[Move]) -> str:
    """The possible actions of an event, as text."""
    return " then ".join(map(str, way)) or "no action"


def shown_states(system: System, belief: Sequence[State]) -> tuple[Mapping[str, str], ...]:
    """Some of the states, as text by variable."""
    return tuple({v.name: show(v.sort, value) for v, value in system.named(state)} for state in belief[:SHOWN])


def _blocked(refusal: Refusal, move: Move, states: Sequence[State], distance: int) -> Iterator[Candidate]:
    system, explainer = refusal.steps.system, refusal.task.explainer
    instances = refusal.steps.matching(move)
    for state in states:
        plain = explainer.why_not(move, StateReader(system, state)) if explainer is not None else None
        if not instances:
            yield Candidate(str(move), plain or _why_unknown(refusal.steps.instances(move.action), move), distance + 1)
        for instance in instances:
            reason = why_false(system, instance.guard, state)
            if reason is not None:
                yield Candidate(str(move), f"{plain} [{reason}]" if plain else str(reason), distance)


def _why_unknown(instances: Sequence[Instance], move: Move) -> str:
    """Why no instance of an action matches a move."""
    if not instances:
        return "the machine has no such action"
    for name, value in move.args.items():
        known = dict.fromkeys(dict(i.args).get(name) for i in instances)
        if value not in known:
            some = ", ".join(str(k) for k in list(known)[:SHOWN]) + (", ..." if len(known) > SHOWN else "")
            return f"the machine has no such instance: {name} is {value}, its values are {some}"
    return "the machine has no instance with these arguments"


def _nearest(refusal: Refusal, states: Sequence[State]) -> list[str]:
    """Acceptable events in the log's form, closest to the event first."""
    task, steps = refusal.task, refusal.steps
    found: dict[str, int] = {}
    for state in states:
        enabled = [i for i in steps.system.instances if i.action not in task.hidden and _enabled(steps, i, state)]
        if task.explainer is None:
            found.update((i.label, 0) for i in enabled)
            continue
        for distance, phrase in task.explainer.expected(
            enabled, StateReader(steps.system, state), refusal.observation.event
        ):
            found[phrase] = min(distance, found.get(phrase, distance))
    return sorted(found, key=lambda phrase: found[phrase])


def _enabled(steps: SystemMoves, instance: Instance, state: State) -> bool:
    try:
        return steps.take(instance, state) is not None
    except EvaluationError:
        return False


def _instead(refusal: Refusal, states: Sequence[State]) -> str | None:
    """The acceptable event according to a constraint."""
    observation, steps = refusal.observation, refusal.steps
    if observation.impossible is not None:
        return None
    for state in states:
        if observation.requires_before is not None and not observation.requires_before.test(
            StateReader(steps.system, state)
        ):
            continue
        ends = [end for way in observation.alternatives for end, _ in steps.along(way, state)]
        for constraints, at in ((observation.before, [state]), (observation.constraints, ends)):
            for end in at:
                look = StateReader(steps.system, end)
                failed = first_unmet(constraints, look)
                if failed is not None and failed.instead is not None:
                    return failed.instead(look)
    return None
