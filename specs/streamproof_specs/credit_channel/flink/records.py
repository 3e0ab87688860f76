"""Recorded calls of Flink's credit-based flow control: the files that contain them, and the fields of a line.

A file contains the records of one process, one JSON object per line, in the order in which the calls returned. A line
has the form of our event log (`process`, `seq`, `event`, `args`), or is flat, as an agent prints it (`proc`, `q`, `ev`
and the rest).
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from streamproof.conformance import Event, InputError, Loc, json_value, why_no_file
from streamproof.conformance.flink import Problem, Problems, read_lines

ENDINGS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
"""The suffix of trace files."""

ENDS = ("p.", "c.", "g.")
"""Prefixes of event names: the producer's end of a channel, the consumer's, a gate."""


CONSUMER = "RemoteInputChannel."
PRODUCER = "CreditBasedSequenceNumberingViewReader."
"""The classes at the two ends, as a general tracing agent names their calls."""
ONE_END = "the {}'s end is not recorded: give the traces of all processes"
"""Why a channel is not judged."""

FIRST = 4
"""Maximum first number in the record of a process. Each call draws one number at its beginning and one at its return,
from 0; a call that ends with an exception leaves its two unused."""

REQUEST = "p.request"
"""The call in which a consumer requests subpartitions."""
_INDICES = re.compile(r"\[?([0-9]{1,9})(?:, *([0-9]{1,9}))?\]?")
_FLAT = frozenset({"ns", "ns0", "q", "q0", "proc", "th", "ev", "ch"})
_CUT = "TRUNCATED"
UNRETURNED = 200
"""Number of last numbers of a record that are searched for calls that had not returned."""
OUT_OF_PLACE = 2
"""Maximum number of a file's records after later ones; with more of them the file was reordered."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One call. `begun` and `done` are its moments in the order of its process, `ns` the clock time at its end."""

    event: Event
    channel: str
    thread: str
    begun: int
    done: int
    ns: int

    @property
    def name(self) -> str:
        """The called method."""
        return self.event.event

    def number(self, field: str) -> int | None:
        """The whole number under a name; None if missing or of another type."""
        value = self.event.args.get(field)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def text(self, field: str) -> str:
        """The text under a name; empty if missing."""
        value = self.event.args.get(field)
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class TraceRun:
    """The trace files of one run. `folder` contains them, or the logs; `skipped` have names of trace files but are not
    readable files."""

    name: str
    folder: Path
    files: tuple[Path, ...]
    skipped: tuple[Path, ...] = ()


@dataclass(slots=True)
class Recording:
    """The contents of the files of a run, by process; unreadable lines; contradictions within the record of a process."""

    processes: dict[str, list[Recorded]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=Problems)
    cut: set[str] = field(default_factory=set)
    """Processes whose record ends before the process did."""
    wrong: dict[Loc, str] = field(default_factory=dict)
    """By file and line: why a record is misplaced."""
    _places: dict[tuple[str, int], Recorded] = field(default_factory=dict)
    """The first record with a position in the order of its process."""

    def is_copy(self, made: Recorded) -> bool:
        """Whether the same record, identified by its number, was read before, from this file or another."""
        known = self._places.setdefault((made.event.process, made.done), made)
        if known is made:
            return False
        at_home = replace(made.event, file=known.event.file, line=known.event.line)
        return replace(made, event=at_home) == known

    def unreturned(self, process: str) -> int:
        """The moment from which calls may be missing because they had not returned when the process's record ends: no
        record uses the number that the first of them drew. Threads are few, so only the last such numbers count."""
        records = self.processes.get(process, [])
        used = {moment for r in records for moment in (r.begun, r.done)}
        last = max(used, default=0)
        unused = [n for n in range(max(last - UNRETURNED, 0), last) if n not in used]
        return unused[0] if unused else last

    def begins_late(self, process: str) -> bool:
        """Whether the first calls of a process are missing in its record."""
        return min((r.begun for r in self.processes.get(process, ())), default=0) > FIRST

    def damage(self) -> tuple[Loc, ...]:
        """Unreadable lines that may have been events."""
        return tuple(Loc(p.file, p.line) for p in self.problems if p.line)


Other = Callable[[Mapping[str, Any]], bool]
"""Whether a line is a record of another form."""


def trace_runs(path: Path, other: Other = lambda record: False) -> list[TraceRun]:
    """The runs under a path: a trace file, a folder of them, a folder of such folders, a pattern; possibly none.

    Raises `InputError` for a missing path.
    """
    text = str(path)
    if glob.has_magic(text) and not path.exists():
        found = [Path(match) for match in sorted(glob.glob(text, recursive=True))]
        if not found:
            raise InputError(f"nothing matches the pattern {text}", remedy="traces are named *.jsonl or *.ndjson")
        runs = [run for match in found if match.is_dir() for run in _below(match, other)]
        folders: dict[Path, list[Path]] = {}
        for match in found:
            if not match.is_dir() and is_trace(match, other):
                folders.setdefault(match.parent, []).append(match)
        return runs + [TraceRun(f.resolve().name, f, tuple(files)) for f, files in folders.items()]
    if path.is_dir():
        return _below(path, other)
    if path.exists():
        return [TraceRun(path.name.partition(".")[0], path.parent, (path,))] if is_trace(path, other) else []
    raise InputError(f"no such file or folder: {text}", remedy="give a trace, a folder of traces, or a pattern")


def is_trace(file: Path, other: Other) -> bool:
    """Whether a file's first line is a record of credit-based flow control."""
    record = first_record(file)
    return record is not None and (other(record) or (_name(record).startswith(ENDS) and _name(record)[2:] != ""))


