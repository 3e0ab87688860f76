"""Every run is accepted by the machine of credits, every wrong variant is caught, and tampered logs are rejected."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import changed_logs
from changed_logs import records_of
from credit_judge import wrong
from nonempty import nonempty
from runtime_runs import credit_verdicts, example, walked
from shares import share
from streamproof.conformance import InputError, judge
from streamproof_models.scopes.topologies import NAMED
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.variants.flow_variants import BY_RESULT, FLOWS
from streamproof_specs.credit.runtime import BINDING

JOBS = ("collatz", "components", "shortest_paths", "word_count", "sales")


@pytest.mark.parametrize("name", JOBS)
def test_runs_of_the_examples_are_accepted(name: str, tmp_path: Path) -> None:
    """Every gate of every attempt under heavy faults, cut short or not; the second judge agrees."""
    for seed in range(3):
        outcome = Simulation(example(name).job(), seed=seed, level="heavy").run()
        found = credit_verdicts(outcome, tmp_path)
        assert {v.answer for v in found} == {"accepted"}, seed
        assert wrong(records_of(outcome)) is None


@pytest.mark.long
def test_runs_on_every_graph_are_accepted(tmp_path: Path) -> None:
    """On every graph of the catalogue, for several seeds."""
    for seed in range(6):
        for graph in NAMED.values():
            fault, outcome = walked(graph, seed, level="heavy")
            assert not fault, graph
            assert {v.answer for v in credit_verdicts(outcome, tmp_path)} == {"accepted"}, (graph, seed)
            assert wrong(records_of(outcome)) is None


def caught(variant: str, folder: Path, seeds: int) -> tuple[int | None, int | None]:
    """The number of runs until a variant is caught by the run's own result, and by validation; None: never."""
    by_result = by_log = None
    for seed in range(seeds):
        outcome = Simulation(example("shortest_paths").job(), seed=seed, level="heavy", flow=FLOWS[variant]).run(60_000)
        if not outcome.finished:
            by_result = by_result or seed + 1
        rejected = any(v.answer == "rejected" for v in credit_verdicts(outcome, folder))
        assert rejected == (wrong(records_of(outcome)) is not None), seed
        if rejected:
            by_log = seed + 1
        if by_log is not None or (variant in BY_RESULT and by_result is not None):
            break
    return by_result, by_log


@pytest.mark.parametrize("variant", share(FLOWS, 2))
def test_each_wrong_variant_is_caught(variant: str, tmp_path: Path) -> None:
    """By a rejected log, or by a run that gets stuck; both judges agree on each log."""
    by_result, by_log = caught(variant, tmp_path, 60)
    print(f"{variant}: result {by_result}, log {by_log}")
    assert (by_result if variant in BY_RESULT else by_log) is not None


# --- logs that are not what happened


def recorded(seed: int = 0) -> list[dict[str, Any]]:
    """The events of a run with few buffers: credits are scarce, and floating buffers are lent."""
    outcome = Simulation(example("word_count").job(), seed=seed, buffers=1).run()
    return records_of(outcome)


def verdicts(records: list[dict[str, Any]], folder: Path) -> list[Any]:
    """The verdicts on a log."""
    return changed_logs.verdicts(records, folder, BINDING, "credit")


