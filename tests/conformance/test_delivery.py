"""What happens to logs between Flink and the reader (repetitions, another order, other names, entities) is no mistake of
Flink's; and lines that no Flink writes are found."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from shares import share
from streamproof.conformance.flink import read_run
from streamproof.conformance.validation import validate_paths

Records = list[bytes]
TM = "taskmanager-1.log"


@pytest.fixture(scope="session")
def tool(tool_module: Any) -> ModuleType:
    """The disturbing tool, which splits logs into records."""
    module: ModuleType = tool_module("disturb_flink_runs")
    return module


@pytest.fixture
def run(flink_logs: Path, tmp_path: Path) -> Path:
    """A recorded run that a test may change."""
    return Path(shutil.copytree(flink_logs / "b-lostpart-1", tmp_path / "run"))


def verdict(run: Path) -> tuple[str, str]:
    """The verdict on the only job of a run, and the reason."""
    (found,) = validate_paths([run])
    return found.answer, found.reason or ""


def verdicts(run: Path) -> list[str]:
    """The verdicts on the jobs or channels of a run, sorted."""
    return sorted(found.answer for found in validate_paths([run]))


def change(run: Path, tool: ModuleType, edit: Callable[[Records], Records], *names: str) -> None:
    """Changes the records of some logs, by default of all."""
    for log in sorted(run.glob("*.log")):
        if not names or log.name in names:
            log.write_bytes(b"".join(edit(tool.records(log.read_bytes()))))


def doubled(parts: Records) -> Records:
    """Every record twice."""
    return [part for part in parts for _ in range(2)]


def chunk(parts: Records) -> Records:
    """Sixty records again, ten records later."""
    return [*parts[:130], *parts[60:120], *parts[130:]]


# --- global failures


def both(run: Path, first: Path, second: Path) -> None:
    """Two runs as two jobs of one session, one after the other."""
    for source, prefix in ((first, ""), (second, "other-")):
        for file in source.iterdir():
            if file.name.startswith("rest-") or file.name.startswith("taskmanager"):
                shutil.copy(file, run / (file.name if file.name.startswith("rest-") else prefix + file.name))
    (run / "jobmanager.log").write_bytes(
        (first / "jobmanager.log").read_bytes() + (second / "jobmanager.log").read_bytes()
    )


def test_a_global_failure_in_a_session_belongs_to_the_job_that_restarts(
    flink_logs: Path, flink_more: Path, tmp_path: Path
) -> None:
    """Its lines name no job, and the session has two."""
    both(tmp_path, flink_logs / "a-taskfail-2", flink_more / "global")
    assert verdicts(tmp_path) == ["accepted", "accepted"]


def test_a_lie_about_a_global_failure_in_a_session_is_found(flink_logs: Path, flink_more: Path, tmp_path: Path) -> None:
    """The decision restarts a task fewer than there are."""
    both(tmp_path, flink_logs / "a-taskfail-2", flink_more / "global")
    log = tmp_path / "jobmanager.log"
    log.write_bytes(re.sub(rb"10 (tasks .* global failure)", rb"9 \1", log.read_bytes()))
    assert verdicts(tmp_path) == ["accepted", "rejected"]


def test_a_global_failure_that_two_jobs_may_have_had_leaves_them_open(flink_more: Path, tmp_path: Path) -> None:
    """The same run twice, under two names of the job and line by line at the same time."""
    run, other = flink_more / "global", {}
    for identifier in (*read_run(run).jobs, *read_run(run).graphs):
        other[identifier.encode()] = b"beef" + identifier[4:].encode()
    lines: list[bytes] = []
    for raw in (run / "jobmanager.log").read_bytes().splitlines(keepends=True):
        again = raw
        for old, new in other.items():
            again = again.replace(old, new)
        lines += [raw, again] if again != raw or b"global failure." in raw else [raw]
    (tmp_path / "jobmanager.log").write_bytes(b"".join(lines))
    found = validate_paths([tmp_path])
    assert [v.answer for v in found] == ["inconclusive", "inconclusive"]


# --- repetitions


@pytest.mark.parametrize("edit", [doubled, chunk])
def test_records_that_were_delivered_twice_are_read_once(
    edit: Callable[[Records], Records], run: Path, tool: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """Byte for byte with their times; a warning says so, and a lie in such a log is found."""
    change(run, tool, edit)
    assert verdict(run)[0] == "accepted"
    assert "duplicates are read once" in capsys.readouterr().err
    log = run / "jobmanager.log"
    log.write_bytes(log.read_bytes().replace(b" 10 tasks will be", b" 9 tasks will be"))
    assert verdict(run)[0] == "rejected"


def test_parts_of_a_rotated_log_that_overlap_are_read_once(run: Path, tool: ModuleType) -> None:
    """Five records are in both."""
    for log in sorted(run.glob("*.log")):
        parts = tool.records(log.read_bytes())
        middle = len(parts) // 2
        (run / f"{log.name}.1").write_bytes(b"".join(parts[: middle + 5]))
        log.write_bytes(b"".join(parts[middle:]))
    assert verdict(run)[0] == "accepted"


@pytest.mark.parametrize(("later", "expected"), [(False, "inconclusive"), (True, "rejected")])
def test_one_line_that_is_there_twice(later: bool, expected: str, run: Path) -> None:
    """With its time it may have been delivered twice; a millisecond later Flink did it twice."""
    log = run / "jobmanager.log"
    lines = log.read_bytes().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if b" - Deploying " in line)
    again = re.sub(rb",(\d{3})", lambda m: b",%03d" % (int(m[1]) + 1), lines[at], count=1) if later else lines[at]
    log.write_bytes(b"".join([*lines[: at + 1], again, *lines[at + 1 :]]))
    found, reason = verdict(run)
    assert found == expected
    assert later or "it was delivered twice, or Flink did this twice" in reason


@pytest.mark.parametrize("outline", [False, True])
def test_credit_records_are_read_once_and_in_the_order_of_their_numbers(
    outline: bool, flink_credit: Path, flink_logs: Path, tmp_path: Path
) -> None:
    """Each has a number of its own, in either form of traces."""
    source = flink_logs / "x-agent-credit-1" if outline else flink_credit / "k-2x2-e2-f3-batch"
    run = Path(shutil.copytree(source, tmp_path / "run"))
    whole = verdicts(run)
    originals = {file: file.read_bytes().splitlines(keepends=True) for file in run.glob("*.jsonl")}
    for edit in (doubled, lambda lines: lines[::-1]):
        for file, lines in originals.items():
            file.write_bytes(b"".join(edit(lines)))
        assert verdicts(run) == whole


# --- order


def newest_first(parts: Records) -> Records:
    """As some exports have it."""
    return parts[::-1]


def by_time_alone(parts: Records) -> Records:
    """The order within a millisecond is lost."""
    rng = random.Random(1)
    return [part for _, _, part in sorted((part[:23], rng.random(), part) for part in parts)]


@pytest.mark.parametrize("names", [(), ("jobmanager.log",)])
def test_a_log_with_the_newest_record_first_is_turned_round(
    names: tuple[str, ...], run: Path, tool: ModuleType
) -> None:
    """Of all processes, or of one; by records or by lines, of which those of a stack trace then precede its record."""
    expected = [(e.event, e.args) for e in read_run(run).events]
    change(run, tool, newest_first, *names)
    assert [(e.event, e.args) for e in read_run(run).events] == expected
    assert verdict(run)[0] == "accepted"
    for log in run.glob("*.log"):
        if log.name in names or not names:
            records = tool.records(log.read_bytes())[::-1]
            lines = b"".join(records).splitlines(keepends=True)
            log.write_bytes(b"".join(lines[::-1]))
    assert [(e.event, e.args) for e in read_run(run).events] == expected


@pytest.mark.parametrize("names", [(), ("jobmanager.log",)])
def test_a_log_whose_order_was_lost_is_inconclusive(names: tuple[str, ...], run: Path, tool: ModuleType) -> None:
    """Of all processes, or of one."""
    change(run, tool, by_time_alone, *names)
    found, reason = verdict(run)
    assert found == "inconclusive"
    assert "is not known" in reason


def test_one_part_of_a_rotated_log_whose_order_was_lost_is_inconclusive(run: Path, tool: ModuleType) -> None:
    """Where the other parts are as they were written."""
    log = run / "jobmanager.log"
    parts = tool.records(log.read_bytes())
    most = 9 * len(parts) // 10
    (run / "jobmanager.log.1").write_bytes(b"".join(parts[:most]))
    log.write_bytes(b"".join(parts[most:]))
    whole, _ = verdict(run)
    log.write_bytes(b"".join(newest_first(parts[most:])))
    assert (whole, verdict(run)[0]) == ("accepted", "accepted")
    log.write_bytes(b"".join(random.Random(1).sample(parts[most:], len(parts) - most)))
    assert verdict(run)[0] == "inconclusive"
    assert "the order of jobmanager.log is not known" in verdict(run)[1]


def test_parts_of_a_log_that_overlap_under_other_names_contradict_nothing(flink_live: Path, tmp_path: Path) -> None:
    """Somebody saved the end of a log twice: what would be a rejection is inconclusive."""
    run = Path(shutil.copytree(flink_live / "ckpt-expo", tmp_path / "run"))
    log = run / "jobmanager.log"
    lines = log.read_bytes().splitlines(keepends=True)
    (run / "jobmanager-a.log").write_bytes(b"".join(lines[: len(lines) * 2 // 3]))
    (run / "jobmanager-b.log").write_bytes(b"".join(lines[len(lines) // 3 :]))
    log.unlink()
    assert "rejected" not in {found.answer for found in validate_paths([run], model="all")}


# --- parts with a number before `.log`


@pytest.mark.parametrize("form", ["{}.{}.log", "{}-{}.log"])
def test_numbered_files_that_prove_to_be_one_log_are_joined(form: str, run: Path, tool: ModuleType) -> None:
    """The lines of attempts go on from one to the next, and none begins with a start."""
    for log in sorted(run.glob("*.log")):
        parts = tool.records(log.read_bytes())
        third = len(parts) // 3
        for number in (1, 2):
            older = run / form.format(log.stem, number)
            older.write_bytes(b"".join(parts[(number - 1) * third : number * third]))
        log.write_bytes(b"".join(parts[2 * third :]))
    assert verdict(run)[0] == "accepted"


def test_numbered_files_that_may_be_one_log_are_no_evidence_against_it(run: Path, tool: ModuleType) -> None:
    """No attempt has lines in both files: they may be two processes, or one of which a part is missing."""
    log = run / TM
    parts = tool.records(log.read_bytes())
    first = next(n for n, part in enumerate(parts) if b"Received task " in part)
    last = next(n for n, part in enumerate(parts) if b"#1 (" in part and b"Received task " in part)
    (run / "taskmanager-1.1.log").write_bytes(b"".join(parts[: first - 3]))
    (run / "taskmanager-1.2.log").write_bytes(b"".join(parts[last - 3 :]))
    log.unlink()
    assert verdict(run)[0] != "rejected"


# --- lines at DEBUG that are missing, entities


def test_a_sample_of_the_lines_at_debug_is_no_evidence(run: Path, tool: ModuleType) -> None:
    """Half of them are missing."""
    rng = random.Random(2)
    change(run, tool, lambda parts: [p for p in parts if b" DEBUG " not in p[:40] or rng.random() < 0.5])
    found, reason = verdict(run)
    assert found == "inconclusive"
    assert "lines at DEBUG are missing" in reason


@pytest.mark.parametrize("times", [1, 2])
def test_a_log_that_was_escaped_for_html_is_read(run: Path, tool: ModuleType, times: int) -> None:
    """One process's, on one way or two; the other logs have the names as they are."""
    for _ in range(times):
        change(
            run, tool, lambda parts: [p.replace(b"&", b"&amp;").replace(b">", b"&gt;") for p in parts], "jobmanager.log"
        )
    assert verdict(run)[0] == "accepted"


