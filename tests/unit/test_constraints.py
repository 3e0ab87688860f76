"""State constraints: counts, verdicts, and where they are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamproof import (
    ANY,
    WEAK,
    Array,
    Bool,
    Int,
    Model,
    ModelError,
    Nat,
    Native,
    Parts,
    Queue,
    Range,
    Record,
    SearchOptions,
    Set,
    State,
    action,
    check,
    constraint,
    eventually,
    explore,
    first,
    invariant,
    prove,
    reachable,
    refines,
    require,
    temporal,
)
from streamproof.exchange.promela.model import promela
from streamproof.exchange.tla.module import export
from streamproof.language.declare.spec import compile_unbounded
from streamproof.language.lower.totality import may_be_true
from streamproof.system import Interpreter, RangeSort, Verdict
from streamproof.system import build as b
from streamproof.transform.unbounded import WIDEST, Unbounded


class Counters(Model):
    """Counters without an end."""

    most: int = 3
    spare: int = 0

    def state(self):
        """Three of them."""
        return State(a=Range(0, 1000), b=Range(0, 1000), c=Range(0, 1000))

    @action(fairness=WEAK)
    def first(self, s):
        """One more."""
        s.a += 1

    @action
    def second(self, s):
        """One more."""
        s.b += 1

    @action
    def third(self, s):
        """One more, or back."""
        s.c = 0 if s.c == self.most else s.c + 1

    @constraint
    def short(self, s):
        """Not too many."""
        return s.a <= self.most

    @constraint
    def narrow(self, s):
        """Not too many either."""
        return s.b <= self.most

    @invariant
    def low(self, s):
        """False of states outside only."""
        return s.a <= self.most + self.spare

    @temporal
    def begins(self, s):
        """Every fair behaviour leaves the constraint, so this is vacuous."""
        return eventually(s.b > 0)


def test_states_outside_are_checked_and_not_counted() -> None:
    """An invariant that only states outside break is violated; with `spare` it holds. Deadlock is not among them."""
    found = explore(Counters.system())
    assert found.finding("low").verdict is Verdict.VIOLATED
    assert found.finding("low").trace.states[-1] == (4, 0, 0)
    assert found.finding("deadlock").verdict is Verdict.HOLDS
    found = explore(Counters.system(spare=1))
    assert found.finding("low").verdict is Verdict.HOLDS
    begins = found.finding("begins")
    assert (begins.verdict, begins.vacuous) == (Verdict.HOLDS, True)
    assert begins.because.startswith("vacuous: every fair behaviour leaves the constraint; of behaviours that leave")
    assert begins.within == "short and narrow"
    inside = found.counts.inside
    assert (inside.distinct, sum(found.counts.outside), found.counts.distinct) == (4**3, 32, 4**3 + 32)
    assert sum(inside.levels) == inside.distinct


@pytest.mark.parametrize("more", [{}, {"workers": 2}, {"spill": True}])
def test_every_tier_counts_the_states_outside(more: dict[str, Any], tmp_path: Path) -> None:
    """Level by level, with many states, with threads and on disk."""
    system = Counters.system(most=39)
    options = {**more, "spill": tmp_path / "states"} if "spill" in more else more
    names = ("low",)
    python = explore(system, SearchOptions(tier="python", properties=names))
    compiled = explore(system, SearchOptions(tier="compiled", properties=names, **options))
    assert compiled.counts == python.counts
    assert compiled.counts.outside == python.counts.outside
    assert (python.counts.inside.distinct, sum(python.counts.outside)) == (64_000, 2 * 40 * 40)


def test_native_steps_end_at_the_constraint() -> None:
    """A state outside has no step, for Python as for the interpreter."""
    system, native = Counters.system(), Native(Counters())
    for state in ((3, 3, 0), (4, 0, 0), (0, 4, 1)):
        for instance in system.instances:
            assert native.step(state, instance.action) == Interpreter(system).take(instance, state)
    assert native.step((4, 0, 0), "second") is None


def test_the_export_has_a_constraint() -> None:
    """In the module and in each configuration."""
    exported = export(Counters.system())
    assert "Inside ==" in exported.modules[exported.module]
    assert all("CONSTRAINT Inside" in run.configuration() for run in exported.runs)


class Starts(Model):
    """Seven initial states, some of them outside."""

    low: int = 0
    most: int = 2

    def state(self):
        """A number from anywhere, and a switch that is off."""
        return State(n=Range(0, 6, init=ANY), on=Bool())

    @action(fairness=WEAK)
    def count(self, s):
        """One more."""
        require(s.n < 6)
        s.n += 1

    @action
    def flip(self, s):
        """On and off."""
        s.on = not s.on

    @constraint
    def near(self, s):
        """None of them, for a `low` of 7."""
        return self.low <= s.n <= self.most if self.low < 7 else s.on

    @invariant
    def small(self, s):
        """False of an initial state outside."""
        return s.n < 6

    @reachable
    def high(self, s):
        """Beyond the constraint, unless `most` is higher."""
        return s.n == 5 and s.on


@pytest.mark.parametrize(
    ("given", "counts", "high"),
    [
        ({}, (6, 19, 2), "violated within the constraint"),
        ({"low": 3, "most": 5}, (6, 19, 2), "holds"),
        ({"low": 7}, (0, 7, 1), "violated within the constraint"),
        ({"most": 6}, (14, 33, 2), "holds"),
    ],
)
def test_initial_states_outside(given: dict[str, int], counts: tuple[int, int, int], high: str) -> None:
    """They are generated and checked, but not distinct, and have no steps; `tests/agreement` compares with TLC."""
    system = Starts.system(**given)
    for tier in ("python", "compiled"):
        found = explore(system, SearchOptions(tier=tier))
        inside = found.counts.inside
        assert (inside.distinct, inside.generated, inside.depth) == counts
        small = found.finding("small")
        assert (small.verdict, len(small.trace)) == (Verdict.VIOLATED, 1)
        assert found.finding("high").text() == high
        assert (found.finding("deadlock").within is None) is (given == {"most": 6})


class Nowhere(Counters):
    """A constraint that no state satisfies."""

    @constraint
    def narrow(self, s):
        """Never."""
        return s.b < 0


class Unsafe(Counters):
    """A condition that has no value in some states."""

    def state(self):
        """And a queue."""
        return State(a=Range(0, 9), b=Range(0, 9), c=Range(0, 9), q=Queue(Range(0, 1), capacity=1))

    @constraint
    def narrow(self, s):
        """Without looking whether there is a head."""
        return s.q.head == 0


class Whole(Model):
    """A composition with a part that has a constraint."""

    def parts(self):
        """One."""
        return Parts(inner=Counters())


class Refining(Counters):
    """Refines a model with a constraint."""

    @refines(Counters)
    def like(self, s):
        """Itself."""
        return {"a": s.a, "b": s.b, "c": s.c}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Unsafe, "head of the empty queue s.q, perhaps, in @constraint narrow\n  test first that the value is there"),
        (Whole, "@constraint short is in a part of a composition\n  a constraint limits the whole"),
        (Nowhere, "the constraint short and narrow is true in no state\n  it would cut every behaviour"),
        (Refining, "counters, which like refines, has a constraint\n  refine a model without one"),
    ],
)
def test_refused_constraints(model: type[Model], message: str) -> None:
    """One message each, with its remedy."""
    with pytest.raises(ModelError, match=message):
        model.system()


class Fair(Model):
    """An abstract counter that must count."""

    def state(self):
        """The count."""
        return State(n=Range(0, 9))

    @action(fairness=WEAK)
    def count(self, s):
        """One more."""
        require(s.n < 9)
        s.n += 1


class Leaving(Fair):
    """Every fair behaviour counts beyond the constraint."""

    @constraint
    def few(self, s):
        """Up to 3."""
        return s.n <= 3

    @refines(Fair)
    def implements(self, s):
        """Itself."""
        return {"n": s.n}


def test_formulas_with_conditions_on_steps_may_be_vacuous() -> None:
    """The fairness of a refinement is a formula of that kind."""
    found = explore(Leaving.system())
    fair = found.finding("implements_fairness")
    assert (fair.text(), fair.within) == ("holds within the constraint, vacuously", "few")
    assert found.finding("implements").text() == "holds within the constraint"


def test_no_output_hides_the_constraint(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Search, proofs, comparison of engines, certificates and sweeps name it beside their verdicts."""
    from streamproof.cli.verbs import run

    model, kept = f"{__file__}:Starts", tmp_path / "c"

    def shown(*words: str) -> tuple[str, dict[str, Any]]:
        report = tmp_path / words[0]
        run([*words, "--json", str(report)])
        return capsys.readouterr().out, json.loads(report.read_text())

    text, data = shown("check", model, "--property", "deadlock", "--certificate", str(kept), "-q")
    assert "holds within the constraint: deadlock" in text
    assert data["properties"][0]["within"] == "near"
    text, data = shown("verify-certificate", str(kept), "--model", model)
    assert "the claims are within the constraint near" in text
    assert data["constraint"] == "near"
    text, data = shown("prove", model, "--property", "deadlock", "-q")
    assert "holds within the constraint: deadlock" in text
    text, data = shown("sweep", model, "-p", "most=2,6", "--property", "deadlock", "--out", str(tmp_path / "s"), "-q")
    assert "Constraint near ends behaviours at 1 point; the verdicts there are within it." in text
    assert [p["verdicts"]["deadlock"]["within"] for p in data["points"]] == ["near", None]
    assert "Constraint near ends" in (tmp_path / "s" / "table.html").read_text()


