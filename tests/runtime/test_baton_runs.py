"""Simulated runs are accepted by the baton, every wrong variant is caught, and tampered logs are rejected."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

import changed_logs
from nonempty import nonempty
from runtime_runs import JOBS, example, verdicts, walked
from shares import share
from streamproof.conformance import InputError
from streamproof_models.baton.machine import Routes
from streamproof_models.scopes.enumeration import Bounds, scoped_graphs
from streamproof_models.scopes.text import parse
from streamproof_models.scopes.topologies import NAMED
from streamproof_runtime.event_log import lines
from streamproof_runtime.jobs import walks
from streamproof_runtime.jobs.graph import ExecutionGraph
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.subtasks.batons import itineraries
from streamproof_runtime.variants.baton_variants import HARMLESS, VARIANTS
from streamproof_specs.baton.runtime import BINDING
from streamproof_specs.runtime.logs import FLOW

BY_RESULT = frozenset({"scope-kept"})
"""Variants whose runs never do what the rules forbid: they do too little, and get stuck."""


def carried(text: str) -> dict[str, set[str]]:
    """The batons of each channel as the runtime computes them."""
    graph = ExecutionGraph(walks.parse(text))
    found: dict[str, set[str]] = {channel: set() for channel in graph.channels}
    for itinerary in itineraries(graph).values():
        for baton, channels in itinerary.awaited.items():
            for channel in channels:
                found[channel].add(str(baton))
    assert str(graph) == text
    return found


@pytest.mark.parametrize(
    "graphs",
    [
        list(NAMED.values()),
        [str(g) for g in scoped_graphs(Bounds(4))],
        [str(g) for g in scoped_graphs(Bounds(3, parallelism=2))],
    ],
    ids=["catalogue", "four-operators", "parallel"],
)
def test_batons_take_the_routes_of_the_model(graphs: list[str]) -> None:
    """On every graph the runtime and the model send the same batons on the same channels."""
    for text in nonempty(graphs):
        assert carried(text) == {c: set(map(str, b)) for c, b in Routes(parse(text)).carried.items()}, text


def caught(variant: str, folder: Path, seeds: int) -> tuple[int | None, int | None]:
    """The number of runs until a variant is caught by the run's own result, and by validation; None: never."""
    by_result = by_log = None
    runs = 0
    for seed in range(seeds):
        for graph in NAMED.values():
            runs += 1
            wrong, outcome = walked(graph, seed, variant, "heavy" if seed % 2 else "none")
            if wrong and by_result is None:
                by_result = runs
            if by_log is None and any(v.answer == "rejected" for v in verdicts(outcome, folder)):
                by_log = runs
            if by_log is not None or (variant in BY_RESULT and by_result is not None):
                return by_result, by_log
    return by_result, by_log


@pytest.mark.parametrize("variant", share(sorted(VARIANTS.keys() - HARMLESS), 8))
def test_each_wrong_variant_is_caught(variant: str, tmp_path: Path) -> None:
    """By a rejected log, or by the result of the run, in fewer than 200 runs."""
    by_result, by_log = caught(variant, tmp_path, 8)
    assert (by_result if variant in BY_RESULT else by_log) is not None
    print(f"{variant}: result {by_result}, log {by_log}")


@pytest.mark.parametrize("level", share(["heavy", "none"], 2))
def test_runs_on_every_graph_are_accepted(level: str, tmp_path: Path) -> None:
    """On every graph of the catalogue records visit what they should, and the log is accepted."""
    for number, graph in enumerate(NAMED.values()):
        wrong, outcome = walked(graph, number, level=level)
        assert not wrong, graph
        found = verdicts(outcome, tmp_path)
        assert found, graph
        assert {v.answer for v in found} == {"accepted"}, (graph, found)


@pytest.mark.long
def test_runs_on_all_small_graphs_are_accepted(tmp_path: Path) -> None:
    """On every graph up to a size, with heavy faults."""
    for bounds in (Bounds(4), Bounds(3, parallelism=2)):
        for number, graph in enumerate(nonempty(scoped_graphs(bounds))):
            wrong, outcome = walked(str(graph), number, level="heavy", steps=5)
            assert not wrong, str(graph)
            assert {v.answer for v in verdicts(outcome, tmp_path)} <= {"accepted"}, str(graph)


@pytest.mark.parametrize("name", [name for name in JOBS if name != "pagerank"])
def test_runs_of_the_examples_are_accepted(name: str, tmp_path: Path) -> None:
    """Every attempt under heavy faults, cut short or not."""
    for seed in range(6):
        found = verdicts(Simulation(example(name).job(), seed=seed, level="heavy").run(), tmp_path)
        assert {v.answer for v in found} == {"accepted"}, seed


@pytest.mark.long
def test_runs_of_page_rank_are_accepted(tmp_path: Path) -> None:
    """The longest logs."""
    for seed in range(10):
        found = verdicts(Simulation(example("pagerank").job(), seed=seed, level="heavy").run(), tmp_path)
        assert {v.answer for v in found} == {"accepted"}, seed


# --- logs that are not what happened


def recorded(seed: int = 3) -> list[dict[str, Any]]:
    """The events of a run in a loop in a loop, without those of flow control and of slots."""
    _, outcome = walked(NAMED["nested"], seed)
    records = map(json.loads, lines(outcome.entries))
    return [r for r in records if r["event"] not in FLOW and not r["trace"].endswith("/slots")]