# --- lies

REAL = rb"ff9ce03b0dded51c1fc2d429c495fd95"
FALSE = rb"beefe03b0dded51c1fc2d429c495fd95"
LIES = {
    "job from RUNNING to RUNNING": ("jobmanager.log", rb"(Job .* RUNNING to )FINISHED", rb"\1RUNNING"),
    "job from RUNNING to INITIALIZING": ("jobmanager.log", rb"(Job .* RUNNING to )FINISHED", rb"\1INITIALIZING"),
    "decision for another graph": ("jobmanager.log", rb"(recover the failed task )" + REAL, rb"\1" + FALSE),
    "request to cancel another graph's": (TM, rb"(Attempting to cancel task .*?\()" + REAL, rb"\1" + FALSE),
    "no request to cancel": (TM, rb"[^\n]*Attempting to cancel task [^\n]*\n", b""),
    "request of an unknown partition": (TM, rb"(Requesting subpartitions .*#0@)" + REAL, rb"\1" + FALSE),
    "request of another subtask's partition": (
        TM,
        rb"(Requesting subpartitions .* of ResultPartition .*_)0_0 ",
        rb"\g<1>1_0 ",
    ),
    "release of an unknown partition": (
        "taskmanager-2.log",
        rb"(Released partition .* produced by )" + REAL,
        rb"\1" + FALSE,
    ),
    "end of an unknown attempt": (TM, rb"(Un-registering task .* )" + REAL, rb"\1" + FALSE),
}


