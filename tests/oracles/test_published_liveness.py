"""The reference models are live as published: under the published fairness, and not without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streamproof import Model, Spec, always, eventually, leads_to, temporal
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.system import Fairness, System, Verdict
from streamproof.traces.replay import verify
from streamproof_models.reference.async_termination_detection import AsyncTerminationDetection
from streamproof_models.reference.coffee_can import CoffeeCan
from streamproof_models.reference.dining_philosophers import DiningPhilosophers
from streamproof_models.reference.ewd840 import Ewd840
from streamproof_models.reference.ewd998 import Ewd998
from streamproof_models.reference.huang import Huang
from streamproof_models.reference.mattern import Mattern
from streamproof_models.reference.token_ring import TokenRing

LIVE: list[tuple[type[Model], dict[str, Any], str]] = [
    (AsyncTerminationDetection, {"n": 3}, "end_is_detected"),
    (CoffeeCan, {"beans": 60}, "one_bean_is_left"),
    (DiningPhilosophers, {}, "nobody_starves"),
    (Ewd840, {"n": 4}, "end_is_detected"),
    (Ewd998, {"n": 2}, "end_is_detected"),
    (Huang, {"n": 3, "shares": 4}, "end_is_detected"),
    (Mattern, {"n": 2, "messages": 2}, "end_is_detected"),
    (TokenRing, {"n": 4, "values": 4}, "stabilises"),
]


def with_fairness(system: System, fairness: Fairness, *unless: str) -> System:
    """The same system with this fairness for all actions but some."""
    return replace(
        system, actions=tuple(a if a.name in unless else replace(a, fairness=fairness) for a in system.actions)
    )


@pytest.mark.parametrize(("model", "parameters", "name"), LIVE, ids=[m.title() for m, _, _ in LIVE])
def test_liveness_rests_on_fairness(model: type[Model], parameters: dict[str, Any], name: str) -> None:
    """With the published fairness the property holds; without any, the model may simply stop, and that is shown."""
    system = model.system(**parameters)
    assert explore(system, SearchOptions(properties=[name])).finding(name).verdict is Verdict.HOLDS
    idle = with_fairness(system, Fairness.NONE)
    finding = explore(idle, SearchOptions(properties=[name])).finding(name)
    assert finding.verdict is Verdict.VIOLATED
    assert finding.trace is not None
    assert finding.trace.stutters
    assert finding.fair == ()
    verify(idle, name, finding.trace)


@temporal
def rests_are_detected(self: Any, s: Any) -> Any:
    """If every machine is passive now and then, the end is detected: published as false, since they take turns."""
    return not all(always(eventually(not s.active[i])) for i in range(self.n)) or eventually(self.detected(s))


@temporal
def all_become_passive(self: Any, s: Any) -> Any:
    """The machines all become passive some day: false, because nothing makes them."""
    return eventually(not any(s.active))


def test_false_liveness_of_ewd840() -> None:
    """What EWD 840 does not promise is refuted, by fair lassos."""
    system = Spec(Ewd840, (rests_are_detected, all_become_passive)).system(n=3)
    result = explore(system)
    assert {f.property: f.verdict.value for f in result.findings} == {
        "end_is_detected": "holds",
        "rests_are_detected": "violated",
        "all_become_passive": "violated",
        "detection_is_right": "holds",
        "dijkstra": "holds",
    }
    for name in ("rests_are_detected", "all_become_passive"):
        finding = result.finding(name)
        assert finding.trace is not None
        verify(system, name, finding.trace)
        assert [evidence.satisfied for evidence in finding.fair] == [True, True, True]
    trace = result.finding("rests_are_detected").trace
    assert trace is not None
    assert trace.loop is not None
    around = trace.states[trace.loop :]
    assert not trace.stutters
    assert all(any(not state[0][i] for state in around) for i in range(3))
    assert all(any(state[0]) for state in around)


@temporal
def eats_again_and_again(self: Any, s: Any) -> Any:
    """The first philosopher eats for ever."""
    return always(eventually(s.doing[0] == "eating"))


@temporal
def hunger_ends_for_good(self: Any, s: Any) -> Any:
    """False: thinking makes hungry."""
    return leads_to(s.hungry[0], always(not s.hungry[0]))


def test_more_of_the_philosophers() -> None:
    """Weak fairness of every philosopher is enough to eat again and again, and nothing ends hunger for good."""
    system = Spec(DiningPhilosophers, (eats_again_and_again, hunger_ends_for_good)).system()
    found = {f.property: f.verdict.value for f in explore(system).findings}
    assert found["eats_again_and_again"] == "holds"
    assert found["hunger_ends_for_good"] == "violated"
    lazy = with_fairness(system, Fairness.NONE, "think", "eat")
    assert explore(lazy).finding("eats_again_and_again").verdict is Verdict.VIOLATED


@pytest.mark.long
def test_liveness_of_ewd998() -> None:
    """The published instance with three machines, of a million and a half states."""
    assert explore(Ewd998.system()).finding("end_is_detected").verdict is Verdict.HOLDS
