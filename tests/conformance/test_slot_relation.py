"""The machine that follows Flink's slots is `slot_views`, and each step of `slot_pool` is a sequence of its steps.

A rule of either that never applies is noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import step_sequences
from shares import share
from step_sequences import Move, Relation, never
from streamproof import System, require
from streamproof.conformance import StateReader, compile_model
from streamproof.conformance.validation import validate_paths
from streamproof.language.declare.primitives import MARK
from streamproof.system import Instance
from streamproof_models.slots.logical import LogicalSlot
from streamproof_models.slots.pool import SlotPool
from streamproof_models.slots.rules import SlotRules
from streamproof_models.slots.views import SlotViews
from streamproof_specs.slots.flink.recorded_machine import slot_system

VIEWS = ("rm", "te", "jm", "task", "request")
FLINK_ONLY = {"unregister", "forget", "fail_allocation"}
"""Actions of `slot_views` that `slot_pool` does not have, or not with one slot: losses that one side notices first."""


def sequence(action: str, before: Callable[[str], Any], after: Callable[[str], Any]) -> Iterator[str]:
    """The steps of `slot_views` that a step of `slot_pool` is, from the values of the allocation before and after."""
    match action:
        case "receive_request":
            yield "receive_request"
            if after("te") == "ALLOCATED":
                yield "allocate"
        case "receive_ack" | "receive_available" | "receive_slot_report" if before("rm") != after("rm"):
            refused = action == "receive_ack" and after("rm") == "UNUSED"
            yield "receive_ack" if after("rm") == "ALLOCATED" else "fail_allocation" if refused else "free_allocation"
        case "offer" | "offer_again":
            yield "offer"
        case "receive_answer" if before("answer") == "ACCEPTED":
            if after("te") == "ACTIVE":
                yield "activate"
        case "receive_answer" | "receive_free" | "receive_held" | "receive_timeout":
            if before("te") != after("te"):
                yield "free_slot"
        case "stop_task":
            yield from ("end_task", "free_slot")
        case "receive_offer":
            yield "receive_offer"
            if before("jm") != after("jm"):
                yield "accept"
        case "deploy":
            yield from ("deploy", "activate", "receive_task")
        case "finish":
            yield from ("end_task", "free_reserved")
        case "abandon" | "release_idle" | "receive_failure" | "disconnect":
            if before("jm") == "RESERVED":
                yield "free_reserved"
            if before("jm") != "ABSENT":
                yield "release"
            if action == "disconnect":
                yield "disconnect"
                if before("te") == "ACTIVE":
                    yield "close_connection"
                if before("task"):
                    yield "end_task"
        case "start_allocation" | "reserve":
            yield action


def related(pool: System, views: System) -> Relation:
    """Follows every behaviour of `slot_pool` with one allocation in `slot_views`; an id that is used again is a new one."""

    def moves(step: Instance, before: StateReader, after: StateReader, _: Any) -> Iterator[Move]:
        return ((m, {}) for m in sequence(step.action, partial(before, key=0), partial(after, key=0)))

    def agrees(after: StateReader, look: StateReader) -> bool:
        return all(look(v, 0) == after(v, 0) for v in VIEWS)

    return step_sequences.related(pool, views, moves, agrees, lambda move: move == "start_allocation")


def is_complete(pool: System, views: System) -> bool:
    """Whether every rule of both takes part, and nothing contradicts."""
    found = related(pool, views)
    actions = {a.name for a in pool.actions}, {a.name for a in views.actions} - FLINK_ONLY
    return not found.wrong and (found.taken, found.matched) == actions


def views_of(**parameters: int) -> System:
    """`slot_views` that counts as many offers as `slot_pool`."""
    return compile_model(SlotViews(repeats=3, **parameters))


@pytest.mark.parametrize(
    "failures", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)]
)
def test_every_step_of_the_pool_is_a_sequence_of_steps_of_the_views(failures: int) -> None:
    """In all reachable states; every action of both takes part, but for those of losses."""
    assert is_complete(compile_model(SlotPool(failures=failures)), views_of())


def test_a_request_of_the_pool_is_a_logical_slot() -> None:
    """In all reachable states, also where a slot is lost and another request replaces the one that had it."""

    def moves(_: Instance, before: StateReader, after: StateReader, __: Any) -> Iterator[Move]:
        match requested(before), requested(after):
            case was, new if was == new:
                return
            case "", "REQUESTED":
                yield "request", {}
            case "REQUESTED", "ALLOCATED":
                yield "allocate", {}
            case "ALLOCATED", "REQUESTED":
                yield from (("remove", {}), ("request", {}))
            case _, "":
                yield "remove", {}

    def agrees(after: StateReader, logical: StateReader) -> bool:
        new = requested(after)
        return logical("slot") in ((new,) if new else ("NONE", "REMOVED"))

    pool, logical = compile_model(SlotPool(failures=1)), compile_model(LogicalSlot())
    found = step_sequences.related(pool, logical, moves, agrees, lambda move: move == "request")
    assert not found.wrong
    assert found.matched == {"request", "allocate", "remove"}


def requested(look: StateReader) -> str:
    """The state of the only request of `slot_pool`; empty without one."""
    return ("ALLOCATED" if look("jm", 0) == "RESERVED" else "REQUESTED") if look("required") else ""


POOL = [name for name, rule in vars(SlotPool).items() if hasattr(rule, MARK)]
VIEWS_RULES = [name for name, rule in vars(SlotViews).items() if hasattr(rule, MARK)]


@pytest.mark.parametrize("name", share(POOL, 14))
def test_a_rule_of_the_pool_that_never_applies_is_noticed(name: str) -> None:
    """No rule of the verified model can be left out."""
    assert not is_complete(never(compile_model(SlotPool(failures=1)), name), views_of())


@pytest.mark.parametrize("name", share([n for n in VIEWS_RULES if n not in FLINK_ONLY], 9))
def test_a_rule_of_the_views_that_never_applies_is_noticed(name: str) -> None:
    """By the steps of the verified model that it has to match."""
    assert not is_complete(compile_model(SlotPool(failures=1)), never(views_of(), name))


SHARED = ("start_allocation", "receive_request", "receive_task", "free_slot", "reserve", "deploy", "free_reserved")


def test_a_recorded_run_is_accepted_by_the_shared_rules(flink_logs: Path) -> None:
    """Which the next test changes."""
    assert {v.answer for v in validate_paths([flink_logs / "f-clean-batch-1"], model="slot_pool")} == {"accepted"}


@pytest.mark.parametrize("name", share(SHARED, 4))
def test_a_shared_rule_that_never_applies_rejects_a_recorded_run(
    name: str, flink_logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules of `slot_pool` are those that judge."""
    run = [flink_logs / "f-clean-batch-1"]

    def never_applies(self: Any, s: Any, a: Any) -> None:
        require(False)

    monkeypatch.setattr(SlotRules, name, never_applies)
    slot_system.cache_clear()
    try:
        assert {v.answer for v in validate_paths(run, model="slot_pool")} == {"rejected"}
    finally:
        slot_system.cache_clear()
