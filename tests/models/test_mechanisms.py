"""Single mechanisms of the proposals, each a small model: every expected verdict with exact counts."""

from __future__ import annotations

from itertools import product

import pytest

from model_verdicts import established
from shares import share
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_models.regions.scheduling_types import CONSTRAINTS, OUTPUTS, SCHEDULING
from streamproof_specs.credit.shares import SPEC as SHARES
from streamproof_specs.credit.spans import SPEC as SPANS
from streamproof_specs.failover.budgets import SPEC as BUDGETS
from streamproof_specs.failover.cached import SPEC as CACHED
from streamproof_specs.failover.co_location import SPEC as CO_LOCATION
from streamproof_specs.failover.properties import SPEC as FAILOVER
from streamproof_specs.regions.scheduling_types import SPEC as TYPES
from streamproof_specs.regions.task_descriptors import SPEC as DESCRIPTORS

SPECS = (CACHED, BUDGETS, CO_LOCATION, TYPES, SHARES, SPANS, DESCRIPTORS)

COUNTS = {
    "cached_results": {
        None: (1900, 4017, 21),
        "no-downstream-restart": (3198, 6095, 23),
        "no-backtracking": (1446, 3014, 21),
        "always-backtracks": (1381, 3308, 20),
        "from-the-start": (1733, 4032, 22),
        "dropped-at-trigger": (2626, 5429, 24),
        "never-dropped": (2042, 4233, 21),
        "memory-only": (2199, 4491, 21),
        "checkpoint-goes-on": (2132, 4487, 21),
        "stale-snapshots": (5269, 9588, 22),
        "barrier-not-cached": (1531, 3443, 20),
        "no-backtracking-unlimited": (1329, 3110, 21),
    },
    "failure_budgets": {
        None: (5507, 9846, 33),
        "missing-inputs-unhandled": (4420, 7623, 33),
        "missing-inputs-count": (4520, 7723, 33),
        "restarts-count": (3691, 6508, 33),
        "total-failures": (2403, 3486, 30),
        "forgotten-by-restart": (6914, 12468, 33),
    },
    "co_location": {
        None: (30367, 81907, 25),
        "any-place": (33047, 91931, 25),
        "locked-forever": (16515, 43867, 25),
        "locked-to-the-lost": (99871, 234691, 25),
        "one-region": (13577, 32911, 24),
        "constraints-in-regions": (13577, 32911, 24),
        "constraints-in-regions-unmerged": (3, 3, 2),
    },
    "scheduling_types": {
        None: (46, 87, 15),
        "bounded-on-complete-output": (9, 13, 5),
        "unbounded-on-complete-output": (9, 13, 5),
        "blocking-on-first-output": (51, 91, 15),
        "blocking-all-at-once": (38, 63, 13),
        "blocking-any-input": (32, 37, 15),
        "bounded-with-few-slots": (9, 13, 5),
        "unbounded-all-at-once": (37, 74, 12),
        "unbounded-on-first-output": (34, 64, 14),
        "bounded-all-at-once": (51, 101, 13),
        "blocking-on-complete-output": (26, 31, 15),
    },
    "buffer_shares": {
        None: (102, 432, 9),
        "weak-requests": (102, 432, 9),
        "divided": (102, 432, 9),
        "overcommitted": (19, 55, 6),
        "first-takes-all": (102, 428, 9),
        "not-redistributed": (463, 2101, 11),
        "shares-rounded-down": (102, 403, 9),
        "excess-kept": (102, 469, 9),
    },
    "record_spans": {
        None: (7120, 24295, 20),
        "shared-deserialiser": (12028, 38565, 21),
        "partial-kept": (7200, 24421, 20),
        "rest-not-skipped": (10400, 34501, 20),
        "buffer-skipped": (7360, 24673, 20),
        "dropped-when-full": (13338, 45241, 23),
        "no-spanning": (3, 3, 2),
    },
    "task_descriptors": {
        None: (379, 1284, 12),
        "deleted-when-fetched": (283, 792, 12),
        "deleted-with-first": (431, 1380, 12),
        "keyed-by-region": (699, 2432, 12),
        "no-eviction": (455, 1388, 12),
        "never-deleted": (427, 1354, 12),
        "kept-after-job": (374, 1260, 10),
    },
}
"""Distinct states, generated states and depth, at the parameters that a variant is refuted with."""

