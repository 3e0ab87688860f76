"""Actions in temporal formulas mean the same as a history that the model keeps itself.

The independent opinion is a second model: every step that changes the state turns a bit for each action that could have
made it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from quick_tlc import QUICK
from streamproof import (
    STRONG,
    WEAK,
    Array,
    Bool,
    Enum,
    Fairness,
    Model,
    ModelError,
    Parts,
    Range,
    SearchOptions,
    State,
    action,
    always,
    choose,
    constraint,
    eventually,
    explore,
    happened,
    invariant,
    leads_to,
    require,
    temporal,
)
from streamproof.exchange.promela import spin
from streamproof.exchange.tla import tlc
from streamproof.system import System, Verdict
from streamproof.traces.explain import explain

VALUES = 5


def walker(seed: int, *, history: bool) -> type[Model]:
    """A walk on five values by three actions; some steps are those of several actions, some change nothing."""
    random = Random(seed)
    fairness = [random.choice([*Fairness]) for _ in range(2)]
    rules = {k: [random.randrange(-2, VALUES) for _ in range(VALUES)] for k in ("a0", "a1", "b")}
    limit = random.choice((VALUES, VALUES, VALUES - 1))

    class Walker(Model):
        name = "walker"
        check_deadlock = False

        def setup(self):
            self.to = {k: [max(v, 0) for v in row] for k, row in rules.items()}
            self.can = {k: [v >= 0 for v in row] for k, row in rules.items()}

        def state(self):
            return State(v=Range(0, VALUES - 1), bit=Array(["a0", "a1", "b"], Bool()))

        def go(self, s, k):
            require(self.can[k][s.v])
            before, after = s.v, self.to[k][s.v]
            if history:
                for j in self.to:
                    if before != after and self.can[j][before] and self.to[j][before] == after:
                        s.bit[j] = not s.bit[j]
            s.v = after

        @action(p=range(2), fairness=fairness[0])
        def a(self, s, p):
            self.go(s, f"a{p}")

        @action(fairness=fairness[1])
        def b(self, s):
            self.go(s, "b")

        @constraint
        def inside(self, s):
            return s.v < limit

        def again(self, s, *names):
            """One of the bits turns infinitely often."""
            return any(always(eventually(s.bit[j])) and always(eventually(not s.bit[j])) for j in names)

        @temporal
        def first(self, s):
            return self.again(s, "a0") if history else always(eventually(happened(self.a, 0)))

        @temporal
        def every(self, s):
            if history:
                return self.again(s, "a0", "a1")
            return always(eventually(happened(self.a)))

        @temporal
        def either(self, s):
            if history:
                return self.again(s, "a1", "b")
            return always(eventually(happened(self.a, 1) or happened(self.b)))

        @temporal
        def stops(self, s):
            if history:
                return not self.again(s, "b") or always(s.v > 0)
            return eventually(always(not happened(self.b))) or always(s.v > 0)

        @temporal
        def implied(self, s):
            """Nested in another formula."""
            if history:
                return not self.again(s, "b") or self.again(s, "a0") or eventually(s.v == 3)
            return not always(eventually(happened(self.b))) or self.first(s) or eventually(s.v == 3)

    return Walker


@pytest.mark.parametrize(
    ("seeds", "least"), [(range(6), 1), pytest.param(range(6, 200), 80, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_a_history_decides_alike(seeds: range, least: int) -> None:
    """Verdicts are those of the model with the history, in both tiers."""
    seen: Counter[Verdict] = Counter()
    for seed in seeds:
        own, other = walker(seed, history=False).system(), walker(seed, history=True).system()
        found = [
            {f.property: f.verdict for f in explore(own, SearchOptions(tier=t)).findings}
            for t in ("python", "compiled")
        ]
        expected = {f.property: f.verdict for f in explore(other, SearchOptions(tier="python")).findings}
        assert found == [expected, expected], seed
        seen.update(expected.values())
    assert min(seen[Verdict.HOLDS], seen[Verdict.VIOLATED]) >= least, seen


def _verdicts(system: System, tier: str) -> dict[str, Verdict]:
    return {f.property: f.verdict for f in explore(system, SearchOptions(tier=tier)).findings}


class Link(Model):
    """A link that delivers or loses; two senders."""

    check_deadlock = False
    fair: bool = True

    def state(self):
        """What is on the way."""
        return State(wire=Enum("none", "left", "right"), lost=Bool())

    @action(side=["left", "right"], fairness=(WEAK.where("late"), STRONG))
    def send(self, s, side):
        """On a free wire."""
        require(s.wire == "none")
        s.wire = side

    def late(self, s, side):
        """A part of its steps."""
        return s.lost and side == "left"

    @action(fairness=STRONG.branch("arrives"))
    def carry(self, s):
        """Or lose."""
        require(s.wire != "none")
        s.lost = choose(arrives=False, fails=True)
        s.wire = "none"

    @temporal
    def left_sends(self, s):
        """By its fairness."""
        return always(eventually(happened(self.send, "left")))

    @temporal
    def quiet(self, s):
        """Not at all."""
        return eventually(always(not happened(self.carry)))


def test_a_model() -> None:
    """Names as arguments, and a rule with several constraints."""
    system = Link.system()
    found = {f.property: f for f in explore(system).findings}
    assert {n: f.verdict for n, f in found.items()} == {"left_sends": Verdict.HOLDS, "quiet": Verdict.VIOLATED}
    trace = found["quiet"].trace
    assert trace is not None
    reasons = explain(system, system.property("quiet"), trace).unmet
    assert [(where, reason.text) for where, reason in reasons] == [("happens infinitely often", "happened(self.carry)")]


@pytest.mark.long
def test_tlc_and_spin_decide_alike(jar: Path) -> None:
    """``[]<><<A>>_vars`` in TLA+, a bit in Promela."""
    for model in (Link, walker(3, history=False), walker(7, history=False)):
        system = model.system()
        ours = {f.property: f.verdict for f in explore(system).findings}
        assert {
            d.property: d.verdict for d in tlc.decide(system, None, QUICK) if d.verdict in ENDS
        }.items() <= ours.items()
        assert {d.property: d.verdict for d in spin.decide(system, None) if d.verdict in ENDS}.items() <= ours.items()


ENDS = (Verdict.HOLDS, Verdict.VIOLATED)


class Two(Model):
    """A composition: the property of a part is about the part's steps."""

    check_deadlock = False

    def parts(self):
        """A part that sends, and one that idles."""
        return Parts(link=Link(), other=Blinker())