@pytest.mark.parametrize("false_line", share(LIES, 2))
def test_a_line_that_flink_never_writes_is_rejected(false_line: str, run: Path) -> None:
    """One line of a correct run is changed."""
    name, pattern, new = LIES[false_line]
    log = run / name
    text, count = re.subn(pattern, new, log.read_bytes(), count=1)
    assert count == 1
    log.write_bytes(text)
    assert verdict(run)[0] == "rejected"


@pytest.mark.parametrize(
    "false_line", [name for name, (log, _, _) in LIES.items() if log == TM and "cancel" not in name]
)
def test_a_log_without_its_beginning_may_name_what_is_not_in_it(false_line: str, run: Path, tool: ModuleType) -> None:
    """What a TaskManager received before its log begins, nobody knows."""
    name, pattern, new = LIES[false_line]
    change(run, tool, lambda parts: parts[next(n for n, p in enumerate(parts) if b"Establish JobManager" in p) :], TM)
    log = run / name
    log.write_bytes(re.sub(pattern, new, log.read_bytes(), count=1))
    assert verdict(run)[0] != "rejected"


def test_a_restart_that_is_delivered_twice_happened_once(flink_live: Path, tmp_path: Path) -> None:
    """Its lines come again while the tasks of the next attempt are deployed: they are older than lines in between."""
    run = Path(shutil.copytree(flink_live / "adaptive-mixed", tmp_path / "run"))
    log = run / "jobmanager.log"
    lines = log.read_text().splitlines(keepends=True)
    begin = next(at for at, line in enumerate(lines) if " switched from SCHEDULED to DEPLOYING" in line)
    end = next(at for at, line in enumerate(lines) if " switched from state CANCELLING to CANCELED" in line) + 1
    place = end + next(at for at, line in enumerate(lines[end:]) if "switched from DEPLOYING to INITIALIZING" in line)
    log.write_text("".join([*lines[:place], *lines[begin:end], *lines[place:]]))
    assert {verdict.answer for verdict in validate_paths([run])} <= {"accepted", "inconclusive"}


