"""Fairness of a part of an action means the same everywhere: the referee, both tiers, the solver; TLC and Spin elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quick_tlc import QUICK
from random_fairness import partly_fair
from streamproof import (
    STRONG,
    WEAK,
    Array,
    Bool,
    Model,
    ModelError,
    Native,
    Range,
    SearchOptions,
    State,
    action,
    choose,
    eventually,
    explore,
    leads_to,
    require,
    temporal,
)
from streamproof.base.records import replace
from streamproof.exchange.tla import tlc
from streamproof.system import Action, Interpreter, Verdict
from streamproof.system.reference import reference
from streamproof.transform.fair_scheduler import scheduled


@pytest.mark.parametrize(
    ("seeds", "systems"),
    [
        (range(12, 24), 4),
        pytest.param(range(24), 8, marks=pytest.mark.long),
        pytest.param(range(24, 1500), 510, marks=pytest.mark.long),
    ],
    ids=["few", "more", "many"],
)
def test_random_systems(panel: Any, seeds: range, systems: int) -> None:
    """Verdicts and lassos agree, and the split changes some verdicts."""
    compared = changed = 0
    for seed in seeds:
        system = partly_fair(seed)
        if system is None or not reference(system).levels:
            continue
        referee = panel.interpreter_result(system)
        referee.compare(panel.explored(system, "python"))
        referee.compare(panel.explored(system, "compiled"))
        decisions = reference(system).decisions
        for prop in system.properties:
            if decisions[prop.name].verdict is not Verdict.ERROR and prop.formula is not None and not prop.checks:
                form = scheduled(system, prop.formula, prop.name)
                found = explore(form.system, SearchOptions(tier="python")).finding(prop.name)
                assert found.verdict is decisions[prop.name].verdict
        whole = reference(replace(system, actions=tuple(map(_whole, system.actions)))).decisions
        changed += any(whole[name].verdict is not d.verdict for name, d in decisions.items())
        compared += 1
    assert compared >= systems
    assert changed >= max(1, systems // 10)


def _whole(action: Action) -> Action:
    """The action with fairness of every step."""
    return replace(action, instances=tuple(replace(i, fair=True) for i in action.instances))


class Lossy(Model):
    """A link that may lose each message; losing all of them is unfair."""

    n: int = 2

    def state(self):
        """What arrived, and whether the link works."""
        return State(sent=Array(self.n, Bool()), got=Array(self.n, Bool()), up=Bool(init=True))

    @action(i="n", fairness=WEAK)
    def send(self, s, i):
        """Send again and again."""
        require(not s.got[i])
        s.sent[i] = True

    def delivered(self, s, i, fate):
        """The steps that a fair behaviour takes."""
        return s.up and fate == "deliver"

    @action(i="n", fairness=STRONG.where("delivered"))
    def carry(self, s, i):
        """Deliver or lose."""
        require(s.sent[i])
        fate = choose(["deliver", "lose"])
        s.sent[i] = False
        s.got[i] = s.got[i] or fate == "deliver"

    @action
    def flip(self, s):
        """Down for some time, or from now on."""
        s.up = not s.up

    @temporal
    def arrives(self, s):
        """Unless the link stays down."""
        return eventually(s.got[0])

    @temporal
    def recovers(self, s):
        """Nobody is obliged to."""
        return leads_to(not s.up, s.up)


class Whole(Lossy):
    """With fairness of the whole action, losing everything is fair."""

    @action(i="n", fairness=STRONG)
    def carry(self, s, i):
        """Deliver or lose."""
        require(s.sent[i])
        fate = choose(["deliver", "lose"])
        s.sent[i] = False
        s.got[i] = s.got[i] or fate == "deliver"


class Working(Lossy):
    """The link is always up."""

    flip = None


def test_a_branch_is_fair() -> None:
    """A message arrives if delivering is fair; not if only carrying is; not if the link may stay down."""
    found = {m.__name__: explore(m.system()).finding("arrives").verdict for m in (Lossy, Whole, Working)}
    assert found == {"Lossy": Verdict.VIOLATED, "Whole": Verdict.VIOLATED, "Working": Verdict.HOLDS}


def test_counts_and_steps_are_those_of_the_whole_action() -> None:
    """Splitting adds no state and no step; native execution agrees."""
    system = Lossy.system()
    split, whole = explore(system), explore(Whole.system())
    assert split.counts == whole.counts
    native, interpreter = Native(Lossy()), Interpreter(system)
    for state in split.states():
        for instance in system.instances:
            assert native.take(state, instance, system) == _after(interpreter, instance, state)


def _after(interpreter: Interpreter, instance: Any, state: Any) -> Any:
    """Python does not see the two parts: a step of the part that is not enabled is one of the other."""
    twin = [i for i in interpreter.system.instances if i.label == instance.label]
    found = [after for i in twin if (after := interpreter.take(i, state)) is not None]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.long
def test_tlc_decides_alike(jar: Path) -> None:
    """WF and SF of the part, in TLA+."""
    for model in (Lossy, Whole, Working):
        system = model.system()
        answers = {d.property: d.verdict for d in tlc.decide(system, None, QUICK)}
        assert answers == {f.property: f.verdict for f in explore(system).findings}


class NoCondition(Lossy):
    """A name that nothing has."""

    @action(i="n", fairness=STRONG.where("nowhere"))
    def carry(self, s, i):
        """Never."""
        require(s.sent[i])


class Partial(Lossy):
    """A condition without a value in some states."""

    def state(self):
        """And a number."""
        return State(sent=Array(self.n, Bool()), got=Array(self.n, Bool()), up=Bool(), k=Range(0, 3))

    def delivered(self, s, i, fate):
        """An index outside."""
        return s.sent[s.k]


class Unknown(Lossy):
    """A misspelt pick."""

    def delivered(self, s, i, fait):
        """Never None in earnest."""
        return s.up and fait == "deliver"


class Maybe(Model):
    """A choice that is reached in some states only."""

    def unmoved(self, s, way):
        """Nothing was chosen."""
        return way is None

    def state(self):
        """Two switches."""
        return State(up=Bool(), left=Bool())

    @action(fairness=WEAK.where("unmoved"))
    def go(self, s):
        """Where nothing is chosen, this is fair."""
        if s.up:
            way = choose(["left", "right"])
            s.left = way == "left"
        else:
            s.up = True

    @temporal
    def rises(self, s):
        """By the fair part."""
        return eventually(s.up)

    @temporal
    def goes_left(self, s):
        """The other part is not fair."""
        return eventually(s.left)


def test_a_choice_that_is_not_reached_is_none() -> None:
    """Where the choice is not reached, the condition gets None."""
    found = explore(Maybe.system())
    verdicts = {f.property: f.verdict for f in found.findings if f.property != "deadlock"}
    assert verdicts == {"rises": Verdict.HOLDS, "goes_left": Verdict.VIOLATED}
    assert found.counts.distinct == 4 - 1


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (NoCondition, "'nowhere' is no condition for the fairness of carry\n  give a function"),
        (Unknown, "the fairness of carry depends on 'fait', which is neither a parameter nor a pick of it\n  name a"),
        (Partial, "index outside Range\\(0, 1\\), perhaps, in delivered, the fairness of carry\n  test first"),
    ],
)
def test_refused_conditions(model: type[Model], message: str) -> None:
    """One message each."""
    with pytest.raises(ModelError, match=message):
        model.system()