class Blinker(Model):
    """Another machine."""

    def state(self):
        """A light."""
        return State(on=Bool())

    @action
    def blink(self, s):
        """On and off."""
        s.on = not s.on

    @temporal
    def blinks(self, s):
        """Nobody has to."""
        return always(eventually(happened(self.blink)))


def test_a_property_of_a_part() -> None:
    """It is carried over; the other part may move meanwhile."""
    found = {f.property: f.verdict for f in explore(Two.system()).findings}
    assert found["link.left_sends"] is Verdict.HOLDS
    assert found["link.quiet"] is Verdict.VIOLATED
    assert found["other.blinks"] is Verdict.VIOLATED


class Misplaced(Blinker):
    """In a place for a condition on states."""

    @temporal
    def blinks(self, s):
        """Not a recurrence."""
        return leads_to(s.on, happened(self.blink))


class Mixed(Blinker):
    """With a condition on states."""

    @temporal
    def blinks(self, s):
        """Before the step, or after it?"""
        return always(eventually(happened(self.blink) and s.on))


class Known(Blinker):
    """No rule."""

    def darken(self, s):
        """A helper."""
        return not s.on

    @temporal
    def blinks(self, s):
        """A helper is no rule."""
        return always(eventually(happened(self.darken)))


class Counted(Blinker):
    """Too many arguments."""

    @temporal
    def blinks(self, s):
        """It has none."""
        return always(eventually(happened(self.blink, 1)))


class Unknown(Blinker):
    """An argument that depends on the state."""

    @temporal
    def blinks(self, s):
        """On which state?"""
        return always(eventually(happened(self.blink, s.on)))


class OfStates(Blinker):
    """In an invariant."""

    @invariant
    def never(self, s):
        """A state has no step."""
        return not happened(self.blink)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            Misplaced,
            r"happened\(self.blink\) is a condition on a step, and stands where a condition on a state is needed\n",
        ),
        (
            Mixed,
            r"happened\(self.blink\) is a condition on a step, and stands where a condition on a state is needed\n",
        ),
        (Known, r"darken is no rule of Known\n  name one with @action: happened\(self.send\)"),
        (Counted, r"blink takes 0 arguments behind the state, got 1\n  give each of them, in order, or none"),
        (Unknown, r"an argument of happened\(blink, ...\) depends on the state or on a free parameter\n  name each"),
        (OfStates, r"happened\(...\) outside a temporal property\n  use it in a @temporal method"),
    ],
)
def test_refused(model: type[Model], message: str) -> None:
    """One message each, with its line."""
    with pytest.raises(ModelError, match=message) as refused:
        model.system()
    assert refused.value.loc is not None
    assert refused.value.loc.file == __file__
