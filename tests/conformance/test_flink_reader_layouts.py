"""Flink's logs in other layouts than they were recorded in: the same events must come out."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from shares import share
from streamproof.conformance.event import Event
from streamproof.conformance.flink import FlinkRun, log_records, read_run
from streamproof.conformance.flink.global_failures import read_causes
from streamproof.conformance.flink.log_records import Problem, cleaned, read_head, read_records
from streamproof.conformance.flink.message_forms import FORMS

JOB = "337d69de26fec894361caf2e7c702644"
RECORDED = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d),(\d{3}) (\w+) +(\S+) +\[\] - (.*)")
A, V, W = "a" * 32, "b" * 32, "c" * 32

AT = "2026-11-21T03:18:56.360"

# name: the line of a record, and the time of the first event that must be read
LAYOUTS: dict[str, tuple[str, str]] = {
    "thread": ("{date} {time},{ms} [flink-pekko.actor.default-dispatcher-6] {level:5} {logger:60} [] - {message}", AT),
    "thread after level": ("{date} {time},{ms} {level:5} [B [x] INFO sink -> (1/2)#0] {logger} - {message}", AT),
    "task with brackets": (
        "{date} {time}.{ms} [T(a=[[x, y]], f=[z]) - [Q] (1/2)#0] {level:5} {logger}  - {message}",
        AT,
    ),
    "job": ("{date} {time},{ms} {level:5} {logger:60} [{job}] - {message}", AT),
    "job and thread": ("{date} {time},{ms} [{job}] {level:5} [main (1/2)#0] {logger:60} [] - {message}", AT),
    "job before message": ("{date} {time},{ms} {level:5} {logger:60} [] - [{job}] {message}", AT),
    "whole context": ("{date} {time},{ms} {level:5} {logger} {{a=b, flink-job-id={job}, x=y z}} - {message}", AT),
    "job without brackets": ("{date} {time},{ms} [main] {level:5} {logger:60} {job} - {message}", AT),
    "job and short logger": ("{date} {time},{ms} {level:5} [{job}] {short} {message}", AT),
    "no job": ("{date} {time},{ms} [    ] {level:5} {logger:60} {{}} - [] {message}", AT),
    "UTC": ("{date}T{time}.{ms}Z {level:5} {logger:60} [] - {message}", AT + "Z"),
    "nanoseconds": ("{date}T{time}.{ms}123456+01:00 {level:5} {logger:60} [] - {message}", AT + "+01:00"),
    "basic zone": ("{date} {time},{ms} +0530 {level:5} {logger:60} [] - {message}", AT + "+05:30"),
    "named zone": ("{date} {time},{ms} CEST {level:5} {logger:60} [] - {message}", AT),
    "seconds": ("{date} {time} {level:5} {logger:60} [] - {message}", AT[:-4]),
    "time only": ("{time},{ms} {level:5} {logger:60} [] - {message}", AT[11:]),
    "slashes": ("{slashes} {time} {level} {short}: {message}", AT[:-4]),
    "brackets": ("[{date} {time},{ms}] [{level}] [Flink Netty Server (0) Thread 1] {logger} - {message}", AT),
    "abbreviated": ("{date} {time}.{ms} [main] {level:5} {abbreviated:60}  - {message}", AT),
    "colours": ("\x1b[36m{date} {time},{ms}\x1b[m \x1b[32m{level:5}\x1b[m {logger}: {message}", AT),
}


def _content(run: FlinkRun) -> list[tuple[str, int, str, dict[str, object], int | None]]:
    def without_thread(event: Event) -> dict[str, object]:
        return {name: value for name, value in event.args.items() if name != "by"}

    return [(e.process, e.seq, e.event, without_thread(e), e.line) for e in run.events]


def _rewrite(source: Path, target: Path, layout: str, end: str = "\n") -> None:
    target.mkdir()
    for log in source.glob("*.log"):
        written = []
        for line in log.read_text().split("\n"):
            head = RECORDED.fullmatch(line)
            written.append(_line(layout, *head.groups()) if head else line)
        (target / log.name).write_text(end.join(written), newline="")


def _line(layout: str, date: str, time: str, ms: str, level: str, logger: str, message: str) -> str:
    return layout.format(
        date=date,
        slashes=date[2:].replace("-", "/"),
        time=time,
        ms=ms,
        level=level,
        logger=logger,
        short=logger.rpartition(".")[2],
        abbreviated=re.sub(r"(\w)\w*\.", r"\1.", logger),
        message=message,
        job=JOB,
    )


@pytest.mark.parametrize("name", share(LAYOUTS, 2))
def test_layouts(name: str, flink_logs: Path, tmp_path: Path) -> None:
    """The events of a run do not depend on the layout of its log; time and job are read as the layout has them."""
    layout, first = LAYOUTS[name]
    _rewrite(flink_logs / "b-lostpart-1", tmp_path / "run", layout)
    run, recorded = read_run(tmp_path / "run"), read_run(flink_logs / "b-lostpart-1")
    assert run.problems == ()
    assert _content(run) == _content(recorded)
    assert run.events[0].ts == first
    assert [e.trace for e in run.events] == [JOB if "{job}" in layout else e.trace for e in recorded.events]


def test_windows_line_ends(flink_logs: Path, tmp_path: Path) -> None:
    """Carriage returns belong to the line end, under stack traces too."""
    _rewrite(flink_logs / "b-lostpart-1", tmp_path / "run", LAYOUTS["thread"][0], end="\r\n")
    run = read_run(tmp_path / "run")
    assert run.problems == ()
    assert _content(run) == _content(read_run(flink_logs / "b-lostpart-1"))


def test_a_log_at_info(flink_logs: Path, tmp_path: Path) -> None:
    """Without DEBUG the coordination's own lines are all there, and nothing is missed as a problem."""
    (tmp_path / "run").mkdir()
    for log in (flink_logs / "b-lostpart-1").glob("*.log"):
        kept, keep = [], True
        for line in log.read_text().splitlines(keepends=True):
            keep = " DEBUG " not in line if RECORDED.match(line) else keep
            kept += [line] if keep else []
        (tmp_path / "run" / log.name).write_text("".join(kept))
    run = read_run(tmp_path / "run")
    assert run.problems == ()
    counts = {
        name: run.counts.get(name, 0)
        for name in ("exec.transition", "tm.transition", "failover.restart", "part.registered")
    }
    assert counts == {"exec.transition": 105, "tm.transition": 82, "failover.restart": 2, "part.registered": 0}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2026-11-21 03:19:00,767 INFO", None),
        ("2026-11-21 03:19:00,767", None),
        ("\tat org.apache.flink.Foo.bar(Foo.java:12)", None),
        ("Caused by: java.io.IOException: INFO x - y", None),
        ("java.lang.RuntimeException: 2026-11-21 03:19:00,767 INFO  a.b.C [] - no", None),
        ("2026-11-21 03:19:00,767 INFO  a.b.C$D [] - ", ("C$D", "")),
        ("2026-11-21 03:19:00,767 WARN  a.b.C [] - x - y: z", ("C", "x - y: z")),
    ],
)
def test_heads(line: str, expected: tuple[str, str] | None) -> None:
    """A head needs time, level and logger; what looks a little like it is none."""
    head = read_head(line)
    assert (head and (head.logger, head.message)) == expected


