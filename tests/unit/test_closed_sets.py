"""The set of all explored states as an invariant that the solver proves, or refutes."""

from __future__ import annotations

from random import Random

import pytest

from random_systems import random_system
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.model_registry import find
from streamproof.symbolic.discovery import discovering, reachable_set
from streamproof.symbolic.discovery.discovering import CLOSED
from streamproof.symbolic.discovery.houdini import inductive
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.portfolio import Engine
from streamproof.symbolic.proof import prove
from streamproof.symbolic.solver import SolverBudget
from streamproof.system import BOOL, Interpreter, Kind, System, Variable, Verdict
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.transform.scalarise import scalarise
from streamproof_models.baton.machine import Baton


def test_the_diagram_is_true_of_the_states_and_of_no_others() -> None:
    """Of a random half of the reachable states: the condition picks them out of all, whatever the order of the leaves."""
    drawn = 0
    for seed in range(40):
        rng = Random(seed)
        system = random_system(rng)
        if not any(Interpreter(system).initial_states()):
            continue
        scalarised = scalarise(system)
        found = [scalarised.encode(s) for s in explore(system, SearchOptions(properties=(), max_states=200)).states()]
        chosen = found[:1] + [s for s in found[1:] if rng.random() < 0.5]
        condition = reachable_set.member(scalarised.system, chosen)
        interpreter = Interpreter(scalarised.system)
        for state in found:
            assert interpreter.value(condition, state) is (state in chosen)
        drawn += len(chosen) < len(found)
    assert drawn > 20


@pytest.mark.parametrize("integers", [False, True])
def test_the_solver_finds_out_whether_the_set_is_closed(integers: bool) -> None:
    """With all states it is; without any one of some it is not, for then a step leads out of it, or a state is initial."""
    system = Baton.system(topology="self-loop")
    scalarised = scalarise(system)
    states = [scalarised.encode(s) for s in explore(system, SearchOptions(properties=())).states()]
    encoding = Encoding(scalarised, integers=integers)
    whole = reachable_set.member(scalarised.system, states)
    assert inductive(encoding, [whole], SolverBudget()) == (whole,)
    assert reachable_set.promising(scalarised.system, states)
    assert not reachable_set.promising(scalarised.system, states[:-1])
    for left_out in (0, len(states) // 2, len(states) - 1):
        part = reachable_set.member(scalarised.system, states[:left_out] + states[left_out + 1 :])
        assert inductive(encoding, [part], SolverBudget()) == ()


def test_equal_parts_are_one_term() -> None:
    """All 1,024 values of ten bits are drawn as no question at all, and of one parity with two terms for a bit."""
    system = System("bits", tuple(Variable(f"b{n}", BOOL, (False,)) for n in range(10)), (), ())
    every = [tuple(bool(k >> n & 1) for n in range(10)) for k in range(1024)]
    assert reachable_set.member(system, every[:1]) is not b.TRUE
    even = reachable_set.member(system, [s for s in every if sum(s) % 2 == 0])
    assert len([t for t in e.subterms(even) if isinstance(t, e.Or)]) <= 20
    assert reachable_set.promising(system, every)
    assert not reachable_set.promising(system, every * 200)
    assert not reachable_set.promising(system, [])


@pytest.mark.long
def test_a_property_that_no_lemma_supports_is_proved_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not inductive is decided with the one lemma, and what is violated is found; the search decides alike."""
    monkeypatch.setattr(discovering, "BRIEFLY", 0.0)
    system = find("baton").system("eager-retry", {"topology": "self-loop"})
    names = [p.name for p in system.properties if p.kind not in (Kind.TERMINATION, Kind.TEMPORAL)]
    searched = explore(system)
    states = list(searched.states())
    proof = prove(system, names, engine=Engine.DISCOVERY, explored=lambda: states, seconds=60, reproducible=True)
    assert {f.property: f.verdict for f in proof.findings} == {n: searched.finding(n).verdict for n in names}
    assert {f.verdict for f in proof.findings} == {Verdict.HOLDS, Verdict.VIOLATED}
    assert [(m.text, m.source) for m in proof.discovered] == [("the state is one of those explored", CLOSED)]
    few = prove(system, names, engine=Engine.DISCOVERY, explored=lambda: states[:3], seconds=1, reproducible=True)
    assert any(f.verdict is Verdict.INCONCLUSIVE for f in few.findings)
    assert not few.discovered
