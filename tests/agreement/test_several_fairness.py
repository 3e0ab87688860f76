"""Several fairness constraints on one action, and on the next-state relation, mean the same everywhere.

The independent opinion is the definition: the constraints, as formulas over conditions on states and steps, imply the
property in the system without fairness. TLC decides some of the systems, too.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from quick_tlc import QUICK
from random_fairness import severally_fair
from streamproof import (
    STRONG,
    WEAK,
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
    eventually,
    explore,
    refines,
    require,
    temporal,
)
from streamproof.base.records import replace
from streamproof.exchange.tla import tlc
from streamproof.mutation.mutants import mutants
from streamproof.system import Expr, Instance, System, Verdict
from streamproof.system import build as b
from streamproof.system.formula import Always, AndF, Atom, Eventually, Formula, NotF, OrF, Recurs
from streamproof.system.model import fairness_constraints, without_fairness
from streamproof.system.reference import reference
from streamproof.transform.fair_scheduler import scheduled

FEW = 3
"""Most constraints that are written as one formula, whose automaton grows exponentially."""


def by_definition(system: System, formula: Formula) -> Formula:
    """The formula for the fair behaviours: each constraint as a formula of its own, read from the marks of the instances."""
    promises: list[Formula] = []
    for action_ in system.actions:
        for args in dict.fromkeys(i.args for i in action_.instances):
            mine = [i for i in action_.instances if i.args == args]
            promises.append(_promise(system, action_.fairness, [i for i in mine if i.fair]))
            for at, one in enumerate(action_.several):
                promises.append(_promise(system, one.fairness, [i for i in mine if at in i.listed]))
    promises.append(_promise(system, system.progress, list(system.instances)))
    return OrF((NotF(AndF(tuple(promises))), formula))


def _promise(system: System, fairness: Fairness, instances: list[Instance]) -> Formula:
    moves = b.or_(b.not_(b.eq(b.next_(v.name, v.sort), b.var(v.name, v.sort))) for v in system.variables)
    can, step = b.or_(map(_can, [system] * len(instances), instances)), b.or_(_step(system, i) for i in instances)
    taken = Recurs(b.and_((moves, step)))
    match fairness:
        case Fairness.NONE:
            return AndF(())
        case Fairness.WEAK:
            return OrF((Always(Eventually(NotF(Atom(can)))), taken))
        case Fairness.STRONG:
            return OrF((NotF(Always(Eventually(Atom(can)))), taken))


def _can(system: System, instance: Instance) -> Expr:
    sorts = {v.name: v.sort for v in system.variables}
    changes = b.or_(b.not_(b.eq(b.var(n, sorts[n]), term)) for n, term in instance.updates)
    return b.and_((*(c.expr for c in instance.guard), changes))


def _step(system: System, instance: Instance) -> Expr:
    new = dict(instance.updates)
    arrives = (b.eq(b.next_(v.name, v.sort), new.get(v.name, b.var(v.name, v.sort))) for v in system.variables)
    return b.and_((*(c.expr for c in instance.guard), *arrives))


@pytest.mark.parametrize(
    ("seeds", "systems"),
    [(range(8), 3), pytest.param(range(8, 150), 55, marks=pytest.mark.long)],
    ids=["few", "many"],
)
def test_random_systems(panel: Any, seeds: range, systems: int) -> None:
    """Both tiers, the referee, the scheduler without fairness, and the definition agree; constraints change verdicts."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        system = severally_fair(seed)
        if not reference(system).levels:
            continue
        referee = panel.interpreter_result(system)
        referee.compare(panel.explored(system, "python"))
        referee.compare(panel.explored(system, "compiled"))
        decisions, free = reference(system).decisions, without_fairness(system)
        for prop in system.properties:
            verdict = decisions[prop.name].verdict
            if verdict is Verdict.ERROR or prop.formula is None or prop.checks:
                continue
            form = scheduled(system, prop.formula, prop.name)
            assert explore(form.system, SearchOptions(tier="python")).finding(prop.name).verdict is verdict
            if len(fairness_constraints(system)) > FEW:
                continue
            claim = replace(prop, formula=by_definition(system, prop.formula))
            defined = explore(replace(free, properties=(claim,)), SearchOptions(tier="python")).finding(prop.name)
            if defined.verdict is not Verdict.INCONCLUSIVE:
                assert defined.verdict is verdict, (seed, prop.name)
                seen["defined"] += 1
        fewer = [reference(one).decisions for one in _without_one(system)]
        seen["changed"] += any(o[n].verdict is not d.verdict for o in fewer for n, d in decisions.items())
        seen["several"] += len(fairness_constraints(system)) > 1
        seen["systems"] += 1
    assert seen["systems"] >= systems
    assert seen["several"] >= systems // 2
    assert seen["defined"] >= systems // 4
    assert seen["changed"] >= systems // 20


def _without_one(system: System) -> list[System]:
    """The system without one of its constraints, each in turn: the mutants of fairness."""
    return [one.system for one in mutants(system) if one.kind == "fairness"]


class Dial(Model):
    """A dial that turns to any of three positions."""

    check_deadlock = False

    def state(self):
        """Its position."""
        return State(at=Range(0, 2))

    @action(fairness=(WEAK, STRONG.branch("two")))
    def turn(self, s):
        """To any position."""
        s.at = choose(zero=0, one=1, two=2)

    @temporal
    def twos(self, s):
        """By the second constraint."""
        return always(eventually(s.at == 2))

    @temporal
    def ones(self, s):
        """By neither."""
        return always(eventually(s.at == 1))


class Both(Dial):
    """Two branches, one constraint each."""

    @action(fairness=(WEAK.branch("one"), STRONG.branch("two")))
    def turn(self, s):
        """To any position."""
        s.at = choose(zero=0, one=1, two=2)


