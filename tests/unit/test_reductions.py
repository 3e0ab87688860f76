"""Reductions piece by piece: forms and cases, renamings, what is refused and why, and the choice of stubborn sets."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import pytest

from nonempty import nonempty
from streamproof import (
    Array,
    Bool,
    Enum,
    Model,
    ModelError,
    Option,
    Queue,
    Range,
    Record,
    Set,
    Spec,
    State,
    Symmetric,
    action,
    any_of,
    invariant,
    reachable,
    require,
    step,
)
from streamproof.base.options import SearchOptions, Tuning
from streamproof.explicit.exploration import explore
from streamproof.explicit.reductions.conditions import Atoms, Every, holds, necessary
from streamproof.explicit.reductions.equivalence import EffortSpent, Equivalence, Forms, TermEffort
from streamproof.explicit.reductions.images import liveness, origins
from streamproof.explicit.reductions.independence import Independence
from streamproof.explicit.reductions.renaming import renamed, symmetric_sorts
from streamproof.explicit.reductions.symmetry import Symmetry
from streamproof.explicit.successors import rules_of
from streamproof.system import System, Verdict
from streamproof.system import build as b
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Variable
from streamproof.system.sorts import (
    BOOL,
    ArraySort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    values,
)
from streamproof.transform.assume import simplify
from streamproof.transform.scalarise import scalarise

X, Y = b.var("x", RangeSort(0, 5)), b.var("y", RangeSort(0, 5))
P, Q = b.var("p", BOOL), b.var("q", BOOL)
THREE = EnumSort(("a", "b", "c"), symmetric=True)


# --- terms that are equal


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b.and_((P, Q)), b.and_((Q, P))),
        (b.add(X, b.add(Y, b.num(1))), b.add(b.add(b.num(1), Y), X)),
        (b.sub(X, b.sub(X, Y)), Y),
        (b.less(X, Y), b.not_(b.less_eq(Y, X))),
        (b.less_eq(b.add(X, b.num(1)), Y), b.less_eq(X, b.sub(Y, b.num(1)))),
        (b.mul(X, Y), b.mul(Y, X)),
        (b.ite(b.eq(X, b.num(0)), P, b.ite(b.eq(X, b.num(1)), Q, P)), b.ite(b.eq(X, b.num(1)), Q, P)),
        (b.ite(b.eq(X, b.num(0)), b.ite(b.eq(X, b.num(1)), Q, P), Q), b.ite(b.eq(X, b.num(0)), P, Q)),
        (b.ite(b.eq(X, b.num(0)), b.ite(b.eq(X, b.num(1)), Q, P), P), P),
    ],
)
def test_forms_of_equal_terms(one: Any, other: Any) -> None:
    """Terms that differ in the order of operands, in arithmetic or in the order of cases have one form."""
    forms = Forms()
    assert forms(one) == forms(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b.num(1), b.TRUE),
        (b.sub(X, Y), b.sub(Y, X)),
        (b.and_((P, Q)), b.or_((P, Q))),
        (b.floor_div(X, Y), b.floor_div(Y, X)),
        (P, b.next_("p", BOOL)),
        (b.ite(P, X, Y), b.ite(Q, X, Y)),
        (b.ite(b.eq(X, b.num(0)), b.ite(b.eq(Y, b.num(0)), P, Q), Q), b.ite(b.eq(X, b.num(0)), P, Q)),
        (b.ite(b.eq(Y, b.num(0)), b.ite(b.eq(X, b.num(0)), P, Q), Q), b.ite(b.eq(Y, b.num(0)), P, Q)),
    ],
)
def test_forms_of_different_terms(one: Any, other: Any) -> None:
    """Terms with different values somewhere have different forms."""
    forms = Forms()
    assert forms(one) != forms(other)


def test_cases_decide_what_forms_do_not() -> None:
    """Counting up by remainder and counting up by case are the same; where they are not, an example is given."""
    around = b.mod(b.add(X, b.num(1)), b.num(6))
    right = b.ite(b.eq(X, b.num(5)), b.num(0), b.add(X, b.num(1)))
    wrong = b.ite(b.eq(X, b.num(4)), b.num(0), b.add(X, b.num(1)))
    assert Forms()(around) != Forms()(right)
    assert Equivalence().difference([(around, right)]) is None
    assert Equivalence().difference([(around, wrong)]) == {"x": 4}
    assert Equivalence().difference([(around, wrong)], b.less(X, b.num(4))) is None
    with pytest.raises(EffortSpent):
        Equivalence().difference([(around, right)], effort=TermEffort(3))


def test_leaves_without_meaning_have_their_default() -> None:
    """A leaf is compared only where it means something; elsewhere it has the first value of its sort."""
    alive = Equivalence({"x": P})
    assert alive.difference([(X, b.num(0))], b.not_(P)) is None
    assert alive.difference([(b.next_("x", X.sort), b.num(0))], b.not_(b.next_("p", BOOL))) is None
    assert alive.difference([(X, b.num(0))], P) is not None
    assert alive.difference([(Y, b.num(0))], b.not_(P)) is not None


# --- renamings

SORTS = [
    THREE,
    OptionSort(THREE),
    ArraySort(THREE, BOOL),
    ArraySort(THREE, OptionSort(THREE)),
    QueueSort(THREE, 2),
    SetSort(THREE),
    RecordSort((("who", THREE), ("up", BOOL))),
    OptionSort(ArraySort(RangeSort(0, 1), THREE)),
    ArraySort(BOOL, QueueSort(OptionSort(THREE), 1)),
    SetSort(RecordSort((("who", THREE), ("up", BOOL)))),
]


def variable(sort: Any, name: str = "v") -> Variable:
    """A variable of this sort that starts at its default."""
    return Variable(name, sort, (next(values(sort)),))


@pytest.mark.parametrize("sort", SORTS, ids=str)
def test_images_are_renamed_values(sort: Any) -> None:
    """The leaves of a renamed state, from their origins, are the leaves of the renamed value, for every value."""
    system = System("one", (variable(sort),), ())
    scalarised = scalarise(system)
    referee = Interpreter(scalarised.system)
    for order in nonempty(permutations(THREE.members)):
        renaming = {THREE: dict(zip(THREE.members, order, strict=True))}
        sources, alive = origins(system, renaming), liveness(system)
        for value in nonempty(values(sort)):
            leaves = scalarised.encode((value,))
            image = [leaves[at] for at in sources]
            for place, at in enumerate(sources):
                if scalarised.system.variables[at].sort == THREE:
                    meant = referee.value(alive[at], leaves)
                    image[place] = renaming[THREE][image[place]] if meant else THREE.members[0]
            assert tuple(image) == scalarised.encode((renamed(sort, value, renaming),))


@pytest.mark.parametrize("sort", SORTS, ids=str)
def test_one_representative_for_each_orbit(sort: Any) -> None:
    """Two values have the same representative exactly when one can be renamed to the other."""
    system = System("one", (variable(sort),), ())
    scalarised = scalarise(system)
    symmetry = Symmetry(system, simplify(scalarised.system), (THREE,))
    representative = {value: symmetry.canonical(scalarised.encode((value,))) for value in values(sort)}
    for value in nonempty(values(sort)):
        orbit = {
            renamed(sort, value, {THREE: dict(zip(THREE.members, order, strict=True))})
            for order in permutations(THREE.members)
        }
        assert {other for other in values(sort) if representative[other] == representative[value]} == orbit
        assert scalarised.decode(representative[value])[0] in orbit


def test_sorting_and_trying_agree() -> None:
    """Two symmetric sorts, each with its own parts: representatives found by sorting tell the same orbits apart."""
    other = EnumSort(("x", "y"), symmetric=True)
    system = System("two", (variable(ArraySort(THREE, BOOL)), variable(ArraySort(other, RangeSort(0, 2)), "w")), ())
    scalarised = scalarise(system)
    symmetry = Symmetry(system, simplify(scalarised.system), symmetric_sorts(system))
    assert symmetry.order == 12
    assert symmetry.blocks == (((0,), (1,), (2,)), ((3,), (4,)))
    assert len(list(symmetry.renamings())) == 12
    states = list(product(values(ArraySort(THREE, BOOL)), values(ArraySort(other, RangeSort(0, 2)))))
    assert len({symmetry.canonical(scalarised.encode(state)) for state in states}) == 4 * 6


def test_leaves_that_mean_nothing() -> None:
    """The value of an absent option and the slots behind the end of a queue mean nothing."""
    system = System("one", (variable(OptionSort(THREE)), variable(QueueSort(BOOL, 2), "w")), ())
    length = b.var("w.len", RangeSort(0, 2))
    present = b.var("v?", BOOL)
    assert liveness(system) == (b.TRUE, present, b.TRUE, b.less(b.num(0), length), b.less(b.num(1), length))


# --- what is symmetric, and what is not


class _Turns(Model):
    """Workers ask, wait in line and work, one at a time."""

    workers: int = 3

    def setup(self) -> None:
        self.worker = Symmetric(self.workers, "w")

    def state(self) -> State:
        return State(
            holder=Option(self.worker),
            line=Queue(self.worker, capacity=2),
            asked=Set(self.worker),
            turns=Array(self.worker, Range(0, 2)),
        )

    @action(w="worker")
    def ask(self, s: Any, w: str) -> None:
        require(w not in s.asked and len(s.line) < 2)
        s.asked.add(w)
        s.line.push(w)

    @action
    def grant(self, s: Any) -> None:
        require(s.holder is None and len(s.line) > 0)
        s.holder = s.line.pop()

    @action(w="worker")
    def release(self, s: Any, w: str) -> None:
        require(s.holder == w and s.turns[w] < 2)
        s.turns[w] += 1
        s.holder = None
        s.asked.discard(w)

    @invariant
    def holder_asked(self, s: Any) -> Any:
        return s.holder is None or any(s.holder == w and w in s.asked for w in self.worker)

    @step
    def turns_only_grow(self, s: Any, t: Any) -> Any:
        return all(t.turns[w] >= s.turns[w] for w in self.worker)

    @invariant
    def nobody_is_done(self, s: Any) -> Any:
        return all(s.turns[w] < 2 for w in self.worker)


def test_counterexamples_are_behaviours_of_the_model() -> None:
    """A counterexample found up to symmetry is as short as one found without, and takes real steps with real names."""
    full, reduced = explore(_Turns.system()), explore(_Turns.system(), SearchOptions(symmetry=True))
    assert [r.applied for r in reduced.reductions] == [True]
    assert reduced.reductions[0].because == (
        "any two of {w1, w2, w3} can be exchanged, so one state of each orbit is searched and counted"
    )
    assert full.counts.distinct > 4 * reduced.counts.distinct
    finding = reduced.finding("nobody_is_done")
    assert finding.verdict is Verdict.VIOLATED
    assert finding.trace is not None
    assert len(finding.trace) == len(full.finding("nobody_is_done").trace or ()) == 7
    referee = Interpreter(_Turns.system())
    for before, taken, after in zip(finding.trace.states, finding.trace.steps, finding.trace.states[1:], strict=False):
        assert referee.take(taken, before) == after
    assert (
        reduced.finding("holder_asked").because
        == f"true in all {reduced.counts.distinct:,} reachable states up to symmetry"
    )


class _Favour(_Turns):
    """The first worker may always ask."""

    @action(w="worker")
    def ask(self, s: Any, w: str) -> None:
        require((w not in s.asked or w == "w1") and len(s.line) < 2)
        s.asked.add(w)
        s.line.push(w)


class _Unequal(_Turns):
    """A property that names one of them."""

    @invariant
    def first_is_not_done(self, s: Any) -> Any:
        return s.turns["w1"] < 2


class _Begun(_Turns):
    """One of them has a head start."""

    def state(self) -> State:
        first = State(turns=Array(self.worker, Range(0, 2), init={"w1": 1, "w2": 0, "w3": 0}))
        return State(**{**dict(_Turns.state(self).items()), **dict(first.items())})


class _Broken(Model):
    """A step property that one step breaks, and whose evaluation fails at another step out of the same state."""

    check_deadlock = False

    def setup(self) -> None:
        self.worker = Symmetric(3, "w")

    def state(self) -> State:
        return State(held=Array(self.worker, Bool()), number=Range(0, 2))

    @action(w="worker")
    def take(self, s: Any, w: str) -> None:
        s.held[w] = True

    @action(w="worker")
    def fail(self, s: Any, w: str) -> None:
        require(s.held[w])
        s.number = 1

    @action(w="worker")
    def jump(self, s: Any, w: str) -> None:
        require(s.held[w])
        s.number = 2

    @step
    def slow(self, s: Any, t: Any) -> Any:
        return s.number > 0 or (t.number != 2 and 1 // (1 - t.number) == 1)


def test_the_step_shown_is_the_one_that_decides() -> None:
    """Of several steps out of a state, the one that breaks the property, whatever else fails there."""
    found = [explore(_Broken.system(), SearchOptions(symmetry=given)).finding("slow") for given in (False, True)]
    assert [(f.verdict, f.because) for f in found] == [(Verdict.VIOLATED, "broken by step 2, jump(w=w1)")] * 2


class _Links(Model):
    """Links between three workers, by pairs of their names, within a record."""

    check_deadlock = False

    def setup(self) -> None:
        self.worker = Symmetric(3, "w")

    def state(self) -> State:
        pairs = [(v, w) for v in self.worker for w in self.worker if v != w]
        return State(net=Record(link=Array(pairs, Bool())), never=Array(self.worker, Bool()))

    @action(v="worker", w="worker")
    def connect(self, s: Any, v: str, w: str) -> None:
        require(v != w)
        s.net.link[v, w] = True


def test_names_in_keys_inside_of_records() -> None:
    """Of the 64 directed graphs on three nodes 16 differ in more than the names of the nodes."""
    found = [explore(_Links.system(), SearchOptions(symmetry=given)).counts.distinct for given in (False, True)]
    assert found == [64, 16]


class _OneRule(_Turns):
    """A rule for one of them alone."""

    @action(w=["w2"])
    def skip(self, s: Any, w: str) -> None:
        require(w in s.asked)
        s.turns[w] = 0


@pytest.mark.parametrize(
    ("model", "because"),
    [
        (
            _Favour,
            "exchanging w1 and w2 changes action ask(w=w1): it is not equivalent to ask(w=w2) (for instance where ",
        ),
        (_Unequal, "exchanging w1 and w2 changes property first_is_not_done (for instance where turns[w1] = "),
        (_Begun, "exchanging w1 and w2 changes the initial values of turns"),
        (_OneRule, "exchanging w1 and w2 would make skip(w=w2) into skip(w=w1), which is not a rule"),
    ],
)
def test_what_is_not_symmetric_is_named(model: type[_Turns], because: str) -> None:
    """A rule, a property or a first value that tells names apart keeps the search a full one, and is named."""
    full, reduced = explore(model.system()), explore(model.system(), SearchOptions(symmetry=True))
    (reduction,) = reduced.reductions
    assert not reduction.applied
    assert reduction.because.startswith(because)
    assert reduced.counts == full.counts
    assert [f.verdict for f in reduced.findings] == [f.verdict for f in full.findings]


def test_what_cannot_be_verified_is_not_believed() -> None:
    """A comparison that takes more effort than may be spent counts as failed, and says so."""
    options = SearchOptions(symmetry=True, tuning=Tuning(symmetry_effort=885))
    (reduction,) = explore(_Favour.system(), options).reductions
    assert not reduction.applied
    assert reduction.because == "it could not be verified that exchanging w1 and w2 preserves action ask(w=w1)"


def test_an_asymmetric_property_that_is_not_asked_for_does_no_harm() -> None:
    """Only the properties that are decided have to be symmetric."""
    names = [p.name for p in _Unequal.system().properties if p.name != "first_is_not_done"]
    assert [
        r.applied for r in explore(_Unequal.system(), SearchOptions(properties=names, symmetry=True)).reductions
    ] == [True]


def test_no_symmetric_sort() -> None:
    """For a model without symmetric sorts the message says how to declare one."""

    class Plain(Model):
        def state(self) -> State:
            return State(x=Bool())

        @action
        def flip(self, s: Any) -> None:
            s.x = not s.x

    (reduction,) = explore(Plain.system(), SearchOptions(symmetry=True)).reductions
    assert (reduction.name, reduction.applied) == ("symmetry", False)
    assert reduction.because == "no variable has a symmetric sort; declare interchangeable names with Symmetric(...)"


def test_too_many_renamings() -> None:
    """Pointers between eight names would need 40,320 renamings of each state."""
    (reduction,) = explore(_Turns.system(workers=8), SearchOptions(symmetry=True, max_states=50)).reductions
    assert reduction.because == "8 names have 40,320 renamings, more than 5,040"


# --- the trap: endless behaviours


class _Relay(Model):
    """A token goes from one to another, round by round; each round it comes to one that has not had it."""

    def setup(self) -> None:
        self.runner = Symmetric("a", "b", "c")

    def state(self) -> State:
        return State(at=any_runner(self.runner), left=Set(self.runner))

    @action(r="runner")
    def pass_on(self, s: Any, r: str) -> None:
        require(s.at != r and r not in s.left)
        s.left.add(s.at)
        s.at = r


def any_runner(runner: Any) -> Any:
    """Anyone may start."""
    return Symmetric(*runner.sort.members, init=any_of(*runner.sort.members))


def test_endless_behaviours_are_not_decided_up_to_symmetry() -> None:
    """With a property of endless behaviours asked for, symmetry says that it does not apply, and the search is full."""
    system = Spec(_Relay, termination=True).system()
    full, reduced = explore(system), explore(system, SearchOptions(symmetry=True))
    (reduction,) = reduced.reductions
    assert not reduction.applied
    assert reduction.because == (
        "termination is about endless behaviours; leave it out, with --property, to reduce for the others"
    )
    assert reduced.finding("termination").verdict is full.finding("termination").verdict is Verdict.HOLDS
    assert reduced.counts == full.counts
    safety = explore(system, SearchOptions(properties=["deadlock"], symmetry=True))
    assert safety.reductions[0].applied
    assert safety.counts.distinct < full.counts.distinct


# --- partial order


class _Channels(Model):
    """Two producers with a queue each, and one consumer of both."""

    def state(self) -> State:
        return State(a=Queue(Bool(), capacity=2), b=Queue(Bool(), capacity=2), sent=Array(2, Range(0, 2)))

    @action
    def send_a(self, s: Any) -> None:
        require(len(s.a) < 2 and s.sent[0] < 2)
        s.a.push(True)
        s.sent[0] += 1

    @action
    def take_a(self, s: Any) -> None:
        require(len(s.a) > 0)
        s.a.pop()

    @action
    def send_b(self, s: Any) -> None:
        require(len(s.b) < 2 and s.sent[1] < 2)
        s.b.push(False)
        s.sent[1] += 1

    @action
    def take_b(self, s: Any) -> None:
        require(len(s.b) > 0)
        s.b.pop()

    @reachable
    def a_full(self, s: Any) -> Any:
        return len(s.a) == 2


def independence(system: System) -> Independence:
    """The independence of a system's instances."""
    scalarised = scalarise(system)
    simple = simplify(scalarised.system)
    alive = dict(zip([v.name for v in simple.variables], liveness(system), strict=True))
    return Independence(simple, tuple(rules_of(simple, [])), Equivalence(alive))


