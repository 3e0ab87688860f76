"""Logs as people have them: JSON, any pattern, collectors, archives, any name. The events must be those of the original."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest

from rerender import JSON, PATTERNS, by_pattern, records, rewrite
from shares import share
from streamproof.base import reading
from streamproof.base.errors import InputError
from streamproof.conformance import validate_paths
from streamproof.conformance.flink import FlinkRun, archives, read_run
from streamproof.conformance.flink.layouts import with_pattern
from streamproof.conformance.flink.pattern_layouts import compile_pattern

RUN = "ckpt-expo"
RECOGNISED = [name for name in PATTERNS if name != "key values"]
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: bytes(pyarrow.compress(data, codec="zstd", asbytes=True)),
}


def _content(run: FlinkRun, ending: str = "") -> list[tuple[str, int, str, str]]:
    """The events of a run without times, threads and lines; `ending` is what the names of processes have in addition."""
    return sorted(
        (e.process.removesuffix(ending), e.seq, e.event, str({k: v for k, v in e.args.items() if k != "by"}))
        for e in run.events
    )


def _events_or_remedy(folder: Path) -> list[tuple[str, int, str, str]] | str:
    """The events of a run; of one that is refused, the option that the remedy names."""
    try:
        return _content(read_run(folder))
    except InputError as error:
        return "--pattern" if "--pattern" in error.remedy else error.message


@pytest.fixture(scope="module")
def recorded(flink_live: Path) -> list[tuple[str, int, str, str]]:
    """The events of the run as it was recorded."""
    return _content(read_run(flink_live / RUN))


@pytest.mark.parametrize("name", JSON)
def test_json(name: str, flink_live: Path, tmp_path: Path, recorded: list[object]) -> None:
    """Records as JSON objects of eight programs: the same events, with stack traces, in one line or several."""
    run = read_run(rewrite(flink_live / RUN, tmp_path / RUN, JSON[name]))
    assert run.problems == ()
    assert _content(run) == recorded
    assert all(e.ts and e.ts.startswith("2026-11-22T") for e in run.events)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("pipes", "lines"),
        ("key values", "lines"),
        ("thread last", "lines"),
        *(
            pytest.param(name, "lines", marks=pytest.mark.long)
            for name in PATTERNS
            if name not in ("pipes", "key values", "thread last")
        ),
        ("thread last", "given"),
        ("logger first", "given"),
        ("key values", "properties"),
        ("spring", "properties"),
        ("level first", "xml"),
        ("thread last", "xml"),
    ],
)
def test_patterns(name: str, source: str, flink_live: Path, tmp_path: Path, recorded: list[object]) -> None:
    """A pattern is given, is in a file beside the logs, or is recognised from the lines."""
    pattern, layout = PATTERNS[name]
    folder = rewrite(flink_live / RUN, tmp_path / RUN, by_pattern(layout))
    if source == "properties":
        text = f"property.p = {pattern}\nappender.main.layout.pattern = ${{p}}\n"
        (folder / "log4j-console.properties").write_text(text.replace("\\", "\\\\"))
    elif source == "xml":
        escaped = pattern.replace("&", "&amp;").replace("<", "&lt;")
        (folder / "logback.xml").write_text(f"<encoder><!-- old --><pattern>{escaped}</pattern></encoder>")
    elif source == "lines" and name not in RECOGNISED:
        # A pattern that is not recognised is never read half: no event, or a refusal.
        assert _events_or_remedy(folder) in ([], "--pattern")
        return
    with with_pattern(pattern if source == "given" else None):
        run = read_run(folder)
    assert run.problems == ()
    assert _content(run) == recorded


@pytest.mark.parametrize("name", ["ecs", pytest.param("json layout", marks=pytest.mark.long), "level first"])
def test_verdicts(name: str, flink_live: Path, tmp_path: Path) -> None:
    """The verdict of a run does not depend on its layout."""

    def answers(path: Path) -> list[tuple[str, str, int, int]]:
        return [(v.trace, v.answer, v.matched, v.read) for v in validate_paths([path])]

    write = JSON[name] if name in JSON else by_pattern(PATTERNS[name][1])
    assert answers(rewrite(flink_live / RUN, tmp_path / RUN, write)) == answers(flink_live / RUN)


COLLECTED: dict[str, tuple[Callable[[str, str], str], str]] = {
    "compose": (lambda name, text: f"{name}-1  | {text}", "-1"),
    "compose in colour": (lambda name, text: f"\x1b[36m{name}-1  |\x1b[0m {text}", "-1"),
    "kubectl": (lambda name, text: f"[pod/{name}/main] {text}", "-main"),
    "kubectl with times": (lambda name, text: f"[pod/{name}/main] 2026-11-21T03:18:47.203123456Z {text}", "-main"),
}


@pytest.mark.parametrize("name", share(COLLECTED, 2))
def test_one_file_of_several_processes(name: str, flink_live: Path, tmp_path: Path, recorded: list[object]) -> None:
    """A collector's file with interleaved lines of several processes is one log for each."""
    add, ending = COLLECTED[name]
    logs = {log.stem: log.read_text().splitlines() for log in sorted((flink_live / RUN).glob("*.log"))}
    text = []
    for start in range(0, max(map(len, logs.values())), 7):
        for process, lines in logs.items():
            text += [add(process, line) for line in lines[start : start + 7]]
    (tmp_path / "all.txt").write_text("\n".join(text) + "\n")
    for path in (tmp_path, tmp_path / "all.txt"):
        run = read_run(path)
        assert _content(run, ending) == recorded
        event = run.events[-1]
        assert event.line is not None
        assert str(event.args.get("new", "")) in text[event.line - 1]


