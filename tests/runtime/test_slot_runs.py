"""The slot protocol of the runtime: runs are accepted, a second judge agrees on changed logs, variants are caught."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import changed_logs
from changed_logs import Records
from runtime_mix import job_of, slow_slots, wrong
from runtime_processes import run
from runtime_runs import EXAMPLES
from runtime_slot_judge import accepts
from slot_runs import BEGIN, simulated, slot_events
from streamproof.conformance import InputError, judge
from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.simulator.faults import CRASH, Fault
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.variants.slot_variants import HARMLESS, SLOTS
from streamproof_specs.slots.runtime.binding import BINDING

RARE = ("allocated-freed", "pending-freed")
"""Variants that need a message to be overtaken at one certain time."""
SOON = ("never-idle", "release-ignored", "excess-accepted")
"""Variants that are caught in few runs."""


def answer(records: Records, folder: Path) -> str:
    """The verdict on a log; "error" for one that is none."""
    try:
        (found,) = changed_logs.verdicts((BEGIN, *records), folder, BINDING, "slot_pool")
    except InputError:
        return "error"
    return found.answer


@pytest.mark.parametrize("name", ["sales", "collatz", "components"])
def test_runs_are_accepted(name: str, tmp_path: Path) -> None:
    """By both judges, under all faults; a run ends well only if every slot is free when it is over."""
    for seed in range(8):
        outcome = simulated(name, seed, "severe" if seed else "none")
        assert outcome.finished, (seed, outcome.reason)
        records = slot_events(outcome)
        assert not any(r["event"] == "answer_discarded" for r in records)  # what makes `stale-answer` harmless
        assert answer(records, tmp_path) == "accepted", seed
        assert accepts(records), seed


@pytest.mark.long
def test_many_runs_are_accepted(tmp_path: Path) -> None:
    """Some hundreds."""
    for seed in range(400):
        outcome = simulated(("sales", "collatz", "components", "word_count")[seed % 4], seed)
        assert outcome.finished, (seed, outcome.reason)
        records = slot_events(outcome)
        assert answer(records, tmp_path) == "accepted", seed
        assert accepts(records), seed


def changed(draw: random.Random, records: Records) -> Records:
    """A copy with one change: an event left out, doubled, moved, cut off, or with another argument or state."""
    at = draw.randrange(len(records))
    record, kind = records[at], draw.randrange(8)
    copy = [dict(r) for r in records]
    if kind == 0:
        del copy[at]
    elif kind == 1:
        copy.insert(at, dict(record))
    elif kind == 2:
        to = max(0, min(len(copy) - 1, at + draw.choice((-2, -1, 1, 2))))
        copy[at], copy[to] = copy[to], copy[at]
    elif kind == 3:
        copy = [r for n, r in enumerate(copy) if n < at or r["process"] != record["process"]]
    elif kind == 4:
        state = dict(record["state"])
        slots = dict(state["slots"])
        known = [s for r in records for s in r["state"]["slots"]]
        if known:
            slots[draw.choice(known)] = draw.choice(("ALLOCATED", "ACTIVE", "FREE", "RESERVED", "PENDING"))
        copy[at] = {**record, "state": {**state, "slots": slots}}
    else:
        args = dict(record.get("args", {}))
        names = [n for n in args if n not in ("total",)]
        if names:
            name = draw.choice(names)
            args[name] = another(draw, args[name], [r["args"][name] for r in records if name in r.get("args", {})])
            copy[at] = {**record, "args": args}
    return changed_logs.numbered(copy)


def another(draw: random.Random, value: Any, values: list[Any]) -> Any:
    """A value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return max(0, value + draw.choice((-1, 1)))
    return draw.choice(values)


def both(seed: int, folder: Path, changes: int) -> tuple[int, int]:
    """Both judges give one answer for changed copies of a run; how many were accepted and rejected."""
    draw = random.Random(seed)
    name, level = ("sales", "collatz", "components")[seed % 3], draw.choice(("heavy", "severe"))
    judges = (lambda copy: answer(copy, folder) == "accepted"), accepts
    return changed_logs.compared(
        slot_events(simulated(name, seed, level)), partial(changed, draw), changes, judges, seed
    )


