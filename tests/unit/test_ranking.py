"""Ranking functions: what they prove for all integers, what they must not prove, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any, ClassVar

import pytest

from random_systems import temporal_system
from shares import share
from streamproof import (
    ANY,
    WEAK,
    Array,
    Bool,
    Enum,
    Model,
    Nat,
    Range,
    Spec,
    State,
    UsageError,
    action,
    always,
    eventually,
    invariant,
    leads_to,
    require,
    temporal,
)
from streamproof.any.ranking import prove_by_ranking
from streamproof.system import Fairness, Kind, Verdict
from streamproof.system import build as b
from streamproof.system.formula import Atom, LeadsTo
from streamproof.system.reference import reference


class Drain(Model):
    """A sender has any number of buffers; they go over the wire one by one, and new ones come only when all is quiet."""

    depth: int = 3
    limits: ClassVar[dict[str, tuple[int, None]]] = {"depth": (0, None)}

    def state(self) -> State:
        """As many as there are."""
        return State(left=Range(0, self.depth, init=self.depth), wire=Range(0, self.depth), idle=Bool())

    @action(fairness=WEAK)
    def send(self, s: Any) -> None:
        """One goes onto the wire."""
        require(s.left > 0)
        require(s.wire < self.depth)
        s.left -= 1
        s.wire += 1

    @action(fairness=WEAK)
    def receive(self, s: Any) -> None:
        """One arrives."""
        require(s.wire > 0)
        s.wire -= 1

    @action
    def pause(self, s: Any) -> None:
        """The consumer does something else."""
        s.idle = not s.idle

    @temporal
    def drained(self, s: Any) -> Any:
        """All buffers arrive."""
        return leads_to(s.left > 0, s.left == 0 and s.wire == 0)


class Refilled(Drain, variant="refilled"):
    """Buffers come back."""

    @action
    def pause(self, s: Any) -> None:
        """One more, from nowhere."""
        require(s.left < self.depth)
        s.left += 1


class Lazy(Drain, variant="lazy"):
    """Nobody has to receive."""

    @action
    def receive(self, s: Any) -> None:
        """As before, without fairness."""
        super().receive(s)


@pytest.mark.long
def test_any_number_of_buffers_is_drained() -> None:
    """For every depth: what is left counts twice, as it has two steps to go. The search finds it."""
    found = prove_by_ranking(Spec(Drain).endless(["depth"]), "drained")
    assert found.finding.verdict is Verdict.HOLDS
    assert found.rank == "wire + 2 * left" or found.rank == "2 * left + wire"
    assert found.helpful == ("send()", "receive()")
    assert found.finding.because.endswith("for every value of depth")


@pytest.mark.parametrize("rank", share(["2*left + wire", "3*s.left + s.wire + 1"], 2))
def test_a_rank_may_be_given(rank: str) -> None:
    """Any that works will do; nothing else is tried."""
    assert prove_by_ranking(Spec(Drain).endless(["depth"]), "drained", rank=rank).finding.verdict is Verdict.HOLDS


@pytest.mark.parametrize("rank", share(["wire - 5", "left + wire", "left", "depth - left"], 2))
def test_a_rank_that_shows_nothing_is_not_believed(rank: str) -> None:
    """One that stays the same, one that grows, one that becomes negative."""
    found = prove_by_ranking(Spec(Drain).endless(["depth"]), "drained", rank=rank)
    assert found.finding.verdict is Verdict.INCONCLUSIVE
    assert "the rank given does not show it" in found.finding.because


@pytest.mark.parametrize("variant", ["refilled", "lazy"])
def test_what_is_false_is_not_proved(variant: str) -> None:
    """A step that undoes progress, and an action that may starve: no rank is found, and a good one fails."""
    parametric = Spec(Drain).endless(["depth"], variant)
    assert prove_by_ranking(parametric, "drained", seconds=20).finding.verdict is Verdict.INCONCLUSIVE
    assert prove_by_ranking(parametric, "drained", rank="2*left + wire").finding.verdict is Verdict.INCONCLUSIVE


class Countdown(Model):
    """An integer without a bound goes down to zero, by one or by two, and starts anywhere again."""

    def state(self) -> State:
        """Any number at first."""
        return State(n=Nat(init=ANY), phase=Enum("down", "stopped"))

    @action(fairness=WEAK)
    def down(self, s: Any) -> None:
        """One less."""
        require(s.phase == "down" and s.n > 0)
        s.n -= 1

    @action
    def faster(self, s: Any) -> None:
        """Two less."""
        require(s.phase == "down" and s.n > 1)
        s.n -= 2

    @action(fairness=WEAK)
    def stop(self, s: Any) -> None:
        """At zero."""
        require(s.n == 0 and s.phase == "down")
        s.phase = "stopped"

    @invariant
    def stopped_at_zero(self, s: Any) -> Any:
        """Only there."""
        return s.phase == "down" or s.n == 0

    @temporal
    def reaches_zero(self, s: Any) -> Any:
        """It gets there."""
        return leads_to(s.n > 0, s.n == 0) and leads_to(s.phase == "down", s.phase == "stopped")

    @temporal
    def stops(self, s: Any) -> Any:
        """And stays there."""
        return always(eventually(s.phase == "stopped"))

    @temporal
    def other(self, s: Any) -> Any:
        """Of another form."""
        return eventually(always(s.n == 0))


def test_integers_without_bounds() -> None:
    """No instance of this model can be searched: it is proved for all integers or not at all."""
    parametric = Spec(Countdown).endless([])
    for name in ("reaches_zero", "stops"):
        found = prove_by_ranking(parametric, name)
        assert (found.finding.property, found.finding.kind) == (name, Kind.TEMPORAL)
        assert found.finding.verdict is Verdict.HOLDS, found.finding.because
        assert found.invariants == ("stopped_at_zero",)
    other = prove_by_ranking(parametric, "other").finding
    assert (other.verdict, "only leads_to" in other.because) == (Verdict.INCONCLUSIVE, True)


@pytest.mark.parametrize(
    ("seeds", "seconds", "proved"),
    [((0, 3, 7, 10, 11, 25), 5.0, 5), pytest.param(range(20), 60.0, 7, marks=pytest.mark.long)],
    ids=["six", "twenty"],
)
def test_random_finite_systems(seeds: Iterable[int], seconds: float, proved: int) -> None:
    """Whatever is proved by a rank is true of every fair behaviour, by the word of the referee; and some of it is proved."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        random = Random(seed)
        system = temporal_system(random)
        conditions = [a for p in system.properties if p.formula is not None for a in _atoms(p.formula)]
        if len(conditions) < 2:
            continue
        formula = LeadsTo(random.choice(conditions), random.choice(conditions))
        actions = tuple(replace(a, fairness=Fairness.WEAK) for a in system.actions)
        prop = replace(system.properties[0], name="p", formula=formula, checks=())
        system = replace(system, properties=(prop,), actions=actions)
        expected = reference(system)
        if not expected.levels or expected.mistake is not None:
            continue
        found = prove_by_ranking(system, "p", seconds=seconds)
        seen[found.finding.verdict.value] += 1
        if found.finding.verdict is Verdict.HOLDS:
            assert expected.decisions["p"].verdict is Verdict.HOLDS
            seen["not at once"] += bool(found.helpful)
    assert proved <= seen["holds"] == seen["not at once"]
    assert seen["violated"] == 0


