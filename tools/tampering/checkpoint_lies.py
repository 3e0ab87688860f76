"""Edits of the lines about checkpoints in recorded runs of Flink, one at a time.

An edit that removes a line must be detected at the next line that depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from tampering import edits as common
from tampering.edits import Edit, Outcome, Record, Run

MODEL = "checkpoints"
RUNS = (
    *("live/tm12-kill", "live/ckpt-expo", "live/savepoint", "live/agent", "live/adaptive-taskfail"),
    *("live/debug-stream-kill", "versions/v120-ckfail"),
)
"""Recorded runs in `tests/data/flink` for the table."""

_BEGIN: Final = r" Triggering checkpoint \d+ \("
_END: Final = r" Completed checkpoint \d+ for"
_FAIL: Final = r" or complete checkpoint \d+ for"
_RESTORE: Final = r" - Restoring job \w+ from Checkpoint "
_OVER: Final = r" - Restoring job \w+ from | - No checkpoint found|Dispatcher +\[\] - Job \w+ reached terminal state "
_ANY_RESTORE: Final = r" - Restoring job \w+ from | - No checkpoint found"
_SCHEDULED: Final = r" switched from CREATED to SCHEDULED| - Starting job \w+ from savepoint "
_SUBMITTED: Final = r" - Submitting job '.*?' \((\w+)\)"
LINE: Final = f"{_BEGIN}|{_END}|{_FAIL}|{_OVER}"
"""A line about a checkpoint, or one that requires that none is pending."""
_ID: Final = r"(?<=[Cc]heckpoint )\d+(?= )"

Lines = list[Record]
Change = tuple[str, Lines, Record]
"""Kind, the edited file, and the record that must be rejected."""


def _places(lines: Lines, text: str) -> list[int]:
    return [at for at, record in enumerate(lines) if re.search(text, record.text.partition("\n")[0])]


def _id(record: Record) -> int:
    found = re.search(_ID, record.text)
    assert found is not None, record.text
    return int(found[0])


def _with_id(record: Record, number: int) -> Record:
    return Record(re.sub(_ID, str(number), record.text, count=1))


def _put(lines: Lines, at: int, new: Record, *, instead: bool = False) -> Lines:
    return [*lines[:at], new, *lines[at + instead :]]


def ended(lines: Lines) -> Iterator[Change]:
    """A checkpoint completes a second time, at once or later, or after it was aborted."""
    ends = _places(lines, _END)
    for at in ends:
        for to in sorted({at + 1, (at + 1 + len(lines)) // 2, len(lines) - 1}):
            again = lines[at].at_time_of(lines[to - 1])
            yield "completed twice", _put(lines, to, again), again
    for at in _places(lines, _FAIL) if ends else ():
        new = _with_id(lines[ends[0]], _id(lines[at]))
        yield "completed after a failure", _put(lines, at + 1, new), new


def removed(lines: Lines) -> Iterator[Change]:
    """A checkpoint completes that was not triggered (one may fail before), or has no end when tasks are restored or the job
    is over."""
    for at in _places(lines, _BEGIN):
        end = next((to for to in _places(lines, f"{_END}|{_FAIL}") if to > at), None)
        if end in _places(lines, _END):
            assert end is not None
            yield "never triggered", lines[:at] + lines[at + 1 :], lines[end]
    for at in _places(lines, f"{_END}|{_FAIL}"):
        over = next((to for to in _places(lines, _OVER) if to > at), None)
        if over is not None:
            yield "without end", lines[:at] + lines[at + 1 :], lines[over]


def numbers(lines: Lines) -> Iterator[Change]:
    """The id of a checkpoint is used again."""
    begins = _places(lines, _BEGIN)
    for before, at in pairwise(begins):
        new = _with_id(lines[at], _id(lines[before]))
        yield "id used again", _put(lines, at, new, instead=True), new


def restored(lines: Lines) -> Iterator[Change]:
    """Tasks are restored from another checkpoint than the last one that was completed, or from none."""
    for at in _places(lines, _RESTORE):
        for step in (-1, 1):
            new = _with_id(lines[at], _id(lines[at]) + step)
            yield "restored from another checkpoint", _put(lines, at, new, instead=True), new
        new = Record(lines[at].text.partition(" - ")[0] + " - No checkpoint found during restore.\n")
        yield "restored from nothing", _put(lines, at, new, instead=True), new


def unrestored(lines: Lines) -> Iterator[Change]:
    """No line says what the next tasks that are scheduled are restored from."""
    for at in _places(lines, _ANY_RESTORE):
        scheduled = next(to for to in _places(lines, _SCHEDULED) if to > at)
        yield "restored without a line", lines[:at] + lines[at + 1 :], lines[scheduled]


def of_another_job(lines: Lines) -> Iterator[Change]:
    """The line about a restore names another job of the session."""
    jobs = [re.search(_SUBMITTED, lines[at].text) for at in _places(lines, _SUBMITTED)]
    for at in _places(lines, _RESTORE):
        job = re.search(r" - Restoring job (\w+)", lines[at].text)
        for other in (found[1] for found in jobs if found and job and found[1] != job[1]):
            assert job is not None
            new = lines[at].edited((f"job {job[1]}", f"job {other}"))
            yield "restored for another job", _put(lines, at, new, instead=True), new


KINDS: tuple[Callable[[Lines], Iterator[Change]], ...] = (ended, removed, numbers, restored, unrestored, of_another_job)


def edits(folder: Path) -> Iterator[Edit]:
    """Every edit of a run."""
    for file, lines in Run(folder).files.items():
        for make in KINDS:
            for kind, edited, at in make(lines):
                yield Edit(kind, at.text[:200], {file: edited}, (at,))


def outcome(folder: Path, edit: Edit) -> Outcome:
    """The verdict of the machine on an edit."""
    return common.outcome(folder, edit, MODEL)
