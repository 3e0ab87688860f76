"""The log files of a run: the process that wrote each, and the order of writing.

A run is a folder of logs (`jobmanager.log`, `taskmanager-0.log`, or the names that Flink's scripts give), one log, or
the matches of a pattern. Rotated files (`.log.1`, `.log.2026-11-21`, each perhaps with `.gz`) belong to the process in
their name, and so do parts with a date before `.log` (`taskmanager-2026-11-21-1.log`); those with a number there if
their content proves it. A file that contains only records of another one is a copy, whatever its name.
"""

from __future__ import annotations

import glob
import gzip
import os
import re
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Final

from streamproof.conformance.flink.copies import find_copies
from streamproof.conformance.flink.log_records import LONGEST, Problem
from streamproof.conformance.flink.rotation import INFIX, NUMBERED, LogPart, are_numbered_parts, are_one_log, in_order
from streamproof.conformance.packed import packed_as
from streamproof.system.bounded import bounded_lines
from streamproof.system.errors import InputError
from streamproof.system.reading import why_no_file
from streamproof.system.records import dataclass

LOOKED_FOR: Final = "*.log, rotated *.log.N, and both with .gz"
"""The file names of logs in a folder."""

_LOG: Final = re.compile(r"(?P<process>.+?)\.log(?P<rotation>[.-]\d[\d.-]*)?(?:\.gz)?", re.DOTALL)
_PACKED: Final = re.compile(r".+\.log(?:[.-]\d[\d.-]*)?\.(?:bz2|zst|xz|lz4|zip|Z)", re.DOTALL)
"""File names of logs in unsupported compression formats."""
UNORDERED: Final = "its parts may have been written in several orders: neither names, times nor content decide"


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run. `folder` contains its other files (REST answers); `skipped` are not read."""

    name: str
    folder: Path
    files: tuple[Path, ...]
    skipped: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessLog:
    """The log of one process, oldest file first. `ordered` is false if the order is unknown."""

    process: str
    files: tuple[Path, ...]
    ordered: bool = True
    excuse: str | None = None
    """Why records missing in it may be in the log of another process."""


@dataclass(slots=True)
class _Named:
    """The files of a run by process and rotation suffix, from their names; each file's content is scanned once."""

    processes: dict[str, dict[str, Path]] = field(default_factory=dict)
    parts: dict[Path, LogPart] = field(default_factory=dict)
    excuses: dict[str, str] = field(default_factory=dict)

    def read(self, process: str) -> list[LogPart]:
        """The parts of a log."""
        return [self.part(file, rotation) for rotation, file in self.processes[process].items()]

    def part(self, file: Path, rotation: str) -> LogPart:
        """The scan of a file's content."""
        part = self.parts.setdefault(file, LogPart(file, rotation))
        if part.last is None:
            part = self.parts[file] = LogPart.of(file, rotation, _quietly)
        part.rotation = rotation
        return part

    def join(self) -> None:
        """Assigns files with a date or a number before `.log` to the process of which they are parts."""
        for stem, members in self._alike(INFIX):
            if are_one_log(self._several(stem, members)):
                self._move(stem, members)
        for stem, members in self._alike(NUMBERED):
            one = are_numbered_parts(self._several(stem, members))
            if one:
                self._move(stem, members)
            elif one is None:
                names = [*members, *([stem] if stem in self.processes else [])]
                why = f"{' and '.join(sorted(names))} may be parts of one log: nothing in them decides it"
                self.excuses |= dict.fromkeys(names, why)

    def _alike(self, pattern: re.Pattern[str]) -> list[tuple[str, dict[str, str]]]:
        """Processes with a common stem, with the rest of their names; longer stems first."""
        stems: dict[str, dict[str, str]] = {}
        for process, rotations in self.processes.items():
            found = pattern.fullmatch(process)
            if found and rotations.keys() == {""}:
                stems.setdefault(found["process"], {})[process] = f"-{found['rotation']}"
        several = [(stem, members) for stem, members in stems.items() if len(members) + (stem in self.processes) > 1]
        return sorted(several, key=lambda pair: (-len(pair[0]), pair[0]))

    def _several(self, stem: str, members: Mapping[str, str]) -> list[LogPart]:
        own = self.processes.get(stem, {})
        parts = [self.part(file, rotation) for rotation, file in own.items()]
        return parts + [self.part(self.processes[name][""], rotation) for name, rotation in members.items()]

    def _move(self, stem: str, members: Mapping[str, str]) -> None:
        moved = {rotation: self.processes.pop(name)[""] for name, rotation in members.items()}
        self.processes[stem] = self.processes.get(stem, {}) | moved


