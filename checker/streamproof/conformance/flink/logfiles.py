"""The log files of a run: the process that wrote each, and the order of writing.

A run is a folder of logs (`jobmanager.log`, `taskmanager-0.log`, or the names that Flink's scripts give), one log, or
the matches of a pattern. Rotated files (`.log.1`, `.log.2026-11-21`, each perhaps compressed) belong to the process in
their name, and so do parts with a date before `.log` (`taskmanager-2026-11-21-1.log`); those with a number there if
their content proves it. A file that contains only records of another one is a copy, whatever its name.

A file with another name is a log if it begins like one. An archive is a folder of its members. A file of a log
collector that has the lines of several processes is one log for each, known by the path `FILE/PROCESS.log`.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import islice
from pathlib import Path
from typing import Final

from streamproof.base.errors import InputError
from streamproof.base.reading import Excess, bounded_lines, why_no_file
from streamproof.base.records import dataclass
from streamproof.conformance.flink.archives import (
    DAMAGED,
    Bomb,
    Passed,
    archive_of,
    is_member,
    open_bounded,
    real,
    size_of,
    unpack,
    unsupported,
)
from streamproof.conformance.flink.delivery import find_copies
from streamproof.conformance.flink.layouts import PROBED, LogLayout, given_pattern, layout_of, origins_of
from streamproof.conformance.flink.log_records import LONGEST, Head, Problem, plain_text, read_head
from streamproof.conformance.flink.rotation import INFIX, NUMBERED, LogPart, are_numbered_parts, are_one_log, in_order
from streamproof.conformance.flink.run import ROLES

LOOKED_FOR: Final = (
    "*.log, rotated *.log.N, both also with .gz, .bz2, .zst or .xz, "
    "files that begin like logs, and tar and zip archives"
)
"""The logs in a folder."""

_LOG: Final = re.compile(r"(?P<process>.+?)\.log(?P<rotation>[.-]\d[\d.-]*)?(?:\.(?:gz|bz2|zst|xz))?", re.DOTALL)
_PACKED: Final = re.compile(r".+\.log(?:[.-]\d[\d.-]*)?\.(?:lz4|Z|7z)", re.DOTALL)
"""File names of logs in unsupported compression formats."""
UNORDERED: Final = "its parts may have been written in several orders: neither names, times nor content decide"


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run. `folder` contains its other files (REST answers); `skipped` are not read."""

    name: str
    folder: Path
    files: tuple[Path, ...]
    skipped: tuple[Passed, ...] = ()


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

    def drop(self, files: Collection[Path]) -> None:
        """Removes files."""
        for process, rotations in list(self.processes.items()):
            self.processes[process] = {name: one for name, one in rotations.items() if one not in files}
            if not self.processes[process]:
                del self.processes[process]

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
        runs = _runs_of(given)
    elif glob.has_magic(text):
        found = [Path(match) for match in sorted(glob.glob(text, recursive=True))]
        if not found:
            raise InputError(f"nothing matches the pattern {text}", remedy=f"logs are {LOOKED_FOR}")
        runs = [run for match in found if match.is_dir() for run in _runs_below(match)]
        folders: dict[Path, list[Path]] = {}
        for match in found:
            if match.is_file() and archive_of(match):
                runs += _runs_of(match)
            elif not match.is_dir() and (_LOG.fullmatch(match.name) or begins_like_log(match)):
                folders.setdefault(match.parent, []).extend(_processes_in(match))
        runs += [RunFiles(_folder_name(folder), folder, tuple(files)) for folder, files in folders.items()]
        runs = list({(run.folder, run.files): run for run in runs}.values())
    else:
        raise InputError(f"no such file or folder: {text}", remedy="give a log, a folder of logs, or a pattern")
    skipped = [passed for run in runs for passed in run.skipped]
    runs = [run for run in runs if run.files]
    if not runs and skipped:
        raise InputError(f"{text}: no log can be read: {skipped[0].file} {skipped[0].why}", remedy=_UNPACK)
    if not runs:
        raise InputError(
            f"{text}: no log was found", remedy=f"looked for {LOOKED_FOR}, in the folder and those below it"
        )
    return runs


