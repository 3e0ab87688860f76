"""Arrays over keys: every engine, native execution, the exports, symmetry and certificates treat tuples as indices alike."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest

from quick_tlc import QUICK
from shares import share
from streamproof import (
    Array,
    Bool,
    Enum,
    EvaluationError,
    Model,
    Native,
    Option,
    Range,
    SearchOptions,
    State,
    Symmetric,
    action,
    any_of,
    choose,
    explore,
    invariant,
    require,
)
from streamproof.exchange.itf.reading import read_itf
from streamproof.exchange.itf.writing import write_itf
from streamproof.exchange.tla import tlc
from streamproof.exchange.tla.tlc_values import read_value
from streamproof.exchange.tla.values import literal
from streamproof.system import Interpreter, ModelError, StreamproofError
from streamproof.system.sorts import RangeSort, index_keys, key_sort

KEYS = [("a", 1, True), ("a", -2, False), ("b", 1, True)]


class Edges(Model):
    """Messages along the edges of a graph, of which every number fits every edge."""

    def setup(self):
        """Two nodes send to two nodes each, one to one."""
        self.to = {0: [1, 2], 1: [2, 0], 2: [0]}
        self.edges = [(a, b) for a in self.to for b in self.to[a]]

    def state(self):
        """A counter for each edge."""
        return State(wire=Array(self.edges, Range(0, 2)), turn=Range(0, 2))

    @action(node="to", to=lambda m, node: m.to[node])
    def send(self, s, node, to):
        """Dependent parameters: the existing edges."""
        require(s.turn == node and s.wire[node, to] < 2)
        s.wire[node, to] += 1

    @action(e="edges")
    def receive(self, s, e):
        """One parameter that is a pair."""
        require(s.wire[e] > 0)
        s.wire[e] -= 1
        s.turn = e[1]

    @action
    def advance(self, s):
        """Indices that depend on the state."""
        require(any((s.turn, (s.turn + 1) % 3) == e for e in self.edges))
        require(s.wire[s.turn, (s.turn + 1) % 3] == 2)
        e = choose([e for e in self.edges if e[0] == s.turn])
        s.turn = e[1]

    @invariant
    def few(self, s):
        """False where every edge is full."""
        return sum(s.wire) < 10


class Keys(Model):
    """Keys of several types, negative numbers, and numbers with gaps."""

    def state(self):
        """Arrays over keys."""
        return State(
            wire=Array(KEYS, Range(0, 1)),
            odd=Array([7, 2, -5], Option(Range(0, 1)), init={7: 1, 2: None, -5: any_of(0, 1)}),
            mixed=Array([("x", 1), 5, "x", True, (1,)], Bool()),
            who=Enum("a", "b"),
            at=Option(Range(-5, 7)),
        )

    @action(w=["a", "b"])
    def mark(self, s, w):
        """Every kind of key."""
        s.who = w
        s.wire[s.who, 1, True] = 1
        s.mixed[True] = not s.mixed[5]
        s.mixed["x", 1] = s.mixed[(1,)] = w == "b"

    @action(v=[2, -5, 7])
    def move(self, s, v):
        """A number that is a key."""
        s.at = v
        s.wire["a", -2, False] = 0 if s.wire["a", -2, False] == 1 else 1

    @action
    def use(self, s):
        """A key in an option."""
        require(s.at is not None)
        s.odd[s.at] = 0
        s.at = None

    @invariant
    def never(self, s):
        """False after some steps."""
        return not (s.odd[7] == 0 and s.wire["a", -2, False] == 1 and s.mixed[True] and s.mixed["x", 1])


class Workers(Model):
    """Interchangeable workers with a link for each ordered pair."""

    def setup(self):
        """All pairs."""
        self.workers = ["w1", "w2", "w3"]
        self.links = list(permutations(self.workers, 2))

    def state(self):
        """Keys with names, and keys with a name and a number."""
        worker = Symmetric(*self.workers)
        return State(
            link=Array(self.links, Bool()),
            seat=Array(list(product(self.workers, range(2))), Bool()),
            last=Option(worker),
        )

    @action(e="links")
    def connect(self, s, e):
        """A link more."""
        require(not s.link[e])
        s.link[e] = True
        s.last = e[1]

    @action(w="workers", k=range(2))
    def sit(self, s, w, k):
        """A worker with a link takes a seat."""
        require(s.last == w and not s.seat[w, 1 - k])
        s.seat[w, k] = True

    @invariant
    def some_free(self, s):
        """A counterexample needs all links."""
        return not (all(s.link) and all(s.seat[w, 0] or s.seat[w, 1] for w in self.workers))


def native_agrees(model: type[Model], most: int = 300) -> None:
    """Native execution takes the same steps as the interpreter."""
    system, native = model.system(), Native(model())
    interpreter, seen = Interpreter(system), dict.fromkeys(Interpreter(system).initial_states())
    for state in (todo := list(seen)):
        for instance in system.instances:
            after = interpreter.take(instance, state)
            if native.picks(state, instance, system) is not None:
                assert native.take(state, instance, system) == after
            if after is not None and after not in seen and len(seen) < most:
                seen[after] = None
                todo.append(after)
    assert len(seen) > 100


@pytest.mark.parametrize(("model", "distinct"), share([(Edges, 3 * 3**5), (Keys, None), (Workers, None)], 3))
def test_engines_and_native_execution_agree(panel: Any, model: type[Model], distinct: int | None) -> None:
    """Both tiers and the solver agree with the interpreter; counts are exact: no element without a key."""
    system = model.system()
    referee = panel.interpreter_result(system)
    for found in (panel.explored(system, "python"), panel.explored(system, "compiled"), panel.bounded(system, 3)):
        referee.compare(found)
    assert distinct is None or referee.result.distinct == distinct
    native_agrees(model)


@pytest.mark.long
@pytest.mark.parametrize("model", [Edges, Keys])
def test_tlc_agrees(jar: Path, model: type[Model]) -> None:
    """TLC counts the same states over functions whose domain is a set of tuples, and shows a behaviour of ours."""
    system = model.system()
    ours, counted = explore(system), tlc.count(system, QUICK)
    assert (counted.distinct, counted.generated) == (ours.counts.distinct, ours.counts.generated)
    [never] = tlc.decide(system, [system.properties[0].name], QUICK)
    assert never.verdict is ours.finding(never.property).verdict


def test_symmetry_moves_the_keys() -> None:
    """One state of each orbit is counted: the orbits of all reachable states under the six renamings."""
    system, model = Workers.system(), Workers()
    interpreter = Interpreter(system)
    seen = dict.fromkeys(interpreter.initial_states())
    for state in (todo := list(seen)):
        for instance in system.instances:
            after = interpreter.take(instance, state)
            if after is not None and after not in seen:
                seen[after] = None
                todo.append(after)
    seats = list(product(model.workers, range(2)))

    def moved(state: Any, names: dict[str, str]) -> Any:
        link, seat, last = state
        back = {new: old for old, new in names.items()}
        return (
            tuple(link[model.links.index((back[a], back[b]))] for a, b in model.links),
            tuple(seat[seats.index((back[a], k))] for a, k in seats),
            last and names[last],
        )

    renamings = [dict(zip(model.workers, order, strict=True)) for order in permutations(model.workers)]
    orbits = {min(repr(moved(state, names)) for names in renamings) for state in seen}
    full, reduced = explore(system), explore(system, SearchOptions(symmetry=True))
    assert full.counts is not None
    assert reduced.counts is not None
    assert (full.counts.distinct, reduced.counts.distinct) == (len(seen), len(orbits))
    assert [f.verdict for f in full.findings] == [f.verdict for f in reduced.findings]


def test_values_make_round_trips(tmp_path: Path) -> None:
    """ITF and TLC's output give the values back, whatever the keys; a key that does not exist is refused."""
    system = Keys.system()
    finding = explore(system).finding("never")
    assert finding.trace is not None
    write_itf(tmp_path / "trace.itf.json", system, finding.trace)
    text = (tmp_path / "trace.itf.json").read_text()
    assert '{"#tup": ["a", {"#bigint": "-2"}, false]}' in text
    assert read_itf(tmp_path / "trace.itf.json", system).states == finding.trace.states
    (tmp_path / "other.itf.json").write_text(text.replace('"#bigint": "-2"', '"#bigint": "2"'))
    with pytest.raises(StreamproofError, match=r"is not one of \(a, 1, True\), \(a, -2, False\), \(b, 1, True\)"):
        read_itf(tmp_path / "other.itf.json", system)
    wire = system.variables[0].sort
    printed = '(<<"a", -2, FALSE>> :> 1 @@ <<"a", 1, TRUE>> :> 0 @@ <<"b", 1, TRUE>> :> 0)'
    assert read_value(wire, printed) == (0, 1, 0)
    assert "\n".join(literal(wire, (0, 1, 0)).lines).count("(-2)") == 1


