"""Recorded channels of credit-based flow control: all are accepted, and what was tampered with is rejected where it was."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from shares import share
from streamproof.conformance.events import read_events
from streamproof.conformance.found_runs import bindings_for
from streamproof.conformance.validation import validate_paths
from streamproof.system import InputError, UsageError
from streamproof_specs.credit_channel.flink.binding import BINDING
from streamproof_specs.failover.flink.binding import FlinkFailover
from tampering.credit_lies import Tampering

RUNS = {
    "a-2x2-e2-f3-slow": (4, 1203),
    "b-3x1-e1-f4-slow": (3, 1453),
    "d-2x2-e1-f1": (4, 934),
    "f-2x2-e2-f2-pause": (4, 1395),
    "h-2x2-e2-f2-ckpt": (4, 1905),
    "i-2x2-e0-f4-ckpt": (4, 2416),
    "k-2x2-e2-f3-batch": (2, 195),
    "n-2x2-req1": (4, 2003),
    "u117-2x2-e1-f2": (4, 1151),
}
"""Channels and events of each recorded run."""


def verdicts(path: Path) -> list[dict[str, Any]]:
    """The records of the channels under a path."""
    return [verdict.record() for verdict in validate_paths([path], model="credit_channel")]


@pytest.mark.parametrize("name", share(sorted(RUNS), 3))
def test_recorded_channels_are_accepted(name: str, flink_credit: Path) -> None:
    """Every channel of every recorded run is a behaviour of the machine, with all its events."""
    records = verdicts(flink_credit / name)
    assert [r["verdict"] for r in records] == ["accepted"] * RUNS[name][0]
    assert sum(r["events"]["matched"] for r in records) == RUNS[name][1]
    assert all(r["events"]["matched"] == r["events"]["read"] and r["unit"] == "channel" for r in records)


def test_channels_of_the_bundled_agent_are_accepted(flink_agent: Path) -> None:
    """What the bundled agent records, with aligned and unaligned checkpoints, is a behaviour of the machine as well."""
    records = verdicts(flink_agent)
    assert {r["verdict"] for r in records} == {"accepted"}
    assert {r["run"] for r in records} == {p.name for p in flink_agent.iterdir()}
    assert sum(r["events"]["matched"] for r in records) == 4463


def test_traces_of_the_bundled_agent_are_event_logs(flink_agent: Path) -> None:
    """The agent's lines are read as event logs, too."""
    files = sorted(flink_agent.glob("*/*.ndjson"))
    assert len(files) == 8
    for file in files:
        events = read_events(file)
        assert events, file
        assert [e.seq for e in events] == sorted(e.seq for e in events)
        assert {e.process for e in events} == {file.name.partition(".")[0]}


def test_traces_in_outline_are_followed(flink_logs: Path, tmp_path: Path) -> None:
    """A trace of the messages alone is accepted; a credit announced and not gained, or not added, is rejected at its line."""
    records = verdicts(flink_logs / "x-agent-credit-1")
    assert [(r["verdict"], r["events"]["matched"]) for r in records] == [("accepted", 216), ("accepted", 173)]
    for name in ("taskmanager-0", "taskmanager-1"):
        shutil.copy(flink_logs / "x-agent-credit-1" / f"{name}.trace.jsonl", tmp_path)
    file = tmp_path / "taskmanager-1.trace.jsonl"
    lines = file.read_text().splitlines()
    number = next(n for n, line in enumerate(lines) if ".addCredit" in line)
    file.write_text("\n".join(lines[:number] + lines[number + 1 :]) + "\n")
    (rejected,) = [r for r in verdicts(tmp_path) if r["verdict"] == "rejected"]
    assert rejected["rejection"]["file"] == str(file)
    assert rejected["rejection"]["line"] == number + 1
    assert rejected["reason"].startswith("the credit left is recorded as")


def test_a_run_without_traces_is_inconclusive(flink_credit: Path) -> None:
    """Logs alone say nothing about credits, and the reason says what to do."""
    (record,) = verdicts(flink_credit / "z-2x2-e1-f0")
    assert record["verdict"] == "inconclusive"
    assert record["reason"] == (
        "no process recorded the calls of credit-based flow control; start Flink with the agent"
    )