TASKS = [
    "B",
    "Source: A-source -> A",
    "dec -> (again, done -> Sink: sink)",
    "GroupAggregate[3] (1/2) -> Calc(select=[a, 'it''s'])",
    'größe (ß) "quoted" [x] -> 名前',
    "weird) switched from RUNNING to FAILED",
    "x#0 (1/2)#1",
]
PLACES = [
    ("tm-0 @ localhost (dataPort=34757)", "tm-0", "localhost", 34757),
    ("localhost:43021-a1b2c3 @ host.example.org (dataPort=1)", "localhost:43021-a1b2c3", "host.example.org", 1),
    ("[::1]:6122-ff00aa @ 0:0:0:0:0:0:0:1 (dataPort=-1)", "[::1]:6122-ff00aa", "0:0:0:0:0:0:0:1", -1),
    (
        "container_e01_000002(node-7:8041) @ [fe80::1%eth0] (dataPort=7)",
        "container_e01_000002(node-7:8041)",
        "[fe80::1%eth0]",
        7,
    ),
]


def _read(logger: str, message: str) -> tuple[str, dict[str, object]]:
    (found,) = [(form.family, args) for form in FORMS[logger] if (args := form.read(message)) is not None]
    return found


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("place", "tm", "host", "port"), PLACES)
def test_any_task_name_on_any_host(task: str, place: str, tm: str, host: str, port: int) -> None:
    """Names are the users' and hosts the operators'; neither confuses the rest of the line."""
    attempt = f"{A}_{V}_1_3"
    family, args = _read("ExecutionGraph", f"{task} (2/4) ({attempt}) switched from RUNNING to FAILED on {place}.")
    assert family == "exec.transition"
    assert (args["task"], args["parallelism"], args["subtask"], args["number"]) == (task, 4, 1, 3)
    assert (args["old"], args["new"], args["tm"], args["host"], args["port"]) == ("RUNNING", "FAILED", tm, host, port)
    ids = f"with attempt id {attempt} and vertex id {V}_1"
    message = f"Deploying {task} (2/4) (attempt #3) {ids} to {place} with allocation id {W}"
    family, args = _read("ExecutionGraph", message)
    assert family == "exec.deploy"
    assert (args["task"], args["attempt"], args["tm"], args["host"], args["alloc"]) == (task, attempt, tm, host, W)


