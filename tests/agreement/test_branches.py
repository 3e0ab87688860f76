"""Labelled branches: the same states, steps and verdicts as a choice among names that is tested afterwards."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from loading import load
from nonempty import nonempty
from quick_tlc import QUICK
from random_branches import branching
from streamproof import (
    STRONG,
    WEAK,
    Bool,
    Model,
    ModelError,
    Native,
    Parts,
    SearchOptions,
    State,
    action,
    choose,
    eventually,
    explore,
    require,
    temporal,
)
from streamproof.base.errors import UsageError
from streamproof.exchange.itf import reading as itf_reading
from streamproof.exchange.itf import writing as itf
from streamproof.exchange.tla import tlc
from streamproof.system import Interpreter, System, Verdict
from streamproof.traces.labels import matching
from streamproof.traces.replay import replay_labels, verify
from streamproof.transform.fair_scheduler import scheduled

FEW = pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 400), marks=pytest.mark.long)], ids=["few", "many"]
)


def made(source: str, folder: Path, name: str) -> type[Model]:
    """The class ``Random`` of a source text."""
    model: type[Model] = load(source, folder, name).Random
    return model


@pytest.mark.long
@FEW
def test_random_models(panel: Any, tmp_path: Path, seeds: range) -> None:
    """Every engine agrees on both; native execution takes the same steps; each branch is counted by its steps."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        labelled, plain = (made(t, tmp_path, f"{n}{seed}") for n, t in zip("lp", branching(seed), strict=True))
        system, twin = labelled.system(), plain.system()
        referee = panel.interpreter_result(system)
        for tier in ("python", "compiled"):
            referee.compare(panel.explored(system, tier))
        found, same = explore(system), explore(twin)
        assert found.counts == same.counts, seed
        assert [f.verdict for f in found.findings] == [f.verdict for f in same.findings], seed
        _takes_the_same_steps(labelled, system, list(found.states()))
        _counts_its_branches(system, found)
        for prop in system.properties:
            finding = found.finding(prop.name)
            seen[finding.verdict.value] += prop.formula is not None
            if finding.trace is not None:
                itf.write_itf(tmp_path / "trace.itf.json", system, finding.trace)
                again = itf_reading.read_itf(tmp_path / "trace.itf.json", system)
                assert (again.states, again.loop) == (finding.trace.states, finding.trace.loop)
                assert [i.label for i in again.steps] == [i.label for i in finding.trace.steps]
                verify(system, prop, finding.trace)
            if prop.formula is not None:
                form = scheduled(system, prop.formula, prop.name)
                assert explore(form.system).finding(prop.name).verdict is finding.verdict
        seen["split"] += any(i.labelled and None in dict(i.picks).values() for i in system.instances)
    assert min(seen["holds"], seen["violated"], seen["split"]) >= len(seeds) // 8, seen


def _takes_the_same_steps(model: type[Model], system: System, states: list[Any]) -> None:
    native, interpreter = Native(model()), Interpreter(system)
    for state in states[:40]:
        for instance in system.instances:
            assert native.take(state, instance, system) == interpreter.take(instance, state), (instance.label, state)


def _counts_its_branches(system: System, found: Any) -> None:
    interpreter, counted = Interpreter(system), Counter[tuple[str, str]]()
    for state in found.states():
        for step in interpreter.steps(state):
            counted.update((step.instance.action, b) for b in dict.fromkeys(step.instance.branches))
    assert {at: steps for at, (steps, _) in found.coverage.branches.items() if steps} == dict(counted)


@pytest.mark.parametrize("seeds", [range(1), range(1, 40)], ids=["few", "many"])
@pytest.mark.long
def test_tlc_decides_alike(jar: Path, tmp_path: Path, seeds: range) -> None:
    """Fairness of a branch is WF or SF of its steps, in TLA+."""
    for seed in nonempty(seeds):
        system = made(branching(seed)[0], tmp_path, f"t{seed}").system()
        answers = {d.property: d.verdict for d in tlc.decide(system, None, QUICK)}
        assert answers == {f.property: f.verdict for f in explore(system).findings}, seed


