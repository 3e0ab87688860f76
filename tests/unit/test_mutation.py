"""Mutants: each answer about one is true, by plain searches with the interpreter."""

from __future__ import annotations

import json
from collections import Counter, deque
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

import streamproof as sp
from nonempty import nonempty
from random_systems import random_system
from shares import share
from streamproof import (
    WEAK,
    Array,
    Bool,
    Model,
    Option,
    Queue,
    Range,
    Record,
    Set,
    State,
    action,
    constraint,
    eventually,
    invariant,
    require,
    temporal,
    terminal,
)
from streamproof.base.errors import ModelError
from streamproof.base.options import SearchOptions
from streamproof.base.records import replace
from streamproof.cli.verbs import cli
from streamproof.interrupts import limited
from streamproof.model_registry import find
from streamproof.mutation import judging, known_graph
from streamproof.mutation.judging import (
    EQUIVALENT,
    KILLED,
    MISTAKE,
    SURVIVED,
    UNDECIDED,
    JudgedMutant,
    MutantDifference,
    Mutation,
    mutate,
)
from streamproof.mutation.mutants import Mutant, kinds, mutants
from streamproof.system import EvaluationError, StreamproofError, System, UsageError
from streamproof.system import build as b
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Action, Conjunct, Fairness, Instance, Kind, Property, Variable
from streamproof.system.sorts import RangeSort, contains


class Tank(Model):
    """A tank is filled and emptied; whoever has filled it may ring once."""

    size: int = 3

    def state(self) -> State:
        """Its level, and whether the bell was rung."""
        return State(level=Range(0, self.size), rung=Bool())

    @action(fairness=WEAK)
    def fill(self, s: Any) -> None:
        """One more."""
        require(s.level < self.size)
        require(s.level <= 100)
        s.level += 1

    @action
    def ring(self, s: Any) -> None:
        """Once, when it is full."""
        require(s.level == self.size)
        require(not s.rung)
        s.rung = True

    @terminal
    def full(self, s: Any) -> bool:
        """Nothing is left to do."""
        return bool(s.level == self.size)

    @invariant
    def rung_when_full(self, s: Any) -> bool:
        """No bell before."""
        return bool(not s.rung or s.level == self.size)

    @temporal
    def fills(self, s: Any) -> Any:
        """It becomes full."""
        return eventually(s.level == self.size)


TANK = Tank.system()


class Store(Model):
    """Containers of every kind, each bounded by a guard only, and a counter that a constraint bounds."""

    def state(self) -> State:
        """Two counters in an array, one in a record, one in an option, numbers in a queue and in a set; and the counter."""
        return State(
            each=Array(Range(0, 1), Range(0, 2)),
            pair=Record(left=Range(0, 2), right=Bool()),
            last=Option(Range(0, 2)),
            line=Queue(Range(0, 2), capacity=2),
            held=Set(Range(0, 2)),
            n=Range(0, 9),
        )

    @action(i=Range(0, 1))
    def count(self, s: Any, i: int) -> None:
        """One more of the array."""
        require(s.each[i] < 2)
        s.each[i] += 1

    @action
    def widen(self, s: Any) -> None:
        """One more in the record, and so in the option and in the set."""
        require(s.pair.left < 2)
        s.pair.left += 1
        s.last = s.pair.left
        s.held.add(s.pair.left)

    @action
    def queue_up(self, s: Any) -> None:
        """A number for the queue."""
        require(len(s.line) < 2)
        s.line.append(s.pair.left)

    @action
    def grow(self, s: Any) -> None:
        """The counter."""
        s.n += 1

    @constraint
    def small(self, s: Any) -> bool:
        """Not too far."""
        return bool(s.n < 2)

    @invariant
    def counted(self, s: Any) -> bool:
        """As everywhere."""
        return bool(s.each[0] + s.each[1] <= 4)


def test_mutants_stay_within_their_sorts() -> None:
    """A value that a guard kept in its range, inside of any container, is a mistake without it; a constraint is no guard."""
    system = Store.system()
    found = list(mutants(system))
    for mutant in found:
        for state, steps in graph(mutant.system).items():
            assert all(contains(v.sort, value) for v, value in mutant.system.named(state)), mutant.label
            mistakes = {message for _, message in steps if isinstance(message, str)}
            assert mistakes <= {f"{name} leaves its range in {label}" for name in system.index for label in LABELS}
    judged = answers(mutate(system, SearchOptions()))
    for label in (
        "count: 's.each[i] < 2' left out",
        "widen: 's.pair.left < 2' left out",
        "queue_up: 'len(s.line) < 2' left out",
    ):
        assert judged[label] == (KILLED, (MISTAKE,))
    assert not [mutant.label for mutant in found if "small" in mutant.label]


LABELS = ("count(i=0)", "count(i=1)", "widen()", "queue_up()", "grow()")