def test_both_ends_of_a_queue_are_independent() -> None:
    """Pushing and popping accord where both are possible, though both write the queue; nothing here is dependent."""
    assert independence(_Channels.system()).dependent() == (0, 0, 0, 0)


def test_what_disables_or_overwrites_is_dependent() -> None:
    """Instances that take each other's resource, or write different values, are dependent; equal values are not."""

    class Race(Model):
        def state(self) -> State:
            return State(free=Bool(init=True), mark=Range(0, 3), done=Bool())

        @action
        def take(self, s: Any) -> None:
            require(s.free)
            s.free = False

        @action
        def grab(self, s: Any) -> None:
            require(s.free)
            s.free = False
            s.done = True

        @action(k=[1, 2])
        def put(self, s: Any, k: int) -> None:
            s.mark = k

        @action
        def finish(self, s: Any) -> None:
            s.done = True

        @action
        def refuse(self, s: Any) -> None:
            require(not s.free)
            s.mark = 3

    # take, grab, put(1), put(2), finish, refuse
    assert independence(Race.system()).dependent() == (0b000010, 0b000001, 0b101000, 0b100100, 0, 0b001100)


def test_enablers_are_those_that_can() -> None:
    """Of the writers of a variable, those whose update cannot make the condition true are no enablers."""

    class Count(Model):
        def state(self) -> State:
            return State(n=Range(0, 9), mode=Enum("A", "B"))

        @action
        def up(self, s: Any) -> None:
            require(s.n < 9)
            s.n += 1

        @action
        def reset(self, s: Any) -> None:
            s.n = 0

        @action
        def swap(self, s: Any) -> None:
            s.mode = "B"

    n, mode = b.var("n", RangeSort(0, 9)), b.var("mode", EnumSort(("A", "B")))
    of = independence(Count.system()).enablers
    assert of(b.less_eq(n, b.num(3)), True) == 0b010
    assert of(b.less_eq(n, b.num(3)), False) == 0b001
    assert of(b.eq(n, b.num(0)), True) == 0b010
    assert of(b.eq(mode, b.const(mode.sort, "B")), True) == 0b100
    assert of(b.eq(mode, b.const(mode.sort, "B")), False) == 0