def test_lines_that_docker_divides(flink_live: Path, tmp_path: Path, recorded: list[object]) -> None:
    """Docker's json-file driver divides long lines; joined, they are the process's."""
    for log in (flink_live / RUN).glob("*.log"):
        out = []
        for line in log.read_text().splitlines(keepends=True):
            parts = [line] if len(line) < 1000 else [line[:999], line[999:]]
            out += [json.dumps({"log": part, "stream": "stdout"}, separators=(",", ":")) for part in parts]
        (tmp_path / log.name).write_text("\n".join(out) + "\n")
    assert _content(read_run(tmp_path)) == recorded


@pytest.mark.parametrize("kind", PACKERS)
def test_compressed(kind: str, flink_live: Path, tmp_path: Path, recorded: list[object]) -> None:
    """Compressed logs, and compressed archives with the other files of the run."""
    packed = tmp_path / "packed"
    packed.mkdir()
    for log in (flink_live / RUN).glob("*.log"):
        (packed / f"{log.name}.{kind}").write_bytes(PACKERS[kind](log.read_bytes()))
    assert _content(read_run(packed)) == recorded
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.add(flink_live / RUN, arcname=RUN)
    file = tmp_path / f"support.tar.{kind}"
    file.write_bytes(PACKERS[kind](data.getvalue()))
    for path in (file, tmp_path / "*.tar.*") if kind == "gz" else (file,):
        run = read_run(path)
        assert _content(run) == recorded
        assert (run.name, len(run.rest), run.problems) == (RUN, 1, ())
        assert run.events[0].file == str(file / RUN / "jobmanager.log")


def test_files_with_other_names(flink_live: Path, tmp_path: Path, recorded: list[object]) -> None:
    """A log is recognised by its content. Notes that quote it are left out, with the reason."""
    for log in (flink_live / RUN).glob("*.log"):
        shutil.copy(log, tmp_path / f"{log.stem}_out" if log.stem == "jobmanager" else tmp_path / log.name)
    lines = (flink_live / RUN / "taskmanager-0.log").read_text().splitlines()
    (tmp_path / "mail").write_text("It says\n" + "\n".join(lines[20:60]) + "\nand hangs\n" + "\n".join(lines[80:90]))
    run = read_run(tmp_path)
    assert _content(run, "_out") == recorded
    assert [p.text for p in run.problems] == ["records of it are in taskmanager-0.log too; it is left out"]


def _tar(folder: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    with tarfile.open(folder / "logs.tar", "w") as archive:
        for item, data in members:
            item.size = len(data)
            archive.addfile(item, io.BytesIO(data))
    return folder / "logs.tar"


def test_a_hostile_archive(flink_live: Path, tmp_path: Path, recorded: list[object]) -> None:
    """Members that lead out of the archive, links, devices and unprintable names are passed over, each with its reason."""
    outside = tmp_path / "outside.log"
    link = tarfile.TarInfo("link.log")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    device = tarfile.TarInfo("null.log")
    device.type = tarfile.CHRTYPE
    logs = [(tarfile.TarInfo(log.name), log.read_bytes()) for log in sorted((flink_live / RUN).glob("*.log"))]
    names = ["../outside.log", str(outside), "a/../../outside.log", "\x1b[31mred.log"]
    hostile = [(tarfile.TarInfo(name), b"x") for name in names]
    run = read_run(_tar(tmp_path, [*hostile, (link, b""), (device, b""), *logs, logs[0]]))
    assert _content(run) == recorded
    reasons = [problem.text for problem in run.problems]
    assert reasons == [
        *["has a name that leads out of the archive; it is not read"] * 3,
        "has a name that cannot be printed; it is not read",
        "is a link; it is not read",
        "is no regular file; it is not read",
        "is in the archive twice; the first one is read; it is not read",
    ]
    assert not outside.exists()
    assert all("\x1b" not in problem.file for problem in run.problems)


@pytest.mark.parametrize("kind", ["gz", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("bz2", "xz", "zst"))])
def test_a_bomb(
    kind: str, flink_live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: list[object]
) -> None:
    """Data that unpacks to too much is read up to the bound, and reported; in an archive too."""
    monkeypatch.setattr(archives, "FREELY", 1 << 20)
    monkeypatch.setattr(archives, "MOST_TIMES", 20)
    log = (flink_live / RUN / "jobmanager.log").read_bytes()
    bomb = PACKERS[kind](log + b"\n" * (1 << 23))
    (tmp_path / f"jobmanager.log.{kind}").write_bytes(bomb)
    run = read_run(tmp_path)
    assert _content(run) == [e for e in recorded if e[0] == "jobmanager"]  # type: ignore[index]
    assert "it unpacks to more than 20 times its size" in " ".join(p.text for p in run.problems)