def test_keys_with_equal_texts_are_different_places() -> None:
    """Two keys are one place only if they are equal and of equal types; texts that would be equal are written apart."""

    class Twins(Model):
        """Keys that look alike."""

        def state(self):
            """Names with commas, and 1 beside True."""
            return State(at=Array([("a, b",), ("a", "b"), (1,), (True,), ("1",)], Range(0, 4)))

        @action(k=[("a, b",), ("a", "b"), (1,), (True,), ("1",)])
        def mark(self, s, k):
            """Each key has an element of its own."""
            require(s.at[k] == 0)
            s.at[k] = 1

    counts = explore(Twins.system()).counts
    assert counts is not None
    assert counts.distinct == 2**5
    assert index_keys(Twins.system().variables[0].sort.index)[3] == (True,)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ([(0, 1), (0, 1)], r"the index has the key \(0, 1\) twice"),
        ([1, 5, 1], "the index has the key 1 twice"),
        ([(0, None)], r"None \(NoneType\) cannot be a key of an Array"),
        ([(0, 1.0)], r"1\.0 \(float\) cannot be a key of an Array"),
        ((2, 3), r"\(2, 3\) cannot index an Array"),
    ],
)
def test_what_cannot_be_a_key(index: Any, message: str) -> None:
    """Repeated keys, other types, and what looks like the shape of a grid are refused."""
    with pytest.raises(ModelError, match=message):
        Array(index, Bool())