def test_necessary_sets() -> None:
    """One false part of a conjunction is enough, the cheapest; of a disjunction all parts are needed."""
    enablers = {P: 0b0011, Q: 0b0100, b.eq(X, b.num(1)): 0b1000}
    atoms = Atoms(lambda term, positive: enablers[term])
    both = atoms.condition(b.and_((P, Q)))
    either = atoms.condition(b.or_((P, b.and_((Q, b.eq(X, b.num(1)))))))
    cost = int.bit_count
    assert list(atoms.terms) == [P, Q, b.eq(X, b.num(1))]
    assert not holds(both, 0b001)
    assert necessary(both, 0b000, cost) == 0b0100
    assert necessary(both, 0b010, cost) == 0b0011
    assert necessary(either, 0b000, cost) == 0b0111
    assert necessary(either, 0b010, cost) == 0b1011
    assert holds(either, 0b110)
    assert atoms.condition(b.TRUE) == Every(())


def test_steps_that_do_not_matter_are_left_out() -> None:
    """Asked only how full one queue can be, the search leaves the other alone."""
    full = explore(_Channels.system(), SearchOptions(properties=["a_full"]))
    reduced = explore(_Channels.system(), SearchOptions(properties=["a_full"], por=True))
    assert (full.counts.distinct, reduced.counts.distinct) == (36, 3)
    assert len(reduced.finding("a_full").trace or ()) == len(full.finding("a_full").trace or ()) == 3
    assert reduced.reductions[0].because == "in 3 of 3 states some enabled steps were left out"
    assert full.coverage.complete
    assert (reduced.coverage.complete, reduced.coverage.never) == (False, ())
    assert reduced.left_out == "the partial order reduction leaves states out"


