"""Bounds of an instance add behaviours and remove none: every trace with the smaller number is one with a larger number.

So a log that a larger number explains may be accepted, and one that another size explains may not.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from nonempty import nonempty
from shares import share
from small_models import SMALL
from streamproof.conformance import validate_paths
from streamproof.model_registry import bundled, find
from trace_inclusion import missing_trace

BOUNDS = [(model, name) for model in sorted(bundled()) for name in find(model).spec.model.instance_bounds]
DEFAULTS = {model: find(model).spec.model.parameters() for model, _ in BOUNDS}


def larger(model: str, name: str, number: int, most: int) -> Any:
    """A trace that is lost when a number is doubled, among the first states of a search."""
    sizes = {**SMALL.get(model, {}), name: number}
    return missing_trace(
        find(model).system(None, sizes), find(model).system(None, {**sizes, name: 2 * max(number, 1)}), most
    )


@pytest.mark.parametrize(("model", "name"), share(BOUNDS, 12))
def test_a_bound_removes_no_behaviour(model: str, name: str) -> None:
    """From the number of a small instance."""
    assert larger(model, name, SMALL.get(model, {}).get(name, DEFAULTS[model][name]), 300) is None


@pytest.mark.long
@pytest.mark.parametrize(("model", "name"), BOUNDS)
def test_a_bound_removes_no_behaviour_in_more_states(model: str, name: str) -> None:
    """Also from half of the largest number that logs are tried with."""
    default = DEFAULTS[model][name]
    for number in sorted({default, 2 * max(default, 1)}):
        assert larger(model, name, number, 3000) is None, number


@pytest.mark.parametrize(
    ("model", "name"), [("credit", "exclusive"), ("partition_lifecycle", "consumers"), ("checkpoints", "tasks")]
)
def test_other_numbers_are_no_bounds(model: str, name: str) -> None:
    """Something is possible with the smaller number only."""
    assert larger(model, name, DEFAULTS[model][name], 3000) is not None
    assert name not in find(model).spec.model.instance_bounds


def log(folder: Path, *events: str) -> Path:
    """A log of one sender."""
    lines = ({"trace": "c", "process": "p", "seq": n, "event": e, "args": {"c": 0}} for n, e in enumerate(events))
    file = folder / "log.ndjson"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_a_log_is_not_explained_by_other_rules(tmp_path: Path) -> None:
    """A second buffer without credit needs a second exclusive buffer, which is no bound of the instance."""
    (found,) = validate_paths([log(tmp_path, "produce", "produce", "send", "send")], model="credit")
    assert (found.answer, "exclusive=1" in (found.reason or "")) == ("inconclusive", True)
    (found,) = validate_paths([log(tmp_path, *["produce"] * 3)], model="credit")
    assert (found.answer, found.reason) == (
        "accepted",
        "with depth=4, which the log needs: more than the model's default",
    )


@pytest.mark.parametrize(("left", "size"), [([3, 4], "depth=4"), ([2, 2, 2, 1], "channels=4")])
def test_a_recorded_state_of_another_size_needs_larger_bounds(left: list[int], size: str, tmp_path: Path) -> None:
    """Values that do not fit the default sizes, or those of one attempt, end no validation."""
    line = {"trace": "c", "process": "p", "seq": 0, "event": "produce", "args": {"c": 0}, "state": {"to_produce": left}}
    file = tmp_path / "log.ndjson"
    file.write_text(json.dumps(line) + "\n")
    (found,) = validate_paths([file], model="credit")
    assert found.reason is None or size in found.reason, found.reason
    assert found.answer != "error"


def test_bounds_are_parameters() -> None:
    """Each is a number, named once."""
    for model, own in nonempty((m, [n for x, n in BOUNDS if x == m]) for m in DEFAULTS):
        assert {type(DEFAULTS[model][name]) for name in own} == {int}
        assert all(one != other for one, other in pairwise(sorted(own)))