@pytest.mark.parametrize("task", TASKS)
def test_any_task_name_on_a_taskmanager(task: str) -> None:
    """The same for what TaskManagers log of a task."""
    attempt = f"{A}_{V}_1_3"
    for logger, message, family in (
        ("Task", f"{task} (2/4)#3 ({attempt}) switched from RUNNING to FAILED with failure cause:", "tm.transition"),
        ("Task", f"{task} (2/4)#3 ({attempt}) switched from DEPLOYING to INITIALIZING.", "tm.transition"),
        (
            "Task",
            f"{task} (2/4)#3 ({attempt}) switched from CANCELING to CANCELED due to CancelTaskException:",
            "tm.transition",
        ),
        ("Task", f"Attempting to fail task externally {task} (2/4)#3 ({attempt}).", "tm.failext"),
        (
            "TaskExecutor",
            f"Received task {task} (2/4)#3 ({attempt}), deploy into slot with allocation id {W}.",
            "tm.submit",
        ),
        (
            "SingleInputGateFactory",
            f"{task} (2/4)#3 ({attempt}): Created 2 input channels (local: 1, remote: 1, unknown: 0).",
            "gate.created",
        ),
    ):
        found, args = _read(logger, message)
        assert found == family
        assert (args["task"], args["parallelism"], args["attempt"], args["number"]) == (task, 4, attempt, 3)


def test_a_cancelled_task_with_its_exception_is_no_damage(tmp_path: Path) -> None:
    """At DEBUG the stack trace of a CancelTaskException follows the transition; it is an event like without it."""
    log = tmp_path / "taskmanager.log"
    log.write_text(
        "2026-11-21 03:18:56,360 DEBUG org.apache.flink.runtime.taskmanager.Task [] - "
        f"B (2/4)#0 ({A}_{V}_1_0) switched from CANCELING to CANCELED due to CancelTaskException:\n"
        "org.apache.flink.runtime.execution.CancelTaskException: Buffer pool has already been destroyed.\n"
        "\tat org.apache.flink.runtime.io.network.buffer.LocalBufferPool.request(LocalBufferPool.java:378)\n"
        "2026-11-21 03:18:56,361 INFO  org.apache.flink.runtime.taskmanager.Task [] - "
        f"B (3/4)#0 ({A}_{V}_2_0) switched from CANCELING to CANCELED due to CancelTaskException.\n"
    )
    run = read_run(log)
    assert [(e.event, e.args["new"], e.args["subtask"]) for e in run.events] == [
        ("tm.transition", "CANCELED", 1),
        ("tm.transition", "CANCELED", 2),
    ]
    assert run.problems == ()


@pytest.mark.parametrize(
    ("logger", "message", "family", "expected"),
    [
        (
            "ExecutionGraph",
            f"B (2/4) ({A}_{V}_1_0) switched from RUNNING to FAILED on [unassigned resource].",
            "exec.transition",
            {"new": "FAILED"},
        ),
        (
            "JobMaster",
            "7 tasks will be restarted to recover from a global failure.",
            "failover.global.restart",
            {"count": 7},
        ),
        (
            "JobMaster",
            f"1 tasks will be restarted to recover the failed task {A}_{V}_0_2.",
            "failover.restart",
            {"count": 1, "number": 2},
        ),
        ("JobMaster", "Archive global failure.", "failover.global.archive", {}),
        (
            "DeclarativeSlotPoolBridge",
            f"Request new allocated slot with slot request id SlotRequestId{{{A}}} and resource profile ResourceProfile{{}}",
            "slot.jm.newreq",
            {"req": A, "batch": False},
        ),
        (
            "ActiveResourceManager",
            "Closing TaskExecutor connection pod-1-2 because: a reason.",
            "rm.close",
            {"tm": "pod-1-2", "why": "a reason."},
        ),
        (
            "PartitionRequestClientFactory",
            "Failed 1 times to connect to host/[0:0:0:0:0:0:0:1]:80. Retrying.",
            "net.connfail",
            {"n": 1, "addr": "host/[0:0:0:0:0:0:0:1]:80", "what": "Retrying"},
        ),
        (
            "ExecutionGraph",
            f"Connecting input 1 of vertex {V} (a (b)) to intermediate result referenced via ID {W}.",
            "graph.edge",
            {"vertex": V, "dataset": W, "input": 1},
        ),
        (
            "DeclarativeSlotPoolBridge",
            "Could not acquire the minimum required resources, failing slot requests. Acquired: []."
            " Current slot pool status: Registered TMs: 0, registered slots: 0 free slots: 0",
            "slot.jm.notenough",
            {"acq": "[]", "status": "Registered TMs: 0, registered slots: 0 free slots: 0"},
        ),
        (
            "FineGrainedSlotManager",
            f"Could not fulfill resource requirements of job {A}. Free slots: 0",
            "slot.unfulfilled",
            {"job": A},
        ),
    ],
)
def test_wordings_that_were_not_recorded(logger: str, message: str, family: str, expected: dict[str, object]) -> None:
    """Forms of Flink's that the recorded runs lack."""
    found, args = _read(logger, message)
    assert found == family
    assert {name: args[name] for name in expected} == expected
    if "unassigned" in message:
        assert "tm" not in args


