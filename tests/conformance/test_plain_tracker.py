"""The tracker with kept beliefs, generated steps, and equal steps and whole logs looked up, against the plain one, in
which the interpreter computes each step anew: the same result for every log, with its counts, states, readings and
explanations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from random_systems import random_system
from streamproof.conformance import moves
from streamproof.conformance.belief import Beliefs
from streamproof.conformance.binding import BY_VALUE, Constraint, Move, Observation, StateReader, Stream, Task, meaning
from streamproof.conformance.event import Event
from streamproof.conformance.moves import SystemMoves
from streamproof.conformance.tracker import Tracked, Tracker
from streamproof.explicit import single_steps
from streamproof.system import EvaluationError, Instance, Interpreter, State, System

LOGS = 10
"""Logs of one system: behaviours of it, and disturbed and tampered copies."""


@dataclass(frozen=True)
class Has:
    """Whether a variable has a value."""

    name: str
    value: Any

    def __call__(self, look: StateReader) -> bool:
        """Compares it."""
        return bool(look(self.name) == self.value)


def walk(system: System, draw: Random, length: int) -> list[tuple[Instance, State]]:
    """A random behaviour: its steps, with the state after each."""
    interpreter, found = Interpreter(system), list[tuple[Instance, State]]()
    state = next(iter(interpreter.initial_states()), None)
    with suppress(EvaluationError):
        while state is not None and len(found) < length and (steps := list(interpreter.steps(state))):
            step = draw.choice(steps)
            found.append((step.instance, step.state))
            state = step.state
    return found


def observed(system: System, draw: Random, steps: Sequence[tuple[Instance, State]], at: int) -> Observation:
    """A line about a step, some with a part of the state."""
    instance, state = steps[at]
    name = draw.choice(list(system.index))
    held = (Constraint(f"{name} is another", Has(name, state[system.index[name]])),) if draw.random() < 0.9 else ()
    reads = (lambda look: look(name)) if draw.random() < 0.1 else None
    seen = Observation(Event("t", "p", at, instance.action), ((Move(instance.action, dict(instance.args)),),), held)
    return replace(seen, reads=reads, like=BY_VALUE if draw.random() < 0.3 else meaning(seen))


def changed(draw: Random, log: list[Observation]) -> list[Observation]:
    """A log with a line removed, doubled, moved, or with another state in it."""
    at = draw.randrange(len(log))
    line = log[at]
    match draw.randrange(4):
        case 0:
            return [*log[:at], *log[at + 1 :]]
        case 1:
            return [*log[:at], line, *log[at:]]
        case 2:
            rest = [*log[:at], *log[at + 1 :]]
            to = draw.randrange(len(log))
            return [*rest[:to], line, *rest[to:]]
        case _:
            other = replace(line, constraints=draw.choice(log).constraints)
            return [*log[:at], replace(other, like=meaning(replace(other, like=BY_VALUE))), *log[at + 1 :]]


def tasks(seed: int) -> list[Task]:
    """The logs of a random system, in one stream or two; some once more, as other lines of equal meaning."""
    draw = Random(seed)
    system = replace(random_system(draw), properties=())
    while len(walk(system, Random(seed), 8)) < 8:
        system = replace(random_system(draw), properties=())
    hidden = frozenset(a.name for a in system.actions if draw.random() < 0.3)
    found: list[Task] = []
    for number in range(LOGS):
        steps = walk(system, draw, 14)
        log = [observed(system, draw, steps, at) for at, (i, _) in enumerate(steps) if i.action not in hidden]
        for _ in range(2 * (number % 3)):
            log = changed(draw, log) if len(log) > 1 else log
        if number % 3 and log:  # a line of any action, and a state of another run
            line = observed(system, draw, [(draw.choice(system.instances), draw.choice(steps)[1])], 0)
            log.insert(draw.randrange(len(log)), line)
        streams = [log] if draw.random() < 0.7 else [log[::2], log[1::2]]
        found.append(Task("t", system, tuple(Stream(one) for one in streams if one), hidden))
    return [*found, *(again(task) for task in found[::3])]


def again(task: Task) -> Task:
    """An equal log with other events."""
    streams = ([replace(o, event=replace(o.event, process="again")) for o in s.observations] for s in task.streams)
    return replace(task, streams=tuple(map(Stream, streams)))


def outcome(task: Task, steps: SystemMoves, limit: int) -> Tracked | str:
    """What a tracker makes of a log, an error included."""
    try:
        return Tracker(task, limit, steps=steps).run()
    except EvaluationError as error:
        return error.one_line


def compare(seeds: range, patch: pytest.MonkeyPatch) -> Counter[str]:
    """Compares the trackers on the logs of these systems; how many were accepted, rejected, and so on."""
    seen = Counter[str]()
    for seed in seeds:
        logs = tasks(seed)
        limit = 40 if seed % 7 == 0 else 20_000
        patch.setattr(single_steps, "OFTEN", seed % 3)
        steps = SystemMoves(logs[0].system)
        fast = [outcome(task, steps, limit) for task in logs]
        patch.setattr(moves, "PLAIN", True)
        steps = SystemMoves(logs[0].system)
        plain = [outcome(task, steps, limit) for task in logs]
        patch.undo()
        assert fast == plain, seed
        for found in plain:
            if isinstance(found, str):
                seen["error"] += 1
            else:
                seen["rejected" if found.rejection else "open" if found.exhausted else "accepted"] += 1
    return seen


def test_beliefs_that_are_kept_change_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few hundred logs."""
    seen = compare(range(10), monkeypatch)
    assert min(seen["accepted"], seen["rejected"]) > 15


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_twenty_thousand_logs(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand logs each."""
    seen = compare(range(1_000 + 100 * part, 1_100 + 100 * part), monkeypatch)
    assert min(seen["accepted"], seen["rejected"]) > 100


def test_beliefs_that_do_not_recur_are_not_kept() -> None:
    """Where most steps are new, and where most are known."""
    for known, recurring in ((0, False), (9, True)):
        beliefs = Beliefs()
        for at in range(3_000):
            beliefs.count(at % 10 >= known)
        assert beliefs.recurring is recurring