def find_logs(run: RunFiles, report: Callable[[Problem], None]) -> list[ProcessLog]:
    """The logs of a run, one for each process, by name. Duplicates are read once and reported."""
    named = _Named()
    for passed in run.skipped:
        report(Problem(str(passed.file), 0, f"{passed.why}; it is not read"))
    folders: dict[str, set[Path]] = {}
    for file in run.files:
        folders.setdefault(_process(file), set()).add(file.parent)
    for file in run.files:
        found = _LOG.fullmatch(file.name)
        process = _process(file)
        if len(folders[process]) > 1:
            process = "-".join((*file.parent.parts[len(Path(os.path.commonpath(folders[process])).parts) :], process))
        rotations = named.processes.setdefault(process, {})
        rotation = (found["rotation"] or "") if found else file.name
        if rotation in rotations:
            report(Problem(str(file), 0, f"the same part of the log as {rotations[rotation].name}; it is left out"))
        else:
            rotations[rotation] = file
    kept = [file for rotations in named.processes.values() for file in rotations.values()]
    overlaps: dict[Path, Path] = {}
    copies = find_copies(kept, _quietly, overlaps=overlaps) if len(kept) > 1 else {}
    for file, original in sorted(copies.items()):
        report(Problem(str(file), 0, f"all that it holds is in {original.name}; it is left out"))
    excerpts = _excerpts([file for file in kept if file not in copies])
    for file, original in excerpts.items():
        report(Problem(str(file), 0, f"records of it are in {original.name} too; it is left out"))
    named.drop(copies.keys() | excerpts.keys())
    named.join()
    owners = {file: process for process, rotations in named.processes.items() for file in rotations.values()}
    for file, other in overlaps.items():
        if file in owners and other in owners and owners[file] != owners[other]:
            why = f"{file.name} begins with the last lines of {other.name}: they are parts of one log"
            named.excuses |= {owners[file]: why, owners[other]: why}
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


_UNPACK: Final = "unpack it: logs may be compressed by gzip, bzip2, zstd or xz, and in tar and zip archives"
_origins: dict[Path, tuple[Path, str]] = {}
"""The logs inside files with several processes, each with its file and the process's name there."""
_layouts: dict[tuple[Path, str | None, int, int], LogLayout] = {}


def read_lines(file: Path, report: Callable[[Problem], None]) -> Generator[bytes, None, None]:
    """Lines of a log with their ends, decompressed and in one layout if needed; of a line that is too long, its first
    `LONGEST` + 1 bytes. A line that is not read is empty, and a record may contain its further lines.

    A damaged archive is reported, and its readable part is used. Raises `InputError` if the file cannot be read at all.
    """
    holder, origin = _origins.get(file, (file, None))
    number = 0

    def counted() -> Iterator[bytes]:
        nonlocal number
        with open_bounded(holder) as stream:
            for line in bounded_lines(stream, holder.name, LONGEST):
                number += 1
                yield line

    try:
        layout = _layout(file)
        yield from layout.lines(counted(), str(file), report, origin)
    except Excess as error:
        raise InputError(f"{file}: {error}", remedy="remove them") from None
    except (Bomb, OSError, *DAMAGED) as error:
        if isinstance(error, (Bomb, *DAMAGED)) or (number and real(holder).exists()):
            report(Problem(str(file), number, f"the compressed file is damaged after this line ({error})"))
            return
        raise InputError(
            f"{file}: cannot be read: {error.strerror or error}", remedy="check the path and its rights"
        ) from error


def _layout(file: Path) -> LogLayout:
    """The layout of a file, by its first lines."""
    holder, _ = _origins.get(file, (file, None))
    status = os.stat(real(holder))
    key = (holder, given_pattern(), status.st_size, status.st_mtime_ns)
    if key not in _layouts:
        _layouts[key] = layout_of(_companions(holder.parent), lambda: _raw(holder))
    return _layouts[key]


def _raw(file: Path) -> Iterator[bytes]:
    """The first lines of a file as they are; of a damaged one, those before the damage."""
    try:
        with open_bounded(file) as stream:
            yield from bounded_lines(stream, file.name, LONGEST)
    except (Excess, Bomb, OSError, *DAMAGED):
        return


