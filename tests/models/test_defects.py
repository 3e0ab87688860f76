"""Small models of single defects of Flink: each has its verdicts before and after the fix, with exact counts."""

from __future__ import annotations

import pytest

from model_verdicts import established
from streamproof import Spec
from streamproof.explicit.exploration import explore
from streamproof.model_registry import find
from streamproof.system import Verdict

COUNTS = {
    "buffer_pool": {None: (27, 43, 8), "without-reserve": (8, 9, 5), "unused-dropped": (14, 17, 7)},
    "partition_states": {None: (45, 66, 17), "named-only": (19, 20, 12), "named-only-waiting": (10, 10, 6)},
    "region_placement": {None: (13, 13, 13), "waits-for-all": (2, 2, 2), "unfinished-input": (10, 13, 7)},
    "shared_slot": {None: (49, 85, 11), "removes-any": (7, 7, 6), "waits-for-release": (4, 4, 3)},
}
"""Distinct states, generated states and depth, at the parameters that a variant is refuted at."""
LARGER = {
    "buffer_pool": [{"channels": 1, "segments": 1}, {"channels": 3, "segments": 1}, {"channels": 3, "segments": 3}],
    "partition_states": [{"inputs": 1}, {"inputs": 4, "losses": 0}, {"inputs": 3, "losses": 4}],
    "region_placement": [{"regions": 1, "groups": 1}, {"regions": 5, "groups": 1}, {"regions": 7, "groups": 4}],
    "shared_slot": [{"requests": 1, "allocations": 1}, {"requests": 2, "allocations": 3}],
}


def spec(model: str) -> Spec:
    """The specification of a bundled model."""
    return find(model).spec


@pytest.mark.parametrize(("model", "variant"), [(m, v) for m, counts in COUNTS.items() for v in counts])
def test_every_expected_verdict_is_established(model: str, variant: str | None) -> None:
    """Before the fix the defect shows, and nothing else does; after it all properties hold."""
    assert set(COUNTS[model]) == {None, *spec(model).model.variants}
    established(spec(model), variant, COUNTS[model][variant])


@pytest.mark.parametrize(("model", "parameters"), [(m, p) for m, rows in LARGER.items() for p in rows], ids=str)
def test_the_fix_at_other_sizes(model: str, parameters: dict[str, int]) -> None:
    """After the fix all properties hold at smaller and larger sizes."""
    result = explore(spec(model).system(**parameters))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}


@pytest.mark.parametrize(
    ("model", "variant", "property", "story"),
    [
        ("buffer_pool", "without-reserve", "served", ["create()", "request(c=0)", "recycle_to_global()"]),
        (
            *("shared_slot", "removes-any", "returned"),
            [
                "allocate(r=0)",
                "begin_release(i=(0, 0))",
                "allocate_again(i=(0, 0))",
                "release_child(i=(0, 0))",
                "end(r=0)",
            ],
        ),
        ("region_placement", "waits-for-all", "deadlock", ["schedule(t=0)"]),
        (
            *("partition_states", "named-only", "successful"),
            ["start()", "lose_executor()", "miss(p=0)", "fail_over()", "produce(p=0)", "start()", "miss(p=1)"],
        ),
    ],
)
def test_the_counterexample_reads_like_the_report(model: str, variant: str, property: str, story: list[str]) -> None:
    """The steps of the shortest counterexample are those of the description of the defect."""
    trace = explore(spec(model).system(variant)).finding(property).trace
    assert trace is not None
    assert [step.label for step in trace.steps] == story
