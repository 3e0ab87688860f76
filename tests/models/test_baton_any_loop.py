"""The baton of one loop of any form: small instances explored, and the proof for every graph."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from model_verdicts import established
from streamproof.cli.verbs import run
from streamproof_specs.baton.any_loop import SPEC

COUNTS: dict[str | None, tuple[int, int, int]] = {
    None: (1140, 2122, 19),
    "no-alignment": (158136, 342852, 21),
    "status-dropped": (912, 1712, 15),
    "no-dirty-check": (792, 1436, 19),
}
"""Distinct states, generated states and depth."""
FREE = "operators,channels,work,rounds"


@pytest.mark.parametrize(
    "variant", [pytest.param(v, marks=[pytest.mark.long] if v == "no-alignment" else []) for v in COUNTS]
)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """No record is lost; each broken rule loses one."""
    established(SPEC, variant, COUNTS[variant])


@pytest.mark.long
def test_no_record_is_lost_in_any_loop(tmp_path: Path) -> None:
    """With a certificate that the verifier accepts."""
    certificate = tmp_path / "proof.cert"
    words = ["prove", "baton_any_loop", "--any", FREE, "--timeout", "600", "-q", "--certificate", str(certificate)]
    assert run(words) == 0
    assert run(["verify-certificate", str(certificate), "-q"]) == 0


@pytest.mark.long
@pytest.mark.parametrize("variant", SPEC.model.variants)
def test_what_a_variant_breaks_is_not_proved(variant: str, tmp_path: Path) -> None:
    """What the search refutes is proved of no variant."""
    out = tmp_path / "proof.json"
    words = ["prove", "baton_any_loop", "--variant", variant, "--any", FREE, "--timeout", "600"]
    run([*words, "-q", "--json", str(out), "--out", str(tmp_path)])
    (verdict,) = [p["verdict"] for p in json.loads(out.read_text())["properties"]]
    assert verdict != "holds"
