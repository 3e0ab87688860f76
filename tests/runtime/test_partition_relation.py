"""The machine of a recorded dataset is the variant `runtime` of `partition_lifecycle`, and runs need its rules.

Each step of that variant is a short sequence of steps of `discarding`, but for what is listed with its reason."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from batch_jobs import about_partitions, narrowed, stored_events
from changed_logs import Records, verdicts
from sabotage import judged_with, without_action
from shares import share
from step_sequences import Matched, matched, never
from streamproof import System, action, require
from streamproof.conformance import compile_model
from streamproof.system.interpreter import Interpreter
from streamproof_models.partitions.cluster_rules import ClusterPartitions
from streamproof_models.partitions.runtime_rules import ReplacedProcesses
from streamproof_models.partitions.variants import Discarding
from streamproof_specs.partitions.runtime.binding import BINDING
from streamproof_specs.partitions.runtime.recorded_machine import RecordedCluster, RecordedPartitions

BEYOND = {
    "abandon": "a job that has failed cancels its producers",
    "abort": "producers fail",
    "vanish": "the environment deletes partitions",
    "consume": "the JobMaster learns later that a partition has been read, which may be gone by then",
    "miss": "a partition that is missed counts as lost",
    "write_off": "a dataset of several partitions is gone with one of them",
    "finish": "a partition may have vanished while it was produced",
    "crash_executor": "a report on its way arrives, though its TaskExecutor has crashed",
    "fill_disk": "a full disk ends an attempt, and not its TaskExecutor",
    "discard": "the other parts of a lost dataset are deleted; its JobMaster may have lost the TaskExecutor",
    "release": "likewise, when its consumer has finished",
    "report_empty": "a deployment on its way finds no slot: the TaskExecutor is idle",
    "release_executor": "likewise, and a report on its way arrives",
}
"""Actions with a step that `discarding` does not have."""
MOST = 2
"""Maximum number of its steps that one step is."""


class Unbounded(Discarding):
    """With any number of failures, and TaskExecutors that come back."""

    def fail(self, s, p, c):  # type: ignore[no-untyped-def]
        """The number of failures is a bound of the instance."""
        super().fail(s, p, c)
        s.failures_left += 1

    @action(e="executors")
    def replace(self, s, e):  # type: ignore[no-untyped-def]
        """Another process of the TaskExecutor follows."""
        require(s.executor[e] != "UP")
        s.executor[e] = "UP"


def fine(**size: int) -> System:
    """The machine that is followed."""
    return compile_model(RecordedPartitions(crashes=0, room=2, **size), without_properties=True)


def compared(system: System, **size: int) -> Matched:
    """With `discarding`: cancellations are releases, late reports of earlier attempts are none, and a partition that has
    vanished while its producer is at work is one that it produces."""

    def view(state: dict[str, Any]) -> dict[str, Any]:
        orders = [[("Release", m[1]) if m[0] == "CancelProducer" else m for m in q] for q in state["to_executor"]]
        newest = state["attempt"][0] - 1
        return {
            **state,
            "failures_left": 1,
            "copy": tuple("PRODUCING" if copy == "VANISHED" else copy for copy in state["copy"]),
            "to_executor": tuple(map(tuple, orders)),
            "to_master": ((0, newest) if newest >= 0 and state["report"][newest] == "SENT" else None,),
        }

    return matched(system, compile_model(Unbounded(crashes=0, **size), without_properties=True), view, MOST)


SMALL = fine(attempts=1)
BOUNDS = ("full", "self.attempts", "self.readings", "len(", "recoveries")
"""Without them a variable would have no value. Actions of consumers change only added variables."""
GUARDS = tuple(
    dict.fromkeys(
        (i.action, c.text)
        for i in SMALL.instances
        if i.action not in (*BEYOND, "open", "read_to_end", "find_missing")
        for c in i.guard
        if not any(word in c.text for word in BOUNDS)
    )
)
NOTICED = {
    ("deploy", "s.registered[j, e]"),
    ("receive_report", "s.report[p, a] == 'SENT'"),
    ("receive_report", "s.tracked[p] == 'PRODUCING'"),
    ("close", "s.registered[j, e]"),
    ("close", "not self.has_resources(s, j, e)"),
    ("end", "s.master[j] == 'RUNNING'"),
    ("crash", "s.master[j] == 'RUNNING'"),
    ("begin", "s.tracked[p] in self.readable"),
    ("register", "not s.connected[j, e]"),
    ("register", "s.master[j] == 'RUNNING'"),
    ("synchronise", "s.registered[j, e]"),
    ("cancel_producer", "s.tracked[p] == 'PRODUCING'"),
}
"""Guards without which an action is no sequence of steps of `discarding`; others imply the rest at this size."""
NEVER = {
    *("end", "synchronise", "lose_message", "lose_report"),
    *("crash_manager", "close", "abandon"),
}
"""Actions that no event says, and two that are rare: a connection that is closed, and a job that fails."""
RULES = tuple(a.name for a in SMALL.actions if a.name not in NEVER)


@cache
def runs() -> tuple[Records, ...]:
    """The events of three runs: with lost partitions, with a full disk, and with TaskExecutors that are released."""
    return stored_events(19, "severe"), stored_events(70, "severe"), about_partitions(narrowed(0))


def answers(folder: Path) -> set[str]:
    """The verdicts on them."""
    return {v.answer for run in runs() for v in verdicts(run, folder, BINDING, "partition_lifecycle")}


def test_a_list_of_partitions_deletes_nothing() -> None:
    """No run takes `synchronise`: unless a message is lost alone, it changes no reachable state."""
    for machine in (RecordedPartitions, RecordedCluster):
        whole = compile_model(machine(crashes=0, room=2, attempts=1), without_properties=True)
        assert _synchronised(whole)
        assert not _synchronised(never(whole, "lose_message"))


def _synchronised(system: System) -> bool:
    """Whether a step of `synchronise` changes a state."""
    steps = Interpreter(system)
    frontier = [*steps.initial_states()]
    known = {*frontier}
    while frontier:
        state = frontier.pop()
        for step in steps.steps(state):
            if step.instance.action == "synchronise" and step.state != state:
                return True
            if step.state not in known:
                known.add(step.state)
                frontier.append(step.state)
    return False


def test_the_machine_has_no_rule_of_its_own() -> None:
    """Only its name."""
    for machine, model in ((RecordedPartitions, ReplacedProcesses), (RecordedCluster, ClusterPartitions)):
        own = {name for name in vars(machine) if not name.startswith("_")}
        assert own - {"variant", "variants", "parameters"} == {"name"}
        assert issubclass(machine, model)


@pytest.mark.parametrize(
    ("size", "states"),
    share([({"attempts": 1}, 3_466), ({"attempts": 2}, 46_756)], 2),
    ids=str,
)
def test_steps_are_steps_of_the_model(size: dict[str, int], states: int) -> None:
    """In every reachable state, but for those that are listed."""
    found = compared(fine(**size), **size)
    assert ({*found.other}, found.states) == ({*BEYOND} - {"write_off"}, states)
    assert {*BEYOND} - found.same == {"write_off"}, "other actions have steps of the model, too"


@pytest.mark.parametrize(("rule", "guard"), share(GUARDS, 24))
def test_a_guard_that_is_dropped_is_noticed(rule: str, guard: str) -> None:
    """An action that is no exception then has a step that is none of the model's."""
    dropped = SMALL.with_instances(
        lambda i: replace(i, guard=tuple(c for c in i.guard if (i.action, c.text) != (rule, guard)))
    )
    assert bool({*compared(dropped, attempts=1).other} - {*BEYOND}) == ((rule, guard) in NOTICED)


def test_runs_need_no_other_rules(tmp_path: Path) -> None:
    """They take the rules that are not listed as never needed."""
    with judged_with() as seen:
        assert answers(tmp_path) == {"accepted"}
    assert {name for machine, name in seen.taken if machine is RecordedPartitions} == {*RULES}


@pytest.mark.parametrize("rule", share(RULES, 5))
def test_a_rule_that_is_never_enabled_is_noticed(rule: str, tmp_path: Path) -> None:
    """A run is rejected."""
    with judged_with(without_action(rule)):
        assert "rejected" in answers(tmp_path)
