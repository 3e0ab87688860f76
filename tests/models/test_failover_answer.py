"""Restart oracle: regions, reads and restart sets against what Flink 2.3.0's own classes answered."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from streamproof_models.failover import oracle
from streamproof_models.failover.graph import JobGraphError
from streamproof_models.failover.oracle import job_graph
from streamproof_models.failover.topology import Topology

DATA = Path(__file__).parents[1] / "data" / "restart_oracle.jsonl.gz"
with gzip.open(DATA, "rt", encoding="utf-8") as _lines:
    CASES: list[dict[str, Any]] = [json.loads(line) for line in _lines]


def case_named(name: str) -> dict[str, Any]:
    """A copy of one case, free to be changed."""
    return copy.deepcopy(next(case for case in CASES if case["id"] == name))


def test_all_cases_are_there() -> None:
    """The committed oracle holds 200 random, 16 cyclic and 9 special cases."""
    kinds = [case["kind"] for case in CASES]
    assert (len(kinds), kinds.count("random"), kinds.count("cyclic"), kinds.count("special")) == (225, 200, 16, 9)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_answer_is_flinks(case: dict[str, Any]) -> None:
    """Regions and restart set are exactly Flink's."""
    expected = {"regions": case["flink"]["regions"], "restart": case["flink"]["restart"]}
    assert oracle.answer(case) == expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_reads_are_flinks(case: dict[str, Any]) -> None:
    """Every consumer subtask reads exactly the producer subtasks that Flink connects it with."""
    assert Topology(job_graph(case)).consumes() == case["flink"]["consumes"]


def test_a_cause_without_partition_is_not_needed() -> None:
    """A case without the field `cause` is answered as one with a generic cause."""
    case = next(case for case in CASES if case["cause"]["kind"] == "generic")
    assert oracle.answer({key: value for key, value in case.items() if key != "cause"}) == oracle.answer(case)


def test_a_partition_of_another_job_in_the_cause_changes_nothing() -> None:
    """An exception that names a partition which the job does not have is as good as a generic one."""
    case = case_named("s05")
    named = oracle.answer(case)["restart"]
    case["cause"]["partition"] = ["of another job", 0]
    stranger = oracle.answer(case)["restart"]
    case["cause"] = {"kind": "generic"}
    assert stranger == oracle.answer(case)["restart"]
    assert stranger != named


def test_vertices_in_any_order() -> None:
    """Listing the vertices backwards changes neither the regions nor the restart set."""
    for case in CASES:
        assert oracle.answer({**case, "vertices": case["vertices"][::-1]}) == oracle.answer(case)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("failed",), ["Z", 0], "the graph has no task ('Z', 0)"),
        (("failed",), "A", "'A' is not a pair of a name and a number"),
        (("unavailable",), [["d0", 9]], "the graph has no partition ('d0', 9)"),
        (("states", "A"), [], "vertex 'A' has 1 tasks, but the case gives states of 0 of them"),
        (("edges", 0, "pattern"), "RANDOM", "'RANDOM' is not a valid pattern; known are POINTWISE, ALL_TO_ALL"),
    ],
)
def test_a_malformed_case_gets_one_sentence(path: tuple[Any, ...], value: Any, message: str) -> None:
    """What is wrong with a case is said in one sentence that names the culprit."""
    case = case_named("r0000")
    place: Any = case
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(JobGraphError) as caught:
        oracle.answer(case)
    assert str(caught.value) == message


def test_a_missing_field_is_named() -> None:
    """A case without a required field is refused by the name of the field."""
    case = case_named("r0000")
    del case["unavailable"]
    with pytest.raises(JobGraphError, match=r"^the case lacks the field 'unavailable'$"):
        oracle.answer(case)
