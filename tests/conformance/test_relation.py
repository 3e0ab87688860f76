"""The relation of a machine that follows logs to the model that its verdict names."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from offloading_jobs import offloaded
from streamproof import Model, Range, State, action, refines, require
from streamproof.conformance import (
    Event,
    EventLog,
    Plan,
    Rules,
    Stream,
    Task,
    Unit,
    compile_model,
    judge,
    validate_paths,
)
from streamproof.conformance.binding import Move, Observation
from streamproof.conformance.found_runs import registered
from streamproof.conformance.relating import relation, relation_of, relation_to
from streamproof.conformance.relation import Relation, weakest
from streamproof.system import System
from streamproof_models.credit.machine import Credit
from streamproof_specs.credit_channel.flink.recorded_machine import RecordedChannel
from tampering import runtime_lies


class Counter(Model):
    """Counts up."""

    most: int = 2

    def state(self) -> State:
        """Zero."""
        return State(n=Range(0, self.most))

    @action
    def up(self, s: Any) -> None:
        """One more."""
        self.bound(s)
        s.n += 1

    def bound(self, s: Any) -> None:
        """Within the domain."""
        require(s.n < self.most)


class Doubtful(Counter, variant="doubtful"):
    """Counts without a bound."""

    def bound(self, s: Any) -> None:
        """None."""


class Recorded(Counter):
    """A counter as logs show it."""

    @action
    def rest(self, s: Any) -> None:
        """Nothing is counted."""
        require(s.n > 0)


class Own(Counter):
    """A counter with a rule of its own in place of the model's."""

    def up(self, s: Any) -> None:
        """Two more."""
        require(s.n + 2 <= self.most)
        s.n += 2