def test_models_are_told_from_the_files(flink_credit: Path, flink_logs: Path, tmp_path: Path) -> None:
    """Logs are held against failover, traces against the channel, a folder with both against both."""
    run = flink_credit / "k-2x2-e2-f3-batch"
    assert [model for model, _ in bindings_for(run)] == ["failover", "credit_channel"]
    assert [model for model, _ in bindings_for(flink_logs / "a-pipelined-1")] == ["failover"]
    shutil.copy(run / "taskmanager-1.trace.jsonl", tmp_path)
    assert [model for model, _ in bindings_for(tmp_path)] == ["credit_channel"]
    assert [model for model, _ in bindings_for(tmp_path / "taskmanager-1.trace.jsonl")] == ["credit_channel"]


def test_the_default_binding_reads_what_none_recognises(flink_credit: Path, tmp_path: Path) -> None:
    """Also where a job graph is given, whatever else is there; without a default, the models are named."""
    (tmp_path / "notes.txt").write_text("nothing\n")
    assert [model for model, _ in bindings_for(tmp_path)] == ["failover"]
    assert [model for model, _ in bindings_for(flink_credit / "k-2x2-e2-f3-batch", with_graph=True)] == ["failover"]


def test_without_a_default_binding_the_models_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that no binding recognises is refused with what to do."""
    monkeypatch.setattr(FlinkFailover, "default", False)
    with pytest.raises(UsageError, match="no binding recognises") as caught:
        bindings_for(tmp_path)
    models = "baton buffer_shares checkpoints credit credit_channel cyclic failover loop_checkpoint_counts"
    others = "partition_lifecycle record_spans regions slot_pool task_descriptors"
    assert caught.value.remedy == f"name a model with validate --model: {', '.join([*models.split(), *others.split()])}"


# --- tampering


def missed(run: Path, kinds: tuple[str, ...], sample: int) -> list[str]:
    """The edits of the named kinds, so many of each, spread over the run, that are not rejected where they should be."""
    tampering = Tampering.of(run)
    edits = defaultdict(list)
    for edit in tampering.edits():
        if edit.kind.startswith(kinds):
            edits[edit.kind].append(edit)
    assert edits
    found = []
    for kind, made in edits.items():
        step = -(-len(made) // sample)
        for edit in made[step // 2 :: step]:
            outcome = tampering.outcome(edit)
            if not outcome.hit:
                found.append(f"{kind} at {edit.record.event.loc}: {outcome.place} {outcome.message}")
    return found


LOST = ("p.credit_add removed", "c.credit_announce removed", "p.backlog_announce removed", "p.resume removed")
GAPS = ("p.send removed", "c.recv removed", "p.send: seq", "c.recv: seq", "c.poll: seq", "c.poll removed")
CREDIT = ("credit doubled", "p.credit_add repeated", "c.credit_announce repeated", "p.credit_add: n", "p.send repeated")


@pytest.mark.parametrize("name", share(["d-2x2-e1-f1", "i-2x2-e0-f4-ckpt", "u117-2x2-e1-f2"], 3))
def test_lost_and_doubled_credit_and_gaps_are_rejected_at_the_record(name: str, flink_credit: Path) -> None:
    """A lost announcement, a credit that counts twice, a buffer without credit, a gap: each is found where it is."""
    assert missed(flink_credit / name, LOST + GAPS + CREDIT, 1) == []


def test_swapped_barriers_are_rejected(flink_credit: Path) -> None:
    """A barrier that changes places with data, in all that both ends say, is rejected where it is sent."""
    assert missed(flink_credit / "h-2x2-e2-f2-ckpt", ("barrier swapped",), 4) == []


NUMBERS = (
    "c.excl_request: n", "c.request: initial", "p.request: initial", "c.backlog: backlog", "c.float_request: want",
    "c.float_request: got", "c.credit_gain: n", "c.credit_announce: n", "c.recv: backlog", "c.poll: bytes", "unannounced + 1",
    "excl + 1", "required + 1", "next_seq + 1", "credits + 1",
)  # fmt: skip


@pytest.mark.parametrize("name", share(["k-2x2-e2-f3-batch", "d-2x2-e1-f1"], 2))
def test_numbers_that_are_off_by_one_are_rejected_at_the_record(name: str, flink_credit: Path) -> None:
    """Whatever a call was given, returned, or left behind in its counters, one more of it is found."""
    assert missed(flink_credit / name, NUMBERS, 2) == []


REMOVED = (
    "c.excl_request removed", "c.request removed", "c.buffer_taken removed", "c.backlog removed",
    "c.float_request removed", "c.credit_gain removed", "c.blocked removed", "c.resume removed", "p.request removed",
)  # fmt: skip


@pytest.mark.parametrize("name", share(["d-2x2-e1-f1", "i-2x2-e0-f4-ckpt"], 2))
def test_calls_that_are_missing_are_missed(name: str, flink_credit: Path) -> None:
    """A call that is left out shows at the next one that depends on it, or that made it."""
    assert missed(flink_credit / name, REMOVED, 2) == []


@pytest.mark.parametrize("name", share(["d-2x2-e1-f1", "h-2x2-e2-f2-ckpt", "k-2x2-e2-f3-batch", "u117-2x2-e1-f2"], 2))
def test_a_release_that_is_missing_is_missed(name: str, flink_credit: Path) -> None:
    """A request to cancel that has returned has released the reader, in its thread: the end of the record is no excuse."""
    assert missed(flink_credit / name, ("p.release removed",), 100) == []


# --- files


@pytest.fixture
def small(flink_credit: Path, tmp_path: Path) -> Path:
    """A copy of a small run's traces, to be edited."""
    folder = tmp_path / "run"
    folder.mkdir()
    for file in (flink_credit / "k-2x2-e2-f3-batch").glob("*.jsonl"):
        shutil.copy(file, folder)
    return folder


