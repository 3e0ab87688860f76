"""Checkpoints as logs show them: every expected verdict with exact counts."""

from __future__ import annotations

import pytest

from model_verdicts import established
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_specs.checkpoints.views import SPEC

COUNTS = {
    None: (17112, 119387, 12),
    "subsumed-kept": (17112, 119667, 12),
    "completes-after-failure": (18336, 136905, 12),
    "used-ids": (87168, 690047, 17),
    "earlier-restored": (43772, 347138, 13),
}
"""Distinct states, generated states and depth, at the parameters that a variant is refuted with."""


@pytest.mark.parametrize("variant", [None, *SPEC.model.variants], ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """What an accepted log promises; each omitted rule shows in what is expected of it."""
    established(SPEC, variant, COUNTS[variant])


def test_every_property_is_refuted_by_a_variant() -> None:
    """No property holds whatever the rules are."""
    refuted = {name for expected in SPEC.expected.values() for name in expected}
    assert refuted == {p.name for p in SPEC.system().properties}


@pytest.mark.parametrize(
    ("of_log", "states"),
    [
        ({"late": True}, 31660),
        ({"silent": True}, 17512),
        ({"savepoints": True}, 17112),
        ({"late": True, "silent": True, "savepoints": True}, 32548),
    ],
)
def test_properties_hold_for_every_kind_of_log(of_log: dict[str, bool], states: int) -> None:
    """Logs without their beginning, and those of older versions of Flink."""
    found = explore(SPEC.system(**of_log))
    assert found.counts.distinct == states
    assert {f.verdict for f in found.findings} == {Verdict.HOLDS}