def test_a_transition_that_comes_again_after_a_later_second_happened_once(flink_live: Path, tmp_path: Path) -> None:
    """Times without a fraction order lines, too, if one of another second lies in between."""
    run = Path(shutil.copytree(flink_live / "adaptive-mixed", tmp_path / "run"))
    log = run / "jobmanager.log"
    lines = log.read_text().splitlines(keepends=True)
    end = next(at for at, line in enumerate(lines) if " switched from state RUNNING to CANCELLING" in line)
    place = end + next(at for at, line in enumerate(lines[end:]) if "switched from DEPLOYING to INITIALIZING" in line)
    text = "".join([*lines[:place], lines[end], *lines[place:]])
    log.write_text(re.sub(r"(?m)^(\S+ [\d:]+),\d{3}", r"\1", text))
    assert {verdict.answer for verdict in validate_paths([run])} <= {"accepted", "inconclusive"}


def test_an_order_that_is_lost_within_a_millisecond_is_not_held_against_cancellations(
    flink_live: Path, tmp_path: Path
) -> None:
    """The line that a task is to be cancelled comes after the transition, for two tasks; for one it is a lie."""
    run = Path(shutil.copytree(flink_live / "adaptive-mixed", tmp_path / "run"))
    changed = 0
    for log in sorted(run.glob("taskmanager*.log")):
        lines = log.read_text().splitlines(keepends=True)
        for at in range(len(lines) - 1):
            if changed < 2 and "Attempting to cancel task" in lines[at] and "to CANCELING" in lines[at + 1]:
                requested, done = lines[at : at + 2]
                lines[at : at + 2] = [requested[:23] + done[23:], requested]
                changed += 1
                log.write_text("".join(lines))
                answers = {verdict.answer for verdict in validate_paths([run])}
                assert ("rejected" in answers) == (changed == 1)
    assert changed == 2


def test_one_pair_of_a_millisecond_out_of_order_decides_nothing_in_a_short_log(
    flink_live: Path, tmp_path: Path
) -> None:
    """A deployment before its transition, in a log that has few pairs of such lines; in a log with many it is a lie."""
    run = Path(shutil.copytree(flink_live / "agent-cancel", tmp_path / "run"))
    log = run / "jobmanager.log"
    lines = log.read_text().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if "- Deploying " in line)
    lines[at - 1 : at + 1] = [lines[at], lines[at][:23] + lines[at - 1][23:]]
    log.write_text("".join(lines))
    found = [verdict for verdict in validate_paths([run]) if verdict.answer != "accepted"]
    assert [verdict.answer for verdict in found] == ["inconclusive"]
    assert "in an order in which no thread writes them" in (found[0].reason or "")
