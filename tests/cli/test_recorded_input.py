"""`validate` on logs as people have them: collected by other tools, compressed, incomplete, or no logs at all."""

from __future__ import annotations

import gzip
import json
import os
import re
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shares import share

RUNS = Path(__file__).parents[1] / "data" / "flink" / "logs.tar.xz"
RUN = "a-taskfail-1"


@pytest.fixture
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder ``run`` with the logs of one recorded run that is accepted."""
    with tarfile.open(RUNS) as archive:
        for member in archive:
            if f"/{RUN}/" in member.name and member.isfile():
                member.name = f"run/{Path(member.name).name}"
                archive.extract(member, folder, filter="data")
    return folder / "run"


def rewrite(log: Path, change: Callable[[str], str]) -> None:
    """Change every line of a log."""
    lines = log.read_text(encoding="utf-8").splitlines()
    log.write_text("".join(f"{change(line)}\n" for line in lines), encoding="utf-8")


COLLECTED = {
    "kubectl --prefix": lambda line: f"[pod/flink-jobmanager-5d9/flink-main-container] {line}",
    "kubectl --timestamps": lambda line: f"2026-11-21T03:17:55.749123456Z {line}",
    "containerd": lambda line: f"2026-11-21T03:17:55.749123456Z stdout F {line}",
    "docker compose": lambda line: f"jobmanager-1  | {line}",
    "docker": lambda line: json.dumps(
        {"log": f"{line}\n", "stream": "stdout", "time": "2026-11-21T03:17:55Z"}, separators=(",", ":")
    ),
    "docker, written again": lambda line: json.dumps(
        {"log": f"{line}\n", "stream": "stdout", "time": "2026-11-21T03:17:55Z"}
    ),
    "docker, stream first": lambda line: json.dumps({"stream": "stderr", "log": f"{line}\n"}, separators=(", ", " : ")),
    "byte order mark": lambda line: line,
}


@pytest.mark.parametrize("collector", share(COLLECTED, 2))
def test_what_collectors_put_around_lines_is_taken_off(streamproof: Any, run: Path, collector: str) -> None:
    """The verdict is that of the plain logs, without a warning."""
    plain = streamproof("validate", "run")
    for log in run.glob("*.log"):
        rewrite(log, COLLECTED[collector])
        if collector == "byte order mark":
            log.write_bytes(b"\xef\xbb\xbf" + log.read_bytes())
    done = streamproof("validate", "run")
    assert (done.code, done.out, done.err) == (0, plain.out, plain.err)


@pytest.mark.parametrize(
    ("magic", "kind"),
    [
        (b"PK\x03\x04", "a zip archive"),
        (b"\x04\x22\x4d\x18", "compressed by lz4"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    ],
)
def test_an_archive_in_a_gzipped_file_is_named(streamproof: Any, folder: Path, magic: bytes, kind: str) -> None:
    """It is not read as text."""
    (folder / "plain").write_bytes(magic + bytes(600))
    (folder / "log").write_bytes(gzip.compress(magic + bytes(600)))
    for name in ("log",) if kind == "a zip archive" else ("plain", "log"):
        done = streamproof("validate", name)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"streamproof: error: {name} is {kind}\n  unpack it")


def test_compressed_logs_that_are_not_read_are_named(streamproof: Any, run: Path) -> None:
    """One beside others is a warning; where there are no others, that is the error."""
    log = run / "taskmanager-1.log"
    (run / "taskmanager-1.log.lz4").write_bytes(b"\x04\x22\x4d\x18" + log.read_bytes())
    log.unlink()
    done = streamproof("validate", "run")
    why = "run/taskmanager-1.log.lz4 is compressed by lz4"
    assert "streamproof: warning: run/taskmanager-1.log.lz4: is compressed by lz4; it is not read\n" in done.err
    for other in run.glob("*.log"):
        other.unlink()
    done = streamproof("validate", "run")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"streamproof: error: run: no log can be read: {why}\n  unpack it")
    done = streamproof("validate", "run/taskmanager-1.log.lz4")
    assert (done.code, done.err.splitlines()[0]) == (2, f"streamproof: error: {why}")


def test_archives_are_read(streamproof: Any, run: Path, folder: Path) -> None:
    """A tar archive, compressed or not, and whatever its name, is the folder of its members; so is a zip archive, and one of
    a single log is that log."""
    plain = streamproof("validate", "run")
    for name, mode in (("run.tar", "w"), ("run.tar.gz", "w:gz"), ("run.log", "w")):
        with tarfile.open(folder / name, mode) as archive:  # type: ignore[call-overload]
            archive.add(run, "run")
        done = streamproof("validate", name)
        assert (done.code, done.out, done.err) == (0, plain.out, plain.err)
    with zipfile.ZipFile(folder / "run.zip", "w") as zipped:
        for file in run.iterdir():
            zipped.write(file, f"run/{file.name}")
    done = streamproof("validate", "run.zip")
    assert (done.code, done.out, done.err) == (0, plain.out, plain.err)
    with zipfile.ZipFile(run / "jobmanager.log.zip", "w") as zipped:
        zipped.write(run / "jobmanager.log", "jobmanager.log")
    (run / "jobmanager.log").unlink()
    done = streamproof("validate", "run")
    assert (done.code, done.out, done.err) == (0, plain.out, plain.err)
    done = streamproof("validate", "run.tar", "--model", "reference.die_hard")
    assert (done.code, done.out) == (2, "")
    assert done.err == "streamproof: error: run.tar is a tar archive\n  unpack it, and give the files in it\n"


def test_pipes_are_not_waited_for(streamproof: Any, run: Path, folder: Path) -> None:
    """Neither one that is named, nor one among the logs."""
    os.mkfifo(folder / "pipe.log")
    done = streamproof("validate", "pipe.log")
    assert (done.code, done.err.splitlines()[0]) == (2, "streamproof: error: pipe.log is a pipe")
    (run / "taskmanager-1.log").unlink()
    os.mkfifo(run / "taskmanager-1.log")
    done = streamproof("validate", "run")
    assert "streamproof: warning: run/taskmanager-1.log: is a pipe; it is not read\n" in done.err


def test_a_pattern_that_matches_nothing(streamproof: Any, folder: Path) -> None:
    """The remedy is about logs."""
    done = streamproof("validate", "nope*")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "streamproof: error: nothing matches the pattern nope*\n  name logs, folders of logs, or a pattern\n"
    )


def test_the_answer_of_another_job_is_named(streamproof: Any, run: Path) -> None:
    """A REST answer beside the logs that is about none of their jobs is left out with a warning."""
    answer = next(run.glob("rest-*.json"))
    job = json.loads(answer.read_text())["job"]["jid"]
    answer.write_text(answer.read_text().replace(job, "f" * 32))
    done = streamproof("validate", "run")
    place = answer.relative_to(run.parent)
    message = f"{place}: the answer is about job {'f' * 32}, which is not in the logs; it is left out"
    assert f"streamproof: warning: {message}\n" in done.err


def test_impossible_times_and_clocks_that_run_back(streamproof: Any, run: Path) -> None:
    """Each is one warning for a process, with file and line."""
    log = run / "jobmanager.log"
    lines = log.read_text().splitlines()
    dated = [at for at, line in enumerate(lines) if re.match(r"\d{4}-\d\d-\d\d ", line)]
    for at in dated[10:13]:
        lines[at] = f"2026-13-45{lines[at][10:]}"
    for at in dated[20:23]:
        lines[at] = f"2019{lines[at][4:]}"
    log.write_text("\n".join(lines) + "\n")
    messages = streamproof("validate", "run").err.splitlines()
    assert len(messages) == 2, messages
    assert re.fullmatch(
        rf"streamproof: warning: run/jobmanager.log:{dated[10] + 1}: 2026-13-45T\S+ is not a date and time", messages[0]
    )
    assert messages[1].startswith(
        f"streamproof: warning: run/jobmanager.log:{dated[20] + 1}: the clock runs back from 2026-"
    )
    assert messages[1].endswith("; events keep the order of the lines")


def test_the_nearest_binding_is_suggested(streamproof: Any, folder: Path) -> None:
    """`--model failovr` of `validate` has a suggestion, too."""
    done = streamproof("validate", ".", "--model", "failovr")
    assert (done.code, "\n  did you mean failover?\n" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.log", "nothing\n", ("validate", "a.log")),
        ("rest-1.json", "{", ("validate", "run", "--job-graph", "rest-1.json")),
        ("nothing", None, ("validate", "nothing")),
    ],
)
def test_messages_have_one_style(
    streamproof: Any, run: Path, folder: Path, name: str, text: str | None, words: tuple[str, ...]
) -> None:
    """Each line of an error begins with a small letter or a name, and ends without a full stop."""
    if text is None:
        (folder / name).mkdir()
    else:
        (folder / name).write_text(text)
    done = streamproof(*words)
    assert done.code == 2
    for line in done.err.removeprefix("streamproof: error: ").splitlines():
        assert not line.endswith(".") or line.endswith("...")
        assert not re.match(r" *[A-Z][a-z]+ ", line), line
