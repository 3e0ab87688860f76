"""Each run compares the reading of its model with plain Python: wrong readings are noticed, and right ones never blamed."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loading import load
from nonempty import nonempty
from respelled import respelled
from shares import share
from streamproof import (
    STRONG,
    WEAK,
    Array,
    Bag,
    Bool,
    Case,
    Enum,
    Model,
    Option,
    Parts,
    Queue,
    Range,
    Set,
    State,
    Union,
    action,
    always,
    choose,
    constraint,
    enabled,
    eventually,
    initially,
    invariant,
    leads_to,
    reachable,
    require,
    step,
    temporal,
    terminal,
)
from streamproof.agree.plain_python import ReadingDiffers, compare_with_python
from streamproof.base.records import replace
from streamproof.cli.verbs import run
from streamproof.language.declare.spec import Spec
from streamproof.language.lower import matching
from streamproof.model_registry import bundled, find
from streamproof.system import Exit, ModelError
from streamproof.system import build as b
from streamproof.system.formula import Atom, Formula, mapped
from streamproof.system.model import Check, Conjunct, Instance, Kind, Property, System


class Ask(Case):
    """A case."""

    n: int


class Stop(Case):
    """Another one."""


class Mixed(Model):
    """Something of everything that is compared."""

    def state(self) -> State:
        """Containers of each kind."""
        return State(
            x=Range(0, 3),
            u=Union(Ask(n=Range(0, 2)), Stop()),
            q=Queue(Range(0, 2), capacity=2),
            f=Set(Range(0, 2)),
            net=Bag(Range(0, 2), capacity=2),
            o=Option(Range(0, 2)),
            a=Array(2, Bool()),
            kind=Enum("A", "B"),
        )

    def loud(self, s: Any, i: Any, k: Any) -> bool:
        """The condition of fairness of `push`."""
        return i == 0 and k is not None and k > 0

    @action(i=range(2), fairness=WEAK.where("loud"))
    def push(self, s: Any, i: int) -> None:
        """A choice that is not always reached."""
        require(len(s.q) < 2)
        if s.a[i]:
            k = choose([0, 1, 2])
            s.q.push(k)
        s.a[i] = not s.a[i]

    @action(fairness=STRONG.branch("sent", "kept"))
    def pop(self, s: Any) -> None:
        """Branches."""
        require(len(s.q) > 0)
        k = s.q.pop()
        s.x = choose(sent=k, kept=s.x, lost=0)
        s.f.add(k)

    @action
    def answer(self, s: Any) -> None:
        """Every case."""
        match s.u:
            case Ask(n=k):
                s.u = Stop()
                s.o = k
            case Stop():
                s.u = Ask(n=s.x % 3)

    @action
    def deliver(self, s: Any) -> None:
        """One element of a bag."""
        m = choose(s.net)
        s.net.remove(m)
        s.kind = "B" if m in s.f else "A"

    @action
    def duplicate(self, s: Any) -> None:
        """Without a test that there is room: a mistake of the model in some states."""
        s.net.add(s.x % 3)

    @initially
    def begins(self, s: Any) -> bool:
        """All states."""
        return s.x == 0

    @terminal
    def ended(self, s: Any) -> bool:
        """Some states."""
        return s.kind == "B" and len(s.q) == 0

    @invariant
    def bounded(self, s: Any) -> bool:
        """With a mistake where the option is None."""
        return s.x < 3 or s.o < 2

    @reachable
    def busy(self, s: Any) -> bool:
        """Quantified."""
        return any(k in s.f for k in s.q)

    @step
    def grows(self, s: Any, t: Any) -> bool:
        """Of steps."""
        return s.f <= t.f

    @temporal
    def goes_on(self, s: Any) -> Any:
        """Nested operators."""
        return always(eventually(s.x == 0)) and all(leads_to(s.a[i], not s.a[i]) for i in range(2))

    @invariant
    def able(self, s: Any) -> bool:
        """With `enabled`."""
        return enabled(self.pop, s) == (len(s.q) > 0)


class Limited(Mixed):
    """With constraints."""

    @constraint
    def few(self, s: Any) -> bool:
        """Not all states."""
        return s.x < 3 or len(s.f) < 2

    @constraint
    def slow(self, s: Any, t: Any) -> bool:
        """Not all steps."""
        return t.x <= s.x


class Pair(Model):
    """Two machines, one of which takes part in a joint step."""

    check_deadlock = False

    def parts(self) -> Parts:
        """Both."""
        return Parts(one=Mixed(), two=Switch()).together("both", "one.answer()", "two.turn()", doc="Both.")

    @invariant
    def dark(self, s: Any) -> bool:
        """About both."""
        return not s.two.up or s.one.x < 3


class Switch(Model):
    """A bit."""

    def state(self) -> State:
        """Up or down."""
        return State(up=Bool())

    @action
    def turn(self, s: Any) -> None:
        """The other way."""
        s.up = not s.up

    @invariant
    def either(self, s: Any) -> bool:
        """Inherited."""
        return s.up or not s.up


READ: dict[type[Model], tuple[Spec, Model, System]] = {}
"""Models as they are read, once for all comparisons."""


def compared(
    model: type[Model], change: Callable[[System], System] = lambda system: system, seed: int = 0, **more: Any
) -> Any:
    """The comparison of a model with its system after a change."""
    if model not in READ:
        spec = Spec(model)
        READ[model] = spec, *spec.read(None, {})
    spec, made, system = READ[model]
    return compare_with_python(spec, made, change(system), seed, **more)


@pytest.mark.parametrize("model", [Mixed, Limited, Pair], ids=lambda m: m.__name__)
def test_a_right_reading_is_not_blamed(model: type[Model]) -> None:
    """Whatever the random states: mistakes of the model are the same on both sides, and all rules are compared."""
    for seed in range(12):
        done = compared(model, seed=seed)
        assert done.rules == done.of_rules
        assert done.properties == {Mixed: 5, Limited: 5, Pair: 7}[model]
        assert done.states > 10


class Slow(Model):
    """A helper of known values that takes time in each execution of a rule."""

    def state(self) -> State:
        """A number."""
        return State(x=Range(0, 5))

    @action(i=range(3))
    def move(self, s: Any, i: int) -> None:
        """Some steps."""
        require(s.x < self.far(i))
        s.x += 1

    def far(self, i: int) -> int:
        """A computation of some milliseconds."""
        return i + sum(range(200_000)) % 2 + 1


def test_slow_functions_end_the_comparison() -> None:
    """After a time that users do not notice, however many executions there are."""
    done = compared(Slow, seconds=0.02)
    assert 1 <= done.states < 10
    assert 1 <= done.runs < 60
    assert compared(Slow, seconds=1000.0).runs > 60


# --- wrong readings


def first(name: str, change: Callable[[Instance], Instance | None]) -> Callable[[System], System]:
    """Changes the instances of one action; None: without them."""

    def changed(system: System) -> System:
        made = []
        for one in system.actions:
            new = [change(i) if one.name == name else i for i in one.instances]
            made.append(replace(one, instances=tuple(i for i in new if i is not None)))
        return replace(system, actions=tuple(made))

    return changed


def claim(name: str, change: Callable[[Property], Property]) -> Callable[[System], System]:
    """Changes a property."""
    return lambda system: replace(
        system, properties=tuple(change(p) if p.name == name else p for p in system.properties)
    )


def denied(formula: Formula) -> Formula:
    """The formula with other atoms."""
    if isinstance(formula, Atom):
        return replace(formula, expr=b.not_(formula.expr))
    return mapped(formula, denied)


def without_guard(one: Instance) -> Instance:
    """An instance that is always enabled."""
    return replace(one, guard=(), guard_checks=())


def unfair(one: Instance) -> Instance:
    """Fairness of the other steps."""
    return replace(one, fair=not one.fair)


FAULTS: dict[str, Callable[[System], System]] = {
    "a rule is lost": first("deliver", lambda one: None),
    "an instance is lost": first("pop", lambda one: None if "sent" in one.branches else one),
    "a case is lost": first("answer", lambda one: replace(one, updates=one.updates[:1])),
    "a guard is lost": first("push", without_guard),
    "an update is lost": first("pop", lambda one: replace(one, updates=one.updates[1:])),
    "a mistake is lost": first("duplicate", lambda one: replace(one, effect_checks=())),
    "a mistake is invented": first("answer", lambda one: replace(one, effect_checks=(Check(b.TRUE, "wrong", None),))),
    "fairness of the other steps": first("push", unfair),
    "fairness of another branch": first("pop", lambda one: replace(one, fair="lost" in one.branches)),
    "an invariant is negated": claim("bounded", lambda p: replace(p, expr=b.not_(p.expr))),
    "a mistake of a property is lost": claim("bounded", lambda p: replace(p, checks=())),
    "a state is reachable elsewhere": claim("busy", lambda p: replace(p, expr=b.not_(p.expr))),
    "a property of steps is negated": claim("grows", lambda p: replace(p, expr=b.not_(p.expr))),
    "a formula has other atoms": claim("goes_on", lambda p: replace(p, formula=denied(p.formula or Atom(b.TRUE)))),
    "enabled is always true": claim("able", lambda p: replace(p, expr=b.FALSE)),
    "terminal states are others": lambda system: replace(system, terminal=b.TRUE),
    "no state is initial": lambda system: replace(system, initially=b.FALSE),
}


@pytest.mark.parametrize("fault", share(FAULTS, 4))
def test_a_wrong_reading_is_noticed(fault: str) -> None:
    """With the state, and what both sides make of it."""
    with pytest.raises(ReadingDiffers, match=r"plain Python gives .+ in the state x="):
        compared(Mixed, FAULTS[fault])


def reads_so_far(_: int) -> int:
    """The number of its calls, out of sight of the language; two calls in a row often give the same."""
    calls = int(os.environ.get("STREAMPROOF_CALLS", "0"))
    os.environ["STREAMPROOF_CALLS"] = str(calls + 1)
    return calls // 3 % 8


class Drifting(Model):
    """A rule that the first reading takes for the same each time."""

    def state(self) -> State:
        """A number."""
        return State(x=Range(0, 9))

    @action
    def go(self, s: Any) -> None:
        """Sets it."""
        s.x = reads_so_far(1)


def test_a_model_that_changes_is_no_disagreement_of_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """If two readings of the model differ, it is malformed; the message has the place."""
    monkeypatch.setenv("STREAMPROOF_CALLS", "0")
    with pytest.raises(ModelError, match=r"not deterministic: two (readings|evaluations) gave different") as raised:
        compared(Drifting)
    assert raised.value.exit_code == 150
    assert raised.value.loc is not None
    assert raised.value.loc.file.endswith("test_plain_python_in_each_run.py")


def test_a_wrong_constraint_is_noticed() -> None:
    """On states, and on steps."""

    def states(system: System) -> System:
        assert system.constraint is not None
        own, steps = system.constraint.conjuncts
        other = Conjunct(b.not_(own.expr), own.text, own.loc)
        return replace(system, constraint=replace(system.constraint, conjuncts=(other, steps)))

    def no_steps(one: Instance) -> Instance:
        return replace(one, updates=tuple((n, t) for n, t in one.updates if n != "cut"))

    with pytest.raises(ReadingDiffers, match="the constraint is read as"):
        compared(Limited, states)
    with pytest.raises(ReadingDiffers, match="pop"):
        compared(Limited, first("pop", no_steps))


def test_a_wrong_reading_of_a_part_is_noticed() -> None:
    """Rules, joint steps and inherited properties of a composition."""
    for name in ("one.push", "both"):
        with pytest.raises(ReadingDiffers, match=re.escape(name)):
            compared(Pair, first(name, lambda one: replace(one, updates=one.updates[:-1])))
    with pytest.raises(ReadingDiffers, match=r"property two\.either"):
        compared(Pair, claim("two.either", lambda p: replace(p, expr=b.not_(p.expr))))


ALIAS = """
from streamproof import *

