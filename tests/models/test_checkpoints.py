"""Checkpoints: every expected verdict with exact counts; safety is proved for any number of failures and faults."""

from __future__ import annotations

import json
from typing import Any

import pytest

from model_verdicts import established
from shares import share
from streamproof.cli.verbs import run
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_specs.checkpoints.properties import SPEC

COUNTS = {
    None: (16497, 47325, 26),
    "no-timeout": (4846, 10410, 26),
    "expires-completed": (21794, 66213, 28),
    "unlimited": (19769, 64415, 26),
    "stuck-trigger": (16142, 46718, 26),
    "triggers-disposed": (18586, 53022, 26),
    "stale-plan": (16725, 48091, 26),
    "checks-then-creates": (20665, 59310, 26),
    "completes-after-failure": (24873, 72220, 26),
    "unchecked-attempt": (406, 902, 22),
    "waits-for-trigger": (16185, 46181, 26),
    "subsumed-kept": (20495, 67117, 26),
    "subsumes-first": (16497, 47325, 26),
    "notifies-first": (28855, 88807, 28),
}
"""Distinct states, generated states and depth, at the parameters that a variant is refuted with."""


@pytest.mark.parametrize("variant", share([None, *SPEC.model.variants], 4), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """The default rules have all properties; each variant violates what is expected of it, and nothing else."""
    established(SPEC, variant, COUNTS[variant])


def test_every_property_is_refuted_by_a_variant() -> None:
    """No property holds whatever the rules are."""
    refuted = {name for expected in SPEC.expected.values() for name in expected}
    assert refuted == {p.name for p in SPEC.system().properties}


@pytest.mark.long
def test_medium_holds() -> None:
    """Three checkpoints, two of them at the same time, and two faults."""
    result = explore(SPEC.system(**SPEC.model.sizes["medium"]))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == (1348041, 6323378, 36)


@pytest.mark.long
def test_safety_is_proved_for_every_number_of_failures(tmp_path: Any) -> None:
    """For any number of failures and faults, with a certificate."""
    out, certificate = tmp_path / "proof.json", tmp_path / "proof.cert"
    words = ["prove", "checkpoints", "--any", "failures,faults", "--certificate", str(certificate)]
    assert run([*words, "-q", "--json", str(out), "--out", str(tmp_path)]) == 0
    verdicts = {p["name"]: (p["verdict"], p["sizes"]) for p in json.loads(out.read_text())["properties"]}
    safety = [p.name for p in SPEC.system().properties if p.name not in ("ends", "recovers", "goes_on")]
    assert verdicts == dict.fromkeys(safety, ("holds", "any"))
    assert run(["verify-certificate", str(certificate)]) == 0
