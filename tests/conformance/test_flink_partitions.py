"""Result partitions in recorded runs of Flink: correct runs are never rejected, however their logs were disturbed; lies about
partitions are rejected at their line; the verdicts on random lines are those of a judge without a machine."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from one_lie_of_each_kind import outcomes
from shares import share
from streamproof.conformance import Event, Plan, Unit, judge
from streamproof.conformance.flink import FlinkRun, Process
from streamproof.conformance.validation import validate_paths
from streamproof_specs.partitions.flink.binding import partitions_of
from tampering import partition_lies

SMALL = ("a-pipelined-1", "a-taskfail-1", "c-disjoint-1", "g-jmloss-1", "k-insufficient-buffers-1", "m-job-failed-1")
MORE = ("adbatch", "hybrid", "pipe", "sigstop", "spec", "stream")
LIVE = ("adaptive-mixed", "debug-stream-kill", "ha-batch-recovery", "hybrid-full2", "rotation-lost", "savepoint")


@pytest.fixture(scope="session")
def disturbing(tool_module: Any) -> ModuleType:
    """The disturbing tool, which is a script."""
    module: ModuleType = tool_module("disturb_flink_runs")
    return module


@pytest.mark.parametrize("part", share(range(6), 6))
def test_no_recorded_run_is_rejected(
    part: int, flink_logs: Path, flink_more: Path, flink_live: Path, flink_credit: Path
) -> None:
    """Where the logs have lines at DEBUG, every partition is followed."""
    folders = (flink_logs, flink_more, flink_live, flink_credit)
    runs = sorted(run for folder in folders for run in folder.iterdir())[part::6]
    found = defaultdict(set)
    for verdict in validate_paths(runs, model="partition_lifecycle"):
        found[verdict.run].add(verdict.answer)
    assert len(found) == len(runs)
    assert not any("rejected" in answers for answers in found.values())
    for run, answers in found.items():
        debug = (flink_logs / run).exists() and run not in ("i117-bulk-1", "i117-stream-1")
        assert answers == {"accepted"} or not debug, run


@pytest.mark.parametrize("part", share(range(8), 8))
def test_disturbed_copies_are_not_rejected(
    part: int, disturbing: ModuleType, flink_logs: Path, flink_more: Path, flink_live: Path
) -> None:
    """Ten copies each time."""
    runs = [flink_logs / name for name in SMALL] + [flink_more / name for name in MORE]
    runs += [flink_live / name for name in LIVE]
    found = list(disturbing.outcomes(runs[part * 2 :] + runs[: part * 2], 10, 1000 * part, "partition_lifecycle"))
    assert [(o.run, o.seed, o.done, o.verdicts, o.reasons) for o in found if o.rejected] == []
    assert sum("accepted" in o.verdicts for o in found) > 2


@pytest.mark.push
@pytest.mark.parametrize("name", share(partition_lies.RUNS, len(partition_lies.RUNS), first=3))
def test_lies_about_partitions_are_rejected_at_the_line(
    name: str, flink_logs: Path, flink_more: Path, flink_live: Path
) -> None:
    """One edit of each kind that fits the run."""
    folders = {"logs": flink_logs, "more": flink_more, "live": flink_live}
    run = folders[name.partition("/")[0]] / name.partition("/")[2]
    found = outcomes(partition_lies, run)
    assert len(found) > 5
    assert [(o.kind, o.what, o.place, o.expected, o.message) for o in found if o.is_missed] == []


# --- random lines

JOB, GRAPH = "0123456789abcdef" * 2, "c" * 32
PRODUCER, DATASET = f"{GRAPH}_{'a' * 32}_0_0", "b" * 32


def drawn(rng: Random, kind: str) -> list[tuple[str, dict[str, Any]]]:
    """A life of a partition, perhaps with one line removed, repeated or moved."""
    whole = {"type": kind, "subparts": 2}
    request = rng.choice(("part.reqlocal", "net.partreq"))
    served = [(request, {"from": 0, "to": 0}), ("part.request", {"from": 0, "to": 0, **whole})]
    views = [("part.view", {"sub": 0, "attempt": PRODUCER})] if kind != "BLOCKING" else []
    ended = [
        (
            "tm.transition",
            {"old": "RUNNING", "new": rng.choice(("FINISHED", "FINISHED", "FAILED")), "attempt": PRODUCER},
        )
    ]
    reads = [line for _ in range(rng.randint(0, 2)) for line in (*served, *views)]
    begun = [("part.init", {})] if kind == "BLOCKING" else []
    begun += [("part.registered", whole)]
    name = f"{DATASET}#0@{PRODUCER}"
    listed = [("part.tmrelease", {"partitions": [name]})] if kind == "BLOCKING" else [("part.consumed", whole)]
    gone = [("part.releasing", {**whole, "attempt": PRODUCER}), ("part.released", {})]
    last = [("part.tmrelease", {"partitions": [], "job": JOB})]
    waited = [(request, {"from": 0, "to": 0}), *views] if request == "net.partreq" and rng.random() < 0.5 else []
    begun = [*waited, *begun] if kind != "BLOCKING" else begun
    lines = [*begun, *(ended + reads if kind == "BLOCKING" else reads + ended), *listed, *gone, *last]
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(to, lines[at])
        case 2:
            lines.insert(to, lines.pop(at))
        case _:
            pass
    return lines


def first_wrong(lines: list[tuple[str, dict[str, Any]]], kind: str) -> int | None:
    """The first line that breaks a rule, by counting the lines before it."""
    blocking = kind == "BLOCKING"
    granted = {0}
    for at, (name, args) in enumerate(lines):
        before = Counter(n if n != "tm.transition" else a["new"] for n, a in lines[:at])
        listed = sum(n == "part.tmrelease" and bool(a["partitions"]) for n, a in lines[:at])
        late = any(n == "part.registered" for n, _ in lines[at:]) and not before["part.registered"]
        steps = ("part.request", "part.releasing", "part.view")
        entered = before["part.registered"] > 0 or any(n in steps for n, _ in lines[:at])
        requested, served = before["part.reqlocal"] + before["net.partreq"], before["part.request"]
        there = (entered or late) and not before["part.releasing"]
        if name == "part.request":
            granted = {n for n in granted if requested > served + n}
        elif name == "part.view":
            # Requests that waited for the partition are served before the line "Registered".
            more = {n + 1 for n in granted if late and requested > served + n and before["net.partreq"]}
            granted = {n for n in granted | more if served + n > before["part.view"]}
        ended = before["FINISHED"] + before["FAILED"]
        begun = entered or before["part.init"] > 0
        right = {
            "part.init": not begun and not before["FINISHED"],
            "part.registered": not before["part.registered"],
            "part.reqlocal": True,
            "net.partreq": True,
            "part.request": there and bool(granted) and (not blocking or before["FINISHED"] > 0),
            "part.view": there and bool(granted),
            "part.consumed": begun and not before["part.consumed"],
            "part.releasing": there,
            "part.released": before["part.releasing"] > 0
            and not before["part.released"]
            and (not blocking or listed > 0 or not before["FINISHED"]),
            "tm.transition": not ended,
        }
        if name == "part.tmrelease":
            stays = blocking and entered and not before["part.releasing"] and before["FINISHED"] > 0 and not listed
            fine = (not blocking or not listed) if args["partitions"] else not stays
        else:
            fine = right[name]
        if not fine:
            return at
    return None


@pytest.mark.parametrize("part", share(range(8), 8))
def test_a_judge_without_a_machine_agrees_on_random_lines(part: int) -> None:
    """The same verdict, at the same line."""
    answers = Counter[str]()
    for seed in range(200 * part, 200 * part + 200):
        rng = Random(seed)
        kind = rng.choice(("BLOCKING", "PIPELINED_BOUNDED"))
        lines = drawn(rng, kind)
        of_one = {"dataset": DATASET, "producer": PRODUCER, "pnum": 0, "partition": f"{DATASET}#0@{PRODUCER}"}
        events = [
            Event(JOB, "tm", at, name, {**args, **({} if name in ("part.tmrelease", "tm.transition") else of_one)},
                  f"2026-01-01T00:00:00.{at:03}", file="tm.log", line=at + 1)
            for at, (name, args) in enumerate(lines)
        ]  # fmt: skip
        # Lines about another partition show which families the log has.
        other = {**of_one, "dataset": "d" * 32, "from": 0, "to": 0}
        for name in ("net.partreq", "part.reqlocal", "part.releasing", "part.view"):
            events.append(Event(JOB, "tm", len(events), name, other, "2026-01-01T00:00:01.000", line=99))
        spoken = {"part.registered", "part.released", "tm.transition"}
        if not spoken <= {e.event for e in events}:
            continue
        run = FlinkRun(
            "run",
            tuple(events),
            {},
            {},
            (),
            {"tm": Process("tm", "taskmanager", "tm-0", ("tm.log",), (0,))},
            {JOB: "job"},
        )
        unit: Unit = partitions_of(run, JOB)
        assert unit.partial is None
        verdict = judge(Plan("run", (unit,), run.events), "partition_lifecycle")[0]
        line = None if verdict.rejection is None else verdict.rejection.event.line - 1
        assert (seed, line) == (seed, first_wrong(lines, kind)), (verdict.reason, lines)
        answers[verdict.answer] += 1
    assert min(answers["accepted"], answers["rejected"]) > 10