def _atoms(formula: Any) -> list[Atom]:
    from streamproof.system.formula import atoms

    return [a for a in atoms(formula) if a.expr is not b.TRUE and a.expr is not b.FALSE]


class Many(Model):
    """Any number of counters."""

    n: int = 2
    limits: ClassVar[dict[str, tuple[int, None]]] = {"n": (1, None)}

    def state(self) -> State:
        """One each."""
        return State(left=Array(range(self.n), Range(0, 3)))

    @action(i="n", fairness=WEAK)
    def down(self, s: Any, i: Any) -> None:
        """One less."""
        require(s.left[i] > 0)
        s.left[i] -= 1

    @temporal
    def ends(self, s: Any) -> Any:
        """The first one gets to zero."""
        return leads_to(s.left[0] > 0, s.left[0] == 0)


def test_what_cannot_be_ranked_is_refused() -> None:
    """Containers of free size, properties of states, and texts that are no numbers."""
    with pytest.raises(UsageError, match="ranking functions are for numbers"):
        prove_by_ranking(Spec(Many).endless(["n"]), "ends")
    assert prove_by_ranking(Many.system(), "ends").finding.verdict is Verdict.HOLDS
    drain = Spec(Drain).endless(["depth"])
    with pytest.raises(UsageError, match="'nobody' is not supported in a rank"):
        prove_by_ranking(drain, "drained", rank="left + nobody")
    with pytest.raises(UsageError, match="is not an expression"):
        prove_by_ranking(drain, "drained", rank="left +")
    with pytest.raises(UsageError, match="deadlock is not a temporal property"):
        prove_by_ranking(drain, "deadlock")