def test_progress_of_a_large_log(flink_live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The progress names what is done with which file, and the unpacked bytes so far, until a warning; of an archive too."""
    monkeypatch.setattr(reading, "REPORTED", 10**6)
    log = (flink_live / RUN / "jobmanager.log").read_bytes()
    head = log.partition(b"\n")[0]
    log += b"".join(b"%s %d\n" % (head, number) for number in range(3_000_000 // len(head)))
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "jobmanager.log.gz").write_bytes(PACKERS["gz"](log))
    archive = _tar(tmp_path, [(tarfile.TarInfo("jobmanager.log"), log)])
    received: list[str] = []
    validate_paths([tmp_path / "plain", archive], on_progress=received.append)
    for doing in ("reading jobmanager.log.gz", f"unpacking {archive.name}", "reading jobmanager.log"):
        progress = [text for text in received if text.startswith(f"{doing}: ")]
        assert progress[:3] == [f"{doing}: {size} MB of unpacked data" for size in (1, 2, 3)]
    assert received[-1] == ""


def test_a_damaged_json_log_is_never_read_as_whole(flink_live: Path, tmp_path: Path) -> None:
    """A truncated object is reported with its line; a record written into it is read."""
    folder = rewrite(flink_live / RUN, tmp_path / RUN, JSON["ecs"])
    log = folder / "jobmanager.log"
    lines = log.read_text().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if "switched from SCHEDULED" in line)
    lines[place] = lines[place][:90] + lines[place]
    lines[place + 1] = lines[place + 1][:150] + "\n"
    log.write_text("".join(lines))
    run = read_run(folder)
    assert [(p.line, p.text.partition(":")[0]) for p in run.problems] == [
        (place + 1, "a line was cut and another one written into it"),
        (place + 2, "the line has a time but no level and logger"),
    ]
    assert any(e.line == place + 1 for e in run.events)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("%p %c %m%n", "no time (%d)"),
        ("%d %p %m%n", "no logger (%c)"),
        ("%d %p %c%n", "no message (%m)"),
        ("%d %c%n%p %m", "a record begins on another line"),
        ("%d{hh:mm:ss a} %c %m", "hh, which is not supported"),
        ("%d %x %x %x %t %c %m", "may be any text"),
        ("%d %m %c", "its message is before its time or its logger"),
        ("%d " + "%highlight{" * 20 + "%c %m" + "}" * 20, "nested deeper"),
    ],
)
def test_patterns_that_cannot_be_used(pattern: str, why: str) -> None:
    """A pattern that does not determine time, logger and message is refused with the reason."""
    with pytest.raises(InputError, match="cannot be used") as caught:
        compile_pattern(pattern)
    assert why in str(caught.value)


def test_a_hostile_line_takes_bounded_time() -> None:
    """The longest line with every separator of a pattern many times: the search stays short."""
    reader = compile_pattern("%d [%t] %p %c [%x] %X{a} - %m [%t]%n")
    assert reader.read("2026-11-21 03:17:55,749 [" + "x] INFO a [y] - " * 2000) is None
    assert reader.read(" " * 1_000_000) is None


def test_other_sources_of_the_job_graph(flink_live: Path, tmp_path: Path) -> None:
    """The answer to /jobs/JOB/plan and the history server's archive give the same verdict as the answer to /jobs/JOB."""
    expected = [(v.answer, v.matched) for v in validate_paths([flink_live / RUN])]
    (answer,) = (flink_live / RUN).glob("rest-*.json")
    data = json.loads(answer.read_text())
    job = data["job"]["jid"]
    plan = data["plan"] if "plan" in data["plan"] else {"plan": data["plan"]}
    stored = [(f"/jobs/{job}", data["job"]), (f"/jobs/{job}/plan", plan), ("/jobs/overview", {"jobs": []})]
    archive = {"archive": [{"path": path, "json": json.dumps(value)} for path, value in stored]}
    for number, (name, content) in enumerate({"plan.json": plan, job: archive}.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        for log in (flink_live / RUN).glob("*.log"):
            shutil.copy(log, folder)
        (tmp_path / name).write_text(json.dumps(content))
        given = validate_paths([folder], job_graph=tmp_path / name)
        shutil.copy(tmp_path / name, folder)
        for verdicts in (given, validate_paths([folder])):
            assert [(v.answer, v.matched) for v in verdicts] == expected


def test_recorded_lines_are_recognised(flink_live: Path) -> None:
    """The helper that rewrites logs finds every record: none is lost before the reader sees it."""
    logs = list((flink_live / RUN).glob("*.log"))
    assert len(logs) == 3
    for log in logs:
        heads = sum(line[:4] == "2026" for line in log.read_text().splitlines())
        assert sum(1 for _ in records(log)) == heads > 0
