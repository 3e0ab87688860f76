"""What follows an action, and an action that follows, mean the same as a history that the model keeps itself.

The independent opinions: a second model, in which every step that changes the state turns a bit for each action that could
have made it, and notes these actions as the last ones; the reference procedure on the graph of all states, which knows
steps; Spin; and the reduction to safety.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from forced_spilling import Spilling
from streamproof import (
    Array,
    Bool,
    Fairness,
    Model,
    ModelError,
    Range,
    SearchOptions,
    State,
    action,
    always,
    constraint,
    eventually,
    explore,
    happened,
    leads_to,
    require,
    temporal,
    until,
)
from streamproof.exchange.promela import spin
from streamproof.exchange.tla.module import export
from streamproof.system import Interpreter, Property, System, Verdict
from streamproof.system.formula import Eventually, Happens, NotF
from streamproof.system.reference_temporal import can_be_violated
from streamproof.system.temporal import is_violated_by
from streamproof.traces.explain import explain
from streamproof.transform.liveness_to_safety import to_safety

QUICK = spin.SpinOptions(hash_bits=16, depth=2_000_000, optimise="-O0", seconds=100)
SMALL_AUTOMATA = ("after_a", "never", "infinitely", "inner")
"""The properties of `walker` of which Spin makes an automaton; of the others it does not within minutes."""
SMALL_SYSTEMS = ("after_a", "b_follows", "once", "never", "not_so")
"""The properties of `walker` that become invariants of systems with at most some 100,000 states."""
VALUES = 4
RULES = ("a0", "a1", "b")


def walker(seed: int, *, history: bool) -> type[Model]:
    """A walk on some values by three actions; some steps are those of several actions, some change nothing."""
    random = Random(seed)
    fairness = [random.choice([*Fairness]) for _ in range(2)]
    rules = {k: [random.randrange(-1, VALUES) for _ in range(VALUES)] for k in RULES}
    x, y, z = (random.randrange(VALUES) for _ in range(3))

    class Walker(Model):
        name = "walker"
        check_deadlock = False

        def setup(self):
            self.to = {k: [max(v, 0) for v in row] for k, row in rules.items()}
            self.can = {k: [v >= 0 for v in row] for k, row in rules.items()}

        def state(self):
            own = {"bit": Array(RULES, Bool()), "last": Array(RULES, Bool())} if history else {}
            return State(v=Range(0, VALUES - 1), **own)

        def go(self, s, k):
            require(self.can[k][s.v])
            before, after = s.v, self.to[k][s.v]
            if history and before != after:
                for j in self.to:
                    made = self.can[j][before] and self.to[j][before] == after
                    s.last[j] = made
                    if made:
                        s.bit[j] = not s.bit[j]
            s.v = after

        @action(p=range(2), fairness=fairness[0])
        def a(self, s, p):
            self.go(s, f"a{p}")

        @action(fairness=fairness[1])
        def b(self, s):
            self.go(s, "b")

        def turns(self, s, then, j):
            """From every state with `then` on, the bit of an action turns."""
            return all(always(not then(s) or s.bit[j] != old or eventually(s.bit[j] != old)) for old in (False, True))

        @temporal
        def after_a(self, s):
            return leads_to(s.last["a0"], s.v == x) if history else leads_to(happened(self.a, 0), s.v == x)

        @temporal
        def b_follows(self, s):
            return self.turns(s, lambda s: s.v == y, "b") if history else leads_to(s.v == y, happened(self.b))

        @temporal
        def a_then_b(self, s):
            if history:
                return self.turns(s, lambda s: s.last["a0"] or s.last["a1"], "b")
            return leads_to(happened(self.a), happened(self.b))

        @temporal
        def again_a(self, s):
            return (
                self.turns(s, lambda s: s.last["a0"], "a0")
                if history
                else leads_to(happened(self.a, 0), happened(self.a, 0))
            )

        @temporal
        def once(self, s):
            return eventually(s.bit["b"]) if history else eventually(happened(self.b))

        @temporal
        def never(self, s):
            return always(not s.bit["a1"]) if history else always(not happened(self.a, 1))

        @temporal
        def stays(self, s):
            """Something that stays so after a step, beside another formula."""
            if history:
                return leads_to(s.last["b"], always(s.v != z)) or always(eventually(s.v == x))
            return leads_to(happened(self.b), always(s.v != z)) or always(eventually(s.v == x))

        @temporal
        def infinitely(self, s):
            if history:
                return leads_to(s.last["a0"], always(eventually(s.bit["b"])) and always(eventually(not s.bit["b"])))
            return leads_to(happened(self.a, 0), always(eventually(happened(self.b))))

        @temporal
        def either(self, s):
            """A step of two rules, and a step or a condition on states."""
            if history:
                return all(
                    always(
                        not (s.last["a0"] or s.last["b"])
                        or s.bit["a1"] != old
                        or eventually(s.v == z or s.bit["a1"] != old)
                    )
                    for old in (False, True)
                )
            return leads_to(happened(self.a, 0) or happened(self.b), happened(self.a, 1) or s.v == z)

        @temporal
        def not_so(self, s):
            if history:
                return not leads_to(s.last["b"], s.v == x) or always(s.v != z)
            return not leads_to(happened(self.b), s.v == x) or always(s.v != z)

        @temporal
        def inner(self, s):
            """From a later state on, which the step before does not concern."""
            if history:
                return always(
                    s.v != z
                    or not any(
                        eventually(
                            s.bit["b"] == old and until(s.bit["b"] == old, s.bit["b"] != old and always(s.v != x))
                        )
                        for old in (False, True)
                    )
                )
            return always(s.v != z or leads_to(happened(self.b), s.v == x))

    return Walker


def _verdicts(system: System, tier: str = "python") -> dict[str, Verdict]:
    return {f.property: f.verdict for f in explore(system, SearchOptions(tier=tier)).findings}


def _at_once(prop: Property) -> Property:
    """What follows a step, demanded of the state after it, as a changed property demands it."""
    match prop.formula:
        case NotF(Happens(step, NotF(Eventually(then)))):
            return replace(prop, formula=NotF(Happens(step, NotF(then))))
    raise AssertionError(prop.formula)


def _reachable(system: System) -> tuple[tuple[int, ...], ...]:
    interpreter = Interpreter(system)
    found = dict.fromkeys(interpreter.initial_states())
    todo = [*found]
    for state in todo:  # which grows
        new = [step.state for step in interpreter.steps(state) if step.state not in found]
        found.update(dict.fromkeys(new))
        todo += dict.fromkeys(new)
    return tuple(found)


@pytest.mark.push
@pytest.mark.parametrize(
    ("seeds", "least"), [(range(4), 1), pytest.param(range(4, 200), 400, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_a_history_and_the_reference_decide_alike(seeds: range, least: int) -> None:
    """Verdicts of both tiers, of the model with the history, and of the reference; counterexamples are explained."""
    seen: Counter[Verdict] = Counter()
    for seed in seeds:
        own, other = walker(seed, history=False).system(), walker(seed, history=True).system()
        ours, expected = _verdicts(own), _verdicts(other)
        assert (ours, _verdicts(own, "compiled")) == (expected, expected), seed
        initial = tuple(Interpreter(own).initial_states())
        states = _reachable(own)
        for prop in own.properties:
            assert prop.formula is not None
            violated = can_be_violated(own, prop.formula, initial, states)
            assert violated is (ours[prop.name] is Verdict.VIOLATED), (seed, prop.name)
        at_once = _at_once(own.property("after_a"))
        assert at_once.formula is not None
        violated = can_be_violated(own, at_once.formula, initial, states)
        for tier in ("python", "compiled"):
            verdict = _verdicts(replace(own, properties=(at_once,)), tier)["after_a"]
            assert verdict is (Verdict.VIOLATED if violated else Verdict.HOLDS), (seed, tier)
        for finding in explore(own).findings:
            if finding.trace is not None:
                formula = own.property(finding.property).formula
                assert formula is not None
                assert is_violated_by(own, formula, finding.trace)
                assert explain(own, own.property(finding.property), finding.trace).unmet, (seed, finding.property)
        seen.update(ours.values())
    assert min(seen[Verdict.HOLDS], seen[Verdict.VIOLATED]) >= least, seen


@pytest.mark.long
def test_spin_and_the_reduction_to_safety_decide_alike() -> None:
    """Spin, by bits; and the invariant of a larger system, which the explicit engine decides."""
    asked: Counter[Verdict] = Counter()
    for seed in range(4):
        system = walker(seed, history=False).system()
        ours = _verdicts(system)
        for decided in spin.decide(system, [*SMALL_AUTOMATA], QUICK):
            assert decided.verdict is ours[decided.property], (seed, decided.property)
            asked[decided.verdict] += 1
        for name in SMALL_SYSTEMS:
            safe = to_safety(system, name)
            finding = explore(safe.system, SearchOptions((name,), max_states=300_000)).finding(name)
            assert finding.verdict is ours[name], (seed, name)
            if finding.trace is not None:
                safe.lasso(finding.trace)
    assert min(asked[Verdict.HOLDS], asked[Verdict.VIOLATED]) >= 2, asked


class Post(Model):
    """A message is sent, and arrives or not."""

    lossy: bool = False
    check_deadlock = False

    def state(self):
        """A message under way, one that arrived, and a request."""
        return State(way=Bool(), got=Bool(), asked=Bool())

    @action
    def ask(self, s):
        """Someone wants one."""
        s.asked = True

    @action(fairness=Fairness.WEAK)
    def send(self, s):
        """One message at a time."""
        require(s.asked and not s.way)
        s.way, s.got, s.asked = True, False, False

    @action(fairness=Fairness.WEAK)
    def deliver(self, s):
        """Or lose it."""
        require(s.way)
        s.way, s.got = False, not self.lossy

    @action
    def repair(self, s):
        """Never possible."""
        require(s.way and s.got)
        s.got = False

    @temporal
    def arrives(self, s):
        """After sending."""
        return leads_to(happened(self.send), s.got)

    @temporal
    def served(self, s):
        """By sending."""
        return leads_to(s.asked, happened(self.send))

    @temporal
    def repaired(self, s):
        """Vacuous."""
        return leads_to(happened(self.repair), s.way)


def test_a_model() -> None:
    """Verdicts, a vacuous one, the reason of a violation, and what TLA+ has no operator for."""
    found = {f.property: f for f in explore(Post.system()).findings}
    assert {n: (f.verdict, f.vacuous) for n, f in found.items()} == {
        "arrives": (Verdict.HOLDS, False),
        "served": (Verdict.HOLDS, False),
        "repaired": (Verdict.HOLDS, True),
    }
    system = Post.system(lossy=True)
    trace = explore(system).finding("arrives").trace
    assert trace is not None
    reasons = explain(system, system.property("arrives"), trace).unmet
    assert [(where, reason.text) for where, reason in reasons] == [
        ("happens in step 2", "happened(self.send)"),
        ("false in every state from state 2 on", "s.got"),
    ]
    assert export(system).left_out == ("arrives", "served", "repaired")


class Bounded(Post):
    """Within a constraint."""

    @constraint
    def few(self, s):
        """None arrives."""
        return not s.got


class Beside(Post):
    """With a condition on states: before the step, or after it?"""

    @temporal
    def arrives(self, s):
        """After sending."""
        return leads_to(happened(self.send) and s.way, s.got)


class Until(Post):
    """In an until."""

    @temporal
    def arrives(self, s):
        """After sending."""
        return until(not s.got, happened(self.send))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            Bounded,
            r"happened\(self.send\) in a formula other than always\(eventually\(...\)\) is not judged within a constraint",
        ),
        (Beside, r"happened\(self.send\) is a condition on a step, and stands where a condition on a state is needed"),
        (Until, r"happened\(self.send\) is a condition on a step, and stands where a condition on a state is needed"),
    ],
)
def test_refused(model: type[Model], message: str) -> None:
    """With the line, and what to write instead."""
    with pytest.raises(ModelError, match=message) as refused:
        model.system()
    assert refused.value.loc is not None


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 80), marks=pytest.mark.long)], ids=["few", "many"])
def test_the_graph_in_files_decides_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: range) -> None:
    """Verdicts and vacuity, with states that are on disk from the first level on."""
    systems = [walker(seed, history=False).system() for seed in seeds] + [Post.system(), Post.system(lossy=True)]
    expected = [{f.property: (f.verdict, f.vacuous) for f in explore(system).findings} for system in systems]
    forced = Spilling(monkeypatch)
    for system, there in zip(systems, expected, strict=True):
        forced.after(1, fill=100, piece=10, merge=100, stored_window=5)
        found = explore(system, SearchOptions(spill=tmp_path, tier="compiled"))
        assert {f.property: (f.verdict, f.vacuous) for f in found.findings} == there
    assert forced.times
