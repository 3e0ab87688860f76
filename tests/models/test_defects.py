"""Small models of single defects of Flink: each has its verdicts before and after the fix, with exact counts."""

from __future__ import annotations

import pytest

from model_verdicts import established
from streamproof import Spec
from streamproof.explicit.exploration import explore
from streamproof.model_registry import find
from streamproof.system import Verdict

COUNTS = {
    "blocking_result": {None: (38, 49, 13), "without-spare": (24, 27, 9), "kept-at-end": (4, 4, 4)},
    "job_restarts": {
        None: (199, 329, 12),
        "always-fails": (10, 12, 4),
        "restores-nothing": (77, 94, 8),
        "failed-tracked": (53, 58, 8),
    },
    "late_readers": {
        None: (847, 1984, 14),
        "signals-all": (73, 123, 13),
        "never-signalled": (151, 280, 8),
        "stale-entries": (3527, 9161, 21),
    },
    "slot_offers": {
        None: (192, 439, 17),
        "not-offered-again": (17, 19, 15),
        "accepts-any-slot": (61, 109, 14),
        "used-after-time-out": (31, 44, 16),
    },
    "split_assignment": {
        None: (661, 1239, 17),
        "ignores-events": (77, 113, 12),
        "forgets-failed": (73, 104, 12),
        "end-with-splits": (27, 35, 9),
    },
    "buffer_pool": {None: (27, 43, 8), "without-reserve": (8, 9, 5), "unused-dropped": (14, 17, 7)},
    "partition_states": {None: (45, 66, 17), "named-only": (19, 20, 12), "named-only-waiting": (10, 10, 6)},
    "region_placement": {None: (13, 13, 13), "waits-for-all": (2, 2, 2), "unfinished-input": (10, 13, 7)},
    "shared_slot": {None: (49, 85, 11), "removes-any": (7, 7, 6), "waits-for-release": (4, 4, 3)},
}
"""Distinct states, generated states and depth, at the parameters that a variant is refuted at."""
LARGER = {
    "blocking_result": [{"subpartitions": 1, "records": 0}, {"subpartitions": 3, "records": 7}],
    "job_restarts": [{"tasks": 1, "restarts": 0}, {"tasks": 3, "restarts": 4}],
    "late_readers": [{"readers": 1}, {"splits": 0}, {"readers": 4, "splits": 3}],
    "slot_offers": [{"slots": 1, "faults": 0}, {"slots": 1, "faults": 3}, {"slots": 3, "faults": 3}],
    "split_assignment": [{"splits": 1, "faults": 0}, {"splits": 3, "checkpoints": 1}, {"splits": 2, "faults": 3}],
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
        ("job_restarts", "always-fails", "deadlock", ["fail(t=0)", "cancel_job()"]),
        ("job_restarts", "restores-nothing", "restores_for_tasks", ["fail(t=0)", "fail_globally()", "restart(d=1)"]),
        ("job_restarts", "failed-tracked", "none_leaked", ["fail(t=0)", "restart(d=1)"]),
        (
            *("split_assignment", "ignores-events", "none_is_lost"),
            [
                "register()",
                "ask()",
                "assign(x=0)",
                "store_coordinator()",
                "lose(x=0)",
                "store_reader()",
                "time_out(x=0)",
                "fail_over()",
            ],
        ),
        (
            *("split_assignment", "forgets-failed", "none_is_lost"),
            [
                "register()",
                "ask()",
                "assign(x=0)",
                "lose(x=0)",
                "time_out(x=0)",
                "store_coordinator()",
                "store_reader()",
                "fail_over()",
            ],
        ),
        (
            *("split_assignment", "end-with-splits", "deadlock"),
            ["register()", "take(x=0)", "ask()", "crash()", "register()", "ask()"],
        ),
        (
            *("late_readers", "stale-entries", "none_orphaned"),
            [
                "request(r=0)",
                "read(x=0)",
                "request(r=0)",
                "finish(r=0)",
                "request(r=1)",
                "finish(r=1)",
                "report(r=1)",
                "fail(r=0)",
                "request(r=2)",
            ],
        ),
        (
            *("slot_offers", "not-offered-again", "none_forgotten"),
            ["request(i=0)", "offer_slot(i=0)", "lose_offer(i=0)", "receive_answer(i=0)"],
        ),
        (
            *("slot_offers", "accepts-any-slot", "none_forgotten"),
            [
                "request(i=0)",
                "request(i=1)",
                "offer_slot(i=0)",
                "offer_slot(i=1)",
                "receive_offer(i=0)",
                "receive_offer(i=1)",
                "receive_answer(i=1)",
            ],
        ),
        (
            *("slot_offers", "used-after-time-out", "owned_active"),
            [
                "request(i=0)",
                "offer_slot(i=0)",
                "receive_offer(i=0)",
                "receive_answer(i=0)",
                "release_slot(i=0)",
                "receive_release(i=0)",
                "lose_answer(i=0)",
                "end_release(i=0)",
            ],
        ),
        ("blocking_result", "without-spare", "deadlock", ["request(p=0)", "write(p=0)", "request(p=1)", "write(p=1)"]),
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