def answers(found: Mutation) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The answer and the noticing properties of each mutant."""
    return {one.mutant.label: (one.answer, one.by) for one in found.judged}


def test_the_mutants_of_a_tank() -> None:
    """Guards, updates, fairness and initial values, with who notices them; what no property mentions survives."""
    found = answers(mutate(TANK, SearchOptions()))
    # The bell: no property says that it rings, or that it does so once.
    assert found["ring: never possible"] == (SURVIVED, ())
    assert found["ring: 'not s.rung' left out"] == (SURVIVED, ())
    assert found["ring: 's.level == self.size' left out"] == (KILLED, ("rung_when_full",))
    # Filling.
    assert found["fill: never possible"] == (KILLED, ("fills", "deadlock"))
    assert found["fill: no weak fairness"] == (KILLED, ("fills",))
    assert found["fill: 's.level < self.size' left out"] == (KILLED, (MISTAKE,))
    assert found["fill: level is not changed"] == (KILLED, ("fills",))
    # The model's own range decides this guard, so that nothing is left to leave out.
    assert (
        found["fill: 's.level <= 100' left out"] == (EQUIVALENT, ())
        if "fill: 's.level <= 100' left out" in found
        else True
    )
    assert found["rung = True initially"] == (KILLED, ("rung_when_full",))


def test_which_instance_takes_a_step_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two instances with equal labels, as branches are: one that gains a step of the other is equivalent, or only has another
    fairness, which is shown as no step that the model lacks."""
    step = Instance("go", (), (), (), (("n", b.mod(b.add(N, b.num(1)), b.num(4))),))
    at_end = replace(step, guard=(Conjunct(b.eq(N, b.num(3)), "at the end", None),))
    for fair, expected in nonempty([(True, EQUIVALENT), (False, SURVIVED)]):
        action_ = Action("go", (), Fairness.WEAK, (step, replace(at_end, fair=fair)))
        system = System("counter", (Variable("n", N.sort, (0,)),), (action_,), (Property("p", Kind.DEADLOCK, b.TRUE),))
        assert shortest(system, replace(system, actions=(replace(action_, instances=(step, step)),))) is None
        for found in (mutate(system, SearchOptions()), by_searches(system, SearchOptions(), monkeypatch)):
            judged = {one.mutant.label: one for one in found.judged}
            for label in ("go: 'at the end' left out", "go: 'at the end' negated"):
                assert (judged[label].answer, judged[label].difference) == (expected, None)


N = b.var("n", RangeSort(0, 3))


def test_a_property_that_notices_nothing_is_named() -> None:
    """The bell's property is idle if only the tank is filled otherwise."""
    found = mutate(TANK, SearchOptions(), only=lambda mutant: mutant.kind == "fairness")
    assert found.idle == ("rung_when_full", "deadlock")
    assert found.score == 1.0


def graph(system: System) -> dict[Any, set[Any]]:
    """Every reachable state with its steps, by the interpreter; a mistake is a step to its message."""
    interpreter = Interpreter(system)
    found: dict[Any, set[Any]] = {}
    open_ = deque(interpreter.initial_states())
    while open_:
        state = open_.popleft()
        if state in found:
            continue
        found[state] = set()
        for instance in system.instances:
            try:
                after = interpreter.take(instance, state)
            except EvaluationError as error:
                found[state].add((instance.key, error.message))
                continue
            if after is not None:
                found[state].add((instance.key, after))
                open_.append(after)
    return found


def shortest(system: System, mutant: System) -> int | None:
    """The number of steps after which two systems first differ; None if they never do."""
    one, other = graph(system), graph(mutant)
    level = set(Interpreter(system).initial_states())
    if level != set(Interpreter(mutant).initial_states()):
        return 0
    seen: set[Any] = set()
    for steps in range(len(one) + 1):
        if any(one[state] != other.get(state) for state in level):
            return steps
        seen |= level
        level = {after for state in level for _, after in one[state] if after in one} - seen
    return None


@pytest.mark.push
@pytest.mark.parametrize("first", share(range(0, 400, 20), 20))
def test_answers_about_random_systems(first: int) -> None:
    """Equivalent ones have one graph; the difference of a survivor is a shortest one; what is noticed is false."""
    counts: dict[str, int] = dict.fromkeys((KILLED, SURVIVED, EQUIVALENT, UNDECIDED), 0)
    for seed in range(first, first + 20):
        system = random_system(Random(seed))
        try:
            found = mutate(system, SearchOptions(max_states=5_000))
        except StreamproofError:  # no initial state, no property that holds, a mistake
            continue
        for one in found.judged:
            counts[one.answer] += 1
            mutant: Mutant = one.mutant
            if one.answer == EQUIVALENT:
                assert graph(mutant.system) == graph(system), (seed, mutant.label)
            if one.answer == SURVIVED and mutant.kind != "fairness":
                assert isinstance(one.difference, MutantDifference)
                steps = shortest(system, mutant.system)
                assert steps == len(one.difference.trace.steps), (seed, mutant.label)
            if one.answer == KILLED:
                noticed = sp.check(mutant.system, [name for name in one.by if name != MISTAKE] or None)
                wrong = [f for f in noticed.findings if f.verdict in (sp.Verdict.VIOLATED, sp.Verdict.ERROR)]
                assert wrong or noticed.mistake, (seed, mutant.label)
    assert min(counts[KILLED], counts[SURVIVED], counts[EQUIVALENT]) >= 3


