"""The life cycle of partitions: every expected verdict, with exact counts."""

from __future__ import annotations

from typing import Any

import pytest

from model_verdicts import established
from shares import share
from streamproof import Spec, reachable
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_models.partitions.machine import PartitionLifecycle
from streamproof_specs.partitions.properties import SPEC

COUNTS: dict[str | None, tuple[int, int, int]] = {
    None: (4942, 27025, 26),
    "release-on-consumption": (4834, 26723, 25),
    "read-then-finish": (5898, 34185, 28),
    "release-when-read": (364, 1892, 14),
    "close-connection-early": (478, 2483, 14),
    "rm-ignores-partitions": (381, 2054, 14),
    "stale-report": (396, 2092, 14),
    "no-heartbeat-cleanup": (347, 1780, 14),
    "no-shutdown-hook": (386, 1866, 14),
    "fire-and-forget": (355, 1770, 14),
    "unfenced-registration": (11565, 82252, 28),
    "unfenced-deployment": (478, 2568, 14),
    "unnoticed-loss": (355, 1799, 14),
    "readers-kept": (1231, 6800, 19),
    "cleanup-of-all-jobs": (43105, 395627, 26),
    "discarding": (10358, 66962, 23),
    "runtime": (46756, 384020, 23),
    "runtime-cluster": (3134, 25523, 18),
    "released-with-job": (3210, 25843, 18),
    "runtime-unanswered-promotion": (3536, 28588, 18),
    "unpromoted-read": (5564, 47232, 18),
    "grace": (9212, 53686, 26),
    "grace-without-fencing": (1408, 8785, 19),
    "unfenced-grace": (1246, 8046, 20),
    "released-taken-back": (17504, 124259, 29),
    "late-release": (10940, 66789, 27),
    "flink": (11063, 79792, 27),
    "flink-default": (1934, 12486, 21),
    "flink-repaired": (15921, 112417, 26),
    "flink-default-repaired": (5868, 36464, 25),
    "flink-lost-request": (5071, 38989, 27),
    "flink-timer": (1376, 8819, 20),
    "flink-cleanup-set": (2207, 15233, 20),
    "flink-no-timer": (1251, 7239, 19),
    "flink-all-repairs": (15921, 112417, 26),
    "flink-default-all-repairs": (5868, 36464, 25),
    "flink-listed-early": (2103, 14445, 18),
    "flink-endless-recovery": (2087, 14321, 18),
    "pipelined": (6365, 39335, 23),
    "caching": (6507, 38168, 26),
    "memory-only": (9969, 62996, 26),
    "persistent": (27364, 217285, 34),
    "pipelined-unreleased": (596, 3262, 13),
    "unanswered-promotion": (946, 5868, 17),
    "reported-once": (1542, 10635, 21),
}
"""Distinct states, generated states and depth, at the parameters that a variant is refuted at."""


@pytest.mark.parametrize("variant", share([None, *SPEC.model.variants], 10), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """Needed partitions are kept and others deleted; each broken rule shows in what is expected of it."""
    established(SPEC, variant, COUNTS[variant])


def test_every_property_has_a_variant_that_breaks_it() -> None:
    """No property is true whatever the rules are."""
    broken = {name for expected in SPEC.expected.values() for name in expected}
    assert broken == {function.__name__ for function in SPEC.properties} | {
        "grace_kept",
        "promoted_kept",
        "cluster_known",
        "cluster_partitions_only",
    }


@pytest.mark.parametrize(
    ("variant", "parameters", "counts"),
    share(
        [
            (None, {"executors": 2}, (327070, 3127697, 30)),
            (None, {"partitions": 2, "attempts": 1}, (14496, 89592, 25)),
            (None, {"jobs": 2, "partitions": 2, "attempts": 1, "crashes": 0}, (73821, 680169, 27)),
            ("grace", {"executors": 2, "attempts": 1}, (78976, 795135, 25)),
            ("pipelined", {"executors": 2, "crashes": 0, "failures": 0}, (65178, 639821, 22)),
            ("caching", {"consumers": 2}, (10769, 72531, 30)),
            ("memory-only", {"consumers": 2}, (17273, 124129, 30)),
            ("persistent", {"executors": 2, "attempts": 1, "crashes": 0, "failures": 0}, (87456, 968865, 26)),
        ],
        3,
    ),
    ids=str,
)
def test_the_machine_holds_at_other_sizes(
    variant: str | None, parameters: dict[str, int], counts: tuple[int, int, int]
) -> None:
    """With two TaskExecutors, partitions, consumers and jobs."""
    result = explore(SPEC.system(variant, **parameters))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == counts


@pytest.mark.parametrize(("variant", "expected"), [("flink-repaired", "holds"), ("flink-default-repaired", "violated")])
def test_a_recovery_gets_its_partitions_back(variant: str, expected: str) -> None:
    """The repairs leave job recovery what it is for: a JobMaster that recovers tracks a partition from before its crash."""

    @reachable
    def taken_back(m: Any, s: Any) -> Any:
        """It deploys nothing while it recovers."""
        return any(s.recovering[m.job_of[p]] and s.tracked[p] == "STORED" for p in range(m.partitions))

    found = explore(Spec(PartitionLifecycle, properties=(taken_back,)).system(variant)).finding("taken_back")
    assert found.verdict.value == expected


@pytest.mark.long
def test_the_counts_at_medium() -> None:
    """Two TaskExecutors, consumers, failures and recoveries: every property holds in more than a million states."""
    result = explore(SPEC.system(**SPEC.model.sizes["medium"]))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == (1315700, 13708297, 36)