class Outer(Model):
    """A composition with a constraint of its own."""

    def parts(self):
        """Two machines."""
        return Parts(one=Step(), two=Step())

    @constraint
    def close(self, s):
        """The two stay together."""
        return s.one.n <= 2 and s.two.n <= 2


class Step(Model):
    """Counts."""

    def state(self):
        """The count."""
        return State(n=Range(0, 99), box=Record(x=Range(0, 1)))

    @action
    def count(self, s):
        """One more."""
        require(s.n < 99)
        s.n += 1


def test_a_composition_has_a_constraint() -> None:
    """Of its own; native execution agrees."""
    system, native = Outer.system(), Native(Outer())
    found = explore(system)
    assert (found.counts.inside.distinct, sum(found.counts.outside)) == (9, 6)
    for state in found.states():
        for instance in system.instances:
            assert native.step(state, instance.action) == Interpreter(system).take(instance, state)


class Bursts(Model):
    """A buffer and its steps: it may be emptied when it is nearly full."""

    most: int = 4

    def state(self):
        """The level, and a variable of the name that the constraint would have used."""
        return State(full=Range(0, self.most), cut=Bool())

    @action(fairness=WEAK)
    def fill(self, s):
        """One more."""
        require(s.full < self.most)
        s.full += 1

    @action
    def drain(self, s):
        """None left, and the switch is turned."""
        s.full, s.cut = 0, not s.cut

    @constraint
    def late(self, s, t):
        """A step down begins near the top; one of several constraints."""
        return t.full > s.full or s.full >= self.most - 1

    @constraint
    def calm(self, s):
        """A constraint on states beside it."""
        return s.full < 4 or not s.cut

    @temporal
    def fills(self, s):
        """In the behaviours without a broken step."""
        return eventually(s.full >= self.most - 1)


