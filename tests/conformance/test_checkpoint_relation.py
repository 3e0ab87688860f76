"""The machine that follows Flink's checkpoints is `checkpoint_views`, and each step of `checkpoints` is a sequence of its
steps, also as Flink 2.3 checks the job (`checks-then-creates`). A rule of either that never applies is noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import step_sequences
import streamproof_models.checkpoints.variants  # noqa: F401  (declaring a variant registers it)
from shares import share
from step_sequences import Relation, never
from streamproof import System, require
from streamproof.conformance import StateReader, compile_model
from streamproof.conformance.validation import validate_paths
from streamproof.language.declare.primitives import MARK
from streamproof.system import Instance
from streamproof_models.checkpoints.machine import Checkpoints
from streamproof_models.checkpoints.rules import CheckpointRules
from streamproof_models.checkpoints.views import CheckpointViews
from streamproof_specs.checkpoints.flink import binding

SMALL = {"tasks": 1, "failures": 1, "faults": 1}
SEEN = {"trigger", "complete", "abort", "restore", "change_job"}
"""Actions of `checkpoint_views` that `checkpoints` has; the others are about savepoints, JobMasters, the end of the job, late
lines and the beginning of a log."""


def open_places(look: StateReader) -> dict[int, int]:
    """The place of each checkpoint whose end has no line yet."""
    return {c: place for place, c in enumerate(look("pending")) if c}


def sequence(
    step: Instance, before: StateReader, after: StateReader, views: Callable[[], StateReader]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The steps of `checkpoint_views` that a step of `checkpoints` is."""
    changed = [(c, after("checkpoint", c)) for c in ids(before) if after("checkpoint", c) != before("checkpoint", c)]
    for c, new in sorted(changed, key=lambda change: change[1] != "COMPLETED"):
        free = next((p for p, state in enumerate(views()("checkpoint")) if state == "NONE"), -1)
        args = {"c": c, "p": open_places(views()).get(c, free)}
        match new:
            case "PENDING":
                yield "trigger", {**args, "savepoint": False}
            case "COMPLETED":
                yield "complete", {**args, "stored": True}
            case _:
                yield "abort", args
    if after("attempt") != before("attempt"):
        yield "restore", {"c": after("restored")}
    if after("job") != before("job"):
        yield "change_job", {}


def ids(look: StateReader) -> range:
    """The checkpoints of `checkpoints`."""
    return range(1, len(look("checkpoint")) + 1)


def agrees(after: StateReader, views: StateReader) -> bool:
    """The same checkpoints are pending, and the same one is the latest."""
    pending = {c for c in ids(after) if after("checkpoint", c) == "PENDING"}
    return {*open_places(views)} == pending and views("latest") == after("latest")


def related(model: System, views: System) -> Relation:
    """Follows every behaviour of `checkpoints` in `checkpoint_views`."""
    return step_sequences.related(model, views, sequence, agrees)


def is_complete(model: System, views: System) -> bool:
    """Whether every rule of both takes part, and nothing contradicts."""
    found = related(model, views)
    return not found.wrong and found.taken == {a.name for a in model.actions} and found.matched == SEEN


def views_of() -> System:
    """`checkpoint_views` with as many checkpoints."""
    return compile_model(CheckpointViews(ids=2, places=2))


@pytest.mark.parametrize(
    ("variant", "parameters"),
    [
        (None, {}),
        ("checks-then-creates", {}),
        *(
            pytest.param(variant, {"concurrent": 2, **more}, marks=pytest.mark.long)
            for variant in (None, "checks-then-creates", "stale-plan")
            for more in ({}, {"tasks": 2}, {"failures": 2})
        ),
    ],
)
def test_every_step_of_checkpoints_is_a_sequence_of_steps_of_the_views(variant: str | None, parameters: Any) -> None:
    """In all reachable states; every action of both takes part."""
    assert is_complete(compile_model(Checkpoints.build(variant, **{**SMALL, **parameters})), views_of())


@pytest.mark.parametrize("variant", ["subsumed-kept", "completes-after-failure"])
def test_a_rule_that_is_left_out_is_no_sequence_of_steps(variant: str) -> None:
    """Checkpoints that should be aborted complete."""
    assert related(compile_model(Checkpoints.build(variant, failures=1, faults=1, concurrent=2)), views_of()).wrong


@pytest.mark.parametrize(
    "name", share([n for n, rule in vars(Checkpoints).items() if hasattr(rule, MARK) and n != "done"], 5)
)
def test_a_rule_of_checkpoints_that_never_applies_is_noticed(name: str) -> None:
    """No rule of the verified model can be left out."""
    assert not is_complete(never(compile_model(Checkpoints(**SMALL)), name), views_of())


@pytest.mark.parametrize("name", share(sorted(SEEN), 3))
def test_a_rule_of_the_views_that_never_applies_is_noticed(name: str) -> None:
    """By the steps of the verified model that it has to match."""
    assert not is_complete(compile_model(Checkpoints(**SMALL)), never(views_of(), name))


@pytest.mark.parametrize(("name", "run"), [("is_pending", "tm12-kill"), ("expire", "tm12-kill")])
def test_a_shared_rule_that_never_applies_rejects_a_recorded_run(
    name: str, run: str, flink_live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules of `checkpoints` are those that judge."""
    assert {v.answer for v in validate_paths([flink_live / run], model="checkpoints")} == {"accepted"}

    def never_applies(self: Any, s: Any, c: Any) -> bool:
        require(False)
        return False

    monkeypatch.setattr(CheckpointRules, name, never_applies)
    binding._rules.cache_clear()
    try:
        assert {v.answer for v in validate_paths([flink_live / run], model="checkpoints")} == {"rejected"}
    finally:
        binding._rules.cache_clear()