class Halves(Model):
    """A counter of half steps, and a refinement."""

    def state(self) -> State:
        """Zero."""
        return State(halves=Range(0, 4))

    @action
    def up(self, s: Any) -> None:
        """A half more."""
        require(s.halves < 4)
        s.halves += 1

    @refines(Counter)
    def counts(self, s: Any) -> dict[str, Any]:
        """Whole ones."""
        return {"n": s.halves // 2}


class Stranger(Model):
    """The same rules, written again."""

    name = "counter"

    def state(self) -> State:
        """Zero."""
        return State(n=Range(0, 2))

    @action
    def up(self, s: Any) -> None:
        """One more."""
        require(s.n < 2)
        s.n += 1


@pytest.mark.parametrize(
    ("machine", "model", "expected"),
    [
        (Counter, Counter, Relation("Counter", "counter", "same", "Counter")),
        (Recorded, Counter, Relation("Recorded", "counter", "same", "Counter", (), ("rest",), compared=False)),
        (Own, Counter, Relation("Own", "counter", "same", "Counter", ("up",), compared=False)),
        (Recorded, Own, Relation("Recorded", "own", "same", "Counter", (), ("rest",), ("up",), compared=False)),
        (Doubtful, Doubtful, Relation("Doubtful", "counter (doubtful)", "same", "Doubtful")),
        (Doubtful, Counter, Relation("Doubtful", "counter", "same", "Counter", ("bound",), compared=False)),
        (Halves, Counter, Relation("Halves", "counter", "refines")),
        (Stranger, Counter, Relation("Stranger", "counter", "not related")),
    ],
)
def test_relation_is_computed_from_classes(machine: type[Model], model: type[Model], expected: Relation) -> None:
    """By what is inherited and claimed; a machine of the same name and with the same rules is not related."""
    assert relation(machine, model) == expected


def test_rules_of_an_own_machine_are_said_to_be_compared_by_nothing() -> None:
    """Only tests of this project compare what a machine overrides and adds; what a verdict says names them."""
    assert relation(Own, Counter).text == (
        "Own, which has the rules of counter, but for rules of its own, which nothing compares with the model: up"
    )
    assert relation(Recorded, Counter).text.endswith(": rest")
    assert relation(Counter, Counter).text == "Counter, which has the rules of counter"
    machine = relation_to(RecordedChannel, "credit_channel")
    assert (machine.adds, machine.compared) == (("request_answered",), True)
    assert machine.text == "RecordedChannel, which has the rules of credit_channel (flink)"


def test_the_name_of_a_module_makes_no_machine_one_of_this_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that says that it is of such a module, or is put there, but is defined elsewhere, is compared by nothing."""
    monkeypatch.setattr(Own, "__module__", RecordedChannel.__module__)
    assert not relation(Own, Counter).compared
    forged = ModuleType("streamproof_specs.own")
    forged.Own = Own  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, forged.__name__, forged)
    monkeypatch.setattr(Own, "__module__", forged.__name__)
    assert not relation(Own, Counter).compared


def test_machine_is_the_one_that_a_system_was_compiled_from() -> None:
    """Compiled in advance or on demand; a system built in another way has none."""
    small = {"channels": 1, "depth": 1}
    for system in (compile_model(Credit(**small)), Rules(Credit(**small)).system):
        assert relation_of(system, "credit") == Relation("Credit", "credit", "same", "Credit")
        assert relation_of(system, "regions").kind == "same", "the machine is another registered model"
        assert relation_of(system, "regions").model == "credit"
    bare = System("credit", compile_model(Credit(**small)).variables, (), ())
    assert relation_of(bare, "credit").kind == "not related"
    assert relation_of(compile_model(Stranger()), "counter") == Relation("Stranger", "counter", "same", "Stranger")
    assert relation_of(compile_model(Stranger()), "credit").kind == "not related"


def test_weakest_relation_counts() -> None:
    """Of several machines; without any there is no relation."""
    of = {kind: Relation("M", "m", kind) for kind in ("same", "refines", "not related")}
    assert weakest([of["same"], of["refines"]]) == "refines"
    assert weakest([of["not related"], of["same"]]) == "not related"
    assert weakest([]) is None


def test_every_verdict_has_machine_and_relation() -> None:
    """Each machine once; a system that only finds contradictions within the log is none."""
    up = Event("job", "p", 0, "up")
    seen = Stream((Observation(up, ((Move("up"),),)),))
    nothing = System("lines", compile_model(Counter()).variables, (), ())
    tasks = tuple(Task("job", compile_model(m), (seen,)) for m in (Recorded(), Recorded(), Own()))
    unit = Unit("job", "a job", (*tasks, Task("job", nothing, (Stream(()),))))
    (verdict,) = judge(Plan("run", (unit,), (up,)), "mine")
    record = verdict.record()
    assert (record["machine"], record["relation"]) == ("Recorded, Own", "same")
    assert [m["machine"] for m in record["machines"]] == ["Recorded", "Own"]
    unrelated = Unit("job", "a job", (Task("job", compile_model(Stranger()), (seen,)),))
    (verdict,) = judge(Plan("run", (unrelated,), (up,)), "credit")
    assert (verdict.answer, verdict.model, verdict.record()["relation"]) == ("accepted", "Stranger", "not related")
    log = EventLog(Counter, most=5)
    assert relation_of(log.system, "counter").kind == "same"


RUNTIME = ("walk", "sales", "batch-69", "loop", "readings", "looped", "spans")
FLINK = ("logs/e-slots-1", "live/ckpt-expo", "live/hybrid-full2", "credit/d-2x2-e1-f1")


@pytest.fixture(scope="session")
def runs(tmp_path_factory: Any, flink_logs: Path, flink_live: Path, flink_credit: Path) -> list[Path]:
    """Runs of Flink and of the runtime that all machines follow together."""
    folders = {"logs": flink_logs, "live": flink_live, "credit": flink_credit}
    written = tmp_path_factory.mktemp("runs")
    simulated = runtime_lies.recorded(written, RUNTIME)
    simulated.append(runtime_lies.write(runtime_lies.records_of(offloaded(7)[0]), written / "offloaded.ndjson"))
    return [folders[run.partition("/")[0]] / run.partition("/")[2] for run in FLINK] + simulated


def test_every_machine_is_related_to_its_model(runs: list[Path]) -> None:
    """No accepted log is of a machine that was written for logs only; every binding is there."""
    of_model: dict[str, set[tuple[str, str]]] = {}
    for verdict in validate_paths(runs, model="all"):
        if verdict.answer == "accepted":
            assert verdict.machines, verdict
            of_model.setdefault(verdict.model, set()).update((m.machine, m.kind) for m in verdict.machines)
    assert of_model.keys() == registered().keys()
    assert {kind for machines in of_model.values() for _, kind in machines} == {"same"}