def test_numbers_in_a_row_are_a_range() -> None:
    """A list of consecutive numbers is the same index as a range; other numbers are in ascending order."""
    assert Array([2, 0, 1], Bool()).sort == Array(range(3), Bool()).sort
    assert Array([7, -5, 2], Bool()).sort.index == key_sort((-5, 2, 7))
    assert Array(range(0, 6, 2), Bool()).sort.index == key_sort((0, 2, 4))
    assert Array([4], Bool()).sort.index == RangeSort(4, 4)


def test_a_key_that_does_not_exist_is_a_mistake() -> None:
    """The same error, with the same values, in the interpreter and natively."""

    class Wrong(Edges, variant="wrong"):
        """Reads the edge from 2 to 1, which does not exist."""

        @action
        def wrong(self, s):
            """Mistaken at turn 2."""
            s.wire[s.turn, 1] = 0

    system = Wrong.system()
    found = explore(system).mistake
    assert found is not None
    state = found.trace.states[-1]
    [rule] = [i for i in system.instances if i.action == "wrong"]
    with pytest.raises(EvaluationError) as lowered:
        Interpreter(system).take(rule, state)
    with pytest.raises(EvaluationError) as ran:
        Native(Wrong()).take(state, rule, system)
    assert "index outside [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0)] in wrong() (s.turn = " in lowered.value.message
    assert lowered.value.message == ran.value.message