def test_a_chain_of_causes() -> None:
    """Only the margin counts: frames and suppressed exceptions are no causes, an unpackaged exception is one."""
    partition = f"{W}#2@{A}_{V}_2_1"
    args = read_causes(
        None,
        [
            "MyException: with: colons",
            "\tat corpus.Main.main(Main.java:1) ~[job.jar:?]",
            "\tSuppressed: java.lang.Exception: not this",
            "\tCaused by: java.lang.Error: nor this",
            "Caused by: org.apache.flink.util.SerializedThrowable: x",
            f"Caused by: org.apache.flink.runtime.io.network.partition.PartitionNotFoundException: {partition} is lost",
            "\t... 3 more",
        ],
    )
    assert args == {
        "cause": "MyException: with: colons",
        "causes": [
            "MyException",
            "org.apache.flink.util.SerializedThrowable",
            "org.apache.flink.runtime.io.network.partition.PartitionNotFoundException",
        ],
        "partition": partition,
        "dataset": W,
        "pnum": 2,
        "producer": f"{A}_{V}_2_1",
    }


def test_text_is_no_exception() -> None:
    """A message whose lines name no exception has no cause."""
    assert read_causes(None, ["Some text: here", "more"]) == {}


@pytest.mark.parametrize("kept", [40, pytest.param(1, marks=pytest.mark.long)])
def test_the_usual_head_is_read_as_any_other(kept: int, flink_logs: Path, flink_live: Path) -> None:
    """The head of each line, and of copies with a character left out, doubled or exchanged, is that of the general way."""
    random, usual = Random(kept), 0
    for file in sorted(file for logs in (flink_logs, flink_live) for file in logs.rglob("*.log*") if file.is_file()):
        for number, raw in enumerate(file.read_bytes().splitlines(), 1):
            if random.randrange(kept):
                continue
            text = cleaned(raw, "", number, lambda problem: None) or ""
            at = random.randrange(min(len(text), 120) + 1)
            other = random.choice(("", text[at : at + 1] * 2, *"[]{} -&.W/0\x1f\n", "WARN ", "[] - "))
            for line in (text, text[:at] + other + text[at + 1 :], text[:at] + other + text[at:]):
                found = read_head(line)
                assert found == read_head(line, general=True), line
                usual += found is not None
    assert usual > 50_000 / kept


@pytest.mark.parametrize("kept", [60, pytest.param(2, marks=pytest.mark.long)])
def test_usual_lines_are_read_as_any_other(
    kept: int, flink_logs: Path, flink_live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records and the problems of lines, some of them changed, are those of the way for every line."""
    random, texts = Random(kept), list[bytes]()
    for file in sorted(file for logs in (flink_logs, flink_live) for file in logs.rglob("*.log") if file.is_file()):
        for raw in file.read_bytes().splitlines(keepends=True):
            if random.randrange(kept):
                continue
            at = random.randrange(len(raw) + 1)
            other = random.choice(
                (b"\0", b"\r", b"\x1b[31m", b"\xff", b"\x1f", b"&lt;", b"\xef\xbb\xbf", b"\n", b"\r\n", raw)
            )
            texts += (raw, *[raw[:at] + other + raw[at:]] * (random.random() < 0.3))
    lines = [one + b"\n" * random.randrange(2) for text in texts for one in text.split(b"\n") if one]
    problems: list[list[Problem]] = [[], []]
    found = [*read_records([("a", lines), ("b", lines[:50])], problems[0].append)]
    monkeypatch.setattr(log_records, "_usual_line", lambda raw: None)
    assert found == [*read_records([("a", lines), ("b", lines[:50])], problems[1].append)]
    assert problems[0] == problems[1]
    assert len(found) > 50_000 / kept