class Pair(Model):
    """Two of them, with a constraint on the steps of both."""

    def parts(self):
        """Without constraints of their own."""
        return Parts(one=Step(), two=Step())

    @constraint
    def close(self, s):
        """Few states."""
        return s.one.n <= 2 and s.two.n <= 2

    @constraint
    def in_turn(self, s, t):
        """The second is never ahead."""
        return t.two.n <= t.one.n


@pytest.mark.parametrize("model", [Bursts, Pair])
def test_native_steps_record_broken_constraints(model: type[Model]) -> None:
    """The same steps and the same record as the interpreter, in a single machine and in a composition."""
    system, native = model.system(), Native(model())
    found = explore(system)
    assert list(native.initial()) == list(Interpreter(system).initial_states())
    assert any(state[-1] for state in found.states())
    for state in found.states():
        for instance in system.instances:
            after = Interpreter(system).take(instance, state)
            assert native.take(state, instance, system) == native.step(state, instance.action) == after


def test_a_constraint_on_steps() -> None:
    """A broken step is checked and not counted; its variable has a free name; verdicts name both constraints."""
    found = explore(Bursts.system())
    assert [v.name for v in Bursts.system().variables] == ["full", "cut", "cut_"]
    assert found.finding("deadlock").text() == found.finding("fills").text() == "holds within the constraint"
    assert found.finding("fills").within == "calm and late"
    inside = found.counts.inside
    assert (inside.distinct, inside.generated, sum(found.counts.outside)) == (9, 18, 3)
    assert explore(Pair.system()).counts.inside.distinct == 6


class Total(Bursts):
    """A condition with a value for every step, although its parts have none for some."""

    @constraint
    def late(self, s, t):
        """`first` of numbers of which one always fits."""
        after = first(v for v in range(5) if v >= t.full)
        return after > s.full or first(v for v in range(5) if v >= s.full) >= self.most - 1

    @constraint
    def calm(self, s):
        """There is always another name."""
        return s.full < first(v for v in (4, 5) if v > s.full) or not s.cut