def changes(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Lies about one event, by kind: every number that it records, one more, and one less."""
    found = {}
    for part in ("args", "state"):
        given = record.get(part, {})
        for name, value in given.items():
            for more in (1, -1):
                if isinstance(value, int) and value + more >= 0:
                    found[f"{record['event']}.{name}"] = {part: {**given, name: value + more}}
                elif isinstance(value, dict) and value:
                    key, number = next(iter(value.items()))
                    if number + more >= 0:
                        found[f"{record['event']}.{name}"] = {part: {**given, name: {**value, key: number + more}}}
    return found


def test_tampered_logs_are_rejected(tmp_path: Path) -> None:
    """Each number of each event of flow control, changed by one; at the changed line if it is a number of the state."""
    records, draw, kinds = recorded(), random.Random(5), Counter[str]()
    log = str(tmp_path / "run.ndjson")
    for at, record in enumerate(records):
        if record.get("clock") or record["process"] == "jobmaster" or record["event"] == "gate_opened":
            continue
        if record["trace"].endswith("/slots") or "." in record["process"]:  # of a TaskExecutor, not of a subtask
            continue
        for kind, change in changes(record).items():
            if kinds[kind] > 1 or draw.random() < 0.5:
                continue
            kinds[kind] += 1
            found = verdicts([*records[:at], {**record, **change}, *records[at + 1 :]], tmp_path)
            rejected = [v for v in found if v.answer == "rejected"]
            assert rejected, (kind, change)
            assert wrong([*records[:at], {**record, **change}, *records[at + 1 :]]) is not None
            if "state" in change:
                assert [(v.rejection.event.file, v.rejection.event.line) for v in rejected] == [(log, at + 1)], kind
    assert len(kinds) >= 20, kinds


@pytest.mark.parametrize("name", ["buffers_sent", "credits_announced", "buffer_received", "credits_received"])
def test_missing_and_repeated_events_are_rejected(name: str, tmp_path: Path) -> None:
    """An event that is left out, or there twice."""
    records = recorded()
    places = [at for at, r in enumerate(records) if r["event"] == name]
    rejected = 0
    for at in places[:: max(1, len(places) // 4)]:
        without = [*records[:at], *records[at + 1 :]]
        twice = [{**r, "seq": 2 * r["seq"]} for r in records]
        twice.insert(at + 1, {**records[at], "seq": 2 * records[at]["seq"] + 1})
        for changed in (without, twice):
            answers = {v.answer for v in verdicts(changed, tmp_path)}
            assert ("rejected" in answers) == (wrong(changed) is not None), at
            rejected += "rejected" in answers
    assert rejected >= 6  # the last event of an end may be missing


def test_the_order_of_lines_says_nothing(tmp_path: Path) -> None:
    """A log whose lines are shuffled, the first one excepted, is accepted: the numbers of each process give the order."""
    records = recorded()
    for seed in range(3):
        shuffled = records[1:]
        random.Random(seed).shuffle(shuffled)
        assert {v.answer for v in verdicts([records[0], *shuffled], tmp_path)} == {"accepted"}


def test_a_log_that_ends_early_is_accepted(tmp_path: Path) -> None:
    """Every prefix is a run that was killed."""
    records = recorded()
    first = next(at for at, r in enumerate(records) if r["event"] == "buffers_sent")
    for end in nonempty(range(first, len(records), 41)):
        assert {v.answer for v in verdicts(records[:end], tmp_path)} == {"accepted"}


def test_unreadable_events_are_errors_with_their_line(tmp_path: Path) -> None:
    """An unknown channel, a number that is none, an unknown part of the state, and a gate that is opened twice."""
    records = recorded()
    at = next(at for at, r in enumerate(records) if r["event"] == "credits_announced")
    opened = next(at for at, r in enumerate(records) if r["event"] == "gate_opened")
    event = records[at]
    for place, changed, words in (
        (at, {**event, "args": {**event["args"], "channel": "x>y"}}, "no gate has been opened with this channel"),
        (at, {**event, "args": {**event["args"], "credits": "many"}}, "'credits', a number from 0"),
        (at, {**event, "state": {"what": 1}}, "'what' is no part of the state of a channel"),
        (at, {**event, "process": "counts", "seq": 999}, "this end of the channel is that of"),
        (opened, {**records[opened], "args": {"channels": []}}, "'channels', a list of texts"),
    ):
        with pytest.raises(InputError, match=words) as error:
            verdicts([*records[:place], changed, *records[place + 1 :]], tmp_path)
        assert error.value.loc is not None
        assert error.value.loc.line == place + 1


def test_any_number_of_backlogs_can_be_on_their_way(tmp_path: Path) -> None:
    """A sender without credit announces its backlog with each buffer, and the receiver may be slow."""
    channel = "s>r"
    events: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
        ("r", "gate_opened", {"channels": [channel], "exclusive": 1, "floating": 0}, {}),
        ("s", "buffers_sent", {"produced": {channel: 1}, "sent": {channel: 1}}, {"credit": 0, "backlog": 0}),
    ]
    for waiting in range(1, 9):
        state = {"credit": 0, "backlog": waiting}
        events.append(("s", "buffers_sent", {"produced": {channel: 1}, "sent": {}}, state))
        events.append(("s", "backlog_announced", {"channel": channel, "backlog": waiting}, {}))
    numbers = {"r": 0, "s": 0}
    log = tmp_path / "run.ndjson"
    records: list[dict[str, Any]] = [{"trace": "j", "process": "jobmaster", "seq": 0, "event": "job_started"}]
    for process, event, args, state in events:
        known = {name: {channel: count} for name, count in state.items()}
        head = {"trace": "j#0", "process": process, "seq": numbers[process], "event": event, "args": args}
        records.append({**head, **({"state": known} if known else {})})
        numbers[process] += 1
    log.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="ascii")
    assert [v.answer for v in judge(BINDING.plan(log, None), "credit")] == ["accepted"]
