"""State constraints: counts, verdicts, and where they are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamproof import (
    WEAK,
    Model,
    ModelError,
    Native,
    Parts,
    Queue,
    Range,
    Record,
    SearchOptions,
    State,
    action,
    constraint,
    eventually,
    explore,
    invariant,
    refines,
    require,
    temporal,
)
from streamproof.exchange.tla import export
from streamproof.system import Interpreter, Verdict


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
    assert begins.because == "vacuous: every fair behaviour leaves the constraint"
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
        (Refining, "counters, which like refines, has a constraint\n  refine a model without one"),
    ],
)
def test_refused_constraints(model: type[Model], message: str) -> None:
    """One message each, with its remedy."""
    with pytest.raises(ModelError, match=message):
        model.system()


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