class Crew(Model):
    """Any of the workers counts down; who it is makes no difference, and there may be none."""

    n: int = 2
    limits: ClassVar[dict[str, tuple[int, None]]] = {"n": (0, None)}
    check_deadlock = False

    def workers(self) -> Any:
        """None where the offices are full, which no small number makes them."""
        return range(37 * 41 - self.n)

    def state(self) -> State:
        """Three to go."""
        return State(x=Range(0, 3, init=3))

    @action(i=workers, fairness=WEAK)
    def dec(self, s: Any, i: Any) -> None:
        """One less."""
        require(s.x > 0)
        s.x -= 1

    @temporal
    def done(self, s: Any) -> Any:
        """All of it is done."""
        return leads_to(s.x > 0, s.x == 0)


class Staffed(Crew, variant="staffed"):
    """There is always somebody."""

    def some(self) -> Any:
        """At least one."""
        return range(self.n + 1)

    @action(i=some, fairness=WEAK)
    def dec(self, s: Any, i: Any) -> None:
        """One less."""
        require(s.x > 0)
        s.x -= 1


class ReadsIndex(Crew, variant="reads"):
    """Who it is makes a difference."""

    @action(i="n", fairness=WEAK)
    def dec(self, s: Any, i: Any) -> None:
        """One less."""
        require(s.x > i)
        s.x -= 1


def test_an_index_that_is_not_read_may_have_no_values() -> None:
    """Where nobody is there nothing happens; the smallest values of the parameter do not show it."""
    assert prove_by_ranking(Spec(Crew).endless(["n"]), "done", rank="x").finding.verdict is Verdict.INCONCLUSIVE
    assert prove_by_ranking(Spec(Crew).endless(["n"]), "done", seconds=2).finding.verdict is Verdict.INCONCLUSIVE
    staffed = prove_by_ranking(Spec(Staffed).endless(["n"], "staffed"), "done", rank="x")
    assert (staffed.finding.verdict, staffed.helpful) == (Verdict.HOLDS, ("dec()",))
    with pytest.raises(UsageError, match=r"test_ranking.py:\d+: dec has a parameter from a range of free size"):
        prove_by_ranking(Spec(ReadsIndex).endless(["n"], "reads"), "done", rank="x")


class Quantified(Model):
    """Says of numbers what can be said of a range."""

    n: int = 2
    limits: ClassVar[dict[str, tuple[int, None]]] = {"n": (0, None)}
    check_deadlock = False

    def state(self) -> State:
        """A number to count down."""
        return State(x=Range(0, self.n, init=self.n))

    @action(fairness=WEAK)
    def dec(self, s: Any) -> None:
        """One less."""
        require(s.x > 0)
        s.x -= 1

    @temporal
    def plain(self, s: Any) -> Any:
        """It gets to zero."""
        return leads_to(s.x > 0, s.x == 0)

    @temporal
    def none_left(self, s: Any) -> Any:
        """The same, as a condition on every index."""
        return leads_to(s.x > 0, all(s.x != i for i in range(1, self.n + 1)))

    @temporal
    def some_left(self, s: Any) -> Any:
        """Some index is the number."""
        return always(eventually(any(s.x == i for i in range(self.n))))

    @temporal
    def counted(self, s: Any) -> Any:
        """A sum over every index."""
        return leads_to(sum(s.x > i for i in range(self.n)) > 0, s.x == 0)

    @invariant
    def among(self, s: Any) -> Any:
        """The number is one of them; no help for a rank, and no hindrance."""
        return any(s.x == i for i in range(self.n + 1))


class QuantifiedGuard(Quantified, variant="guard"):
    """A rule requires something of every index."""

    @action(fairness=WEAK)
    def dec(self, s: Any) -> None:
        """One less."""
        require(any(s.x == i + 1 for i in range(self.n)))
        s.x -= 1


@pytest.mark.parametrize(
    ("variant", "name"), [(None, "none_left"), (None, "some_left"), (None, "counted"), ("guard", "plain")]
)
def test_ranges_of_free_size_are_refused_at_their_line(variant: str | None, name: str) -> None:
    """In a property, or in a rule; an invariant is left out."""
    system = Spec(Quantified).endless(["n"], variant)
    with pytest.raises(UsageError, match=r"test_ranking.py:\d+: .* range of free size"):
        prove_by_ranking(system, name, rank="x")
    assert prove_by_ranking(Spec(Quantified).endless(["n"]), "plain", rank="x").finding.verdict is Verdict.HOLDS
