"""Files of Flink's logs: which belong together, in which order, and what happens when they are damaged or not Flink's."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from streamproof.base.errors import InputError
from streamproof.conformance.event import Event
from streamproof.conformance.flink import FlinkRun, find_runs, read_run

RUN = "b-lostpart-1"
MARK = b"switched from RUNNING to FINISHED"


@pytest.fixture
def run(flink_logs: Path, tmp_path: Path) -> Path:
    """A recorded run that a test may change."""
    return shutil.copytree(flink_logs / RUN, tmp_path / RUN)


@pytest.fixture
def recorded(flink_logs: Path) -> FlinkRun:
    """The same run as it was recorded."""
    return read_run(flink_logs / RUN)


def _content(run: FlinkRun) -> list[Event]:
    return list(run.events)


def _change(file: Path, change: Callable[[bytes, int], bytes]) -> None:
    """Rewrite a log, given its bytes and the place of the first task that finishes."""
    data = file.read_bytes()
    file.write_bytes(change(data, data.index(MARK)))


def _quarters(log: Path) -> list[bytes]:
    lines = log.read_bytes().splitlines(keepends=True)
    size = len(lines) // 4
    return [b"".join(lines[part * size : (part + 1) * size if part < 3 else None]) for part in range(4)]


@pytest.mark.parametrize("names", [(".1", ".2", ".3", ""), (".3", ".2", ".1", ""), (".9", ".10", ".11", "")])
@pytest.mark.parametrize("packed", [False, True])
def test_rotated_files(run: Path, recorded: FlinkRun, names: tuple[str, ...], packed: bool) -> None:
    """Rotated parts are read in the order of their times, whichever way they are numbered, packed or not."""
    parts = _quarters(run / "jobmanager.log")
    (run / "jobmanager.log").unlink()
    for name, part in zip(names, parts, strict=True):
        file = run / f"jobmanager.log{name}{'.gz' if packed and name else ''}"
        file.write_bytes(gzip.compress(part) if packed and name else part)
    read = read_run(run)
    assert read.problems == ()
    assert _content(read) == _content(recorded)
    assert len(read.processes["jobmanager"].files) == 4
    assert set(read.processes) == {"jobmanager", "taskmanager-0", "taskmanager-1", "taskmanager-2"}


def test_dated_rotation_and_names_of_the_start_scripts(run: Path, recorded: FlinkRun) -> None:
    """Names as Flink's scripts give them, with a date for a rotation number; the host's digits are no rotation."""
    parts = _quarters(run / "jobmanager.log")
    (run / "jobmanager.log").unlink()
    stem = "flink-root-standalonesession-0-10.0.0.5"
    (run / f"{stem}.log.2026-11-20").write_bytes(parts[0] + parts[1])
    (run / f"{stem}.log").write_bytes(parts[2] + parts[3])
    read = read_run(run)
    assert read.problems == ()
    assert read.processes[stem].role == "jobmanager"
    assert read.counts == recorded.counts


def test_a_stack_trace_may_go_on_in_the_next_file(run: Path, recorded: FlinkRun) -> None:
    """Lines at the head of a rotated file belong to the last record of the one before."""
    data = (run / "jobmanager.log").read_bytes()
    middle = data.index(b"Caused by: ", data.index(b"PartitionConnectionException: "))
    (run / "jobmanager.log.1").write_bytes(data[:middle])
    (run / "jobmanager.log").write_bytes(data[middle:])
    assert _content(read_run(run)) == _content(recorded)


def test_the_same_part_twice_is_read_once(run: Path, recorded: FlinkRun) -> None:
    """A packed copy beside the original is left out and reported."""
    (run / "jobmanager.log.gz").write_bytes(gzip.compress((run / "jobmanager.log").read_bytes()))
    read = read_run(run)
    assert _content(read) == _content(recorded)
    assert [str(p) for p in read.problems] == [
        f"{run}/jobmanager.log.gz: the same part of the log as jobmanager.log; it is left out"
    ]


def test_half_an_archive(run: Path, recorded: FlinkRun) -> None:
    """Of a damaged archive what can be unpacked is read, and the damage reported at the line it begins."""
    packed = gzip.compress((run / "taskmanager-1.log").read_bytes())
    (run / "taskmanager-1.log").unlink()
    (run / "taskmanager-1.log.gz").write_bytes(packed[: len(packed) // 2])
    read = read_run(run)
    (problem,) = read.problems
    assert problem.text.startswith("the compressed file is damaged after this line (")
    assert problem.line > 50
    kept = [e for e in read.events if e.process == "taskmanager-1"]
    assert kept == [e for e in recorded.events if e.process == "taskmanager-1"][: len(kept)]
    assert len(kept) > 20


@pytest.mark.parametrize(
    ("change", "lost", "expected"),
    [
        pytest.param(
            lambda d, i: d[:i] + b"\xff\xfe" + d[i:], 1, "the line has bytes that are not UTF-8 text", id="bytes"
        ),
        pytest.param(
            lambda d, i: d[:i] + bytes(50) + d[i:],
            1,
            "the line has zero bytes, as a crash or a truncated copy leaves them",
            id="zeros in a line",
        ),
        pytest.param(
            lambda d, i: d[: d.rindex(b"\n", 0, i) + 1] + bytes(5000) + d[d.rindex(b"\n", 0, i) + 1 :],
            0,
            "the line has zero bytes, as a crash or a truncated copy leaves them",
            id="zeros before a line",
        ),
        pytest.param(
            lambda d, i: d[: i + 20] + d[d.index(b"\n", i) :],
            1,
            "the line looks like exec.transition but cannot be read in full",
            id="half a line",
        ),
        pytest.param(
            lambda d, i: d[: i - 60] + d[d.index(b"\n", i) :],
            1,
            "the line seems to be cut: it ends within a bracket",
            id="less than half a line",
        ),
        pytest.param(
            lambda d, i: d[: d.rindex(b"\n", 0, i) + 40] + d[d.index(b"\n", i) :],
            1,
            "the line has a time but no level and logger: 2026-11-21 03:19:07,473 INFO  org.apach",
            id="hardly a line",
        ),
        pytest.param(
            lambda d, i: d[: i + 20] + d[d.index(b"\n", i) + 1 :],
            1,
            "a line was cut and another one written into it: 2026-11-21 03:19:07,473 INFO  "
            "org.apache.flink.runtime.executiongraph.ExecutionGraph       [] - Source: A-source -> A...",
            id="two lines in one",
        ),
    ],
)
def test_damage_in_the_middle(
    run: Path, recorded: FlinkRun, change: Callable[[bytes, int], bytes], lost: int, expected: str
) -> None:
    """Damage costs at most the line it is in; it is reported there, and reading goes on."""
    _change(run / "jobmanager.log", change)
    read = read_run(run)
    assert [str(problem) for problem in read.problems] == [f"{run}/jobmanager.log:317: {expected}"]
    assert len(read.events) == len(recorded.events) - lost
    after = [e.args for e in read.events if e.process == "jobmanager"][-300:]
    assert after == [e.args for e in recorded.events if e.process == "jobmanager"][-300:]


@pytest.mark.parametrize("kept", range(40, 240, 25))
def test_a_log_that_ends_within_a_line(run: Path, recorded: FlinkRun, kept: int) -> None:
    """Wherever the last line is cut, it is reported and gives no event; the lines before it all do."""
    _change(run / "jobmanager.log", lambda data, i: data[: data.rindex(b"\n", 0, i) + 1 + kept])
    read = read_run(run)
    assert [(p.file, p.line) for p in read.problems] == [(f"{run}/jobmanager.log", 317)]
    before = [e for e in recorded.events if e.process == "jobmanager" and (e.line or 0) < 317]
    assert [e for e in read.events if e.process == "jobmanager"] == before
    assert len(before) == 52


def test_a_last_line_without_its_end(run: Path, recorded: FlinkRun) -> None:
    """A last line that is whole but for its line end is an event; nothing is wrong with it."""
    _change(run / "jobmanager.log", lambda data, i: data[: data.index(b"\n", i)])
    read = read_run(run)
    assert read.problems == ()
    assert [e for e in read.events if e.process == "jobmanager"][-1].args["new"] == "FINISHED"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "the file is empty"),
        (bytes(range(256)) * 50, "the file is damaged or no text, and no record of Flink's is in it"),
        (b"hello\nworld\n", "no record of Flink's is in it: none of its 2 lines begins like a record"),
        (
            b"2026-11-21 03:17:55,749 INFO  org.apache.spark.Main - hello\n" * 9,
            "no record of Flink's is in it: 9 records of other programs, the first logger is Main",
        ),
    ],
)
def test_files_that_are_not_flinks(run: Path, tmp_path: Path, content: bytes, why: str) -> None:
    """Among Flink's logs such a file is one problem; alone it is refused, as is a folder of nothing else."""
    (run / "taskmanager-9.log").write_bytes(content)
    assert [str(problem) for problem in read_run(run).problems] == [f"{run}/taskmanager-9.log: {why}"]
    with pytest.raises(InputError) as caught:
        read_run(run / "taskmanager-9.log")
    assert caught.value.message == f"{run}/taskmanager-9.log: {why}"
    assert caught.value.remedy.startswith("a log of Flink's has lines such as '2026-11-21 03:17:55,749 INFO ")
    other = tmp_path / "other"
    other.mkdir()
    for name in ("a.log", "b.log"):
        (other / name).write_bytes(content)
    with pytest.raises(InputError, match="other: none of the 2 logs is Flink's"):
        read_run(other)


