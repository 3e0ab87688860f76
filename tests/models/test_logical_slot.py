"""Logical slots: every expected verdict with exact counts."""

from __future__ import annotations

import pytest

from model_verdicts import established
from streamproof_specs.slots.logical import SPEC

COUNTS = {None: (4, 5, 3), "unrequested": (4, 6, 3), "requested-again": (4, 6, 3)}
"""Distinct states, generated states and depth."""


@pytest.mark.parametrize("variant", [None, *SPEC.model.variants], ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """It is requested, allocated and removed, in this order and once."""
    established(SPEC, variant, COUNTS[variant])