class Ack(Case):
    pass

class Nack(Case):
    pass

Acks, Ack = Ack, Nack

class Alias(Model):
    def state(self):
        return State(u=Union(Acks(), Nack(), init=Acks()), x=Range(0, 3))

    @action
    def go(self, s):
        match s.u:
            case Ack():
                s.x = 1
            case Nack():
                s.x = 2

    @invariant
    def never(self, s):
        return s.x == 0
"""


def covered(self: Any, node: ast.pattern) -> frozenset[str]:
    """The cases of a pattern by their names in the source."""
    named = isinstance(node, ast.MatchClass) and isinstance(node.cls, ast.Name)
    return frozenset([node.cls.id]) if named else frozenset()  # type: ignore[attr-defined]


@pytest.mark.parametrize("verb", share(["check", "prove", "simulate", "check --engine bmc", "check --agree"], 2))
def test_every_verb_compares(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A reading of cases by name ends each verb with its exit code; the right reading does not."""
    monkeypatch.chdir(tmp_path)
    load(ALIAS, tmp_path, "alias_of_a_case")
    words = [*verb.split(), "alias_of_a_case.py", "-q"]
    assert run(words) in (Exit.HOLDS, Exit.INCONCLUSIVE)
    capfd.readouterr()
    monkeypatch.setattr(matching._Matching, "covered", covered)
    assert run(words) == Exit.DISAGREE
    shown = capfd.readouterr().err
    assert "go() is read as a step to u=Ack(), x=2" in shown
    assert "and plain Python gives a step to u=Ack(), x=0, in the state u=Ack(), x=0" in shown


