"""The life cycle of partitions without queues: explored where it is small, and proved for every number of parts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from model_verdicts import established
from streamproof.cli.verbs import run
from streamproof_specs.partitions.counts import SPEC

COUNTS = {
    None: (18080, 126985, 22),
    "close-connection-early": (19520, 138217, 22),
    "release-on-consumption": (14560, 103449, 23),
    "rm-ignores-partitions": (21680, 159685, 22),
    "stale-report": (22880, 164105, 22),
    "unnoticed-loss": (18080, 127625, 22),
    "cleanup-of-all-jobs": (19840, 144433, 22),
}
"""Distinct states, generated states and depth."""
FREE = "executors,partitions,consumers"


@pytest.mark.parametrize("variant", [None, *SPEC.model.variants], ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """Needed partitions are kept; each broken rule shows in what is expected of it."""
    established(SPEC, variant, COUNTS[variant])


@pytest.mark.long
def test_safety_is_proved_for_every_size(tmp_path: Path) -> None:
    """For any number of TaskExecutors, partitions and consumers, with a certificate that the verifier accepts."""
    out, certificate = tmp_path / "proof.json", tmp_path / "proof.cert"
    words = ["prove", "partition_counts", "--any", FREE, "-q", "--json", str(out), "--certificate", str(certificate)]
    assert run(words) == 0
    verdicts = {p["name"]: (p["verdict"], p["sizes"]) for p in json.loads(out.read_text())["properties"]}
    names = ("kept_while_needed", "read_where_stored", "idle_executors_only", "lost_with_connection")
    assert verdicts == dict.fromkeys(names, ("holds", "any"))
    assert run(["verify-certificate", str(certificate), "-q"]) == 0


@pytest.mark.long
@pytest.mark.parametrize("variant", SPEC.expected, ids=str)
def test_what_a_variant_breaks_is_not_proved(variant: str, tmp_path: Path) -> None:
    """The prover finds what the search refutes."""
    out = tmp_path / "proof.json"
    words = ["prove", "partition_counts", "--variant", variant, "--any", FREE, "--timeout", "600"]
    assert run([*words, "-q", "--json", str(out), "--out", str(tmp_path)]) == 12
    verdicts = {p["name"]: p["verdict"] for p in json.loads(out.read_text())["properties"]}
    assert {n for n, verdict in verdicts.items() if verdict == "violated"} == set(SPEC.expected[variant])