def test_conditions_are_tried_for_all_values() -> None:
    """A check that no values make true is no reason to refuse a condition; with too many values it is one."""
    found = explore(Total.system()).counts.inside
    assert (found.distinct, found.generated) == (10, 1 + 8 + 10)  # the first state, fill below 4, drain everywhere
    x = b.var("x", RangeSort(0, 3))
    assert not may_be_true(b.less(b.num(3), x))
    assert may_be_true(b.less(b.num(2), x))
    assert not may_be_true(b.and_((b.less(x, b.num(2)), b.less(b.num(1), x))))
    assert may_be_true(b.and_((b.less(x, b.num(2)), b.less(b.num(1), b.next_("x", x.sort)))))
    wide = b.var("wide", RangeSort(0, 5_000))
    assert may_be_true(b.and_((b.less(wide, b.num(2)), b.less(b.num(1), wide))))


class NoTurn(Bursts):
    """A condition that has no value for some steps."""

    def state(self):
        """And a queue."""
        return State(full=Range(0, 4), cut=Bool(), q=Queue(Range(0, 1), capacity=1))

    @constraint
    def late(self, s, t):
        """Without looking whether there is a head."""
        return t.q.head == 0


def test_conditions_on_steps_have_a_value() -> None:
    """Refused with its remedy; for every size, too."""
    with pytest.raises(ModelError, match=r"perhaps, in @constraint late\n  test first .* on steps must be defined"):
        NoTurn.system()
    with pytest.raises(
        ModelError, match="late is a constraint on steps, which a proof for every size does not support"
    ):
        compile_unbounded(Bursts(), frozenset({"most"}), ())


class Unending(Model):
    """Two numbers without an end, of which the constraint bounds one."""

    begin: int = 0
    check_deadlock = False

    def state(self):
        """Both, and a third that goes down."""
        return State(n=Nat(), m=Nat(init=self.begin), z=Array(2, Int()))

    @action(fairness=WEAK)
    def up(self, s):
        """One more."""
        s.n += 1
        s.z[0] -= 1

    @constraint
    def few(self, s):
        """Fewer than three."""
        return s.n < 3

    @invariant
    def below(self, s):
        """Never above."""
        return s.z[0] <= s.n


class Rising(Unending):
    """The other rises too."""

    @action
    def rise(self, s):
        """One more."""
        s.m += 1


class Collecting(Unending):
    """A set of numbers."""

    def state(self):
        """It, and a number."""
        return State(n=Nat(), z=Set(Nat()))


def test_numbers_without_bounds_are_searched_within_a_constraint() -> None:
    """The state is that of a wide range, which nothing leaves unseen; a proof has no range."""
    found = check(Unending)
    assert (found.counts.distinct, found.finding("below").verdict) == (4, Verdict.HOLDS)
    assert [v.sort for v in Unending.system().variables][:2] == [RangeSort(0, WIDEST)] * 2
    assert prove(Unending).parametric is not None
    assert promela(Unending.system()), "one more than the largest number fits 32 bits"
    rising = check(Rising, options=SearchOptions(max_states=50)).finding("below")
    assert rising.verdict is Verdict.INCONCLUSIVE
    assert rising.because.endswith("; the constraint few does not read m (Nat), z (Array(Range(0, 1), Int))")
    left = check(Rising, parameters={"begin": WIDEST - 1})
    assert left.mistake is not None
    assert f"s.m leaves Range(0, {WIDEST})" in left.mistake.error.message
    for model, given in ((Collecting, {}), (Unending, {"begin": WIDEST + 1})):
        with pytest.raises(Unbounded):
            model.system(**given)


class Counting(Model):
    """A number without an end."""

    def state(self):
        """It."""
        return State(n=Nat())


class Gathering(Model):
    """A set of numbers without an end."""

    def state(self):
        """It."""
        return State(z=Set(Nat()))


class Machines(Model):
    """A machine with a number."""

    def parts(self):
        """It."""
        return Parts(a=Counting())


@pytest.mark.parametrize(("model", "helps"), [(Counting, True), (Gathering, False), (Machines, False)])
def test_a_constraint_is_advised_where_it_helps(model: type[Model], helps: bool) -> None:
    """A search takes no sets of unbounded integers, and none of a composition."""
    with pytest.raises(Unbounded) as refused:
        model.system()
    assert ("@constraint" in refused.value.remedy) is helps