def test_reductions_leave_the_verdicts(tmp_path: Path) -> None:
    """With symmetry and stubborn sets, where they apply."""
    for seed in range(5):
        system = made(branching(seed)[0], tmp_path, f"r{seed}").system()
        whole = explore(system).finding("deadlock").verdict
        for options in (SearchOptions(("deadlock",), por=True), SearchOptions(("deadlock",), symmetry=True)):
            assert explore(system, options).finding("deadlock").verdict is whole is not Verdict.INCONCLUSIVE


class Link(Model):
    """Carries one message; a torn one is impossible while the link is up."""

    def state(self):
        """What is on the way, and what arrived."""
        return State(sent=Bool(), got=Bool(), up=Bool(init=True))

    @action(fairness=WEAK)
    def send(self, s):
        """Again and again."""
        require(not s.got)
        s.sent = True

    @action(fairness=STRONG.branch("delivered"))
    def carry(self, s):
        """Delivers, loses, or, while the link is down, tears."""
        require(s.sent)
        s.sent = False
        if s.up:
            s.got = choose(delivered=True, lost=False)
        else:
            s.got = choose(torn=False)

    @temporal
    def arrives(self, s):
        """If delivering is fair."""
        return eventually(s.got)


class Wired(Model):
    """Two links and a joint step of both."""

    def parts(self):
        """One of each."""
        return Parts(left=Link(), right=Link()).together("both", "left.carry", "right.carry")


class Misnamed(Link):
    """A branch that nothing labels."""

    @action(fairness=WEAK.branch("deliverd"))
    def carry(self, s):
        """Delivers or loses."""
        s.got = choose(delivered=True, lost=False)


class Unlabelled(Link):
    """No labels at all."""

    @action(fairness=WEAK.branch("delivered"))
    def carry(self, s):
        """Chooses among names."""
        s.got = choose(["delivered", "lost"]) == "delivered"


class Both(Link):
    """Options and labels."""

    @action
    def carry(self, s):
        """Not both."""
        s.got = choose([True], lost=False)


LABELS = {"lost": False}


class Hidden(Link):
    """Labels that the source does not have."""

    @action
    def carry(self, s):
        """Not these."""
        s.got = choose(**LABELS)


def test_branches_are_shown_and_counted() -> None:
    """Labels in coverage and traces; a branch that never occurs; a step given with its branch."""
    found = explore(Link.system())
    assert found.finding("arrives").verdict is Verdict.HOLDS
    assert found.coverage.branches == {
        ("carry", "delivered"): (1, 1),
        ("carry", "lost"): (1, 0),
        ("carry", "torn"): (0, 0),
    }
    assert found.coverage.never_branches == (("carry", "torn"),)
    system = Link.system()
    assert [i.label for i in matching(system, "carry: lost")] == ["carry(): lost"]
    with pytest.raises(UsageError, match="carry has no instance that fits"):
        matching(system, "carry(): stolen")
    walk = replay_labels(system, ["send", "carry(): lost", "send", "carry: delivered"])
    assert walk.states[-1] == (False, True, True)
    native = Native(Link())
    assert native.step((True, False, True), "carry", picks=("lost",)) == (False, False, True)
    assert native.step((True, False, True), "carry", picks=("torn",)) is None


def test_joint_steps_have_the_branches_of_their_parts() -> None:
    """Both parts take a branch each, which Python takes too."""
    model = Wired()
    system, native = Wired.system(), Native(model)
    interpreter = Interpreter(system)
    labels = {i.label for i in system.instances if i.action == "both"}
    assert {"both(): delivered, lost", "both(): torn, delivered"} <= labels
    found = explore(system)
    for state in found.states():
        for instance in system.instances:
            assert native.take(state, instance, system) == interpreter.take(instance, state)
    assert found.coverage.branches["both", "torn"] == (0, 0)
    assert found.coverage.branches["both", "lost"][0] > 0


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Misnamed, "concerns the branch 'deliverd', which it does not have\n  did you mean delivered"),
        (Unlabelled, "which it does not have\n  label it: choose\\(delivered=..., ...\\)"),
        (Both, "choose takes one argument, or labelled values\n  write choose"),
        (Hidden, "branches of choose\\(\\*\\*...\\) have no names in the source\n  write each one"),
    ],
)
def test_refused(model: type[Model], message: str) -> None:
    """One message each, with its remedy."""
    with pytest.raises(ModelError, match=message):
        model.system()
