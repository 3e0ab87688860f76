"""Actions in temporal formulas mean the same as a history that the model keeps itself.

The independent opinion is a second model: every step that changes the state turns a bit for each action that could have
made it.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from pathlib import Path
from random import Random

import pytest

from quick_tlc import QUICK
from streamproof import (
    STRONG,
    WEAK,
    Array,
    Bool,
    Case,
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
    require,
    temporal,
    until,
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


class Sent(Case):
    """A message."""

    to: int


class Node(IntEnum):
    """Names of numbers."""

    A = 0
    B = 1


class Post(Model):
    """Arguments that are cases, tuples and sets of members; instances that no state enables."""

    check_deadlock = False
    n: int = 2

    def setup(self):
        """The domains."""
        self.messages = [Sent(to=0), Sent(to=1)]
        self.edges = [(Node.A, Node.B), (Node.B, Node.A)]
        self.groups = [frozenset({Node.A}), frozenset({Node.A, Node.B})]

    def state(self):
        """Where the last message went."""
        return State(at=Range(0, 2))

    @action(m="messages", fairness=WEAK)
    def post(self, s, m):
        """To a place."""
        s.at = m.to

    @action(e="edges")
    def walk(self, s, e):
        """Along an edge."""
        s.at = e[0]

    @action(g="groups")
    def call(self, s, g):
        """A group."""
        require(len(g) == 2)
        s.at = 2

    @action(i=lambda m: range(m.n))
    def go(self, s, i):
        """To a number."""
        s.at = i

    @temporal
    def posts(self, s):
        """By its fairness."""
        return all(always(eventually(happened(self.post, m))) for m in self.messages)

    @temporal
    def no_post(self, s):
        """It cannot stop."""
        return eventually(always(not happened(self.post, Sent(to=1))))

    @temporal
    def no_walk(self, s):
        """Enabled in every state."""
        return eventually(always(not happened(self.walk, (0, 1))))

    @temporal
    def no_call(self, s):
        """Enabled in every state."""
        return eventually(always(not happened(self.call, {0, 1})))

    @temporal
    def nobody_called(self, s):
        """An instance that is never enabled."""
        return eventually(always(not happened(self.call, frozenset({Node.A}))))

    @temporal
    def nested(self, s):
        """Both forms within another operator: as without it."""
        return eventually(always(eventually(happened(self.post)))) and always(
            not eventually(always(not happened(self.post))) and eventually(always(eventually(happened(self.post))))
        )

    @temporal
    def nowhere(self, s):
        """Of a rule without instances, at n=0."""
        return eventually(always(not happened(self.go, 0)))


def test_arguments_are_compared_by_value() -> None:
    """Every kind of argument names its instance."""
    found = {f.property: f.verdict.value for f in explore(Post.system(n=0)).findings}
    assert found == {
        "posts": "holds",
        "no_post": "violated",
        "no_walk": "violated",
        "no_call": "violated",
        "nobody_called": "holds",
        "nested": "holds",
        "nowhere": "holds",
    }


class Outside(Post):
    """No instance has the argument."""

    @temporal
    def nowhere(self, s):
        """It would hold of nothing."""
        return eventually(always(not happened(self.go, 2)))


class TruthValue(Post):
    """A truth value is no number."""

    @temporal
    def nowhere(self, s):
        """It would hold of nothing."""
        return eventually(always(not happened(self.go, True)))


class ByKeyword(Post):
    """Arguments are given in order."""

    @temporal
    def nowhere(self, s):
        """With its name."""
        return eventually(always(not happened(self.go, i=1)))


class Misplaced(Blinker):
    """In a place for a condition on states."""

    @temporal
    def blinks(self, s):
        """No single step is meant."""
        return until(s.on, happened(self.blink))


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
        (
            Outside,
            r"go\(2\) is no instance of the rule, so that no step is one of it\n  the instances are go\(0\), go\(1\)",
        ),
        (TruthValue, r"go\(True\) is no instance of the rule"),
        (ByKeyword, r"happened\(...\) takes a rule of the model and, if some steps are meant, the rule's arguments"),
        (OfStates, r"happened\(...\) outside a temporal property\n  use it in a @temporal method"),
    ],
)
def test_refused(model: type[Model], message: str) -> None:
    """One message each, with its line."""
    with pytest.raises(ModelError, match=message) as refused:
        model.system()
    assert refused.value.loc is not None
    assert refused.value.loc.file == __file__
