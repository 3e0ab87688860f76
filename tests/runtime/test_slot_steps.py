"""The machine of a recorded job's slots is the variant `runtime` of `slot_pool`, with several TaskExecutors.

Each step of that variant is a step of `slot_pool`, but for what is listed with its reason."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from changed_logs import Records, verdicts
from sabotage import judged_with, without_action
from shares import share
from slot_runs import BEGIN, simulated, slot_events
from step_sequences import Matched, matched
from streamproof import Spec, System, refines
from streamproof.conformance import compile_model
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_models.slots.pool import SlotPool
from streamproof_models.slots.runtime_rules import ReplacedOwners
from streamproof_specs.slots.runtime.binding import BINDING
from streamproof_specs.slots.runtime.recorded_machine import RecordedSlotPool

BEYOND = {
    "deploy": "the TaskExecutor gets a task, the JobMaster has reserved the slot, perhaps in vain",
    "end_task": "the TaskExecutor's part of `finish`",
    "finish": "the JobMaster's part",
    "lose_jobmaster": "the TaskExecutor's part of `disconnect`",
    "drop": "the JobMaster's part",
    "receive_requirement": "the requirement travels",
    "forget": "the ResourceManager loses the connection to a TaskExecutor",
    "replace_manager": "a new ResourceManager knows nothing",
    "receive_report": "it learns of allocations from reports, which were sent at another time",
    "replace_jobmaster": "a new JobMaster has nothing",
    "receive_list": "its list was sent at another time",
    "lose_request": "messages are lost with their connection, or have not arrived when a process ends",
    "lose_ack": "likewise",
    "lose_offer": "likewise",
    "lose_answer": "likewise",
    "lose_failure": "likewise",
}
"""Actions with a step that `slot_pool` does not have."""


class Unbounded(SlotPool):
    """With any number of failures."""

    def happens(self, s):  # type: ignore[no-untyped-def]
        """The number is a bound of the instance."""


class Compared(RecordedSlotPool):
    """The machine of a recorded job."""

    @refines(ReplacedOwners, **{n: n for n in ("allocations", "slots", "demand", "failures", "repeats")})
    def same(self, s):  # type: ignore[no-untyped-def]
        """With one TaskExecutor."""
        return {"free_slots": s.free_slots[0]}


FINE = compile_model(ReplacedOwners(failures=0, repeats=1), without_properties=True)

NEEDLESS = {
    ("receive_timeout", "s.timer[a] != 'NONE'"): "without a time-out nothing happens",
    ("release_idle", "s.jm[a] == 'FREE'"): "with one allocation the next condition implies it",
    ("declare", "s.declared != s.required"): "nothing changes",
}
"""Guards without which no action has another step."""
GUARDS = tuple(
    dict.fromkeys(
        (i.action, c.text)
        for i in FINE.instances
        if i.action not in BEYOND
        for c in i.guard
        if (i.action, c.text) not in NEEDLESS
    )
)


def compared(system: System, exceptions: dict[str, str] | None = None) -> Matched:
    """With single steps of `slot_pool`."""
    coarse = compile_model(Unbounded(failures=0), without_properties=True)
    return matched(system, coarse, lambda state: state, 1, exceptions)


@cache
def runs() -> tuple[Records, ...]:
    """The events of slots in runs with faults."""
    return tuple(
        [BEGIN, *slot_events(simulated(name, seed))] for name, seed in (("sales", 0), ("sales", 5), ("collatz", 1))
    )


def answers(folder: Path) -> set[str]:
    """The verdicts on them."""
    return {v.answer for run in runs() for v in verdicts(run, folder, BINDING, "slot_pool")}


RULES = {
    *("require_slot", "cancel_request", "receive_requirement", "start_allocation", "receive_request", "receive_ack"),
    *("offer", "receive_offer", "receive_answer", "reserve", "deploy", "end_task", "finish", "release_idle"),
    *("receive_free", "receive_available", "receive_report", "receive_list", "expire", "receive_timeout"),
    *("drop", "lose_jobmaster", "replace_manager", "replace_jobmaster", "choose_executor"),
    *("lose_offer", "lose_notification", "lose_return", "lose_request", "lose_answer"),
}
"""Actions that these runs take; the others are no events, or rare losses."""
OPTIONAL = {"lose_answer", "lose_notification", "lose_request", "lose_return"}
"""Losses after which nothing happens that a message on its way would make impossible."""


def test_the_machine_overrides_what_is_listed() -> None:
    """Which TaskExecutor has the slot."""
    own = {name for name in vars(RecordedSlotPool) if hasattr(ReplacedOwners, name) and not name.startswith("_")}
    assert own - {"name", "limits", "variant", "variants"} == {"state", "receive_request", "remove_slot"}


def test_every_step_is_one_of_the_variant() -> None:
    """With one TaskExecutor, in every reachable state; the others have the same rules."""
    result = explore(Spec(Compared).system(failures=0, repeats=1))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert result.counts.distinct == 38_112


@pytest.mark.long
def test_steps_are_steps_of_the_model() -> None:
    """In every reachable state, but for those that are listed."""
    found = compared(FINE)
    assert ({*found.other}, found.states) == ({*BEYOND}, 38_112)


def test_runs_take_the_rules_that_are_listed(tmp_path: Path) -> None:
    """And are accepted."""
    with judged_with() as seen:
        assert answers(tmp_path) == {"accepted"}
    assert {name for machine, name in seen.taken if machine is RecordedSlotPool} == RULES


@pytest.mark.parametrize("rule", share(sorted(RULES - OPTIONAL), 6))
def test_a_rule_that_is_never_enabled_is_noticed(rule: str, tmp_path: Path) -> None:
    """A run is rejected."""
    with judged_with(without_action(rule)):
        assert "rejected" in answers(tmp_path)


@pytest.mark.parametrize(("rule", "guard"), share(GUARDS, 4))
def test_a_guard_that_is_dropped_is_noticed(rule: str, guard: str) -> None:
    """An action that is no exception then has a step that is none of the model's."""
    dropped = FINE.with_instances(
        lambda i: replace(i, guard=tuple(c for c in i.guard if (i.action, c.text) != (rule, guard)))
    )
    assert {*compared(dropped, BEYOND).other} - {*BEYOND}
