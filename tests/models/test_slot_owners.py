"""Slots without queues: explored where it is small, and safety proved for every number of parts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from model_verdicts import established
from shares import share
from streamproof.cli.verbs import run
from streamproof_specs.slots.owners import SPEC

COUNTS = {
    None: (84060, 312281, 16),
    "shared-twice": (93356, 351425, 16),
    "dead-instance": (84060, 329913, 16),
    "location-preferred": (86508, 322153, 16),
    "leak-on-error": (114460, 417657, 16),
    "unlocked-group": (90356, 338409, 16),
}
"""Distinct states, generated states and depth."""
FREE = "instances,slots,subtasks,vertices,constraints"
SAFETY = ("exclusive", "no_leak", "owned", "co_located", "in_one_slot", "dead_refused")


@pytest.mark.parametrize("variant", share([None, *SPEC.model.variants], 2), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """Slots are neither lost nor given twice; each broken rule shows in what is expected of it."""
    established(SPEC, variant, COUNTS[variant])


def test_every_property_is_refuted_by_a_variant() -> None:
    """No property holds whatever the rules are."""
    assert {name for expected in SPEC.expected.values() for name in expected} == set(SAFETY)


@pytest.mark.long
def test_safety_is_proved_for_every_size(tmp_path: Path) -> None:
    """For any number of instances, slots, subtasks, vertices and constraints, with a certificate."""
    out, certificate = tmp_path / "proof.json", tmp_path / "proof.cert"
    words = ["prove", "slot_owners", "--any", FREE, "-q", "--json", str(out), "--certificate", str(certificate)]
    assert run([*words, "--timeout", "900", "--out", str(tmp_path)]) == 0
    verdicts = {p["name"]: (p["verdict"], p["sizes"]) for p in json.loads(out.read_text())["properties"]}
    assert verdicts == dict.fromkeys(SAFETY, ("holds", "any"))
    assert run(["verify-certificate", str(certificate), "-q"]) == 0


FAR = {("location-preferred", "co_located")}
"""Violations at no instance that `prove --any` searches: `check` finds them at the variant's own parameters."""


@pytest.mark.long
@pytest.mark.parametrize("variant", SPEC.expected, ids=str)
def test_what_a_variant_breaks_is_not_proved(variant: str, tmp_path: Path) -> None:
    """The prover finds what the search refutes, where it may visit enough states."""
    out = tmp_path / "proof.json"
    broken = list(SPEC.expected[variant])
    words = ["prove", "slot_owners", "--variant", variant, "--any", FREE, "--timeout", "900"]
    words += [word for name in broken for word in ("--property", name)]
    assert run([*words, "-q", "--json", str(out), "--out", str(tmp_path)]) == 12
    verdicts = {p["name"]: p["verdict"] for p in json.loads(out.read_text())["properties"]}
    assert verdicts == {name: "inconclusive" if (variant, name) in FAR else "violated" for name in broken}
