"""The machine of one credit channel: every expected verdict, with exact counts, and what its parameters reach."""

from __future__ import annotations

from typing import Any

import pytest

from model_verdicts import established
from shares import share
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_specs.credit_channel.properties import SPEC, UNSEEN

COUNTS = {
    None: (119856, 803768, 42),
    "barrier-passes": (155078, 1036022, 41),
    "doubled-credit": (144890, 978658, 42),
    "flink": (269062, 1886684, 43),
    "outlined": (102808, 781940, 33),
    "renumbered": (214000, 1453081, 46),
    "unpaid": (423734, 2975999, 41),
}
"""Distinct states, generated states and depth."""


@pytest.mark.parametrize("variant", share([None, *SPEC.model.variants], 6), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """Credit is conserved and nothing overflows; each broken rule shows in what is expected of it."""
    established(SPEC, variant, COUNTS[variant])


BATCH = {"exclusive": 0, "pipelined": False, "produced": 1, "threads": 2}
NEVER_PAID = {"release_floating_buffers", "on_empty_buffer", "receive_backlog_announcement", "announce_backlog"}
"""What only a channel without exclusive buffers does."""


@pytest.mark.parametrize(
    ("parameters", "never"),
    share(
        [
            ({"exclusive": 0, "produced": 1}, {"send_stored", "poll_priority"}),
            (BATCH, {"release_subpartition", "add", "send_data", "send_event", "poll_priority"}),
            ({"overtaking": True, "produced": 1}, {"send_stored", *NEVER_PAID}),
        ],
        3,
    ),
)
def test_the_properties_hold_in_every_mode(parameters: dict[str, Any], never: set[str]) -> None:
    """Without exclusive buffers, from a stored partition, with urgent events: all holds, and each rule has its place."""
    result = explore(SPEC.system(None, **parameters))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert set(result.coverage.never) == never


@pytest.mark.long
def test_the_properties_hold_with_the_calls_that_are_rare_in_flink() -> None:
    """Also without exclusive buffers, and if a request to cancel may come before the release, but that it may come early;
    recorded channels are followed by these rules."""
    for parameters in ({"late_release": True, "produced": 1}, {"exclusive": 0, "produced": 1}, BATCH):
        result = explore(SPEC.system("flink", **parameters))
        assert {f.property for f in result.findings if f.verdict is not Verdict.HOLDS} == {*SPEC.expected["flink"]}
        assert not {"refuse", "retrigger_request"} & set(result.coverage.never)


@pytest.mark.long
def test_messages_alone_do_not_show_conserved_credit_without_exclusive_buffers() -> None:
    """With them all holds that messages show, also if a request to cancel may come before the release."""
    findings = explore(SPEC.system("outlined", late_release=True)).findings
    assert {f.property for f in findings if f.verdict is not Verdict.HOLDS} == {*UNSEEN}
    found = explore(SPEC.system("outlined", exclusive=0), SearchOptions(properties=("conserved",)))
    assert found.finding("conserved").verdict is Verdict.VIOLATED