class _Steps(Model):
    """Two counters; properties of the steps of one of them, which hold, are broken, have no value, or both of these."""

    check_deadlock = False

    def state(self) -> State:
        return State(x=Range(0, 3), y=Range(0, 3))

    @action
    def one(self, s: Any) -> None:
        require(s.x < 2)
        s.x += 1

    @action
    def two(self, s: Any) -> None:
        require(s.x == 1)
        s.x = 3

    @action
    def other(self, s: Any) -> None:
        require(s.y < 3)
        s.y += 1

    @step
    def grows(self, s: Any, t: Any) -> Any:
        return t.x >= s.x

    @step
    def by_one(self, s: Any, t: Any) -> Any:
        return t.x <= s.x + 1

    @step
    def has_no_value_at_two(self, s: Any, t: Any) -> Any:
        return t.x == 3 or 2 // (2 - t.x) >= 1

    @step
    def starts_at_one(self, s: Any, t: Any) -> Any:
        return s.x == t.x or t.x == 1


@pytest.mark.parametrize("given", [{}, {"por": True}], ids=["full", "por"])
def test_step_properties_one_by_one(given: Any) -> None:
    """Each of several step properties has its own verdict, found after two steps; an error is no violation."""
    explored = explore(_Steps.system(), SearchOptions(tier="python", **given))
    assert {f.property: (f.verdict, 0 if f.trace is None else len(f.trace.steps)) for f in explored.findings} == {
        "grows": (Verdict.HOLDS, 0),
        "by_one": (Verdict.VIOLATED, 2),
        "has_no_value_at_two": (Verdict.ERROR, 2),
        "starts_at_one": (Verdict.VIOLATED, 2),
    }


