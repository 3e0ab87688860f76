"""The reference models have exactly the state spaces that were published for them."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import entry_points
from typing import Any

import pytest

from streamproof import Model
from streamproof.explicit import SearchOptions, explore
from streamproof.registry import find
from streamproof.system import Kind, Verdict
from streamproof_models.reference.async_termination_detection import AsyncTerminationDetection
from streamproof_models.reference.coffee_can import CoffeeCan
from streamproof_models.reference.die_hard import DieHard
from streamproof_models.reference.dining_philosophers import DiningPhilosophers
from streamproof_models.reference.ewd840 import Ewd840
from streamproof_models.reference.ewd998 import Ewd998
from streamproof_models.reference.hanoi import Hanoi
from streamproof_models.reference.huang import Huang
from streamproof_models.reference.mattern import Mattern
from streamproof_models.reference.missionaries_and_cannibals import MissionariesAndCannibals
from streamproof_models.reference.token_ring import TokenRing
from streamproof_models.reference.transaction_commit import TransactionCommit
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit

Row = tuple[type[Model], dict[str, Any], int, int, int]

PUBLISHED: list[Row] = [
    (TwoPhaseCommit, {"resource_managers": 1}, 12, 20, 5),
    (TwoPhaseCommit, {"resource_managers": 2}, 56, 154, 8),
    (TwoPhaseCommit, {"resource_managers": 3}, 288, 1_146, 11),
    (TwoPhaseCommit, {"resource_managers": 4}, 1_568, 8_258, 14),
    (TwoPhaseCommit, {"resource_managers": 5}, 8_832, 58_146, 17),
    (TwoPhaseCommit, {"resource_managers": 6}, 50_816, 402_306, 20),
    (TransactionCommit, {}, 34, 94, 7),
    (DieHard, {}, 16, 97, 8),
    (MissionariesAndCannibals, {}, 64, 283, 13),
    (Hanoi, {}, 243, 913, 32),
    (Ewd840, {"n": 2}, 54, 214, 6),
    (Ewd840, {"n": 3}, 302, 2_001, 9),
    (Ewd840, {"n": 4}, 1_566, 15_986, 12),
    (Ewd840, {"n": 5}, 7_742, 114_211, 15),
    (Ewd840, {"n": 6}, 36_990, 750_020, 18),
    (AsyncTerminationDetection, {"n": 2}, 65, 297, 8),
    (AsyncTerminationDetection, {"n": 3}, 513, 4_238, 11),
    (AsyncTerminationDetection, {"n": 4}, 4_097, 53_271, 14),
    (AsyncTerminationDetection, {"n": 5}, 32_769, 614_440, 17),
    (DiningPhilosophers, {}, 67, 336, 29),
    (TokenRing, {}, 46_656, 248_832, 1),
    (TwoPhaseCommit, {"resource_managers": 7}, 296_448, 2_744_706, 23),
    (CoffeeCan, {}, 501_500, 2_000_002, 1),
    (Ewd998, {}, 1_520_618, 11_238_019, 59),
    (Huang, {}, 81_256, 1_205_729, 21),
]

COUNTED_BY_TLC: list[Row] = [
    (Huang, {"n": 2}, 1_836, 12_715, 21),
    (Huang, {"n": 3}, 8_476, 78_765, 21),
    (Huang, {"n": 4}, 29_016, 346_867, 21),
]
"""What TLC counts of the published TLA+ specification at other numbers of processes."""

COUNTED: list[Row] = [
    (Mattern, {"n": 2, "messages": 2}, 360, 653, 13),
    (Mattern, {}, 34_017, 83_500, 20),
]
"""Of algorithms whose state spaces nobody published; `tests/agreement` has TLC count those of the exported models."""

LARGE: list[Row] = [(TwoPhaseCommit, {"resource_managers": 10}, 61_515_776, 817_760_258, 32)]

SHORTEST = [(DieHard, "measured", 7), (MissionariesAndCannibals, "crossed", 12), (Hanoi, "solved", 32)]


def check(model: type[Model], parameters: dict[str, Any], distinct: int, generated: int, depth: int) -> None:
    """Explore completely, compare the counts, and expect every property of the model to hold."""
    result = explore(model.system(**parameters))
    assert result.complete
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == (distinct, generated, depth)
    assert {f.property: f.verdict for f in result.findings} == {f.property: Verdict.HOLDS for f in result.findings}
    assert result.findings


def name(row: Row) -> str:
    """``ewd840-3``"""
    return "-".join([row[0].title().removeprefix("reference."), *map(str, row[1].values())])


@pytest.mark.parametrize("row", PUBLISHED + COUNTED_BY_TLC + COUNTED, ids=name)
def test_published_counts(row: Row) -> None:
    """Distinct states, generated states and depth are the published ones, and the properties hold."""
    check(*row)


@pytest.mark.long
def test_rounded_counts_of_four_machines() -> None:
    """EWD 998 with the token at machine 0 at first: 219 m distinct, 2.3 b generated, diameter 105 for N = 4 (01/2021)."""
    system = Ewd998.system(n=4)
    held = tuple(replace(v, initial=(0,)) if v.name == "token_at" else v for v in system.variables)
    counts = explore(replace(system, variables=held), SearchOptions(properties=(), tier="compiled")).counts
    assert (counts.distinct // 10**6, counts.generated // 10**8, counts.depth) == (219, 23, 105)
    assert (counts.distinct, counts.generated) == (219_061_396, 2_328_759_942)


def test_rounded_counts_of_three_machines() -> None:
    """The same with N = 3: 1.3 m distinct, 10.1 m generated, diameter 60."""
    system = Ewd998.system(n=3)
    held = tuple(replace(v, initial=(0,)) if v.name == "token_at" else v for v in system.variables)
    counts = explore(replace(system, variables=held), SearchOptions(properties=())).counts
    assert (counts.distinct // 10**5, counts.generated // 10**5, counts.depth) == (13, 101, 60)


@pytest.mark.long
@pytest.mark.parametrize("row", LARGE, ids=name)
def test_published_counts_of_large_models(row: Row) -> None:
    """Distinct states, generated states and depth are the published ones, and the properties hold."""
    check(*row)


@pytest.mark.parametrize(("model", "goal", "states"), SHORTEST, ids=[m.title() for m, _, _ in SHORTEST])
def test_shortest_solutions(model: type[Model], goal: str, states: int) -> None:
    """The witness of the goal has as many states as the published shortest solution."""
    finding = explore(model.system()).finding(goal)
    assert finding.kind is Kind.REACHABLE
    assert finding.trace is not None
    assert len(finding.trace) == states


def test_every_reference_model_is_registered() -> None:
    """Each model can be checked by its name, and no other reference model is registered."""
    names = [e.name for e in entry_points(group="streamproof.models") if e.name.startswith("reference.")]
    listed = {name: find(name).spec.model for name in names}
    models = {row[0] for row in PUBLISHED + LARGE + COUNTED}
    assert listed == {m.title(): m for m in models}