MEDIUM = {
    "cached_results": (129024, 345690, 32),
    "failure_budgets": (97741, 191981, 49),
    "co_location": (952120, 2952709, 29),
    "scheduling_types": (540, 1593, 27),
    "buffer_shares": (178, 787, 11),
    "record_spans": (109807, 411935, 29),
    "task_descriptors": (6994, 40873, 16),
}
"""The same at size medium, without a variant."""


@pytest.mark.parametrize(
    ("name", "variant"), share([(name, v) for name, variants in COUNTS.items() for v in variants], 8), ids=str
)
def test_every_expected_verdict_is_established(name: str, variant: str | None) -> None:
    """The default rules have all properties; each variant violates what is expected of it, and nothing else."""
    spec = next(s for s in SPECS if s.model.name == name)
    established(spec, variant, COUNTS[name][variant])


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.model.name)
def test_every_variant_is_tried(spec) -> None:  # type: ignore[no-untyped-def]
    """The counts have a line for each."""
    assert set(COUNTS[spec.model.name]) == {None, *spec.model.variants}


@pytest.mark.parametrize("spec", share(SPECS, 2), ids=lambda spec: spec.model.name)
def test_medium_holds(spec) -> None:  # type: ignore[no-untyped-def]
    """Also with more records, failures and buffers."""
    result = explore(spec.system(**spec.model.sizes["medium"]))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == MEDIUM[spec.model.name]


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        (CACHED, (676548, 2244329, 38)),
        (SHARES, (1066, 6225, 14)),
        pytest.param(DESCRIPTORS, (263423, 1404515, 20), marks=pytest.mark.long),
    ],
)
def test_large_holds(spec, counts: tuple[int, int, int]) -> None:  # type: ignore[no-untyped-def]
    """A tree with two sinks; four pools."""
    result = explore(spec.system(**spec.model.sizes["large"]))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == counts


def violated(spec, variant=None, **parameters):  # type: ignore[no-untyped-def]
    """The names of the violated properties."""
    return {f.property for f in explore(spec.system(variant, **parameters)).findings if f.verdict is Verdict.VIOLATED}


ENOUGH, ONE = {"slots": 3}, {"slots": 1}


def test_the_table_of_output_and_scheduling_types() -> None:
    """With a slot for each task, the combinations that the article calls valid, and those that it leaves open, are; the
    others stop, or hold a slot in vain. With one slot only blocking results are, of which the consumer awaits all."""
    found = {
        types: violated(TYPES, output=types[0], scheduling=types[1], constraint=types[2], **ENOUGH)
        for types in product(OUTPUTS, SCHEDULING, CONSTRAINTS)
    }
    stops, vain = {"everything_read", "deadlock"}, {"slot_in_use"}
    assert found == {
        (output, scheduling, constraint): stops
        if output != "blocking" and scheduling == "complete-output"
        else vain
        if output == "blocking" and scheduling != "complete-output"
        else set()
        for output, scheduling, constraint in product(OUTPUTS, SCHEDULING, CONSTRAINTS)
    }
    fine = [
        types
        for types in product(OUTPUTS, SCHEDULING, CONSTRAINTS)
        if not violated(TYPES, output=types[0], scheduling=types[1], constraint=types[2], **ONE)
    ]
    assert fine == [("blocking", "first-output", "ALL"), ("blocking", "complete-output", "ALL")]


def test_what_determinism_is_good_for() -> None:
    """FLIP-1: if outputs do not differ, the other consumers of a restarted producer need not restart. That is so if the
    results that they read are kept, unless two of them read one lost result."""
    assert violated(FAILOVER, "no-downstream-restart", deterministic=True) == {"survives"}
    for topology in ("diamond", "chain", "join", "mixed"):
        assert violated(FAILOVER, "no-downstream-restart-kept", topology=topology) == set()
    assert violated(FAILOVER, "no-downstream-restart-kept", deterministic=False) == {"consistent_result"}
    assert violated(FAILOVER, "no-downstream-restart-kept", topology="tee") == {"survives"}
    assert violated(CACHED, "no-downstream-restart", deterministic=True) == {"deadlock", "finishes"}