def test_nothing_there(tmp_path: Path) -> None:
    """A missing path, a pattern without matches and a folder without logs are refused, naming what was looked for."""
    (tmp_path / "notes.txt").write_text("2026-11-21 03:17:55,749 INFO  org.apache.flink.runtime.X [] - y\n")
    for path, message in (
        (tmp_path / "none", f"no such file or folder: {tmp_path}/none"),
        (tmp_path / "*.log", f"nothing matches the pattern {tmp_path}/*.log"),
        (tmp_path, f"{tmp_path}: no log was found"),
    ):
        with pytest.raises(InputError) as caught:
            find_runs(path)
        assert caught.value.message == message
    assert (
        caught.value.remedy == "looked for *.log, rotated *.log.N, both also with .gz, .bz2, .zst or .xz, "
        "files that begin like logs, and tar and zip archives, in the folder and those below it"
    )


def test_runs_are_found(flink_logs: Path, recorded: FlinkRun) -> None:
    """A folder of runs, one run, one log, a pattern of logs, a pattern of folders."""
    names = [run.name for run in find_runs(flink_logs)]
    assert (len(names), names[0], names[-1]) == (20, "a-pipelined-1", "x-agent-lostpart-1")
    assert [run.name for run in find_runs(flink_logs / RUN)] == [RUN]
    assert [run.name for run in find_runs(flink_logs / "b-*")] == ["b-delfile-1", "b-lostpart-1", "b-lostpart-2"]
    by_pattern = find_runs(flink_logs / "*" / "jobmanager.log")
    assert [run.name for run in by_pattern] == names
    assert {len(run.files) for run in by_pattern} == {1}
    alone = read_run(flink_logs / RUN / "jobmanager.log")
    assert alone.name == "jobmanager"
    assert list(alone.events) == [e for e in recorded.events if e.process == "jobmanager"]
    assert _content(read_run(flink_logs / RUN / "*.log")) == _content(recorded)


