"""Flow control message by message: every expected verdict, with exact counts, and that it refines the machine of counters."""

from __future__ import annotations

import pytest

from model_verdicts import established
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_specs.credit.connection import SPEC

COUNTS = {
    None: (1228, 4625, 17),
    "reordering": (448, 1356, 17),
    "lossy": (187, 505, 15),
    "lost-announcement": (199, 537, 16),
    "no-credit": (7849, 36195, 19),
    "floating-granted": (34, 73, 9),
}
"""Distinct states, generated states and depth, at the parameters that a variant is refuted at."""


@pytest.mark.parametrize("variant", [None, *SPEC.model.variants], ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """Buffers arrive in order and have a place, and the counters are those of `credit`; each broken rule shows."""
    result = established(SPEC, variant, COUNTS[variant])
    assert {f.property for f in result.findings} >= {"counted_start", "counted", "counted_fairness"}


@pytest.mark.parametrize(
    ("parameters", "distinct"),
    [({"depth": 2}, 23617), ({"exclusive": 2, "floating": 0, "depth": 2}, 25183), ({"channels": 1, "depth": 3}, 463)],
    ids=str,
)
def test_order_and_refinement_at_other_sizes(parameters: dict[str, int], distinct: int) -> None:
    """With several buffers of a channel under way at once too, every step is one of the machine of counters."""
    names = ("in_order", "nothing_lost", "no_overflow", "never_waits", "isolation", "counted_start", "counted")
    result = explore(SPEC.system(**parameters), SearchOptions(properties=names))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert result.counts.distinct == distinct


def test_one_stalled_channel_stops_the_connection_without_credit() -> None:
    """In the end the next buffer is for the stalled channel, which has no room, and the other's is behind it."""
    system = SPEC.system("no-credit")
    stuck = explore(system, SearchOptions(properties=("isolation",))).finding("isolation")
    at = {v.name: k for k, v in enumerate(system.variables)}
    last = stuck.trace.states[-1]
    front = last[at["responses"]][0][0]
    assert last[at["consumer"]][front] == "STALLED"
    assert last[at["available_buffers"]][front] == 0
    assert last[at["consumer"]][1 - front] == "LIVE"
    assert any(message[0] == 1 - front for message in last[at["responses"]])
