"""The tracker against a search over all behaviours, on random systems with some actions hidden."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

import pytest

from random_systems import random_system
from streamproof.conformance.binding import Move, Observation, Stream, Task
from streamproof.conformance.event import Event
from streamproof.conformance.tracker import Tracked, Tracker
from streamproof.system import EvaluationError, Instance, Interpreter, State, System

Step = tuple[str, tuple[tuple[str, object], ...]]
"""What a log shows of an action: its name and arguments."""


def shown(instance: Instance) -> Step:
    """The line that an action leaves."""
    return instance.action, instance.args


def follow(system: System, log: Sequence[Step], hidden: frozenset[str]) -> Tracked:
    """Tracks a log in which each line is one action."""
    observations = [
        Observation(Event("t", "p", at, action), ((Move(action, dict(args)),),))
        for at, (action, args) in enumerate(log)
    ]
    return Tracker(Task("t", system, (Stream(observations),), hidden)).run()


def explained(system: System, log: Sequence[Step], hidden: frozenset[str]) -> int:
    """How long the longest prefix of the log is that some behaviour shows: depth first over (state, lines explained)."""
    interpreter = Interpreter(system)
    stack: list[tuple[State, int]] = [(state, 0) for state in interpreter.initial_states()]
    met = set(stack)
    while stack:
        state, at = stack.pop()
        for instance in system.instances:
            wanted = at < len(log) and shown(instance) == log[at]
            for further in ([0] if instance.action in hidden else []) + ([1] if wanted else []):
                after = interpreter.take(instance, state)
                if after is not None and (after, at + further) not in met:
                    met.add((after, at + further))
                    stack.append((after, at + further))
    return max(at for _, at in met) if met else 0


def walk(system: System, random: Random, length: int) -> Iterator[Instance]:
    """A random behaviour."""
    interpreter = Interpreter(system)
    states = list(interpreter.initial_states())
    state = random.choice(states) if states else None
    for _ in range(length if state is not None else 0):
        assert state is not None
        steps = list(interpreter.steps(state))
        if not steps:
            return
        step = random.choice(steps)
        yield step.instance
        state = step.state


def without_properties(system: System) -> System:
    """The same machine; what a run may end in is not the question here."""
    return System(system.name, system.variables, system.actions, (), system.initially, system.terminal)


def drawn(seed: int) -> tuple[Random, System, frozenset[str]]:
    """A random system, and the names of the actions that leave no line."""
    random = Random(seed)
    system = without_properties(random_system(random))
    return random, system, frozenset(a.name for a in system.actions if random.random() < 0.4)


def test_every_behaviour_is_accepted() -> None:
    """A random walk of which only some actions are logged is accepted whole."""
    seen: Counter[str] = Counter()
    for seed in range(200):
        random, system, hidden = drawn(seed)
        try:
            steps = list(walk(system, random, 12))
            log = [shown(i) for i in steps if i.action not in hidden]
            tracked = follow(system, log, hidden)
        except EvaluationError:
            seen["mistakes of the model"] += 1
            continue
        assert (tracked.accepted, tracked.matched, tracked.exhausted) == (True, len(log), None), seed
        seen["lines"] += len(log)
        seen["hidden steps"] += len(steps) - len(log)
        seen["logs with hidden steps"] += 0 < len(log) < len(steps)
    assert seen == {"lines": 896, "hidden steps": 513, "logs with hidden steps": 80, "mistakes of the model": 37}


@pytest.mark.push
def test_a_log_is_rejected_where_no_behaviour_explains_it() -> None:
    """A walk with lines altered is accepted exactly as far as a search over all behaviours explains it."""
    seen: Counter[str] = Counter()
    for seed in range(1_000, 1_300):
        random, system, hidden = drawn(seed)
        visible = [shown(i) for i in system.instances if i.action not in hidden]
        if not visible:
            continue
        try:
            log = [shown(i) for i in walk(system, random, 10) if i.action not in hidden]
            for _ in range(random.randint(1, 3)):
                log.insert(random.randint(0, len(log)), random.choice(visible))
            if random.random() < 0.5:
                del log[random.randrange(len(log))]
            expected = explained(system, log, hidden)
            tracked = follow(system, log, hidden)
        except EvaluationError:
            seen["mistakes of the model"] += 1
            continue
        assert tracked.matched == expected, seed
        assert tracked.accepted is (expected == len(log)), seed
        assert (tracked.rejection is None) is tracked.accepted, seed
        seen["accepted" if tracked.accepted else "rejected"] += 1
        seen["accepted with lines"] += tracked.accepted and bool(log)
        seen["rejected after some lines"] += not tracked.accepted and expected > 0
    assert seen == {
        "accepted": 124,
        "accepted with lines": 118,
        "rejected": 112,
        "rejected after some lines": 67,
        "mistakes of the model": 43,
    }