def test_several_runs_are_not_one(flink_logs: Path) -> None:
    """Reading a folder of runs as one run is refused."""
    with pytest.raises(InputError) as caught:
        read_run(flink_logs)
    assert caught.value.message == f"{flink_logs}: there are 20 runs, the first two a-pipelined-1 and a-taskfail-1"


def test_a_log_of_any_name(run: Path, recorded: FlinkRun) -> None:
    """A log that is named itself need not be called so."""
    renamed = (run / "taskmanager-1.log").rename(run / "tm one.txt")
    read = read_run(renamed)
    assert list(read.processes) == ["tm one"]
    assert [e.args for e in read.events] == [e.args for e in recorded.events if e.process == "taskmanager-1"]


def test_a_taskmanagers_log_alone_knows_its_job(run: Path) -> None:
    """Without the JobManager's log, slot requests still join attempts with their job."""
    read = read_run(run / "taskmanager-1.log")
    assert list(read.jobs) == ["337d69de26fec894361caf2e7c702644"]
    assert {e.trace for e in read.events if e.event == "tm.transition"} == set(read.jobs)
    assert read.processes["taskmanager-1"].tm == "tm-1"


def test_a_mini_cluster(run: Path) -> None:
    """JobManager and TaskManagers in one log are one process of both roles."""
    logs = [(run / f"{name}.log").read_bytes() for name in ("jobmanager", "taskmanager-0", "taskmanager-1")]
    (run / "test.log").write_bytes(b"".join(logs))
    assert read_run(run / "test.log").processes["test"].role == "both"


def test_hostile_lines_are_read_quickly(tmp_path: Path) -> None:
    """Lines made to confuse the search for heads neither hang it nor pass for more than they are."""
    hostile = ["INFO [a] " * 9000, "INFO x " + "[a] " * 20000, " " * 90000, "[INFO [a] [b] " * 9000]
    lines = [f"2026-11-21 03:17:55,749 {text}" for text in hostile]
    lines.append(
        "2026-11-21 03:17:55,750 INFO  org.apache.flink.runtime.jobmaster.JobMaster [] - Trigger heartbeat request."
    )
    (tmp_path / "jobmanager.log").write_text("\n".join(lines) + "\n")
    assert dict(read_run(tmp_path / "jobmanager.log").counts) == {"hb.trigger": 1}