class Counting(Model):
    """Counts; nobody in particular has to."""

    progress = WEAK

    def state(self):
        """The count."""
        return State(n=Range(0, 3), idle=Range(0, 1))

    @action
    def count(self, s):
        """One more."""
        require(s.n < 3)
        s.n += 1

    @action
    def think(self, s):
        """Something else."""
        s.idle = 1 - s.idle

    @temporal
    def ends(self, s):
        """Thinking forever is progress."""
        return eventually(s.n == 3)

    @temporal
    def moves(self, s):
        """Something happens."""
        return eventually(s.n > 0 or s.idle == 1)


class Stopped(Counting):
    """Nothing has to happen."""

    progress = Fairness.NONE


class Busy(Counting):
    """Only counting is possible."""

    think = None


MODELS = {
    Dial: {"twos": Verdict.HOLDS, "ones": Verdict.VIOLATED},
    Both: {"twos": Verdict.HOLDS, "ones": Verdict.HOLDS},
    Counting: {"ends": Verdict.VIOLATED, "moves": Verdict.HOLDS},
    Stopped: {"ends": Verdict.VIOLATED, "moves": Verdict.VIOLATED},
    Busy: {"ends": Verdict.HOLDS, "moves": Verdict.HOLDS},
}


@pytest.mark.parametrize("model", MODELS)
def test_models(model: type[Model]) -> None:
    """What each constraint demands."""
    found = {f.property: f.verdict for f in explore(model.system()).findings if f.property != "deadlock"}
    assert found == MODELS[model]


@pytest.mark.long
def test_tlc_decides_alike(jar: Path) -> None:
    """Two constraints on one action, and WF of the next-state relation, in TLA+."""
    for model in MODELS:
        answers = {d.property: d.verdict for d in tlc.decide(model.system(), [*MODELS[model]], QUICK)}
        assert answers == MODELS[model], model


def test_a_lasso_names_each_constraint() -> None:
    """The constraints of an action have labels that tell them apart."""
    shown = {e.label: e.because for e in explore(Dial.system()).finding("ones").fair}
    assert [*shown] == ["turn()", "turn(): two"]
    assert [e.label for e in explore(Counting.system()).finding("ends").fair] == ["some step"]


class Abstract(Model):
    """Any step, again and again."""

    progress = WEAK

    def state(self):
        """A number."""
        return State(n=Range(0, 3))

    @action
    def count(self, s):
        """One more."""
        require(s.n < 3)
        s.n += 1


class Concrete(Busy):
    """Keeps the progress of the abstract model."""

    @refines(Abstract)
    def counts(self, s):
        """By its own."""
        return {"n": s.n}


class Lazy(Concrete):
    """Does not."""

    progress = Fairness.NONE


def test_a_refinement_keeps_progress() -> None:
    """Progress of the abstract model is a temporal property of the concrete one."""
    assert explore(Concrete.system()).finding("counts_fairness").verdict is Verdict.HOLDS
    assert explore(Lazy.system()).finding("counts_fairness").verdict is Verdict.VIOLATED


def test_mutants_drop_each_constraint() -> None:
    """One mutant for each."""
    dropped = {m.label: m.system for m in mutants(Both.system()) if m.kind == "fairness"}
    assert [*dropped] == ["turn: no weak fairness: one", "turn: no strong fairness: two"]
    verdicts = {f.property: f.verdict for f in explore(dropped["turn: no strong fairness: two"]).findings}
    assert verdicts == {"twos": Verdict.VIOLATED, "ones": Verdict.HOLDS}
    assert [m.label for m in mutants(Busy.system()) if m.kind == "fairness"] == [
        "no weak fairness of the next-state relation"
    ]


class Quoted(Counting):
    """A string."""

    progress = "weak"  # type: ignore[assignment]


class Assigned(Counting):
    """Assigned where parameters are known, after the class was read."""

    def setup(self):
        """Too late."""
        self.progress = Fairness.NONE


class Computed(Counting):
    """A value that the class does not have."""

    @property
    def progress(self):  # type: ignore[override]
        """Of an instance."""
        return WEAK


class Whole(Model):
    """A composition with a part that has progress."""

    def parts(self):
        """One part."""
        return Parts(inner=Counting())


class Other(Model):
    """Another machine."""

    def state(self):
        """A number."""
        return State(m=Range(0, 2))

    @action
    def go(self, s):
        """Along."""
        s.m = (s.m + 1) % 3


class Joined(Model):
    """An action with several constraints, in a joint action."""

    def parts(self):
        """A dial and another machine."""
        return Parts(dial=Dial(), other=Other()).together("go", "dial.turn", "other.go")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            Quoted,
            "progress = 'weak' is not a fairness constraint of the whole next-state relation\n  it is WEAK or STRONG",
        ),
        (
            Assigned,
            "progress is a fairness constraint that is not stated in the class\n  write progress = WEAK in the class",
        ),
        (
            Computed,
            "progress is a fairness constraint that is not stated in the class\n  write progress = WEAK in the class",
        ),
        (Whole, "inner is a part of a composition, and has progress = WEAK\n  state it in the outermost model"),
        (Joined, "dial.turn has several fairness constraints, and takes part in the joint action go\n  give the joint"),
    ],
)
def test_refused(model: type[Model], message: str) -> None:
    """One message each, with its line."""
    with pytest.raises(ModelError, match=message) as refused:
        model.system()
    assert refused.value.loc is not None


def test_one_constraint_twice() -> None:
    """It says nothing more."""
    with pytest.raises(ModelError, match="a fairness constraint is given twice"):
        action(fairness=(WEAK, WEAK))
