"""Checkpoints of a search on disk, written at the ends of levels, so that a killed run can be resumed.

A folder has append-only files of states and predecessors, and a manifest with the number of valid states. The manifest is
replaced atomically after the other files are synced: whenever the run is killed, the folder has a valid checkpoint.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from streamproof.base.errors import InputError, SystemFailure, UsageError
from streamproof.base.files import CHECKPOINT, expect_writable, new_folders, open_own, write
from streamproof.base.reading import Shape, misfit, read_json, why_no_file
from streamproof.explicit.compiled.log_file import LogFile
from streamproof.explicit.level_search import SearchEvent, Snapshot
from streamproof.system.fingerprint import fingerprint

if TYPE_CHECKING:
    from streamproof.explicit.compiled.search import CompiledSearch

FORMAT = "streamproof.checkpoint/2"
MANIFEST = "checkpoint.json"
FILES = ("states.bin", "predecessors.bin")
LOCK = "lock"
_ANEW = "start anew with --checkpoint"
NUMBER, _WORD = range(1 << 53), range(1 << 64)
MARK: Shape = {
    "levels": [NUMBER],
    "initial": NUMBER,
    "stuck": range(-1, 1 << 53),
    "facts": [_WORD],
    "news": [_WORD],
    "events": {str: {"state": NUMBER, "instance": (None, NUMBER), "mistake": bool}},
    "next": NUMBER,
}
"""The types of the fields of a snapshot."""
_SHAPE: Shape = {
    "format": str,
    "version": str,
    "model": str,
    "fingerprint": str,
    "states": NUMBER,
    "checksums": [NUMBER, NUMBER],
    "mark": (None, MARK),
}
"""The types of the fields of the manifest."""
PIECE = 1 << 24
"""Size of one read or write, in bytes."""


class Checkpoints:
    """The checkpoints of one search in one folder.

    Raises `UsageError` for a folder with another checkpoint, `SystemFailure` for a folder that cannot be written.
    """

    def __init__(self, folder: Path, search: CompiledSearch, version: str, *, resume: bool) -> None:
        self._folder = folder
        self._search = search
        names = ",".join(p.name for p in search.properties)
        self._print = fingerprint(search.system, FORMAT, version, names, str(search.layout.words))
        self._version = version
        self._done = 0
        """Number of states in the files."""
        self._sums = [0, 0]
        """Running checksums of the two files."""
        self._lock: BinaryIO | None = None
        with new_folders([] if resume else [folder]):
            try:
                if resume:
                    self._hold()
                    self._load()
                else:
                    self._begin()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Release the lock of the folder."""
        if self._lock is not None:
            if os.fstat(self._lock.fileno()).st_size == 0:  # else it is the file of another program
                with suppress(OSError):
                    (self._folder / LOCK).unlink()
            self._lock.close()
            self._lock = None

    def write(self, mark: Snapshot) -> None:
        """Write the search up to the snapshot `mark`."""
        try:
            last = mark.known
            for kind, name in enumerate(FILES):
                size = self._search.worker.table.stored_size(kind)
                with LogFile(open_own(self._folder / name), self._done * size) as log:
                    for piece in self._pieces(kind, self._done, last):
                        log.append(piece)
                        self._sums[kind] = zlib.crc32(piece, self._sums[kind])
                    log.sync()
            self._done = last
            self._replace(mark)
        except OSError as error:
            raise SystemFailure(
                f"the checkpoint cannot be written to {self._folder}: {error.strerror}",
                remedy="free space on the disk, or name another folder; the previous checkpoint is still valid",
            ) from None

    def _pieces(self, kind: int, first: int, last: int) -> Iterator[memoryview]:
        """The stored bytes of the states from `first` to `last`, piece by piece."""
        for start in range(first, last, PIECE // 64):
            with self._search.worker.table.stored(kind, start, min(last, start + PIECE // 64)) as piece:
                yield piece

    def _hold(self) -> None:
        """Lock the folder for the lifetime of this process. Raises `UsageError` if another run holds the lock."""
        if not self._folder.is_dir():
            return
        path = self._folder / LOCK
        while self._lock is None:
            try:
                # The lock file is never written, so it may belong to anyone.
                lock = open_own(path, create=True)
            except OSError as error:
                raise SystemFailure(f"{path} cannot be used: {error.strerror}", remedy="name another folder") from None
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                raise UsageError(
                    f"another run writes its checkpoints to {self._folder}", remedy="name another folder"
                ) from None
            with suppress(FileNotFoundError):  # another run may have removed or replaced it
                if os.path.samestat(path.stat(), os.fstat(lock.fileno())):
                    self._lock = lock
                    return
            lock.close()

    def _begin(self) -> None:
        """Write a manifest without states, and empty files. Raises `UsageError` if the folder has a checkpoint.

        Files of an earlier run without a complete checkpoint are listed in such a manifest, and are replaced.
        """
        path = self._folder / MANIFEST
        expect_writable(path, CHECKPOINT)
        if path.exists() and self._manifest()["mark"] is not None:
            raise UsageError(
                f"{self._folder} holds a checkpoint",
                remedy="continue it with --resume, name another folder, or remove it",
            )
        try:
            self._hold()
            if not path.exists():
                for name in FILES:
                    expect_writable(self._folder / name, CHECKPOINT)
            self._replace(None)
            for name in FILES:
                (self._folder / name).unlink(missing_ok=True)  # other hard links are not changed
                open_own(self._folder / name, create=True).close()
        except OSError as error:
            raise SystemFailure(
                f"{self._folder} cannot be written: {error.strerror}", remedy="name another folder"
            ) from None

    def _replace(self, mark: Snapshot | None) -> None:
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": self._version,
            "model": self._search.system.name,
            "fingerprint": self._print,
            "states": mark.known if mark else 0,
            "checksums": self._sums,
            "mark": asdict(mark) if mark else None,
        }
        document["checksum"] = checksum(document)
        write(self._folder / MANIFEST, json.dumps(document), CHECKPOINT)
        handle = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _load(self) -> None:
        """Restore the search. Raises `InputError` for a damaged checkpoint or the checkpoint of another run."""
        document = self._manifest()
        if document.get("fingerprint") != self._print:
            raise InputError(
                f"the checkpoint in {self._folder} is of another run: model, parameters, properties or version"
                f" differ (it is of {document.get('model')}, version {document.get('version')})",
                remedy="start anew with --checkpoint and another folder",
            )
        if document["mark"] is None:
            raise InputError(f"the run in {self._folder} was ended before its first checkpoint", remedy=_ANEW)
        mark = mark_of(document["mark"], self._search, str(self._folder / MANIFEST), _ANEW)
        table, count = self._search.worker.table, mark.known
        for kind, name in enumerate(FILES):
            self._expect_long(self._folder / name, table.stored_size(kind) * count)
        table.reserve(count, self._search.fixed)
        for kind, name in enumerate(FILES):
            self._sums[kind] = document["checksums"][kind]
            self._read(kind, self._folder / name, count)
        self._done = count
        table.enter(count, mark.next, self._search.fixed)
        self._search.restore(mark)

    def _manifest(self) -> dict[str, Any]:
        path = self._folder / MANIFEST
        if not os.path.lexists(path):
            raise InputError(f"{self._folder} has no checkpoint", remedy="start one with --checkpoint")
        document: dict[str, Any] = read_json(path, object, _ANEW)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise InputError(f"{path} is not a checkpoint of this format", remedy=_ANEW)
        if document.pop("checksum", None) != checksum(document):
            raise InputError(f"{path} is damaged", remedy=_ANEW)
        why = misfit(document, _SHAPE)
        if why:
            raise InputError(f"{path}: {why}", remedy=_ANEW)
        return document

    def _expect_long(self, path: Path, size: int) -> None:
        """Raises `InputError` for a file that is shorter than `size`."""
        if why := why_no_file(path):
            raise InputError(f"{path} {why}", remedy="start anew")
        if path.stat().st_size < size:
            raise InputError(f"{path} is shorter than recorded in its checkpoint", remedy="start anew")

    def _read(self, kind: int, path: Path, count: int) -> None:
        """Read the records of `count` states into memory, and truncate the file after them.

        Raises `InputError` for a file that differs from its checksum; such a file is not changed.
        """
        total = place = 0
        try:
            with LogFile(open_own(path)) as log:
                for piece in self._pieces(kind, 0, count):
                    log.read(place, piece)
                    total, place = zlib.crc32(piece, total), place + len(piece)
                if total != self._sums[kind]:
                    raise EOFError
                log.cut(place)
        except EOFError:
            raise InputError(f"{path} is damaged", remedy="start anew") from None
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}", remedy="start anew") from None


def mark_of(data: Mapping[str, Any], search: CompiledSearch, place: str, remedy: str) -> Snapshot:
    """The snapshot in a manifest at `place`, whose fields have the types of `MARK`. Raises `InputError` for numbers that are
    impossible in `search`."""
    names = {str(at): at for at in range(len(search.properties))}
    mark = Snapshot(
        levels=tuple(data["levels"]),
        initial=data["initial"],
        stuck=data["stuck"],
        facts=tuple(data["facts"]),
        news=tuple(data["news"]),
        events={
            names.get(k, -1): SearchEvent(v["state"], v["instance"], v["mistake"]) for k, v in data["events"].items()
        },
        next=data["next"],
    )
    events, instances = mark.events.values(), len(search.system.instances)
    fits = (
        mark.initial == sum(mark.levels[:1])
        and max(mark.stuck, mark.next - 1, *(event.state for event in events)) < mark.known
        and max((event.instance or 0 for event in events), default=0) < max(instances, 1)
        and (len(mark.facts), len(mark.news)) == (search.facts_size, instances)
        and -1 not in mark.events
    )
    if not fits:
        raise InputError(f"{place}: a number in it is out of range", remedy=remedy)
    return mark


def checksum(document: Mapping[str, Any]) -> int:
    """The checksum of a manifest, without the checksum itself."""
    return zlib.crc32(json.dumps(json.loads(json.dumps(document)), sort_keys=True).encode())
