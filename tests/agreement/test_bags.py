"""Bags mean the same in every engine, natively, in exports and traces."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from quick_tlc import QUICK
from random_systems import random_system
from shares import share
from streamproof import (
    ANY,
    Array,
    Bag,
    Bool,
    Case,
    Enum,
    EvaluationError,
    Model,
    Native,
    Option,
    Range,
    Record,
    SearchOptions,
    State,
    Symmetric,
    Union,
    action,
    any_of,
    choose,
    explore,
    invariant,
    require,
)
from streamproof.agree import panel_engines
from streamproof.conformance.recorded_values import agrees
from streamproof.exchange.itf.reading import read_itf
from streamproof.exchange.itf.writing import write_itf
from streamproof.exchange.tla import tlc
from streamproof.symbolic.portfolio import Engine
from streamproof.symbolic.proof import prove
from streamproof.system import Interpreter, Kind, ModelError, StreamproofError, Verdict
from streamproof.system.sorts import (
    BOOL,
    BagSort,
    RangeSort,
    RecordSort,
    SetSort,
    bag_items,
    bag_of,
    bag_sort,
    cardinality,
    contains,
    values,
)


class Data(Case):
    """A message with a number."""

    number: int


class Ack(Case):
    """A message without fields."""


class Network(Model):
    """A network that reorders, duplicates and loses messages, and bags of other sorts; every operation."""

    check_deadlock = False

    def state(self):
        """Bags of a union, a record, a range and an Enum."""
        return State(
            net=Bag(Union(Data(number=Range(0, 1)), Ack()), capacity=2),
            kept=Bag(Record(of=Option(Range(0, 1)), up=Bool()), capacity=1),
            seen=Bag(Range(0, 2), capacity=2, init=any_of([], [1, 1])),
            who=Array(2, Bag(Enum("a", "b"), capacity=1)),
            turn=Range(0, 1),
        )

    @action(message=[Data(0), Ack()])
    def send(self, s, message):
        """A constant message."""
        require(len(s.net) < 2)
        s.net.add(message)

    @action
    def tell(self, s):
        """A message that depends on the state."""
        require(len(s.net) < 2 and Data(s.turn) not in s.net)
        s.net.add(Data(s.turn))
        s.turn = 1 - s.turn

    @action
    def duplicate(self, s):
        """One occurrence more of any message; an error of the model where the bag is full."""
        message = choose(s.net)
        require(len(s.net) < 2 or message == Ack())
        s.net.add(message)

    @action
    def receive(self, s):
        """Any message, in any order."""
        message = choose(s.net)
        s.net.remove(message)
        match message:
            case Data(number=n):
                s.seen = [v for v in s.seen if v != n]
                s.kept = [{"of": n, "up": s.turn == 0}]
            case Ack():
                s.seen.discard(2)
                s.kept.clear()

    @action
    def count(self, s):
        """Sums, counts and comparisons."""
        require(s.seen <= [1, 0] and sum(s.seen) + s.net.count(Ack()) < 3 and s.net != [Data(0), Ack()])
        s.seen.add(len(s.net))
        s.who[s.turn] = ["a"] if any(k.up for k in s.kept) else ["b" for m in s.net if isinstance(m, Ack)]

    @invariant
    def few(self, s):
        """True: the capacity, and that elements are in the bag."""
        return (
            len(s.net) <= 2
            and all(m in s.net for m in s.net)
            and s.net.count(Data(0)) + s.net.count(Data(1)) <= len(s.net)
        )

    @invariant
    def never(self, s):
        """False where two numbers were seen while a message is kept."""
        return not (s.seen >= [2] and s.seen > [2] and {"of": 1, "up": False} in s.kept)


def outcome(run: Any, *args: Any) -> Any:
    """The state after a step, None where it is disabled, or the message of an error."""
    try:
        return run(*args)
    except EvaluationError as error:
        return error.message


def native_agrees(model: type[Model], most: int = 60) -> int:
    """Native execution takes the same steps, with the same errors, as the interpreter in the first reachable states."""
    system, native = model.system(), Native(model())
    interpreter, errors = Interpreter(system), 0
    seen = dict.fromkeys(interpreter.initial_states())
    for state in (todo := list(seen)):
        for instance in system.instances:
            if native.picks(state, instance, system) is None:
                continue
            lowered = outcome(interpreter.take, instance, state)
            assert outcome(native.take, state, instance, system) == lowered
            errors += isinstance(lowered, str)
            after = None if isinstance(lowered, str) else lowered
            if after is not None and after not in seen and len(seen) < most:
                seen[after] = None
                todo.append(after)
        for prop in system.properties:
            if prop.kind is Kind.INVARIANT:
                assert native.holds(prop.name, state) == interpreter.holds(prop, state)
    return errors


class Careful(Network, variant="careful"):
    """Nothing is added to a full bag."""

    @action
    def duplicate(self, s):
        """As long as there is room."""
        require(len(s.net) < 2)
        s.net.add(choose(s.net))

    @action
    def count(self, s):
        """With room."""
        require(len(s.seen) < 2 and len([m for m in s.net if isinstance(m, Ack)]) < 2)
        super().count(s)


@pytest.mark.long
def test_engines_agree_on_every_operation(panel: Any, expect: Any) -> None:
    """Interpreter, both tiers, the solver and induction agree, with and without an overflow."""
    for model in (Careful, Network):
        system = model.system()
        referee = panel.interpreter_result(system)
        for result in (panel.explored(system, "python"), panel.explored(system, "compiled"), panel.bounded(system, 2)):
            referee.compare(result)
        allowed = expect(system)
        for name, answer in panel_engines.proved(system, 1).answers.items():
            assert answer.verdict in {Verdict.INCONCLUSIVE, *allowed[name].verdicts}
        assert (native_agrees(model) > 0) == (model is Network)


def test_overflow_is_an_error_with_values_and_line() -> None:
    """The action, the contents of the bag and the line."""
    mistake = explore(Network.system()).mistake
    assert mistake is not None
    assert mistake.error.message.startswith("add to the full bag s.net in duplicate()[message=")
    assert "(s.net = {|Data(number=0), Ack()|})" in mistake.error.message
    assert mistake.error.loc is not None
    assert mistake.error.loc.function == "duplicate"


@pytest.mark.long
def test_tlc_agrees(jar: Path) -> None:
    """TLC counts the same states over functions from values to counts."""
    system = Careful.system()
    ours, counted = explore(system).counts, tlc.count(system, QUICK)
    assert ours is not None
    assert (counted.distinct, counted.generated) == (ours.distinct, ours.generated)
    [never] = tlc.decide(system, ["never"], QUICK)
    assert never.verdict is explore(system).finding("never").verdict


def test_traces_make_round_trips(tmp_path: Path) -> None:
    """ITF has the counts by value, and refuses a bag with too many; changes name what came and went."""
    system = Careful.system()
    trace = explore(system).finding("never").trace
    assert trace is not None
    file = tmp_path / "trace.itf.json"
    write_itf(file, system, trace)
    assert read_itf(file, system).states == trace.states
    text = file.read_text()
    key = '{"tag": "Ack", "value": {"#tup": []}}'
    assert f'[{key}, {{"#bigint": "0"}}]' in text
    file.write_text(text.replace(f'[{key}, {{"#bigint": "0"}}]', f'[{key}, {{"#bigint": "3"}}]', 1))
    with pytest.raises(StreamproofError, match=r"3 is outside Range\(0, 2\)|elements in a bag of capacity 2"):
        read_itf(file, system)


def test_recorded_bags() -> None:
    """An event log has the elements as a list; partial records are matched with different elements, of a set, too."""
    sort = bag_sort(RecordSort((("n", RangeSort(0, 2)), ("up", BOOL))), 3)
    value = bag_of(sort, [(1, True), (1, False)])
    assert agrees(sort, value, [{"n": 1}, {"n": 1, "up": True}])
    assert agrees(sort, value, [{"n": 1, "up": True}, {"n": 1}])
    assert not agrees(sort, value, [{"n": 1, "up": True}, {"up": True}])
    assert not agrees(sort, value, [{"n": 1}])
    assert not agrees(sort, value, [{"n": 1}, {"n": 1}, {"n": 1}])
    members = SetSort(sort.item)
    both = frozenset({(1, True), (1, False)})
    assert agrees(members, both, [{"n": 1}, {"n": 1, "up": True}])
    assert agrees(members, both, [{"n": 1}, {"n": 1}])
    assert not agrees(members, both, [{"n": 1}, {"n": 2}])
    assert not agrees(members, both, [{"up": True}, {"up": True, "n": 1}])


@pytest.mark.parametrize("capacity", range(4))
def test_values_of_a_bag(capacity: int) -> None:
    """The number of values is that of the multisets of at most so many elements, each once, the empty bag first."""
    sort = bag_sort(RangeSort(-1, 1), capacity)
    every = list(values(sort))
    assert len(set(every)) == len(every) == cardinality(sort)
    assert every[0] == (0, 0, 0)
    assert {tuple(sorted(bag_items(sort, v))) for v in every} == {
        tuple(sorted(Counter(dict(zip((-1, 0, 1), (a, c, d), strict=True))).elements()))
        for a in range(capacity + 1)
        for c in range(capacity + 1)
        for d in range(capacity + 1)
        if a + c + d <= capacity
    }
    assert not contains(sort, (capacity + 1, 0, 0))
    assert not contains(sort, (capacity, 1, 0))


class Crowd(Model):
    """Messages with interchangeable names, as values of a bag and as fields of its records."""

    def setup(self):
        """Three workers."""
        self.workers = Symmetric(3, "w")

    def state(self):
        """Two bags."""
        return State(
            idle=Bag(self.workers, capacity=2),
            sent=Bag(Record(of=self.workers, up=Bool()), capacity=2),
            any=Bag(Bool(), capacity=1, init=ANY),
        )

    @action(w="workers")
    def rest(self, s, w):
        """A name."""
        require(len(s.idle) < 2)
        s.idle.add(w)

    @action(w="workers")
    def send(self, s, w):
        """A record with a name."""
        require(w in s.idle and len(s.sent) < 2)
        s.idle.remove(w)
        s.sent.add({"of": w, "up": w in s.idle})

    @action
    def receive(self, s):
        """Any message."""
        message = choose(s.sent)
        s.sent.remove(message)

    @invariant
    def some(self, s):
        """False with two equal messages."""
        return not any(s.sent.count({"of": w, "up": True}) > 1 for w in self.workers)


def test_symmetry_moves_the_counts() -> None:
    """The reduced search counts one state of each orbit, of all reachable states under the six renamings."""
    system = Crowd.system()
    full, reduced = explore(system), explore(system, SearchOptions(symmetry=True))
    assert [f.verdict for f in full.findings] == [f.verdict for f in reduced.findings]
    interpreter = Interpreter(system)
    seen = dict.fromkeys(interpreter.initial_states())
    for state in (todo := list(seen)):
        for instance in system.instances:
            after = interpreter.take(instance, state)
            if after is not None and after not in seen:
                seen[after] = None
                todo.append(after)
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    orbits = {
        min((tuple(idle[k] for k in o), tuple(sent[2 * k + up] for k in o for up in (0, 1)), other) for o in orders)
        for idle, sent, other in seen
    }
    assert full.counts is not None
    assert reduced.counts is not None
    assert (full.counts.distinct, reduced.counts.distinct) == (len(seen), len(orbits))


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (lambda: Bag(Range(0, 1)), "a Bag needs a capacity of 0 or more, got None"),
        (
            lambda: Bag(Range(0, 1), capacity=1, init=[0, 1]),
            r"2 elements do not fit into Bag\(Range\(0, 1\), capacity=1\)",
        ),
        (lambda: Bag(Range(0, 9999), capacity=1), "has a count for each of more than 4,096 values"),
    ],
    ids=["capacity", "init", "values"],
)
def test_what_cannot_be_a_bag(declared: Any, message: str) -> None:
    """A missing capacity, too many elements, too many values."""
    with pytest.raises(StreamproofError, match=message):
        declared()


def test_a_bag_is_not_indexed() -> None:
    """The message says what to write instead."""

    class Indexed(Network, variant="indexed"):
        """Reads a count like an element."""

        @action
        def read(self, s):
            """Mistaken."""
            s.seen[1] = 0

    with pytest.raises(ModelError, match="a Bag is not indexed"):
        Indexed.system()


@pytest.mark.parametrize(
    ("seeds", "systems"), share([(range(500, 506), 3), (range(500, 512), 6), (range(500, 800), 160)], 3)
)
def test_pdr_on_random_systems(panel: Any, expect: Any, seeds: range, systems: int) -> None:
    """IC3/PDR decides properties of systems with bags as the interpreter does."""
    compared = 0
    for seed in seeds:
        system = random_system(Random(seed), bags=True)
        names = [p.name for p in system.properties if p.kind in panel_engines.PROVABLE]
        if not names or not any("Bag(" in str(v.sort) for v in system.variables):
            continue
        if panel.interpreter_result(system).ordered.levels:
            allowed = expect(system)
            for finding in prove(system, names, engine=Engine.PDR, depth=20).findings:
                assert finding.verdict in {Verdict.INCONCLUSIVE, *allowed[finding.property].verdicts}, seed
            compared += 1
    assert compared >= systems


def test_the_number_of_bags_is_no_accident() -> None:
    """Most random systems with bags have a bag that some step changes."""
    changing = 0
    for seed in range(30):
        system = random_system(Random(seed), bags=True)
        bags = [v.name for v in system.variables if isinstance(v.sort, BagSort)]
        changing += any(name in bags for i in islice(system.instances, 20) for name, _ in i.updates)
    assert changing >= 10
