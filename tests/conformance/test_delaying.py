"""Hidden actions taken late give what all combinations of them give: verdict, place, values read and possible states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from random_systems import random_system
from streamproof.conformance import Constraint, Event, Move, Observation, StateReader, Stream, Task
from streamproof.conformance.run_verdict import Tracked
from streamproof.conformance.tracker import Tracker
from streamproof.system import ArraySort, EvaluationError, Instance, Interpreter, RangeSort, State, System, Variable
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Action, Conjunct, Fairness
from streamproof.transform.footprint import Footprints

PLAIN = 10**9
CELLS = 5
"""Elements of the array in the random machines."""


def machine(random: Random) -> System:
    """Actions on a few elements of an array and on two numbers, so that many are independent and some are not."""
    number = RangeSort(0, 2)
    array = ArraySort(RangeSort(0, CELLS - 1), number)
    cells, p, q = b.var("a", array), b.var("p", number), b.var("q", number)

    def scalar() -> Expr:
        return random.choice([p, q, *(b.select(cells, b.num(random.randrange(CELLS))) for _ in range(6))])

    def condition() -> Expr:
        return random.choice([b.eq, b.less_eq])(scalar(), b.num(random.randrange(3)))

    def value() -> Expr:
        return random.choice([b.num(random.randrange(3)), b.num(random.randrange(3)), scalar()])

    actions = []
    for name in "abcdefgh"[: random.randint(4, 8)]:
        instances = []
        for k in range(random.randint(1, 2)):
            put: Expr = cells
            for _ in range(random.choice([1, 1, 2])):
                at = b.num(random.randrange(CELLS))
                stored = b.store(put, at, value())
                put = b.ite(condition(), stored, put) if random.random() < 0.3 else stored
            updates = [("a", put)] if random.random() < 0.85 else []
            updates += [(n, value()) for n in "pq" if random.random() < 0.15]
            guard = tuple(Conjunct(condition(), "", None) for _ in range(random.choice([1, 1, 2])))
            instances.append(Instance(name, (("k", k),), (), guard, tuple(updates)))
        actions.append(Action(name, ("k",), Fairness.NONE, tuple(instances)))
    initial = tuple(random.randrange(3) for _ in range(CELLS))
    variables = (Variable("a", array, (initial,)), Variable("p", number, (0,)), Variable("q", number, (0, 1)))
    return System("cells", variables, tuple(actions), ())


def condition_on(random: Random) -> Callable[[StateReader], bool]:
    """A random condition on a state, by element, by the whole array or by the elements until one decides."""
    at, value, kind = random.randrange(CELLS), random.randrange(3), random.randrange(5)
    some = sorted(random.sample(range(CELLS), random.randint(1, CELLS)))
    match kind:
        case 0:
            return lambda look: look("a", at) != value
        case 1:
            return lambda look: any(look("a")[i] == value for i in some)
        case 2:
            return lambda look: not all(x == value for x in look("a"))
        case 3:
            return lambda look: sum(look("a")) >= value
        case _:
            return lambda look: look("p") <= value or look("a", at) > 0


def observations(random: Random, system: System, hidden: frozenset[str], length: int) -> list[Observation]:
    """A log of a random walk, with random conditions, alternatives and values read, and some lines altered."""
    interpreter = Interpreter(system)
    state = random.choice(list(interpreter.initial_states()))
    visible = [i for i in system.instances if i.action not in hidden]
    found: list[Observation] = []

    def move(instance: Instance) -> Move:
        args = dict(instance.args) if random.random() < 0.8 else {}
        return Move(instance.action, args, optional=random.random() < 0.1)

    for _ in range(5 * length):
        steps = list(interpreter.steps(state))
        if not steps or len(found) == length:
            break
        step = random.choice(steps)
        before, state = state, step.state
        if step.instance.action in hidden:
            continue
        instance = random.choice(visible) if random.random() < 0.2 else step.instance
        ways: list[tuple[Move, ...]] = [(move(instance),)]
        if random.random() < 0.2:
            ways.insert(random.randrange(2), tuple(move(random.choice(visible)) for _ in range(random.randrange(3))))

        def holding(at: State) -> tuple[Constraint, ...]:
            drawn = [condition_on(random) for _ in range(random.randrange(3))]
            lying = random.random() < 0.2
            return tuple(Constraint("c", t) for t in drawn if lying or t(StateReader(system, at)))

        cell = random.randrange(CELLS)
        reads = (lambda look, cell=cell: (look("a", cell), look("p"))) if random.random() < 0.3 else None
        event = Event("t", "p", len(found), instance.action)
        found.append(Observation(event, tuple(ways), holding(state), holding(before), reads=reads))
    return found


def compared(seed: int, seen: Counter[str]) -> None:
    """One random log, with the hidden actions delayed and in all combinations."""
    random = Random(seed)
    system = machine(random)
    hidden = frozenset(a.name for a in system.actions if random.random() < 0.6)
    if not any(a.name not in hidden for a in system.actions):
        return
    log = observations(random, system, hidden, random.randint(1, 10))
    task = Task("t", system, (Stream(log),), hidden)
    plain, late = Tracker(task, eager=PLAIN).run(), Tracker(task, eager=-1).run()
    same(plain, late, system, hidden)
    seen["logs"] += 1
    seen["accepted" if plain.accepted else "rejected"] += 1
    seen["lines"] += plain.matched
    seen["states"] += plain.largest_belief
    seen["states kept"] += late.largest_belief
    seen["values read"] += len(plain.readings)


def same(plain: Tracked, late: Tracked, system: System, hidden: frozenset[str]) -> None:
    """Both outcomes say the same."""
    assert late.accepted is plain.accepted
    assert late.events == plain.events
    assert late.exhausted is plain.exhausted is None
    assert {at: set(values) for at, values in late.readings.items()} == {
        at: set(values) for at, values in plain.readings.items()
    }
    assert set(late.final) <= closure(system, hidden, plain.final)
    assert closure(system, hidden, late.final) == closure(system, hidden, plain.final)
    if plain.rejection is not None and late.rejection is not None:
        assert (late.rejection.event, late.rejection.index) == (plain.rejection.event, plain.rejection.index)
        assert late.rejection.states == plain.rejection.states  # the explanation is of the first of them, in any order


def closure(system: System, hidden: frozenset[str], states: tuple[State, ...]) -> set[State]:
    """All states that hidden actions reach."""
    interpreter, found, queue = Interpreter(system), set(states), list(states)
    while queue:
        for step in interpreter.steps(queue.pop()):
            if step.instance.action in hidden and step.state not in found:
                found.add(step.state)
                queue.append(step.state)
    return found


@pytest.mark.long
def test_delayed_hidden_actions_change_nothing() -> None:
    """On random logs of random machines; the states kept are fewer."""
    seen: Counter[str] = Counter()
    for seed in range(400):
        compared(seed, seen)
    assert seen["accepted"] > 100 < seen["rejected"], seen
    assert seen["states kept"] * 2 < seen["states"], seen


@pytest.mark.long
def test_delayed_hidden_actions_change_nothing_in_many_logs() -> None:
    """The same with more logs."""
    seen: Counter[str] = Counter()
    for seed in range(10_000, 30_000):
        compared(seed, seen)
    assert seen["accepted"] > 5_000 < seen["rejected"], seen


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """The result of a function, or the text of a model error."""
    try:
        return function(*args)
    except EvaluationError as error:
        return str(error)


@pytest.mark.long
def test_a_footprint_determines_a_step() -> None:
    """Steps are those of the interpreter, also in other states that agree in the cells read."""
    agreeing = 0
    for seed in range(300):
        random = Random(seed)
        system = random_system(random)
        layout, interpreter = Footprints(system).layout, Interpreter(system)
        known = list(interpreter.initial_states())[:20]
        for state in known:
            for instance in system.instances:
                footprints = Footprints(system)
                after = outcome(interpreter.take, instance, state)
                effect = outcome(footprints.take, instance, state)
                if isinstance(effect, str):
                    assert after == effect
                    continue
                assert after == (None if effect.writes is None else layout.written(state, effect.writes))
                if after is not None and after not in known and len(known) < 60:
                    known.append(after)
                for other in random.sample(known, min(4, len(known))):
                    mixed = layout.written(other, {cell: layout.read(state, cell) for cell in effect.reads})
                    then = interpreter.take(instance, mixed)
                    assert then == (None if effect.writes is None else layout.written(mixed, effect.writes))
                    agreeing += mixed != state
    assert agreeing > 5_000
