"""Flow control with barriers: every expected verdict, with exact counts, and that it is the flow control of `credit`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model_verdicts import established
from shares import share
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.system import System, Verdict
from streamproof_specs.credit.barriers import SPEC
from streamproof_specs.credit.properties import SPEC as FLOW

COUNTS = {
    None: (14976, 87517, 27),
    "barrier-overtakes": (16524, 96217, 27),
    "barrier-costs-credit": (8160, 43217, 28),
    "not-stopped": (26676, 163729, 27),
    "uncounted-lending": (15876, 93997, 27),
    "aligned": (9864, 55901, 26),
    "zero-exclusive": (7816, 41385, 30),
    "zero-exclusive-keeping": (7684, 40225, 30),
    "zero-exclusive-no-reset": (8072, 42481, 30),
}
"""Distinct states, generated states and depth."""


@pytest.mark.parametrize("variant", share([None, *SPEC.model.variants], 2), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """Barriers keep their place, and what holds of flow control without them holds; each broken rule shows as expected."""
    established(SPEC, variant, COUNTS[variant])


def test_every_property_of_flow_control_is_carried_over() -> None:
    """The composite is held to every property of the flow control that is a part of it."""
    names = {p.name for p in SPEC.system().properties}
    assert names >= {f"flow.{function.__name__}" for function in FLOW.properties}


def test_without_a_barrier_it_is_flow_control() -> None:
    """What can happen while no checkpoint comes is what happens in the flow control itself, state by state."""
    flow = explore(FLOW.system(depth=1), SearchOptions(properties=("no_overflow",))).counts
    found = explore(_without(SPEC.system(), "trigger"), SearchOptions(properties=("flow.no_overflow",))).counts
    assert (found.distinct, found.generated, found.depth) == (flow.distinct, flow.generated, flow.depth)


@pytest.mark.parametrize(
    ("parameters", "distinct"),
    [({"channels": 1, "depth": 3, "checkpoints": 2}, 3727), ({"floating": 0}, 9216), ({"aligned": True}, 9864)],
    ids=str,
)
def test_buffers_and_order_at_other_sizes(parameters: dict[str, int], distinct: int) -> None:
    """With one channel and two checkpoints, without a pool, and with one task: the safety properties hold."""
    names = [p.name for p in SPEC.system(**parameters).properties if p.formula is None]
    result = explore(SPEC.system(**parameters), SearchOptions(properties=names))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert result.counts.distinct == distinct


@pytest.mark.parametrize(("size", "distinct"), [("medium", 307188), ("large", 1785289)])
def test_safety_at_larger_sizes(size: str, distinct: int) -> None:
    """With more records, floating buffers and checkpoints the properties of states and steps hold."""
    system = SPEC.system(**SPEC.model.sizes[size])
    result = explore(system, SearchOptions(properties=[p.name for p in system.properties if p.formula is None]))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert result.counts.distinct == distinct


@pytest.mark.parametrize(("keeping", "verdict"), [(False, Verdict.HOLDS), (True, Verdict.VIOLATED)])
def test_two_channels_that_wait_for_each_other(keeping: bool, verdict: Verdict) -> None:
    """Also with more to send: a stopped channel that keeps the only floating buffer never lets the checkpoint end."""
    variant = "zero-exclusive-keeping" if keeping else "zero-exclusive"
    system = SPEC.system(variant, depth=2)
    result = explore(
        system, SearchOptions(properties=("checkpointed", "flow.consumed", "accounted", "flow.no_overflow"))
    )
    found = {f.property: f.verdict for f in result.findings}
    assert found == {
        "checkpointed": verdict,
        "flow.consumed": verdict,
        "accounted": Verdict.HOLDS,
        "flow.no_overflow": Verdict.HOLDS,
    }


def _without(system: System, action: str) -> System:
    """The system without one of its actions."""
    return replace(system, actions=tuple(a for a in system.actions if a.name != action))
