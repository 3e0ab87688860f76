"""The reference models have exactly the state spaces that were published for them."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import entry_points
from typing import Any

import pytest

from published_counts import COUNTED, COUNTED_BY_TLC, LARGE, PUBLISHED, Row
from streamproof import Model
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.model_registry import find
from streamproof.system import Kind, Verdict
from streamproof_models.reference.die_hard import DieHard
from streamproof_models.reference.ewd998 import Ewd998
from streamproof_models.reference.hanoi import Hanoi
from streamproof_models.reference.missionaries_and_cannibals import MissionariesAndCannibals

SHORTEST = [(DieHard, "measured", 7), (MissionariesAndCannibals, "crossed", 12), (Hanoi, "solved", 32)]


def check(model: type[Model], parameters: dict[str, Any], distinct: int, generated: int, depth: int) -> None:
    """Explore completely, compare the counts, and expect every property of the model to hold.

    Of EWD 998 at its default size, the properties of states and steps: `test_published_liveness` has the others.
    """
    system = model.system(**parameters)
    large = model is Ewd998 and not parameters
    names = [p.name for p in system.properties if not (large and p.kind is Kind.TEMPORAL)]
    result = explore(system, SearchOptions(properties=names))
    assert result.complete
    counts = result.counts.inside
    assert (counts.distinct, counts.generated, counts.depth) == (
        distinct,
        generated,
        depth,
    )
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