def find_runs(path: str | os.PathLike[str]) -> list[RunFiles]:
    """The runs at `path`: a log, a folder of logs, a folder of such folders at any depth, or a pattern.

    Files matched by a pattern make one run per folder. Raises `InputError` if there is nothing or no log, with the
    names that were searched.
    """
    text = os.fspath(path)
    given = Path(text)
    if given.is_dir():
        runs = _runs_below(given)
    elif given.exists():
        runs = [RunFiles(_process(given), given.parent, (given,))]
    elif glob.has_magic(text):
        found = [Path(match) for match in sorted(glob.glob(text, recursive=True))]
        if not found:
            raise InputError(f"nothing matches the pattern {text}", remedy=f"logs are named {LOOKED_FOR}")
        runs = [run for match in found if match.is_dir() for run in _runs_below(match)]
        folders: dict[Path, list[Path]] = {}
        for match in found:
            if not match.is_dir() and _LOG.fullmatch(match.name):
                folders.setdefault(match.parent, []).append(match)
        runs += [RunFiles(_folder_name(folder), folder, tuple(files)) for folder, files in folders.items()]
        runs = list({(run.folder, run.files): run for run in runs}.values())
    else:
        raise InputError(f"no such file or folder: {text}", remedy="give a log, a folder of logs, or a pattern")
    skipped = [file for run in runs for file in run.skipped]
    runs = [run for run in runs if run.files]
    if not runs and skipped:
        raise InputError(f"{text}: no log can be read: {skipped[0]} {_why_skipped(skipped[0])}", remedy=_UNPACK)
    if not runs:
        raise InputError(
            f"{text}: no log was found", remedy=f"looked for {LOOKED_FOR}, in the folder and those below it"
        )
    return runs


def find_logs(run: RunFiles, report: Callable[[Problem], None]) -> list[ProcessLog]:
    """The logs of a run, one for each process, by name. Duplicates are read once and reported."""
    named = _Named()
    for file in run.skipped:
        report(Problem(str(file), 0, f"{_why_skipped(file)}; it is not read"))
    for file in run.files:
        found = _LOG.fullmatch(file.name)
        rotations = named.processes.setdefault(_process(file), {})
        rotation = (found["rotation"] or "") if found else file.name
        if rotation in rotations:
            report(Problem(str(file), 0, f"the same part of the log as {rotations[rotation].name}; it is left out"))
        else:
            rotations[rotation] = file
    kept = [file for rotations in named.processes.values() for file in rotations.values()]
    copies = find_copies(kept, _quietly) if len(kept) > 1 else {}
    for process, rotations in list(named.processes.items()):
        named.processes[process] = {name: file for name, file in rotations.items() if file not in copies}
        if not named.processes[process]:
            del named.processes[process]
    for file, original in sorted(copies.items()):
        report(Problem(str(file), 0, f"all that it holds is in {original.name}; it is left out"))
    named.join()
    rotated = [process for process, rotations in named.processes.items() if len(rotations) > 1]
    orders = dict(zip(rotated, in_order([named.read(process) for process in rotated]), strict=True))
    logs = []
    for process, rotations in sorted(named.processes.items()):
        if process not in orders:
            logs.append(ProcessLog(process, tuple(rotations.values()), excuse=named.excuses.get(process)))
            continue
        files = tuple(part.file for part in orders[process].parts)
        if not orders[process].known:
            report(Problem(str(files[-1]), 0, f"the order of this log is not known: {UNORDERED}"))
        logs.append(ProcessLog(process, files, orders[process].known, named.excuses.get(process)))
    return logs


_UNPACK: Final = "unpack it: logs are read as text, and compressed by gzip"


def _why_skipped(file: Path) -> str:
    return why_no_file(file) or f"is {packed_as(file) or 'compressed'}"


def read_lines(file: Path, report: Callable[[Problem], None]) -> Generator[bytes, None, None]:
    """Lines of a log with their ends, decompressed if needed; of a line that is too long, its first `LONGEST` + 1 bytes.

    A damaged archive is reported, and its readable part is used. Raises `InputError` if the file cannot be read at all.
    """
    number = 0
    try:
        with file.open("rb") as stream:
            packed = stream.read(2) == b"\x1f\x8b"
            stream.seek(0)
            for line in bounded_lines(gzip.GzipFile(fileobj=stream) if packed else stream, LONGEST):
                number += 1
                yield line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        report(Problem(str(file), number, f"the compressed file is damaged after this line ({error})"))
    except OSError as error:
        raise InputError(
            f"{file}: cannot be read: {error.strerror or error}", remedy="check the path and its rights"
        ) from error


def _runs_below(folder: Path) -> list[RunFiles]:
    runs = []
    for root, folders, names in os.walk(folder):
        folders.sort()
        logs = [Path(root, name) for name in sorted(names) if _LOG.fullmatch(name) or _PACKED.fullmatch(name)]
        files = tuple(file for file in logs if _LOG.fullmatch(file.name) and file.is_file())
        if logs:
            skipped = tuple(file for file in logs if file not in files)
            runs.append(RunFiles(_folder_name(Path(root)), Path(root), files, skipped))
    return runs


def _folder_name(folder: Path) -> str:
    return folder.resolve().name


def _process(file: Path) -> str:
    found = _LOG.fullmatch(file.name)
    return found["process"] if found else file.name.removesuffix(".gz").partition(".")[0] or file.name


def _quietly(file: Path) -> Iterator[bytes]:
    """Lines of a file whose damage is reported elsewhere."""
    return read_lines(file, lambda problem: None)
