"""The machine of one execution attempt: every expected verdict, with exact counts."""

from __future__ import annotations

import pytest

from model_verdicts import established
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.mutation.judging import mutate
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


MUTANTS = {
    "stop: setting_up is not changed": "set_up_at_first",
    "cancel_task: 's.cancel_sent' left out": "cancelled_on_request",
    "disconnect: reports is not changed": "cut_loses_reports",
    "run: reports is not changed": "every_state_reported",
    "register: 's.setting_up' left out": "deployed_in_time",
    "fail: cancel_sent is not changed": "ended_for_cause",
    "register: never possible": "succeeds",
    "withdraw: never possible": "withdrawn",
    "crash: never possible": "fails_in_set_up",
    "fail: never possible": "given_up",
}
"""A change of a rule, and a property that notices it; no variant refutes these."""


def test_every_property_is_refuted_by_a_variant_or_a_mutant() -> None:
    """No property holds whatever the rules are."""
    refuted = {name for expected in SPEC.expected.values() for name in expected}
    assert refuted | {*MUTANTS.values()} == {p.name for p in SPEC.system().properties}
    found = mutate(SPEC.system(), SearchOptions(), only=lambda mutant: mutant.label in MUTANTS)
    assert {one.mutant.label for one in found.judged} == {*MUTANTS}
    assert [one.mutant.label for one in found.judged if MUTANTS[one.mutant.label] not in one.by] == []


@pytest.mark.parametrize("parameters", [{"partitions": 0}, {"partitions": 3}, {"may_cut": False}], ids=str)
def test_the_machine_holds_at_other_sizes(parameters: dict[str, int]) -> None:
    """Without partitions, with several, and with a connection that is never cut."""
    result = explore(SPEC.system(**parameters))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