def by_searches(system: System, options: SearchOptions, patch: pytest.MonkeyPatch) -> Mutation:
    """The answers of a search of each mutant as a whole."""
    with patch.context() as within:
        within.setattr(judging, "_known_graph", lambda original, properties: None)
        return mutate(system, options)


def compare_with_searches(system: System, options: SearchOptions, patch: pytest.MonkeyPatch) -> Counter[str]:
    """The steps of the original save searches, and change neither an answer nor a difference nor an idle property. Without a
    mistake of the model, the noticing properties are some of those that a whole search finds."""
    found, other = mutate(system, options), by_searches(system, options, patch)
    assert found.idle == other.idle
    for one, whole in zip(found.judged, other.judged, strict=True):
        assert (one.mutant, one.answer, one.difference) == (whole.mutant, whole.answer, whole.difference)
        assert set(one.by) <= set(whole.by) or MISTAKE in whole.by, one.mutant.label
        assert (MISTAKE in one.by) == (MISTAKE in whole.by), one.mutant.label
    return found.counts


@pytest.mark.push
@pytest.mark.parametrize("first", share(range(0, 200, 4), 25))
def test_known_steps_change_no_answer(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers with the state graph of the original are those of a search of each mutant."""
    for seed in range(first, first + 4):
        with suppress(ModelError, UsageError):  # no initial state, no property that holds, a mistake
            compare_with_searches(random_system(Random(seed)), SearchOptions(max_states=5_000), monkeypatch)


def test_mutants_after_the_time_limit_are_not_examined() -> None:
    """They are undecided, and cost nothing: not even one that is equal at a glance is called equivalent."""
    with limited(60):
        seen: list[str] = []

        def late(judged: JudgedMutant, number: int) -> None:
            seen.append(judged.answer)
            stack.enter_context(limited(1e-9))

        with ExitStack() as stack:
            found = mutate(TANK, SearchOptions(), on_judged=late)
    assert seen[0] == KILLED
    assert {one.because for one in found.judged[1:]} == {"not examined: time limit of 1e-09 s reached"}
    assert found.counts == {KILLED: 1, UNDECIDED: len(seen) - 1}


def test_a_mutant_with_many_new_states_is_searched_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers are the same if the search on the graph of the original gives up early."""
    monkeypatch.setattr(known_graph, "MOST_NEW", 2)
    assert compare_with_searches(find("buffer_pool").spec.system(), SearchOptions(), monkeypatch)[KILLED] > 20


@pytest.mark.long
@pytest.mark.parametrize("name", ["blocking_result", "buffer_pool", "region_core", "partition_states", "slot_offers"])
def test_known_steps_change_no_answer_about_a_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of bundled models."""
    assert compare_with_searches(find(name).spec.system(), SearchOptions(max_states=20_000), monkeypatch)[KILLED] > 20


def test_every_kind_of_mutant_differs_from_the_system() -> None:
    """In its terms; and every kind occurs."""
    found = list(mutants(TANK))
    assert {mutant.kind for mutant in found} >= {*kinds()} - {"comparison"}
    assert all(mutant.system != TANK for mutant in found)


def run(*arguments: str) -> tuple[int, str]:
    """The exit code and the output of the verb."""
    done = CliRunner().invoke(cli, ["mutate", *arguments], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return int(done.return_value), done.output


def test_the_verb(tmp_path: Path) -> None:
    """Survivors with their place and behaviour, the score, JSON, and the exit codes."""
    out = tmp_path / "m.json"
    code, text = run("reference.two_phase_commit", "-q", "--json", str(out))
    assert code == 161
    assert "hear_prepared: never possible (" in text
    assert "only the model: hear_prepared(r=rm1)" in text
    document = json.loads(out.read_text())
    assert document["killed"] + document["survived"] + document["equivalent"] == document["mutants"]
    assert f"score {100 * document['score']:.1f} %" in text
    assert [run("reference.two_phase_commit", "-q", "--least", share)[0] for share in ("0", "50")] == [0, 0]
    assert run("reference.two_phase_commit", "-q", "--action", "decide_abort", "--kind", "fairness")[0] == 160


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kind", "wish"), "no kind of mutants is called 'wish'"),
        (("--action", "pray"), "has no action 'pray'"),
        (("--max-states", "10"), "has no answers to compare with: the search ended early"),
        (("--variant", "no-such"), "no-such"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], message: str) -> None:
    """One message each."""
    with pytest.raises(UsageError) as info:
        run("reference.two_phase_commit", *arguments)
    assert message in str(info.value)