def test_nothing_gained_is_said() -> None:
    """Where every step matters, the outcome says that the reduction gains nothing."""

    class One(Model):
        def state(self) -> State:
            return State(n=Range(0, 3))

        @action
        def up(self, s: Any) -> None:
            require(s.n < 3)
            s.n += 1

    found = explore(One.system(), SearchOptions(por=True))
    assert (found.left_out, found.coverage.complete) == (None, True)
    (reduction,) = found.reductions
    assert reduction.applied
    assert reduction.because == "no effect: in each of 4 states every enabled step was needed"


def test_termination_survives() -> None:
    """A cycle that independent steps could hide behind is still found."""

    class Busy(Model):
        def state(self) -> State:
            return State(n=Range(0, 3), on=Bool())

        @action
        def up(self, s: Any) -> None:
            require(s.n < 3)
            s.n += 1

        @action
        def flip(self, s: Any) -> None:
            s.on = not s.on

    found = explore(Spec(Busy, termination=True).system(), SearchOptions(por=True))
    assert found.finding("termination").verdict is Verdict.VIOLATED
    assert found.finding("deadlock").verdict is Verdict.HOLDS


# --- the language


def test_symmetric_sorts_have_names() -> None:
    """Members are named one by one, or by their number."""
    assert list(Symmetric("a", "b")) == ["a", "b"]
    assert list(Symmetric(2, "worker")) == ["worker1", "worker2"]
    assert list(Symmetric(2)) == ["m1", "m2"]
    assert str(Symmetric("a", "b").sort) == "Symmetric('a', 'b')"
    assert Symmetric("a", "b").sort != Enum("a", "b").sort
    assert Symmetric("a", "b", init="b").first == ("b",)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((2, 3), "Symmetric(2, 3) is not a list of names"),
        ((-1,), "Symmetric(-1) is not a list of names"),
        (("a", 1), "Symmetric members are strings, got 1"),
        (("a", "a"), "Symmetric names 'a' twice"),
    ],
)
def test_symmetric_sorts_that_are_none(given: tuple[Any, ...], message: str) -> None:
    """Anything else is refused with what to write."""
    with pytest.raises(ModelError) as caught:
        Symmetric(*given)
    assert caught.value.message == message
