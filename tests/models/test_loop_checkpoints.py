"""Checkpoints of a loop: every expected verdict with exact counts; two readings beside the machine hold, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from model_verdicts import established
from shares import share
from streamproof import Spec, refines
from streamproof.cli.verbs import run
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_models.checkpoints.loop_counts import LoopCheckpointCounts
from streamproof_models.checkpoints.loops import LoopCheckpoints
from streamproof_specs.checkpoints.loop_counts import SPEC as COUNTS_SPEC
from streamproof_specs.checkpoints.loops import SPEC

COUNTS = {
    None: (58794, 196189, 36),
    "not-replayed": (6039, 17332, 28),
    "log-not-stored": (7896, 24082, 26),
    "snapshot-at-return": (5814, 16813, 28),
    "begins-early": (21740, 61651, 34),
    "begins-late": (9847, 29415, 28),
    "ends-early": (11845, 37939, 27),
    "logs-edge": (71886, 254171, 34),
    "logs-writes": (13311, 42518, 28),
    "aborted-log-kept": (6720, 18944, 30),
    "barrier-overtakes": (8661, 26127, 27),
    "replayed-twice": (9308, 26316, 31),
    "replay-unlogged": (6206, 17870, 28),
    "replayed-behind": (80746, 256801, 41),
    "aligned": (2626, 7497, 22),
    "waits-until-empty": (8044, 25173, 28),
    "feedback-first": (58794, 184833, 37),
    "published-at-snapshot": (82800, 261557, 36),
    "attempt-resumed": (115056, 368049, 51),
    "baton-not-logged": (119486, 378289, 52),
    "mark-forgotten": (117008, 371485, 52),
    "replay-unmarked": (122200, 382947, 52),
    "end-remembered": (66002, 212312, 38),
}
"""Distinct states, generated states and depth, at the parameters that a variant is refuted with."""
NUMBERS = {
    None: (5202, 18361, 26),
    "not-replayed": (6787, 23107, 29),
    "replayed-twice": (14172, 43411, 46),
    "ends-early": (19381, 70272, 29),
    "begins-late": (19043, 69457, 29),
    "published-at-snapshot": (8770, 29899, 27),
}
"""The same of the counts."""


@pytest.mark.parametrize("variant", share([None, *SPEC.model.variants], 6), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """The default rules have all properties; each variant violates what is expected of it, and nothing else."""
    established(SPEC, variant, COUNTS[variant])


def test_every_property_is_refuted_by_a_variant() -> None:
    """No property holds whatever the rules are."""
    refuted = {name for expected in SPEC.expected.values() for name in expected}
    assert refuted == {p.name for p in SPEC.system().properties}


def test_other_readings_hold() -> None:
    """A log of the sender, and attempts that are part of checkpoints, are sound; all other variants are refuted."""
    assert set(SPEC.model.variants) - set(SPEC.expected) == {"logs-edge", "attempt-resumed"}


@pytest.mark.parametrize("variant", [None, *COUNTS_SPEC.model.variants], ids=str)
def test_every_expected_verdict_of_the_counts_is_established(variant: str | None) -> None:
    """The simpler machine, whose broken rules break the same."""
    established(COUNTS_SPEC, variant, NUMBERS[variant])


def number(edge: Any, *, behind: bool) -> Any:
    """The records on an edge before the barrier, or behind it; without a barrier all are before it."""
    count = 0
    passed = False
    for i in edge:
        if i.kind == "BARRIER":
            passed = True
        elif i.kind == "RECORD":
            count += int(passed == behind)
    return count


def counted(m: Any, s: Any) -> dict[str, Any]:
    """The state of `loop_checkpoints` as counts."""
    inner = any(i.kind == "BARRIER" for i in s.inner)
    back = any(i.kind == "BARRIER" for i in s.back)
    acknowledged = s.pending != 0 and s.acknowledged["HEAD"]
    under_way = s.pending != 0 and (inner or back)
    taken = acknowledged or under_way
    return {
        "emitted": s.emitted - sum(int(i.kind == "RECORD") for i in s.forward),
        "inner": number(s.inner, behind=False),
        "inner_behind": number(s.inner, behind=True),
        "back": number(s.back, behind=False),
        "back_behind": number(s.back, behind=True),
        "out": sum(s.out),
        "published": sum(s.published) if s.phase != "TERMINATED" else sum(s.stored.out),
        "barrier": "INNER" if inner else "BACK" if back else "NONE",
        "checkpoint": "ACKNOWLEDGED" if acknowledged else "PENDING" if under_way else "NONE",
        "log": len(s.log),
        "taken_emitted": s.taken.emitted if taken else 0,
        "taken_log": len(s.taken.log) if taken else 0,
        "taken_out": sum(s.taken.out) if taken else 0,
        "stored_emitted": s.stored.emitted,
        "stored_log": len(s.stored.log),
        "stored_out": sum(s.stored.out),
        "failures_left": s.failures_left,
    }


refines(LoopCheckpointCounts, counted, records="records", failures="failures")
COUNTED = Spec(LoopCheckpoints, properties=(counted,))


@pytest.mark.parametrize(("variant", "holds"), [(None, True), ("not-replayed", False), ("ends-early", False)])
def test_each_step_is_a_step_of_the_counts(variant: str | None, holds: bool) -> None:
    """Without aborted checkpoints; two rules that lose records make steps that the counts do not have."""
    result = explore(COUNTED.system(variant, aborts=0, failures=2, records=2 if holds else 1))
    assert result.finding("counted_start").verdict is Verdict.HOLDS
    assert (result.finding("counted").verdict is Verdict.HOLDS) == holds


@pytest.mark.long
def test_counts_are_proved_for_any_number_of_records_and_failures(tmp_path: Path) -> None:
    """With a certificate that the verifier accepts."""
    out, certificate = tmp_path / "proof.json", tmp_path / "proof.cert"
    words = ["prove", "loop_checkpoint_counts", "--any", "records,failures", "--certificate", str(certificate)]
    assert run([*words, "-q", "--json", str(out), "--out", str(tmp_path)]) == 0
    verdicts = {p["name"]: (p["verdict"], p["sizes"]) for p in json.loads(out.read_text())["properties"]}
    proved = (
        "conserved",
        "consistent",
        "published_kept",
        "nothing_kept",
        "barrier_goes_round",
        "ends_once",
        "one_by_one",
    )
    assert verdicts == dict.fromkeys(proved, ("holds", "any"))
    assert run(["verify-certificate", str(certificate), "-q"]) == 0


@pytest.mark.long
def test_medium_holds() -> None:
    """Three records and two failures."""
    result = explore(SPEC.system(**SPEC.model.sizes["medium"]))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == (1406706, 5472990, 62)