def _companions(folder: Path) -> Path:
    """The folder in which the other files of a run are: of an archive's members, the archive's."""
    while not folder.is_dir() and folder.parent != folder:
        folder = folder.parent
    return folder


def _excerpts(files: Sequence[Path]) -> dict[Path, Path]:
    """Files, not named like logs, with records of another one: notes and mails quote a log. Each with that log."""
    logs = [file for file in files if _LOG.fullmatch(file.name)]
    found: dict[Path, Path] = {}
    quoted: dict[tuple[str, str, bool, str], Path] = {}
    for file in files if logs else ():
        if file not in logs:
            heads = filter(None, map(_head, _quietly(file)))
            quoted |= dict.fromkeys(map(_said, islice(heads, _QUOTED)), file)
    for log in logs if quoted else ():
        for raw in _quietly(log):
            head = _head(raw)
            file_of = None if head is None else quoted.get(_said(head))
            if file_of is not None:
                found.setdefault(file_of, log)
    return found


def _head(raw: bytes) -> Head | None:
    return read_head(plain_text(raw))


def _said(head: Head) -> tuple[str, str, bool, str]:
    """The head of a record without what its layout decides."""
    return head.ts, head.logger, head.flink, head.message


_QUOTED: Final = 1000
"""Number of records that are compared of a file not named like a log."""


def is_empty(file: Path) -> bool:
    """Whether a log has no content."""
    return file not in _origins and size_of(file) == 0


def begins_like_log(file: Path) -> bool:
    """Whether records of Flink are among the first lines of a file, and nothing that other files begin with."""
    if size_of(file) == 0 or unsupported(file) or archive_of(file):
        return False
    layout = _layout(file)
    return layout.heads >= _FEW and layout.first <= _EARLY


def _processes_in(file: Path) -> list[Path]:
    """A log, or the logs of the processes whose lines a collector wrote into it."""
    layout = _layout(file)
    if not layout.origins:
        return [file]
    origins = origins_of(layout, _raw(file))
    if len(origins) < 2:
        return [file]
    logs = []
    for origin in origins:
        log = file / f"{re.sub(r'[^A-Za-z0-9_.-]', '-', origin.removeprefix('pod/'))}.log"
        _origins[log] = (file, origin)
        logs.append(log)
    return logs


def _runs_of(file: Path) -> list[RunFiles]:
    """The runs in one file: a log, a log of several processes, or an archive of logs."""
    if not archive_of(file):
        files = _processes_in(file) if size_of(file) and not unsupported(file) else [file]
        name = _process(file)
        return [RunFiles(name, file.parent, tuple(files))]
    content = unpack(file)
    folders: dict[Path, list[Path]] = {}
    for member in content.members:
        folders.setdefault(member.parent, []).append(member)
    runs = [_run(folder, members) for folder, members in folders.items()]
    found = [run for run in runs if run.files]
    rest = [passed for run in runs if not run.files for passed in run.skipped]
    if not found:
        return [RunFiles(_process(file), file.parent, (), (*content.passed, *rest))]
    return [replace(found[0], skipped=(*found[0].skipped, *content.passed)), *found[1:]]


def _run(folder: Path, files: Sequence[Path]) -> RunFiles:
    """The run of a folder's files."""
    found: list[Path] = []
    passed: list[Passed] = []
    named = [file for file in files if _LOG.fullmatch(file.name)]
    for file in files:
        if file in named or _PACKED.fullmatch(file.name):
            why = "" if is_member(file) else why_no_file(file)
            why = why or (f"is {unsupported(file)}" if unsupported(file) else "")
            if why:
                passed.append(Passed(file, why))
            else:
                found += _processes_in(file) if size_of(file) else [file]
    others = [] if folder.name.startswith(".") else [f for f in files if f not in named and _may_be_log(f)]
    for file in others:
        if begins_like_log(file):
            found += _processes_in(file)
    return RunFiles(_folder_name(folder), folder, tuple(found), tuple(passed))


