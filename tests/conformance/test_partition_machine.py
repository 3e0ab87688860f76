"""The machines that follow Flink's partitions are `partition_lifecycle`: no rule is weaker, and the lines need its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shares import share
from streamproof import Model, Spec, action, refines, require
from streamproof.conformance.validation import validate_paths
from streamproof.explicit.exploration import explore
from streamproof.system import Conjunct, Instance, System, Verdict
from streamproof.system.basics import FALSE
from streamproof_models.partitions.machine import PartitionLifecycle
from streamproof_specs.partitions.flink import recorded_machine
from streamproof_specs.partitions.properties import SPEC

OVERRIDDEN: dict[type[Model], tuple[str | None, set[str]]] = {
    recorded_machine.RecordedBlocking: ("discarding", {"discard"}),
    recorded_machine.RecordedPipelined: ("pipelined", {"fail"}),
    recorded_machine.RecordedOutput: ("discarding", set()),
    recorded_machine.RecordedConnection: (None, set()),
    recorded_machine.RecordedGates: ("caching", set()),
}
"""Of each machine: the variant of the model that it is, and the rules that are stronger."""
SIZES: tuple[tuple[type[Model], dict[str, Any], int], ...] = (
    (recorded_machine.RecordedBlocking, {}, 68_784),
    (recorded_machine.RecordedPipelined, {}, 109_464),
    (recorded_machine.RecordedOutput, {}, 1_686),
    (recorded_machine.RecordedConnection, {}, 8_875),
    (recorded_machine.RecordedGates, {"failures": 1}, 2_307),
    (recorded_machine.RecordedGates, {"partitions": 2, "failures": 0}, 33_953),
)
"""Sizes, with the number of states."""
RUNS = ("logs/a-taskfail-1", "logs/b-lostpart-2", "logs/c-disjoint-1", "logs/g-jmloss-1")
NEVER = {
    "crash": "a JobMaster that is lost has no line about a partition",
    "recover": "the next JobMaster deploys other attempts",
    "miss": "a consumer that misses a partition is followed by `failover`",
    "crash_executor": "the log ends",
    "fill_disk": "the log ends",
    "lose_message": "no line says so; an order that has a line has arrived",
    "lose_report": "no line says so",
    "report_empty": "the ResourceManager of the recorded runs keeps its TaskManagers",
    "release_executor": "the ResourceManager of the recorded runs keeps its TaskManagers",
    "crash_manager": "the log ends",
}
"""Rules of the model that no line needs, with the reason."""
RULES = ("discard", *(a.name for a in SPEC.system().actions if a.name not in NEVER))


def same_as(variant: str | None) -> Any:
    """That steps are steps of the model, or of a variant of the same size."""
    parameters = ("jobs", "executors", "partitions", "consumers", "attempts", "failures", "crashes")
    same = refines(PartitionLifecycle, {}, variant=variant, **{name: name for name in parameters})
    same.__name__ = "same"
    return same


OUTPUT = Spec(recorded_machine.RecordedOutput, properties=(same_as("discarding"),)).system(
    attempts=2, failures=1, crashes=1
)
"""A small machine with every rule of the model."""
GUARDS = tuple(
    dict.fromkeys(
        (i.action, c.text)
        for i in OUTPUT.instances
        if i.action in (*RULES, *NEVER)
        for c in i.guard
        if not any(word in c.text for word in ("len(", "failures_left", "recoveries", "silent"))
    )
)
"""All but those of fairness, and those without which a variable would have no value."""
IMPLIED: dict[str, tuple[str, ...]] = {
    "deploy": ("s.master[j] == 'RUNNING'",),
    "receive_report": ("s.master[j] == 'RUNNING'",),
    "release": ("s.master[self.job_of[p]] == 'RUNNING'", "not s.to_executor[j, e].full"),
    "close": ("s.master[j] == 'RUNNING'", "not s.to_executor[j, e].full"),
    "lose_executor": ("s.master[j] == 'RUNNING'", "s.registered[j, e]"),
    "begin": ("s.master[self.job_of[p]] == 'RUNNING'",),
    "consume": ("s.attempt[p] == a + 1",),
    "fail": ("s.master[self.job_of[p]] == 'RUNNING'",),
    "receive_order": ("s.executor[e] == 'UP'",),
    "lose_master": ("s.connected[j, e]",),
    "synchronise": ("s.connected[j, e]",),
    "fill_disk": ("any((s.location[i] == e and s.copy[i] in self.on_disk for i in self.ids))", "s.executor[e] == 'UP'"),
    "lose_report": ("s.to_master[j, e] is not None",),
    "release_executor": ("self.is_idle(s, e)", "s.executor[e] == 'UP'"),
    "crash_manager": ("any(s.empty)",),
    "discard": ("s.master[self.job_of[p]] == 'RUNNING'",),
}
"""Guards that others imply at this size, so that nothing changes without them."""

NO = Conjunct(FALSE, "False", None)
Change = Callable[[Instance], Instance]


def forget_machines() -> None:
    """Machines are compiled once for each size."""
    for made in ("partition_system", "output_system", "connection_system", "gates_system"):
        getattr(recorded_machine, made).cache_clear()


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Change], None]]:
    """Changes every instance of the machines that follow the lines."""
    compiled: Callable[[Any], System] = recorded_machine.compile_model  # type: ignore[attr-defined]

    def change(instances: Change) -> None:
        monkeypatch.setattr(recorded_machine, "compile_model", lambda m: compiled(m).with_instances(instances))
        forget_machines()

    yield change
    forget_machines()


@pytest.fixture
def runs(flink_logs: Path) -> list[Path]:
    """Recorded runs whose lines need every rule but those of `NEVER`."""
    return [flink_logs.parent / name for name in RUNS]


def rejected(runs: list[Path]) -> bool:
    """Whether one of the runs is rejected."""
    return any(
        verdict.answer == "rejected" for run in runs for verdict in validate_paths([run], model="partition_lifecycle")
    )


@pytest.mark.parametrize("machine", OVERRIDDEN, ids=lambda machine: machine.__name__)
def test_the_followed_machine_is_the_model_or_a_variant(machine: type[Model]) -> None:
    """It inherits every rule, and overrides only those listed; the test below shows that they are stronger."""
    variant, stronger = OVERRIDDEN[machine]
    model = PartitionLifecycle if variant is None else SPEC.model.variants[variant]
    assert issubclass(machine, model)
    own = {name for made in machine.__mro__ if made not in model.__mro__ for name in vars(made)}
    rules = {a.name for a in SPEC.system(variant).actions} | {n for n in dir(model) if callable(getattr(model, n))}
    assert own & rules - set(dir(Model)) - {"state", "setup"} == stronger


@pytest.mark.parametrize(("machine", "size", "states"), share(SIZES, 3), ids=str)
def test_every_step_is_a_step_of_the_model(machine: type[Model], size: dict[str, Any], states: int) -> None:
    """Without what was added, in every reachable state: the rules that are overridden are stronger, and no action is added
    that changes a variable of the model."""
    result = explore(Spec(machine, properties=(same_as(OVERRIDDEN[machine][0]),)).system(**size))
    assert {finding.verdict for finding in result.findings} == {Verdict.HOLDS}
    assert result.counts.distinct == states


@pytest.mark.parametrize(("rule", "guard"), share(GUARDS, 16))
def test_a_guard_that_is_dropped_is_noticed(rule: str, guard: str) -> None:
    """The machine that is followed then makes a step that is none of the model's."""
    dropped = OUTPUT.with_instances(
        lambda i: replace(i, guard=tuple(c for c in i.guard if (i.action, c.text) != (rule, guard)))
    )
    found = {finding.property: finding.verdict for finding in explore(dropped).findings}
    assert (found["same"] is Verdict.VIOLATED) == (guard not in IMPLIED.get(rule, ()))


@pytest.mark.parametrize("rule", share(RULES, 4))
def test_a_rule_that_is_never_enabled_is_noticed(
    rule: str, runs: list[Path], changed: Callable[[Change], None]
) -> None:
    """A recorded run is rejected."""
    changed(lambda i: replace(i, guard=(NO, *i.guard)) if i.action == rule else i)
    assert rejected(runs)


def test_no_line_needs_the_other_rules(runs: list[Path], changed: Callable[[Change], None]) -> None:
    """As listed."""
    assert not rejected(runs)
    changed(lambda i: replace(i, guard=(NO, *i.guard)) if i.action in NEVER else i)
    assert not rejected(runs)


def test_the_rule_of_the_model_itself_is_followed(runs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the method of the model replaced, a recorded run is rejected."""

    @action(p="partitions", a="attempts")
    def finish(self, s, p, a):  # type: ignore[no-untyped-def]
        require(False)

    monkeypatch.setattr(PartitionLifecycle, "finish", finish)
    forget_machines()
    try:
        assert rejected(runs)
    finally:
        forget_machines()
