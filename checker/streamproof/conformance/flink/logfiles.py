"""Which files make up a run, which process wrote each, and in which order they were written.

A run is a folder of logs (`jobmanager.log`, `taskmanager-0.log`, or the names that Flink's scripts give), one log, or what
a pattern matches. Rotated files (`.log.1`, `.log.2026-11-21`, each perhaps with `.gz`) belong to the process whose name
they bear. Rotation counts upwards in Flink's own configuration and downwards in others, so time decides and numbers only
break ties.
"""

from __future__ import annotations

import glob
import gzip
import os
import re
import zlib
from collections.abc import Callable, Generator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Final

from streamproof.conformance.flink.records import LONGEST, Problem, time_of
from streamproof.conformance.packed import packed_as
from streamproof.system.bounded import bounded_lines
from streamproof.system.errors import InputError
from streamproof.system.reading import why_no_file
from streamproof.system.records import dataclass

LOOKED_FOR: Final = "*.log, rotated *.log.N, and both with .gz"
"""The names under which logs are looked for in a folder."""

_LOG: Final = re.compile(r"(?P<process>.+?)\.log(?P<rotation>[.-]\d[\d.-]*)?(?:\.gz)?", re.DOTALL)
_PACKED: Final = re.compile(r".+\.log(?:[.-]\d[\d.-]*)?\.(?:bz2|zst|xz|lz4|zip|Z)", re.DOTALL)
"""Names of logs that are compressed in a way that is not read."""
_PROBED: Final = 5000  # lines read for the first time of a file


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run. `folder` is where its other files (REST answers) are looked for; `skipped` are not read."""

    name: str
    folder: Path
    files: tuple[Path, ...]
    skipped: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessLog:
    """The log of one process, oldest file first."""

    process: str
    files: tuple[Path, ...]


def find_runs(path: str | os.PathLike[str]) -> list[RunFiles]:
    """The runs that `path` names: a log, a folder of logs, a folder of such folders at any depth, or a pattern.

    Files that a pattern matches make one run for each folder they lie in. Raises `InputError` if nothing is there or no
    log is among it, saying what was looked for.
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
        raise InputError(f"there is no file or folder {text}", remedy="give a log, a folder of logs, or a pattern")
    skipped = [file for run in runs for file in run.skipped]
    runs = [run for run in runs if run.files]
    if not runs and skipped:
        raise InputError(f"{text}: no log can be read: {skipped[0]} {_why_skipped(skipped[0])}", remedy=_UNPACK)
    if not runs:
        raise InputError(
            f"{text}: no log was found", remedy=f"looked for {LOOKED_FOR}, in the folder and those below it"
        )
    return runs


def by_process(run: RunFiles, report: Callable[[Problem], None]) -> list[ProcessLog]:
    """The logs of a run, one for each process, by name. A rotation that is there twice is read once and reported."""
    processes: dict[str, dict[str, Path]] = {}
    for file in run.skipped:
        report(Problem(str(file), 0, f"{_why_skipped(file)}; it is not read"))
    for file in run.files:
        found = _LOG.fullmatch(file.name)
        rotations = processes.setdefault(_process(file), {})
        rotation = (found["rotation"] or "") if found else file.name
        if rotation in rotations:
            report(Problem(str(file), 0, f"the same part of the log as {rotations[rotation].name}; it is left out"))
        else:
            rotations[rotation] = file
    return [ProcessLog(process, _in_order(rotations)) for process, rotations in sorted(processes.items())]


_UNPACK: Final = "unpack it: logs are read as text, and compressed by gzip"


def _why_skipped(file: Path) -> str:
    return why_no_file(file) or f"is {packed_as(file) or 'compressed'}"


def read_lines(file: Path, report: Callable[[Problem], None]) -> Generator[bytes, None, None]:
    """Lines of a log with their ends, unpacked if need be, of one that is too long its first `LONGEST` + 1 bytes.

    A damaged archive is reported and gives what it holds.

    Raises `InputError` if the file cannot be read at all.
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


def _in_order(rotations: dict[str, Path]) -> tuple[Path, ...]:
    # The file without a number is the one being written; the others count upwards unless their times say otherwise.
    numbered = sorted(rotations.items(), key=lambda item: (not item[0], [int(n) for n in re.findall(r"\d+", item[0])]))
    if len(numbered) == 1:
        return (numbered[0][1],)
    times = {rotation: _first_time(file) for rotation, file in numbered}
    if all(times.values()):
        numbered.sort(key=lambda item: times[item[0]] or "")
    return tuple(file for _, file in numbered)


def _first_time(file: Path) -> str | None:
    with closing(read_lines(file, lambda problem: None)) as lines:
        for raw in islice(lines, _PROBED):
            time = time_of(raw)
            if time is not None:
                return time
    return None
