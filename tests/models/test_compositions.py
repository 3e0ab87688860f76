"""Compositions of two protocols: every expected verdict with exact counts, and what each part does alone."""

from __future__ import annotations

from typing import Any

import pytest

from model_verdicts import established
from shares import share
from streamproof import Spec
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.system import System, Verdict
from streamproof_specs.baton.properties import SPEC as BATON
from streamproof_specs.compositions.baton_channels import SPEC as BATON_CHANNELS
from streamproof_specs.compositions.lifecycle_failover import SPEC as LIFECYCLE_FAILOVER
from streamproof_specs.compositions.region_slots import SPEC as REGION_SLOTS

COUNTS = {
    "baton_channels": {
        None: (3023, 7454, 30),
        "weak": (3023, 7454, 30),
        "bounded": (93, 175, 15),
        "bounded-without-end": (26, 76, 8),
        "dropped": (746, 1468, 21),
        "one-too-many": (5022, 14845, 27),
        "no-dirty-check": (3377, 8129, 30),
    },
    "lifecycle_failover": {
        None: (139134, 500609, 51),
        "released-when-read": (181858, 657361, 51),
        "release-on-consumption": (2021, 5182, 45),
        "close-connection-early": (541, 1321, 30),
        "rm-ignores-partitions": (533, 1373, 30),
        "unnoticed-loss": (437, 1036, 30),
        "no-heartbeat-cleanup": (531, 1106, 29),
        "region-without-backtracking": (446, 1113, 22),
        "unreported-loss": (408, 961, 30),
    },
    "region_slots": {
        None: (13034, 35441, 39),
        "one-by-one": (46336, 117021, 39),
        "consumers-later": (8800, 22535, 40),
        "eager": (118, 189, 23),
        "merge-within-logical-region-only": (38, 61, 7),
        "literal": (12390, 32777, 40),
        "synchronous-announcement": (7274, 18053, 39),
    },
}
"""Model -> variant -> distinct states, generated states and depth at small."""

SPECS = {"baton_channels": BATON_CHANNELS, "lifecycle_failover": LIFECYCLE_FAILOVER, "region_slots": REGION_SLOTS}
SMALL = [(name, variant) for name, counts in COUNTS.items() for variant in counts]


def verdicts(system: System, *properties: str) -> dict[str, Verdict]:
    """The verdict of each property, or of those named."""
    findings = explore(system, SearchOptions(properties=properties) if properties else SearchOptions()).findings
    return {f.property: f.verdict for f in findings}


def all_hold(system: System) -> bool:
    """Whether every property holds."""
    return set(verdicts(system).values()) == {Verdict.HOLDS}


@pytest.mark.parametrize(("name", "variant"), share(SMALL, 5), ids=str)
def test_every_expected_verdict_is_established(name: str, variant: str | None) -> None:
    """The composition holds; each variant violates exactly what its specification says."""
    spec = SPECS[name]
    established(spec, variant, COUNTS[name][variant])


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_every_property_has_a_variant_that_breaks_it(spec: Spec) -> None:
    """No property is true whatever the rules are; and every variant is in the table above."""
    assert set(spec.model.variants) == set(COUNTS[spec.model.name]) - {None}
    broken = {name for expected in spec.expected.values() for name in expected}
    assert broken == {p.name for p in spec.system().properties}


LARGER = {
    ("baton_channels", "medium"): (1251967, 5194033, 70),
    ("lifecycle_failover", "medium"): (3386692, 12438531, 58),
    ("region_slots", "medium"): (1740008, 6766921, 59),
    ("baton_channels", "large"): (13076015, 58519737, 98),
    ("lifecycle_failover", "large"): (16061036, 68331575, 59),
    ("region_slots", "large"): (34222060, 145586373, 60),
}


@pytest.mark.long
@pytest.mark.parametrize(("name", "size"), LARGER, ids=str)
def test_larger_compositions_hold(name: str, size: str) -> None:
    """All properties, temporal ones included, hold at the larger sizes."""
    spec = SPECS[name]
    result = explore(spec.system(**spec.model.sizes[size]))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == LARGER[name, size]


@pytest.mark.parametrize("variant", ["bounded", "bounded-without-end"])
@pytest.mark.parametrize("work", share([2, 1, 3, 4], 4))
def test_composed_channels_are_the_bounded_channels_of_the_baton(variant: str, work: int) -> None:
    """Two descriptions of one protocol: channels as parts, and channels whose capacity is a rule of the baton."""
    composed = explore(BATON_CHANNELS.system(variant, work=work), SearchOptions(properties=("baton.nothing_lost",)))
    single = explore(BATON.system(variant, topology="loop", work=work), SearchOptions(properties=("nothing_lost",)))
    assert composed.counts.distinct == single.counts.distinct
    assert composed.counts.generated == single.counts.generated


@pytest.mark.long
def test_only_the_baton_fills_the_last_buffers() -> None:
    """Three records alone never deadlock without a disk; with a baton, two do."""
    found = {
        (variant, work): verdicts(BATON_CHANNELS.system(variant, work=work), "deadlock")["deadlock"]
        for variant in ("bounded", "bounded-without-end")
        for work in (1, 2, 3, 4)
    }
    free = {key for key, verdict in found.items() if verdict is Verdict.HOLDS}
    assert free == {("bounded", 1)} | {("bounded-without-end", work) for work in (1, 2, 3)}


@pytest.mark.parametrize(
    ("variant", "parameters"),
    share(
        [
            ("consumers-later", {"topology": "pipelined-pair", "instances": 2}),  # a single region
            ("one-by-one", {"instances": 4}),
            ("one-by-one", {"instances": 3}),  # one slot less than there are tasks
        ],
        2,
    ),
    ids=str,
)
def test_gangs_need_two_regions_and_too_few_slots(variant: str, parameters: dict[str, Any]) -> None:
    """Slots that are requested one by one are harmless if all regions fit but for one task, and for a single region."""
    found = verdicts(REGION_SLOTS.system(variant, **parameters), "job.completed", "deadlock")
    assert set(found.values()) == {Verdict.HOLDS}


@pytest.mark.parametrize("smaller", share([{"topology": "pair"}, {"executors": 1}], 2), ids=str)
def test_a_released_partition_costs_nothing_in_a_smaller_case(smaller: dict[str, Any]) -> None:
    """With two tasks nothing is downstream of the reader; one TaskExecutor loses both partitions: Flink's rule is as good."""
    assert all_hold(LIFECYCLE_FAILOVER.system("released-when-read", **smaller))


def test_regions_with_pipelined_exchanges_fail_over() -> None:
    """A producer that is pipelined with another task restarts together with it."""
    assert all_hold(LIFECYCLE_FAILOVER.system(topology="mixed", executors=1))


def test_a_job_graph_that_the_composition_does_not_support_is_rejected() -> None:
    """A partition with several readers, or a task with several partitions."""
    with pytest.raises(Exception, match="several"):
        LIFECYCLE_FAILOVER.system(topology="tee")
    with pytest.raises(Exception, match="needs 2 slots"):
        REGION_SLOTS.system(instances=1)