_FEW: Final = 3
"""Least number of Flink's records among the first lines of a file whose name is not a log's: a note may quote one."""
_EARLY: Final = 40
"""Greatest number of lines, to the first record, in a file whose name is not a log's."""
_NO_LOGS: Final = re.compile(
    r"(?i).*\.(?:properties|xml|ya?ml|md|rst|html?|py|java|class|jar|parquet|png|svg|toml|pyc|so)"
)
_LARGEST_TREE: Final = 20_000
"""Maximum number of files that are opened to see whether they are logs."""


def _may_be_log(file: Path) -> bool:
    """Whether a file, whose name is not a log's, is opened to see."""
    if _PACKED.fullmatch(file.name) or _NO_LOGS.fullmatch(file.name) or file.name.startswith((".", "rest-")):
        return False
    return is_member(file) or not why_no_file(file)


def _runs_below(folder: Path) -> list[RunFiles]:
    runs: list[RunFiles] = []
    opened = 0
    for root, folders, names in os.walk(folder):
        folders.sort()
        files = [Path(root, name) for name in sorted(names)]
        opened += len(files)
        if opened > _LARGEST_TREE:
            files = [file for file in files if _LOG.fullmatch(file.name) or _PACKED.fullmatch(file.name)]
        archives = [
            file for file in files if _ARCHIVES.fullmatch(file.name) and not why_no_file(file) and archive_of(file)
        ]
        own = [_run(Path(root), [file for file in files if file not in archives])]
        for archive in archives:
            inside = _runs_of(archive)
            single = [member for run in inside for member in run.files]
            if len(single) == 1 and _LOG.fullmatch(archive.stem):
                own.append(replace(inside[0], folder=Path(root)))
            else:
                runs += inside
        whole = replace(
            own[0],
            files=tuple(file for run in own for file in run.files),
            skipped=tuple(passed for run in own for passed in run.skipped),
        )
        if whole.files or whole.skipped:
            runs.append(whole)
    runs = _of_processes(folder, runs)
    if len(runs) == 1 and not any(runs[0].folder.glob("*.json")) and any(folder.glob("rest-*.json")):
        return [replace(runs[0], folder=folder)]  # the answers are in the folder above the logs
    return runs


def _of_processes(folder: Path, runs: list[RunFiles]) -> list[RunFiles]:
    """The runs below a folder; logs of JobManagers and of TaskManagers in folders of their own are one run, as collectors
    give each process, container or host its folder."""
    if len(runs) < 2 or not all(run.folder.is_relative_to(folder) for run in runs):
        return runs
    roles = [_roles(run) for run in runs]
    if {"jobmanager"} in roles and {"taskmanager"} in roles and all(len(role) < 2 for role in roles):
        first = runs[roles.index({"jobmanager"})].folder
        files = tuple(file for run in runs for file in run.files)
        return [RunFiles(_folder_name(folder), first, files, tuple(passed for run in runs for passed in run.skipped))]
    below: dict[Path, list[RunFiles]] = {}
    for run in runs:
        inside = run.folder.relative_to(folder).parts
        below.setdefault(folder / inside[0] if inside else run.folder, []).append(run)
    return [run for child, own in below.items() for run in (_of_processes(child, own) if child != folder else own)]


def _roles(run: RunFiles) -> set[str]:
    """The roles of the processes that wrote the logs of a run, as far as their first lines show them."""
    found: set[str] = set()
    for file in run.files:
        heads = filter(None, map(_head, islice(_quietly(file), PROBED)))
        found |= {*islice((ROLES[head.logger] for head in heads if head.logger in ROLES), 1)}
        if len(found) > 1:
            break
    return found


_ARCHIVES: Final = re.compile(r"(?i).+\.(?:tar(?:\.\w{1,4})?|tgz|tbz2?|tzst|txz|zip)")


def _folder_name(folder: Path) -> str:
    name = folder.resolve().name
    return re.sub(r"(?i)\.(?:tar(?:\.\w{1,4})?|tgz|tbz2?|tzst|txz|zip)$", "", name) if not folder.is_dir() else name


def _process(file: Path) -> str:
    found = _LOG.fullmatch(file.name)
    return found["process"] if found else file.name.removesuffix(".gz").partition(".")[0] or file.name


def _quietly(file: Path) -> Iterator[bytes]:
    """Lines of a file whose damage is reported elsewhere."""
    return read_lines(file, lambda problem: None)
