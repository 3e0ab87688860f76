"""The head of a loop as logs show it: every expected verdict with exact counts."""

from __future__ import annotations

import pytest

from model_verdicts import established
from shares import share
from streamproof import ModelError
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_models.cyclic.head import ANY
from streamproof_models.cyclic.machine import POLICIES
from streamproof_specs.cyclic.head import SPEC

COUNTS = {
    None: (68328, 353389, 21),
    "barriers": (273312, 1418947, 24),
    "one-too-many": (34632, 166333, 17),
    "spill-dropped": (9360, 63031, 15),
    "spill-overtaken": (177840, 884173, 24),
    "barrier-overtakes": (173628, 886387, 29),
    "spill-newest-first": (253656, 1254505, 28),
    "unwritten": (68328, 359317, 18),
    "policy-ignored": (68328, 375565, 21),
    "baton-repeated": (68328, 357325, 21),
    "baton-alone": (22776, 118629, 20),
    "no-place": (102492, 574471, 22),
    "held-late": (68328, 347917, 21),
}
"""Distinct states, generated states and depth."""


@pytest.mark.parametrize("variant", share([None, *SPEC.model.variants], 4), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """What an accepted log promises; each omitted rule shows in what is expected of it."""
    established(SPEC, variant, COUNTS[variant])


def test_every_property_is_refuted_by_a_variant() -> None:
    """No property holds whatever the rules are."""
    refuted = {name for expected in SPEC.expected.values() for name in expected}
    assert refuted == {p.name for p in SPEC.system().properties}


@pytest.mark.parametrize("policy", share((ANY, *POLICIES), 2))
@pytest.mark.parametrize("spilling", [True, False])
def test_properties_hold_for_every_policy(policy: str, spilling: bool) -> None:
    """With a disk and without."""
    found = explore(SPEC.system(policy=policy, spilling=spilling))
    assert {f.verdict for f in found.findings} == {Verdict.HOLDS}


@pytest.mark.long
@pytest.mark.parametrize("sizes", [{"forward": 2, "most": 1}, {"feedback": 2, "most": 1}, {"holds": 2}, {"holds": 0}])
def test_properties_hold_for_more_channels_and_places(sizes: dict[str, int]) -> None:
    """Several channels on a side, and several records that are held."""
    found = explore(SPEC.system(**sizes))
    assert {f.verdict for f in found.findings} == {Verdict.HOLDS}


def test_an_unknown_policy_is_refused() -> None:
    """The known ones are named."""
    with pytest.raises(ModelError, match="'first' is none of any, feedback-first"):
        SPEC.system(policy="first")
