"""The machine that follows Flink's checkpoints is `checkpoint_views`, and each step of `checkpoints` is a sequence of its
steps, also as Flink 2.3 checks the job (`checks-then-creates`). A rule of either that never applies is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import streamproof_models.checkpoints.variants  # noqa: F401  (declaring a variant registers it)
from shares import share
from streamproof import System, require
from streamproof.conformance import StateReader, compile_model
from streamproof.conformance.validation import validate_paths
from streamproof.language.declare.primitives import MARK
from streamproof.system import Instance, build
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Conjunct
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


def sequence(before: StateReader, after: StateReader, ids: range) -> Iterator[tuple[str, int, bool]]:
    """The steps of `checkpoint_views` that a step of `checkpoints` is: action, checkpoint, whether it is stored."""
    changed = [(c, after("checkpoint", c)) for c in ids if after("checkpoint", c) != before("checkpoint", c)]
    for c, new in sorted(changed, key=lambda change: change[1] != "COMPLETED"):
        yield {"PENDING": "trigger", "COMPLETED": "complete", "ABORTED": "abort"}[new], c, new == "COMPLETED"
    if after("attempt") != before("attempt"):
        yield "restore", after("restored"), False
    if after("job") != before("job"):
        yield "change_job", 0, False


@dataclass
class Relation:
    """What a comparison of the two models finds."""

    taken: set[str] = field(default_factory=set)
    """Actions of `checkpoints` that were taken."""
    matched: set[str] = field(default_factory=set)
    """Actions of `checkpoint_views` that they are."""
    wrong: list[str] = field(default_factory=list)
    """Steps of `checkpoints` that are no sequence of steps of `checkpoint_views`."""


def related(model: System, views: System) -> Relation:
    """Follows every behaviour of `checkpoints` in `checkpoint_views`."""
    fine, coarse, found = Interpreter(model), Interpreter(views), Relation()
    (nothing,) = coarse.initial_states()
    frontier = [(state, nothing) for state in fine.initial_states()]
    known = {*frontier}
    ids = range(1, int(model.parameters["ids"]) + 1)
    moves: dict[Any, dict[tuple[Any, ...], Any]] = {}

    def moved(at: Any, action: str, c: int, stored: bool) -> Any:
        if at not in moves:
            moves[at] = {(s.instance.action, *sorted(dict(s.instance.args).items())): s.state for s in coarse.steps(at)}
        look = StateReader(views, at)
        places = open_places(look)
        free = next((p for p, state in enumerate(look("checkpoint")) if state == "NONE"), -1)
        p = places.get(c, free)
        more = {"trigger": {"savepoint": False}, "complete": {"stored": stored}}.get(action, {})
        args = {} if action == "change_job" else {"c": c} if action == "restore" else {"c": c, "p": p, **more}
        return moves[at].get((action, *sorted(args.items())))

    while frontier and not found.wrong:
        state, view = frontier.pop()
        before = StateReader(model, state)
        for step in fine.steps(state):
            found.taken.add(step.instance.action)
            after, at = StateReader(model, step.state), view
            for move in sequence(before, after, ids):
                to = moved(at, *move)
                if to is None:
                    found.wrong.append(f"{step.instance.action}: {move} is disabled in {at}")
                    break
                at = to
                found.matched.add(move[0])
            look = StateReader(views, at)
            pending = {c for c in ids if after("checkpoint", c) == "PENDING"}
            if not found.wrong and ({*open_places(look)} != pending or look("latest") != after("latest")):
                found.wrong.append(f"{step.instance.action} leads to {step.state}, and to {at}")
            if (step.state, at) not in known:
                known.add((step.state, at))
                frontier.append((step.state, at))
    return found


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


def sabotaged(system: System, name: str) -> System:
    """The system with an action that is never enabled."""

    def changed(instance: Instance) -> Instance:
        never = (Conjunct(build.FALSE, "never", None),)
        return replace(instance, guard=never) if instance.action == name else instance

    actions = tuple(replace(a, instances=tuple(map(changed, a.instances))) for a in system.actions)
    return replace(system, actions=actions)


@pytest.mark.parametrize(
    "name", share([n for n, rule in vars(Checkpoints).items() if hasattr(rule, MARK) and n != "done"], 5)
)
def test_a_rule_of_checkpoints_that_never_applies_is_noticed(name: str) -> None:
    """No rule of the verified model can be left out."""
    assert not is_complete(sabotaged(compile_model(Checkpoints(**SMALL)), name), views_of())


@pytest.mark.parametrize("name", share(sorted(SEEN), 3))
def test_a_rule_of_the_views_that_never_applies_is_noticed(name: str) -> None:
    """By the steps of the verified model that it has to match."""
    assert not is_complete(compile_model(Checkpoints(**SMALL)), sabotaged(views_of(), name))


@pytest.mark.parametrize(("name", "run"), [("is_pending", "tm12-kill"), ("expire", "tm12-kill")])
def test_a_shared_rule_that_never_applies_rejects_a_recorded_run(
    name: str, run: str, flink_live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules of `checkpoints` are those that judge."""
    assert {v.answer for v in validate_paths([flink_live / run], model="checkpoints")} == {"accepted"}

    def never(self: Any, s: Any, c: Any) -> bool:
        require(False)
        return False

    monkeypatch.setattr(CheckpointRules, name, never)
    binding._rules.cache_clear()
    try:
        assert {v.answer for v in validate_paths([flink_live / run], model="checkpoints")} == {"rejected"}
    finally:
        binding._rules.cache_clear()
