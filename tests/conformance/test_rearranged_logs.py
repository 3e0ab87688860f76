"""Correct runs in other layouts, rotated or copied as logging does it, keep their verdict; lies in such logs are found."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from shares import share
from streamproof.conformance.flink import read_run
from streamproof.conformance.validation import validate_paths

HEAD = re.compile(rb"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})")
BEFORE_LOGGER = re.compile(rb"(,\d{3} \w+ +)(org\.apache\S+ +)\[\] - ", re.MULTILINE)
TRACE = b"4bf92f3577b34da6a3ce929d0e0e4736"

Edit = Callable[[bytes], bytes]


@pytest.fixture
def run(flink_logs: Path, tmp_path: Path) -> Path:
    """A recorded run that a test may change."""
    return shutil.copytree(flink_logs / "b-lostpart-1", tmp_path / "b-lostpart-1")


def verdicts(run: Path) -> list[str]:
    """The verdicts of the jobs of a run."""
    return sorted(v.answer for v in validate_paths([run]))


def edit(run: Path, change: Edit) -> None:
    """Changes every log."""
    for log in run.glob("*.log*"):
        log.write_bytes(change(log.read_bytes()))


def timed(change: Callable[[datetime, bytes], bytes]) -> Edit:
    """Writes the times of heads in another form, given the second and the milliseconds."""

    def changed(data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        for at, line in enumerate(lines):
            head = HEAD.match(line)
            if head:
                lines[at] = change(datetime.fromisoformat(head[1].decode()), head[2]) + line[head.end() :]
        return b"".join(lines)

    return changed


def without_date(seconds: int = 0) -> Edit:
    """Times alone, so many seconds later."""
    return timed(lambda at, ms: (at + timedelta(seconds=seconds)).strftime("%H:%M:%S").encode() + b"," + ms)


TO_MIDNIGHT = 74_447  # the first failure comes shortly before midnight, the second after it
LAYOUTS = {
    "no date": without_date(),
    "no date, over midnight": without_date(TO_MIDNIGHT),
    "no fraction": timed(lambda at, ms: at.isoformat(sep=" ").encode()),
    "neither": timed(lambda at, ms: at.strftime("%H:%M:%S").encode()),
}


@pytest.mark.parametrize(("process", "kept"), [("taskmanager-1", 0.6), ("taskmanager-2", 0.3), ("taskmanager-2", 0.8)])
@pytest.mark.parametrize("layout", share(LAYOUTS, 2))
def test_a_taskmanagers_log_that_ends_early_is_cut_in_every_layout(
    layout: str, process: str, kept: float, run: Path
) -> None:
    """What a log would have said after its end is no contradiction, however its times are written."""
    log = run / f"{process}.log"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[: int(kept * len(lines))]))
    edit(run, LAYOUTS[layout])
    assert verdicts(run) == ["accepted"]


@pytest.mark.parametrize("layout", share(LAYOUTS, 2, first=1))
@pytest.mark.parametrize("gone", [b"Received task ", b"to FINISHED", b"Registered "])
def test_a_line_that_is_missing_in_a_taskmanagers_log_is_missed_in_every_layout(
    layout: str, gone: bytes, run: Path
) -> None:
    """The log goes on after the line, so it is not cut."""
    log = run / "taskmanager-1.log"
    data = log.read_bytes()
    at = data.index(gone)
    log.write_bytes(data[: data.rindex(b"\n", 0, at) + 1] + data[data.index(b"\n", at) + 1 :])
    edit(run, LAYOUTS[layout])
    assert verdicts(run) == ["rejected"]


@pytest.mark.parametrize("place", [rb"\1[%s] \2- ", rb"\1\2[%s] - ", rb"\1\g<2>%s - ", rb"\1\2[] - [%s] "])
def test_an_identifier_in_the_context_that_is_no_jobs_is_not_taken_for_one(place: bytes, run: Path) -> None:
    """A trace identifier has the form of a job's."""
    edit(run, lambda data: BEFORE_LOGGER.sub(place % TRACE, data))
    assert verdicts(run) == ["accepted"]