def first_record(file: Path) -> Mapping[str, Any] | None:
    """The first line of a possible trace file, if it is a JSON object."""
    if not file.name.endswith(ENDINGS) or why_no_file(file):
        return None
    with closing(read_lines(file, lambda problem: None)) as lines:
        for raw in lines:
            if not raw.isspace():
                record = _object(raw)
                return None if isinstance(record, str) else record
    return None


def read_recording(run: TraceRun) -> Recording:
    """The contents of the files of a run. Raises `InputError` for a file that cannot be opened."""
    recording = Recording()
    for file in run.skipped:
        recording.problems.append(Problem(str(file), 0, f"{why_no_file(file)}; it is not read"))
    for file in run.files:
        _read(file, recording)
    for records in recording.processes.values():
        # A process may have written several files.
        records.sort(key=lambda r: r.done)
    return recording


def _below(folder: Path, other: Other) -> list[TraceRun]:
    runs = []
    for root, folders, names in os.walk(folder):
        folders.sort()
        files = tuple(f for name in sorted(names) if is_trace(f := Path(root, name), other))
        if files:
            skipped = tuple(f for name in names if name.endswith(ENDINGS) and why_no_file(f := Path(root, name)))
            runs.append(TraceRun(Path(root).resolve().name, Path(root), files, skipped))
    return runs


def _object(raw: bytes) -> Mapping[str, Any] | str:
    """The JSON object of a line, or why it has none; which of two values of one key is meant, nobody knows."""
    try:
        record = json_value(raw)
    except ValueError as error:
        return f"is not accepted: {error}" if "occurs twice" in str(error) else "is not a JSON object"
    except RecursionError:
        return "is not a JSON object"
    return record if isinstance(record, dict) else "is not a JSON object"


def _name(record: Mapping[str, Any]) -> str:
    name = record.get("ev", record.get("event"))
    return name if isinstance(name, str) else ""


def _read(file: Path, recording: Recording) -> None:
    last: dict[str, tuple[int, int]] = {}
    turned: dict[Loc, str] = {}
    copied = 0
    file_process = file.name.partition(".")[0]
    with closing(read_lines(file, recording.problems.append)) as lines:
        for number, raw in enumerate(lines, 1):
            if raw.isspace():
                continue
            if raw.strip().strip(b'"').startswith(_CUT.encode()):
                recording.cut.add(next(iter(last), file_process))
                continue
            record = _object(raw)
            made = None if isinstance(record, str) else _recorded(record, str(file), number)
            if made is None:
                what = record if isinstance(record, str) else "is not a record of a call"
                recording.problems.append(Problem(str(file), number, f"the line {what}"))
                continue
            if recording.is_copy(made):
                copied += 1
                continue
            process = made.event.process
            before, line = last.get(process, (-1, 0))
            if made.done <= before:
                turned[Loc(str(file), number)] = (
                    f"the record has the place {made.done} in the order of {process}, but line {line} before it has {before}"
                )
            elif made.begun >= made.done:
                recording.wrong[Loc(str(file), number)] = (
                    f"the call returned at {made.done}, before it began at {made.begun}"
                )
            last[process] = max((before, line), (made.done, number))
            recording.processes.setdefault(process, []).append(made)
    if len(turned) > OUT_OF_PLACE:
        text = f"{len(turned):,} of its records stand behind later ones; they are read in the order of their numbers"
        recording.problems.append(Problem(str(file), 0, text))
    else:
        recording.wrong |= turned
    if copied:
        recording.problems.append(
            Problem(str(file), 0, f"{copied:,} of its records are there more than once; they are read once")
        )


def _recorded(record: Mapping[str, Any], file: str, line: int) -> Recorded | None:
    """The record in a line of either form; None if it has none."""
    if "ev" in record:
        fixed: Mapping[str, Any] = {k: record.get(k) for k in _FLAT}
        args = {k: v for k, v in record.items() if k not in _FLAT}
        place, process, name = fixed["q"], fixed["proc"], fixed["ev"]
    else:
        given = record.get("args")
        if not isinstance(given, dict):
            return None
        fixed = given
        args = {k: v for k, v in given.items() if k not in _FLAT}
        place, process, name = record.get("seq"), record.get("process"), record.get("event")
    numbers = (place, fixed.get("q0"), fixed.get("ns"))
    if any(isinstance(n, bool) or not isinstance(n, int) for n in numbers):
        return None
    if not isinstance(name, str) or not name.startswith(ENDS) or not isinstance(process, str):
        return None
    texts = fixed.get("ch"), fixed.get("th"), args.get("partition"), args.get("subpartition")
    if any(text is not None and not isinstance(text, str) for text in texts):
        return None
    if name == REQUEST and "subpartitions" in args and subpartition_indices(args["subpartitions"]) is None:
        return None
    channel, thread = texts[0] or "", texts[1] or ""
    event = Event(channel, process, int(place), name, args, file=file, line=line)
    return Recorded(event, channel, thread, *(int(n) for n in (fixed["q0"], place, fixed["ns"])))


def subpartition_indices(given: object) -> range | None:
    """The subpartitions of a request, which contains the first and the last, ``[0, 1]``, or (Flink 1.17) one; None for
    any other value."""
    found = _INDICES.fullmatch(str(given)) if isinstance(given, str | int) else None
    return range(int(found[1]), int(found[2] or found[1]) + 1) if found else None


def is_outline(record: Mapping[str, Any]) -> bool:
    """Whether a line was recorded by a general tracing agent, without buffer types: see `outline`."""
    name = record.get("ev")
    return "ph" in record and isinstance(name, str) and name.startswith((CONSUMER, PRODUCER))
