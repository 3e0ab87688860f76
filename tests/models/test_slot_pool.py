"""Flink 2.3's slots: every expected verdict with exact counts; safety is proved for every size."""

from __future__ import annotations

import json
from typing import Any

import pytest

from model_verdicts import established
from shares import share
from streamproof import Spec, leads_to, temporal
from streamproof.base.options import SearchOptions
from streamproof.cli.verbs import run
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_models.slots.pool import SlotPool
from streamproof_specs.slots.pool import SPEC, excess, open_request

COUNTS = {
    None: (24236, 147633, 26),
    "unchecked-ticket": (9230, 51896, 22),
    "answer-overtakes": (2926, 15478, 23),
    "allocated-freed": (3066, 16666, 21),
    "pending-freed": (2030, 9990, 20),
    "stale-answer": (14786, 86032, 29),
    "no-reconciliation": (2426, 11496, 19),
    "silent": (6938, 38242, 22),
    "no-slot-report": (2240, 10497, 20),
    "never-idle": (1774, 8834, 21),
    "freed-with-task": (2796, 13735, 30),
    "budget-early": (1774, 8904, 21),
    "known-rejected": (9304, 52081, 22),
    "task-before-reply": (15276, 91155, 28),
    "return-voids-offers": (29880, 186723, 26),
    "active-once": (3122, 16898, 21),
    "task-overtakes": (4182, 24166, 23),
    "runtime": (56928, 1284307, 28),
}
"""Distinct states, generated states and depth, at the parameters that a variant is refuted with."""
SAFETY = ("budget", "task_in_slot", "counted", "rejection_current", "failed_gone", "kept")


@pytest.mark.parametrize("variant", share([None, *SPEC.model.variants], 2), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """The three views agree in the end; each omitted rule shows in what is expected of it."""
    established(SPEC, variant, COUNTS[variant])


def test_every_property_is_refuted_by_a_variant() -> None:
    """No property holds whatever the rules are."""
    refuted = {name for expected in SPEC.expected.values() for name in expected}
    assert refuted == {p.name for p in SPEC.system().properties}


@pytest.mark.long
@pytest.mark.parametrize(
    ("size", "properties", "counts"),
    [("medium", None, (2384256, 20210531, 39)), ("large", SAFETY, (14675682, 145321855, 40))],
)
def test_larger_sizes_hold(size: str, properties: tuple[str, ...] | None, counts: tuple[int, int, int]) -> None:
    """Two allocations compete for one slot; two of two slots, with the properties that need no cycles."""
    system = SPEC.system(**SPEC.model.sizes[size])
    result = explore(system, SearchOptions(properties=properties))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == counts


@pytest.mark.long
@pytest.mark.parametrize("variant", [None, "return-voids-offers"], ids=str)
def test_safety_is_proved_for_every_size(variant: str | None, tmp_path: Any) -> None:
    """For any number of allocations, slots, requirements and failures, with a certificate."""
    out, certificate = tmp_path / "proof.json", tmp_path / "proof.cert"
    words = ["prove", "slot_pool", "--any", "allocations,slots,demand,failures", "--certificate", str(certificate)]
    words += [] if variant is None else ["--variant", variant]
    assert run([*words, "-q", "--json", str(out), "--out", str(tmp_path)]) == 0
    verdicts = {p["name"]: (p["verdict"], p["sizes"]) for p in json.loads(out.read_text())["properties"]}
    assert verdicts == dict.fromkeys(SAFETY, ("holds", "any"))
    assert run(["verify-certificate", str(certificate)]) == 0


def test_a_task_before_the_reply_is_sound_without_repeated_offers() -> None:
    """What breaks `task-before-reply` is an offer that is older than the return of its slot."""
    result = explore(SPEC.system("task-before-reply", failures=0))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    trace = explore(SPEC.system("task-before-reply")).finding("kept").trace
    labels = [step.label.partition("(")[0] for step in trace.steps]
    assert labels.index("offer_again") < labels.index("abandon") < labels.index("receive_free")


@pytest.mark.long
def test_two_slots_that_are_used_in_turn() -> None:
    """What is promised while a requirement stays holds with two slots, too, and `never-idle` breaks it. Promised whatever is
    required it would not hold."""
    two = {"allocations": 2, "slots": 2, "demand": 2, "failures": 0}
    found = explore(SPEC.system(None, **two), SearchOptions(properties=("idle_released", "fulfilled")))
    assert found.counts.distinct == 1_833_624
    assert {f.verdict for f in found.findings} == {Verdict.HOLDS}
    broken = explore(SPEC.system("never-idle", **two), SearchOptions(properties=("idle_released",)))
    assert broken.finding("idle_released").verdict is Verdict.VIOLATED

    @temporal
    def always_released(m: Any, s: Any) -> Any:
        """Slots that are not required are released, whatever is required meanwhile."""
        return leads_to(excess(s), not excess(s))

    @temporal
    def always_fulfilled(m: Any, s: Any) -> Any:
        """No request is open at every moment."""
        return leads_to(s.required <= m.slots and open_request(s), not open_request(s))

    strong = Spec(SlotPool, properties=(always_released, always_fulfilled))
    assert {f.verdict for f in explore(strong.system(None, **two)).findings} == {Verdict.VIOLATED}