def slowly(seed: int, folder: Path, changes: int) -> tuple[int, int]:
    """The same for a small job with slow slot messages."""
    job, check = job_of(("word_count", "cached")[seed % 2], seed)
    outcome = Simulation(job, seed=seed, faults_given=slow_slots(seed)).run(100_000)
    assert not wrong(outcome, check), seed
    judges = (lambda copy: answer(copy, folder) == "accepted"), accepts
    return changed_logs.compared(slot_events(outcome), partial(changed, random.Random(seed)), changes, judges, seed)


@pytest.mark.long
def test_two_judges_agree_where_slot_messages_are_slow(tmp_path: Path) -> None:
    """Two failures of one slot are on their way in run 308, and the second is lost."""
    counts = [slowly(seed, tmp_path, 4) for seed in (0, 1, 2, 308)]
    assert sum(rejected for _, rejected in counts) > 8


@pytest.mark.long
def test_two_judges_agree_on_many_runs_with_slow_slot_messages(tmp_path: Path) -> None:
    """And on thousands of changed copies."""
    for seed in range(1_000, 1_400):
        slowly(seed, tmp_path, 10)


def test_two_judges_agree_on_changed_logs(tmp_path: Path) -> None:
    """A change is accepted by both or by none."""
    accepted, rejected = changed_logs.total(both(seed, tmp_path, 12) for seed in range(6))
    assert accepted > 2
    assert rejected > 30


@pytest.mark.long
def test_two_judges_agree_on_thousands_of_changed_logs(tmp_path: Path) -> None:
    """Four thousand copies of a hundred runs."""
    accepted, rejected = changed_logs.total(both(seed, tmp_path, 40) for seed in range(100, 200))
    assert accepted > 100
    assert rejected > 2_000


def caught(variant: str, folder: Path, most: int) -> str:
    """How a variant is caught, if it is, in some runs."""
    for seed in range(most):
        outcome = simulated(("sales", "collatz")[seed % 2], seed, variant=variant)
        if answer(slot_events(outcome), folder) == "rejected":
            return f"log of run {seed}"
        if not outcome.finished:
            return f"result of run {seed}"
    return ""


@pytest.mark.parametrize(
    "variant", [v if v in SOON else pytest.param(v, marks=pytest.mark.long) for v in sorted(SLOTS.keys() - HARMLESS)]
)
def test_each_variant_is_caught(variant: str, tmp_path: Path) -> None:
    """By a rejected log, or by slots that are never freed."""
    found = caught(variant, tmp_path, 400 if variant in RARE else 60)
    assert found
    print(f"{variant}: {found}")


def test_a_lost_manager_is_replaced_and_learns_from_reports(tmp_path: Path) -> None:
    """The allocations of the lost ResourceManager are adopted; slots are not requested again."""
    lost = [Fault(CRASH, MILLISECOND, ("rm",), MILLISECOND)]
    outcome = simulated("sales", 0, faults_given=lost)
    assert outcome.finished
    records = slot_events(outcome)
    assert answer(records, tmp_path) == "accepted"
    after = [r for r in records if r["process"] == "rm@1"]
    assert max(len(r["state"]["slots"]) for r in after) == 3
    assert not any(r["event"] == "allocation_started" for r in after)
    assert outcome.attempts == 1


def test_processes_survive_kills_of_the_manager(tmp_path: Path) -> None:
    """Two kills of the ResourceManager, and one of a TaskExecutor: the result is right, and the logs are accepted."""
    found = run(EXAMPLES / "sales.py", tmp_path, executors=3, kills=["rm@6", "tm-1@7", "rm@3"])
    assert found["wrong"] == ""
    assert [kill["happened"] for kill in found["kills"]][::2] == [True, True]
    assert {f.name for f in tmp_path.glob("rm*")} == {"rm.ndjson", "rm.1.ndjson", "rm.2.ndjson"}
    (log,) = BINDING.runs(tmp_path)
    assert [v.answer for v in judge(BINDING.plan(log, None), "slot_pool")] == ["accepted"]
