"""The loop as numbers: explored where it is small, and proved for every capacity."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shares import share
from streamproof.cli.verbs import run
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_specs.cyclic.counts import SPEC

COUNTS = {
    None: (115, {}),
    "bounded": (54, {"never_stuck": 8}),
    "bounded-unamplified": (31, {"never_stuck": 14}),
    "bounded-gated": (30, {}),
    "feedback-first": (64, {}),
    "feedback-first-amplified": (252, {"spill_bounded": 14}),
    "spill-dropped": (114, {"conserved": 6}),
    "read-back-unchecked": (141, {"within_capacity": 7}),
}
"""Distinct states, and steps of the counterexamples."""


@pytest.mark.parametrize("variant", [None, *SPEC.model.variants], ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """With a disk nothing is stuck; without one it depends on amplification and on what the entry lets in."""
    result = explore(SPEC.system(variant))
    found = {f.property: f.verdict.value for f in result.findings}
    assert found == {name: SPEC.expectation(variant, name) for name in found}
    traces = {f.property: f.trace for f in result.findings if f.verdict is Verdict.VIOLATED}
    lengths = {name: len(t.steps) for name, t in traces.items() if t is not None}
    assert (result.counts.distinct, lengths) == COUNTS[variant]


@pytest.mark.long
@pytest.mark.parametrize("operators", share([2, 3], 2))
@pytest.mark.parametrize(
    ("variant", "free"),
    share(
        [
            ("feedback-first", "buffers,records"),
            ("bounded-gated", "buffers,records"),
            (None, "buffers,records,amplification"),
        ],
        3,
    ),
    ids=str,
)
def test_what_is_proved_for_every_capacity(variant: str | None, free: str, operators: int, tmp_path: Any) -> None:
    """A disk keeps the loop moving, so does an entry that does not read past a full feedback edge; one that reads past no
    waiting item bounds what the disk takes: for any numbers of buffers and records."""
    out = tmp_path / "proof.json"
    chosen = [] if variant is None else ["--variant", variant]
    words = ["prove", "cyclic_counts", *chosen, "-p", f"operators={operators}", "--any", free]
    assert run([*words, "-q", "--json", str(out), "--out", str(tmp_path)]) == 0
    verdicts = {p["name"]: (p["verdict"], p["sizes"]) for p in json.loads(out.read_text())["properties"]}
    assert verdicts == dict.fromkeys(("conserved", "within_capacity", "never_stuck", "spill_bounded"), ("holds", "any"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("variant", "free", "broken"),
    share(
        [
            ("bounded-unamplified", "buffers,records", "never_stuck"),
            ("bounded", "buffers,records,amplification", "never_stuck"),
            ("feedback-first-amplified", "buffers,records", "spill_bounded"),
        ],
        3,
    ),
)
def test_what_a_variant_breaks_is_not_proved(variant: str, free: str, broken: str, tmp_path: Any) -> None:
    """The prover does not believe what the search refutes."""
    out = tmp_path / "proof.json"
    words = ["prove", "cyclic_counts", "--variant", variant, "--any", free, "--timeout", "300"]
    assert run([*words, "-q", "--json", str(out), "--out", str(tmp_path)]) != 0
    verdicts = {p["name"]: p["verdict"] for p in json.loads(out.read_text())["properties"]}
    assert verdicts[broken] in ("violated", "inconclusive")
    assert verdicts["conserved"] == "holds"
