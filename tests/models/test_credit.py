"""The machine of credit-based flow control: every expected verdict, with exact counts."""

from __future__ import annotations

import pytest

from model_verdicts import established
from shares import share
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_specs.credit.properties import SPEC

COUNTS = {
    None: (8313, 48363, 27),
    "credit-before-free": (313, 1054, 18),
    "floating-leak": (586, 2437, 15),
    "uncounted-lending": (529, 2393, 15),
    "lost-announcement": (136, 423, 14),
    "lost-buffer": (137, 425, 14),
    "zero-exclusive": (261, 1077, 19),
    "zero-exclusive-reading": (500, 1141, 29),
    "zero-exclusive-silent": (4, 5, 3),
    "any-backlog": (8473, 51467, 29),
    "runtime": (182961, 1028195, 37),
    "no-credit": (1785, 8895, 19),
}
"""Distinct states, generated states and depth, at the parameters that a variant is refuted at."""


@pytest.mark.parametrize("variant", share([None, *SPEC.model.variants], 2), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """Buffers are conserved and no channel stops another; each broken rule shows in what is expected of it."""
    established(SPEC, variant, COUNTS[variant])


def test_every_property_has_a_variant_that_breaks_it() -> None:
    """No property is true whatever the rules are."""
    broken = {name for expected in SPEC.expected.values() for name in expected}
    assert broken == {function.__name__ for function in SPEC.properties} | {"deadlock"}


@pytest.mark.parametrize(
    ("parameters", "distinct"),
    [({"floating": 0}, 2601), ({"channels": 1, "depth": 4}, 639), ({"exclusive": 2, "depth": 1}, 540)],
    ids=str,
)
def test_the_machine_holds_at_other_sizes(parameters: dict[str, int], distinct: int) -> None:
    """Without a pool, with one channel, and with more buffers than there is to send."""
    result = explore(SPEC.system(**parameters))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert result.counts.distinct == distinct


def test_the_counts_at_medium() -> None:
    """Three channels and two floating buffers: the safety properties hold in all of more than a million states."""
    safety = ("conservation", "no_overflow", "pool_conserved", "within_limit")
    result = explore(SPEC.system(**SPEC.model.sizes["medium"]), SearchOptions(properties=safety))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == (1236699, 11102092, 40)