def edited(file: Path, number: int, **fields: Any) -> None:
    """Sets fields of the record on a line."""
    lines = file.read_text().splitlines()
    lines[number - 1] = json.dumps(json.loads(lines[number - 1]) | fields)
    file.write_text("\n".join(lines) + "\n")


def line_of(file: Path, event: str, nth: int = 0) -> int:
    """The line of the n-th record of an event."""
    lines = file.read_text().splitlines()
    return [n for n, line in enumerate(lines, 1) if f'"ev":"{event}"' in line][nth]


def test_a_rejection_names_file_line_and_rule(small: Path) -> None:
    """A credit that counts twice is rejected at its line, with what was announced."""
    file = small / "taskmanager-1.trace.jsonl"
    number = line_of(file, "p.credit_add")
    announced = json.loads(file.read_text().splitlines()[number - 1])["n"]
    edited(file, number, n=2 * announced)
    rejected = [r for r in verdicts(small) if r["verdict"] == "rejected"]
    assert len(rejected) == 1
    assert (rejected[0]["rejection"]["file"], rejected[0]["rejection"]["line"]) == (str(file), number)
    assert rejected[0]["reason"] == f"the credit added is {2 * announced}, but it must be {announced}"
    assert rejected[0]["rejection"]["nearest"] == f"p.credit_add(n={announced})"


def test_a_record_that_stands_twice_is_rejected(small: Path) -> None:
    """A record at another time has a place in its process's order that is taken; the same record was delivered twice."""
    file = small / "taskmanager-1.trace.jsonl"
    number = line_of(file, "p.send", 2)
    lines = file.read_text().splitlines()
    lines.insert(number, re.sub(r'"ns":(\d+)', r'"ns":1\1', lines[number - 1]))
    file.write_text("\n".join(lines) + "\n")
    rejected = [r for r in verdicts(small) if r["verdict"] == "rejected"]
    assert [r["rejection"]["line"] for r in rejected] == [number + 1]
    assert rejected[0]["reason"].startswith("the record has the place")


