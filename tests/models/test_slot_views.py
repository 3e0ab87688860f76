"""The views of slots that logs show: every expected verdict with exact counts."""

from __future__ import annotations

import pytest

from model_verdicts import established
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_specs.slots.views import SPEC

COUNTS = {
    None: (1532, 13331, 18),
    "reused": (1748, 14903, 18),
    "freed-early": (1532, 13747, 18),
    "active-unasked": (1952, 16979, 18),
    "unoffered": (1928, 17005, 17),
    "old-offer": (1196, 10513, 16),
    "unnoticed-loss": (1532, 13835, 18),
    "freed-with-task": (1340, 11805, 17),
}
"""Distinct states, generated states and depth."""


@pytest.mark.parametrize("variant", [None, *SPEC.model.variants], ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """What an accepted log promises; each omitted rule shows in what is expected of it."""
    established(SPEC, variant, COUNTS[variant])


@pytest.mark.long
def test_two_allocations_do_not_interfere() -> None:
    """Each of them is in any state, whatever the other one is."""
    found = explore(SPEC.system(allocations=2))
    assert found.counts.distinct == COUNTS[None][0] ** 2
    assert {f.verdict for f in found.findings} == {Verdict.HOLDS}