def answers(records: list[dict[str, Any]], folder: Path) -> list[str]:
    """The verdicts on a log."""
    return [verdict.answer for verdict in changed_logs.verdicts(records, folder, BINDING, "baton")]


def test_the_order_of_lines_says_nothing(tmp_path: Path) -> None:
    """A log whose lines are shuffled, the first one excepted, is accepted: clocks give the order."""
    records = recorded()
    for seed in range(3):
        shuffled = records[1:]
        random.Random(seed).shuffle(shuffled)
        assert answers([records[0], *shuffled], tmp_path) == ["accepted"]


def test_a_log_that_ends_early_is_accepted(tmp_path: Path) -> None:
    """Every prefix is a run that was killed."""
    records = [r for r in recorded() if r["event"] != "finished"]
    for end in nonempty(range(20, len(records), 37)):
        assert answers(records[:end], tmp_path) == ["accepted"]


def test_tampered_logs_are_rejected(tmp_path: Path) -> None:
    """A log with one changed status, number, phase, count of records, or channel is rejected."""
    records = recorded()
    tampered = 0
    for at, record in enumerate(records):
        if at % 7 or record["process"] == "jobmaster":
            continue
        state, args = record["state"], record.get("args", {})
        changes: list[dict[str, Any]] = [
            {"state": {**state, "held": state["held"] + 1}},
            {"state": {**state, "phase": "TERMINATED" if state["phase"] != "TERMINATED" else "RUNNING"}},
        ]
        if record["event"] == "baton_received":
            changes += [{"args": {**args, "busy": not args["busy"]}}, {"args": {**args, "id": 1 - args["id"]}}]
        if "channels" in args:
            changes.append({"args": {"channels": [*args["channels"], "a>b"]}})
        for change in changes:
            assert answers([*records[:at], {**record, **change}, *records[at + 1 :]], tmp_path) == ["rejected"], change
            tampered += 1
    assert tampered > 20


def test_a_job_that_claims_to_have_finished_has(tmp_path: Path) -> None:
    """The JobMaster's end of a job is rejected when a subtask has not terminated."""
    records = recorded()
    last = max(at for at, r in enumerate(records) if r["event"] == "terminated")
    cut = [r for r in records if r["process"] != records[last]["process"] or r["seq"] < records[last]["seq"]]
    assert answers(cut, tmp_path) == ["rejected"]


def test_unreadable_logs_are_errors_with_their_line(tmp_path: Path) -> None:
    """A missing event of a process, an unknown event, and a false graph are errors, not verdicts."""
    records = recorded()
    at = next(at for at, r in enumerate(records) if r["event"] == "record_processed")
    for changed, words in (
        ([*records[:at], *records[at + 1 :]], "does not count it"),
        ([*records[:at], {**records[at], "event": "what"}, *records[at + 1 :]], "no event of the runtime"),
        (
            [{**r, "args": {**r["args"], "graph": "a b"}} if r["event"] == "deployed" else r for r in records],
            "no subtask",
        ),
        (
            [{**r, "args": {**r["args"], "graph": "a; a>b"}} if r["event"] == "deployed" else r for r in records],
            "no operator",
        ),
    ):
        with pytest.raises(InputError, match=words):
            answers(changed, tmp_path)


def clocks_of(outcome_seed: int) -> list[dict[str, Any]]:
    """The events of the subtasks of a run with faults, attempt by attempt."""
    outcome = Simulation(example("components").job(), seed=outcome_seed, level="heavy").run()
    return [json.loads(line) for line in lines(outcome.entries)]


def test_forged_clocks_are_rejected(tmp_path: Path) -> None:
    """Of an event that knows what never happened, forgets what it knew, or has received what it does not know of."""
    records, draw = clocks_of(3), random.Random(3)
    own = [at for at, r in enumerate(records) if r.get("clock")]
    forged = 0
    for at in draw.sample(own, 15):
        record = records[at]
        clock, me = record["clock"], record["process"]
        others = sorted({r["process"] for r in records if r["trace"] == record["trace"] and r.get("clock")} - {me})
        before = _before(records, at)
        false_clocks = [{**clock, draw.choice(others): 10**6}] if others else []
        false_clocks += [{**clock, p: n - 1} for p, n in before.items() if p != me and n > 1]
        if record["event"] == "record_received":
            sender = re.split("[>~]", record["args"]["channel"])[0]
            false_clocks += (
                [{**clock, sender: before.get(sender, 0)}]
                if clock[sender] > before.get(sender, 0) and sender != me
                else []
            )
        for false_clock in false_clocks:
            assert (
                answers([*records[:at], {**record, "clock": false_clock}, *records[at + 1 :]], tmp_path).count(
                    "rejected"
                )
                == 1
            )
            forged += 1
    assert forged > 20


def _before(records: list[dict[str, Any]], at: int) -> dict[str, int]:
    """The clock of the event before, of the same process of an attempt."""
    key = records[at]["trace"], records[at]["process"]
    clocks = [r["clock"] for r in records[:at] if (r["trace"], r["process"]) == key and r.get("clock")]
    return clocks[-1] if clocks else {}