def test_the_execution_graph_says_which_job_not_the_context(flink_live: Path, tmp_path: Path) -> None:
    """A thread keeps the context of another job of the session."""
    run = shutil.copytree(flink_live / "adaptive-mixed", tmp_path / "run")
    before = verdicts(run)
    jobs = re.findall(rb"\(([0-9a-f]{32})\) switched from state CREATED", (run / "jobmanager.log").read_bytes())
    assert len(before) > 1
    edit(run, lambda data: BEFORE_LOGGER.sub(rb"\1\2[%s] - " % jobs[0], data))
    assert verdicts(run) == before


def parts(data: bytes, number: int) -> list[bytes]:
    """So many parts of a log, each of whole records."""
    lines = data.splitlines(keepends=True)
    begins = [at for at, line in enumerate(lines) if re.match(rb"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d", line)]
    cuts = [0, *(begins[len(begins) * n // number] for n in range(1, number)), len(lines)]
    return [b"".join(lines[a:b]) for a, b in pairwise(cuts)]


def rotate(run: Path, number: int, name: Callable[[str, int], str], only: str = "") -> None:
    """Splits logs: `name` is given the stem of a log and which of its older parts a file is, from 1, the oldest."""
    for log in sorted(run.glob(f"{only}*.log")):
        *older, newest = parts(log.read_bytes(), number)
        for at, part in enumerate(older, 1):
            (run / name(log.stem, at)).write_bytes(part)
        log.write_bytes(newest)


PARTS = 16


def up(stem: str, at: int) -> str:
    """Numbers that count upwards."""
    return f"{stem}.log.{at}"


def down(stem: str, at: int) -> str:
    """Numbers that count downwards."""
    return f"{stem}.log.{PARTS - at}"


def set_back(run: Path, zones: tuple[bytes, bytes]) -> None:
    """Rotates every log in the middle, where the clock is set back by an hour."""
    for log in sorted(run.glob("*.log")):
        older, newer = parts(log.read_bytes(), 2)
        hours = {zones[0]: 0, zones[1]: -1}
        for file, part, zone in ((run / f"{log.name}.1", older, zones[0]), (log, newer, zones[1])):
            shift = timedelta(hours=hours[zone] if zones[0] != zones[1] else -(part is newer))

            def written(at: datetime, ms: bytes, shift: timedelta = shift, zone: bytes = zone) -> bytes:
                return (at + shift).isoformat(sep=" ").encode() + b"," + ms + zone

            file.write_bytes(timed(written)(part))


@pytest.mark.parametrize("name", [up, down])
@pytest.mark.parametrize("layout", share(["plain", *LAYOUTS], 6))
def test_rotated_logs_are_ordered_in_every_layout(layout: str, name: Callable[[str, int], str], run: Path) -> None:
    """Parts within one second, and parts before and after midnight, numbered in either direction."""
    if layout != "plain":
        edit(run, LAYOUTS[layout])
    rotate(run, PARTS, name)
    assert verdicts(run) == ["accepted"]
    numbers = [Path(file).suffix for file in read_run(run).processes["jobmanager"].files]
    assert numbers == [Path(name("x", at)).suffix for at in range(1, PARTS)] + [".log"]


@pytest.mark.parametrize("zones", [(b"", b""), (b" +02:00", b" +01:00")])
def test_a_clock_that_is_set_back_between_two_parts(zones: tuple[bytes, bytes], run: Path) -> None:
    """Zones that are written tell that no time went back; without them the part that is being written is the last."""
    set_back(run, zones)
    assert verdicts(run) == ["accepted"]
    assert [Path(f).suffix for f in read_run(run).processes["taskmanager-2"].files] == [".1", ".log"]


@pytest.mark.parametrize(
    "pattern",
    share(
        [
            "{}-2026-11-21-{}.log",
            "{}.2026-11-21.{}.log",
            "{}_20261121-{}.log",
        ],
        3,
    ),
)
@pytest.mark.parametrize("only", ["", "taskmanager"])
def test_parts_with_a_date_before_the_ending(pattern: str, only: str, run: Path) -> None:
    """They are the log of one process; TaskManagers whose names differ by a number are not."""
    rotate(run, 3, pattern.format, only)
    assert verdicts(run) == ["accepted"]
    processes = read_run(run).processes
    assert set(processes) == {"jobmanager", "taskmanager-0", "taskmanager-1", "taskmanager-2"}
    assert {name: len(p.files) for name, p in processes.items() if only in name} == {
        name: 3 for name in processes if only in name
    }


def test_an_order_that_nothing_tells_leaves_the_job_open(run: Path) -> None:
    """All lines of a part at the same second, and no attempt in two parts."""
    line = b"2026-11-21 03:18:00 INFO  org.apache.flink.runtime.taskexecutor.TaskExecutor [] - "
    line += b"Close JobManager connection for job 337d69de26fec894361caf2e7c702644.\n"
    log = run / "taskmanager-9.log"
    for n, name in enumerate((log, f"{log}.1", f"{log}.2"), 1):
        Path(name).write_bytes(b"2026-11-21 03:18:00 INFO  library.Part [] - %d\n" % n + line)
    edit(run, lambda data: data.replace(b"10 tasks will be restarted", b"9 tasks will be restarted"))
    (verdict,) = validate_paths([run])
    assert verdict.answer == "inconclusive"
    assert (verdict.reason or "").startswith("the order of the log of taskmanager-9 is not known: ")


@pytest.mark.parametrize("what", ["jobmanager", "taskmanager-1"])
@pytest.mark.parametrize("part", ["whole", "begin", "end", "wrapped"])
def test_a_copy_of_a_log_is_read_once(what: str, part: str, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log that was collected twice, earlier, or without its beginning."""
    lines = (run / f"{what}.log").read_bytes().splitlines(keepends=True)
    kept = {"begin": lines[: len(lines) // 2], "end": lines[len(lines) // 2 :]}.get(part, lines)
    prefix = b"2026-11-21T04:00:00.5Z " if part == "wrapped" else b""
    (run / f"collected-{what}.log").write_bytes(b"".join(prefix + line for line in kept))
    assert verdicts(run) == ["accepted"]
    assert f"all that it holds is in {what}.log; it is left out" in " ".join(capsys.readouterr().err.split())


def test_a_log_that_differs_from_another_is_no_copy(run: Path) -> None:
    """A second log with one line changed says that the task was deployed twice."""
    data = (run / "taskmanager-1.log").read_bytes()
    (run / "another.log").write_bytes(data.replace(b"Received task ", b"Received  task ", 1))
    assert verdicts(run) == ["rejected"]


@pytest.mark.parametrize("kept", [1.0, 0.5])
def test_a_copy_of_a_credit_trace_is_read_once(
    kept: float, flink_credit: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The records of a process are in two files; those of a copy with other content are judged."""
    run = shutil.copytree(flink_credit / "k-2x2-e2-f3-batch", tmp_path / "run")
    trace = run / "taskmanager-1.trace.jsonl"
    whole = verdicts(run)
    lines = trace.read_bytes().splitlines(keepends=True)
    (run / "copy.trace.jsonl").write_bytes(b"".join(lines[: int(len(lines) * kept)]))
    assert verdicts(run) == whole
    assert "of its records are there more than once; they are read once" in " ".join(capsys.readouterr().err.split())
    (run / "copy.trace.jsonl").write_bytes(re.sub(rb'"ns":(\d)', rb'"ns":1\1', b"".join(lines)))
    assert "rejected" in verdicts(run)


def test_a_log_without_dates_that_no_message_bounds(run: Path) -> None:
    """A TaskManager of which the JobManager's log says nothing, beside one that received what it has not deployed."""
    (run / "jobmanager.log").write_bytes(parts((run / "jobmanager.log").read_bytes(), 8)[0])
    edit(run, LAYOUTS["no date"])
    assert "rejected" not in verdicts(run)


def test_a_copy_of_a_trace_without_process_names_is_read_once(flink_logs: Path, tmp_path: Path) -> None:
    """Such a trace is the process's by its file."""
    run = shutil.copytree(flink_logs / "x-agent-credit-1", tmp_path / "run")
    whole = verdicts(run)
    shutil.copy(run / "taskmanager-1.trace.jsonl", run / "collected-taskmanager-1.trace.jsonl")
    assert verdicts(run) == whole
