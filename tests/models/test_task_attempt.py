"""The machine of one execution attempt: every expected verdict, with exact counts."""

from __future__ import annotations

import pytest

from model_verdicts import established
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_specs.attempts.properties import SPEC

COUNTS = {
    None: (421, 1311, 15),
    "late-reports": (529, 1752, 16),
    "optimistic": (402, 1241, 15),
    "submitted-again": (807, 2944, 16),
    "registered-again": (421, 1334, 15),
    "retries-rejected": (409, 1294, 15),
    "waits-for-report": (399, 1217, 16),
}
"""Distinct states, generated states and depth at the default parameters."""


@pytest.mark.parametrize("variant", [None, *SPEC.model.variants], ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """Both views agree whatever is lost on the way; a JobManager that believes late reports revives attempts."""
    established(SPEC, variant, COUNTS[variant])


@pytest.mark.parametrize("parameters", [{"partitions": 0}, {"partitions": 3}, {"may_cut": False}], ids=str)
def test_the_machine_holds_at_other_sizes(parameters: dict[str, int]) -> None:
    """Without partitions, with several, and with a connection that is never cut."""
    result = explore(SPEC.system(**parameters))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