# --- right readings


def models() -> Iterator[tuple[str, str | None]]:
    """Every bundled model and variant."""
    for name in bundled():
        for variant in (None, *find(name).spec.model.variants):
            yield name, variant


@pytest.mark.parametrize(("name", "variant"), share(models(), 72))
def test_bundled_models_are_not_blamed(name: str, variant: str | None, request: pytest.FixtureRequest) -> None:
    """Each variant, in other states than each run has: those of one seed in the quick tests, of three in the long ones."""
    spec = find(name).spec
    made, system = spec.read(variant, {})
    for seed in nonempty(range(1, 4 if request.node.get_closest_marker("long") else 2)):
        done = compare_with_python(spec, made, system, seed)
        stated = [p for p in system.properties if p.kind not in (Kind.DEADLOCK, Kind.TERMINATION)]
        assert done.properties >= len(stated) - 3
        assert done.rules == done.of_rules


@pytest.mark.push
@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 3000), marks=pytest.mark.long)], ids=["few", "many"]
)
def test_random_models_are_not_blamed(seeds: range, tmp_path: Path) -> None:
    """Models in unusual spelling."""
    done = 0
    for seed in seeds:
        source, name, _ = respelled(seed)
        try:
            spec = Spec(getattr(load(source, tmp_path, f"respelled_{seed}"), name))
            made, system = spec.read(None, {})
        except ModelError:
            continue
        compare_with_python(spec, made, system, seed)
        done += 1
    assert done > len(seeds) * 2 // 3