def test_a_line_with_a_key_twice_is_not_read(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which of the values is meant, nobody knows: the line is damaged, like half a line."""
    file = small / "taskmanager-1.trace.jsonl"
    number = line_of(file, "p.credit_add")
    lines = file.read_text().splitlines()
    lines[number - 1] = lines[number - 1].replace('"n":', '"n":99,"n":', 1)
    file.write_text("\n".join(lines) + "\n")
    found = {r["verdict"] for r in verdicts(small)}
    assert f"{file}:{number}: the line is not accepted: the key 'n' occurs twice" in capsys.readouterr().err
    assert "rejected" not in found
    assert "inconclusive" in found


def test_damaged_lines_make_a_rejection_inconclusive(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What could not be read may have been what is missing."""
    file = small / "taskmanager-1.trace.jsonl"
    number = line_of(file, "p.credit_add")
    lines = file.read_text().splitlines()
    lines[number - 1] = lines[number - 1][:-30]
    file.write_text("\n".join(lines) + "\n")
    found = {r["verdict"] for r in verdicts(small)}
    assert found == {"accepted", "inconclusive"}
    assert f"{file}:{number}: the line is not a JSON object" in capsys.readouterr().err


def test_a_record_that_was_cut_is_inconclusive(small: Path) -> None:
    """Where a process stopped recording, nothing is concluded from what is missing."""
    file = small / "taskmanager-1.trace.jsonl"
    lines = file.read_text().splitlines()[:100]
    file.write_text("\n".join([*lines, "TRUNCATED"]) + "\n")
    assert {r["verdict"] for r in verdicts(small)} == {"inconclusive"}


def test_one_end_alone_is_inconclusive(small: Path) -> None:
    """Without the other process's trace nothing is said, but for which trace is missing."""
    (small / "taskmanager-1.trace.jsonl").unlink()
    records = verdicts(small)
    assert {r["verdict"] for r in records} == {"inconclusive"}
    assert {r["reason"] for r in records} <= {
        "the producer's end is not recorded: give the traces of all processes",
        "the consumer's end is not recorded: give the traces of all processes",
    }


def test_traces_may_be_compressed(small: Path) -> None:
    """Files with `.gz` are read like others."""
    for file in sorted(small.glob("*.jsonl")):
        with gzip.open(f"{file}.gz", "wb") as packed:
            packed.write(file.read_bytes())
        file.unlink()
    assert {r["verdict"] for r in verdicts(small)} == {"accepted"}


def test_a_job_graph_is_refused_for_channels(small: Path, tmp_path: Path) -> None:
    """What channels do does not depend on the job graph, and who gives one expects something else."""
    with pytest.raises(InputError, match="a job graph says nothing about channels"):
        validate_paths([small], model="credit_channel", job_graph=tmp_path / "rest.json")


def test_the_documented_table_has_every_kind_of_edit(flink_credit: Path) -> None:
    """The users' page lists the edits that the tool makes; none of those that must be caught was missed."""
    page = (Path(__file__).parents[2] / "docs" / "how-to-validate-flink-credit.md").read_text()
    rows = [line.strip("| \n").split(" | ") for line in page.splitlines() if line.count(" | ") == 4]
    table = {row[0]: tuple(map(int, row[1:])) for row in rows if row[1].isdigit()}
    made = {edit.kind for edit in Tampering.of(flink_credit / "i-2x2-e0-f4-ckpt").edits()}
    assert made <= table.keys()
    certain = LOST + GAPS[:-1] + CREDIT + NUMBERS[:10]
    assert [kind for kind, counts in table.items() if kind.startswith(certain) and counts[3]] == []


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("c.request", {"ch": ["x"]}),
        ("c.request", {"ch": 7}),
        ("c.request", {"th": {}}),
        ("p.request", {"partition": []}),
        ("p.request", {"subpartitions": "²"}),
        ("p.request", {"subpartitions": "9" * 5000}),
        ("p.request", {"subpartitions": [0, 1]}),
    ],
)
def test_a_record_with_a_field_of_another_kind_is_none(event: str, fields: dict[str, Any], small: Path) -> None:
    """It is reported with its line, and the other channels are judged."""
    file = next(f for f in sorted(small.glob("*.jsonl")) if f'"ev":"{event}"' in f.read_text())
    number = line_of(file, event)
    edited(file, number, **fields)
    plan = BINDING.plan(BINDING.runs(small)[0], None)
    assert f"{file}:{number}: the line is not a record of a call" in plan.problems
    found = [r["verdict"] for r in verdicts(small)]
    assert "rejected" not in found
    assert len(found) == 2


def test_requests_for_very_many_subpartitions_take_little(small: Path) -> None:
    """What a request claims to ask for is not counted out."""
    file = small / "taskmanager-1.trace.jsonl"
    last = json.loads(file.read_text().splitlines()[-1])
    with file.open("a") as lines:
        for number in range(200):
            record = {
                "ns": last["ns"],
                "ns0": last["ns"],
                "q": last["q"] + 2 + 2 * number,
                "q0": last["q"] + 1 + 2 * number,
            }
            record |= {
                "proc": last["proc"],
                "th": "x",
                "ev": "p.request",
                "ch": f"{number:032x}",
                "partition": f"{number}",
            }
            lines.write(json.dumps(record | {"subpartitions": "[0, 999999990]"}) + "\n")
    assert len(verdicts(small)) == 202


def test_a_pipe_among_the_traces_is_passed_over(small: Path) -> None:
    """It is not waited for, and reported."""
    os.mkfifo(small / "more.jsonl")
    assert BINDING.plan(BINDING.runs(small)[0], None).problems == (
        f"{small / 'more.jsonl'}: is a pipe; it is not read",
    )
    assert [r["verdict"] for r in verdicts(small)] == ["accepted", "accepted"]
