"""A search on disk: written at the ends of levels, so that a run that was killed goes on where it was.

A folder holds the states and their predecessors in files that only ever grow, and one small file that says how much of
them counts. That file is replaced as a whole after the others have reached the disk: whenever the run is
killed, the folder holds a checkpoint.
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

from streamproof.explicit.compiled.log_file import LogFile
from streamproof.explicit.compiled.snapshot import Snapshot
from streamproof.explicit.level_search import SearchEvent
from streamproof.system.errors import InputError, SystemFailure, UsageError
from streamproof.system.files import CHECKPOINT, expect_writable, new_folders, open_own, write
from streamproof.system.fingerprint import fingerprint
from streamproof.system.reading import Shape, misfit, read_json, why_no_file

if TYPE_CHECKING:
    from streamproof.explicit.compiled.search import CompiledSearch

FORMAT = "streamproof.checkpoint/2"
MANIFEST = "checkpoint.json"
FILES = ("states.bin", "predecessors.bin")
LOCK = "lock"
_ANEW = "start anew with --checkpoint"
_NUMBER, _WORD = range(1 << 53), range(1 << 64)
_SHAPE: Shape = {
    "format": str,
    "version": str,
    "model": str,
    "fingerprint": str,
    "states": _NUMBER,
    "checksums": [_NUMBER, _NUMBER],
    "mark": (
        None,
        {
            "levels": [_NUMBER],
            "initial": _NUMBER,
            "stuck": range(-1, 1 << 53),
            "facts": [_WORD],
            "news": [_WORD],
            "events": {str: {"state": _NUMBER, "instance": (None, _NUMBER), "mistake": bool}},
            "next": _NUMBER,
        },
    ),
}
"""The shape of the small file."""
PIECE = 1 << 24
"""Bytes that are written or read at once."""


class Checkpoints:
    """The checkpoints of one search in one folder.

    Raises `UsageError` for a folder that holds another checkpoint, `SystemFailure` where it cannot be written.
    """

    def __init__(self, folder: Path, search: CompiledSearch, version: str, *, resume: bool) -> None:
        self._folder = folder
        self._search = search
        names = ",".join(p.name for p in search.properties)
        self._print = fingerprint(search.system, FORMAT, version, names, str(search.layout.words))
        self._version = version
        self._done = 0
        """States that the files hold."""
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
        """Let other runs into the folder."""
        if self._lock is not None:
            if os.fstat(self._lock.fileno()).st_size == 0:  # or it is somebody else's
                with suppress(OSError):
                    (self._folder / LOCK).unlink()
            self._lock.close()
            self._lock = None

    def write(self, mark: Snapshot) -> None:
        """Bring the folder up to the state of the search that `mark` tells of."""
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
                remedy="make room, or name another folder; the checkpoint before this one is still good",
            ) from None

    def _pieces(self, kind: int, first: int, last: int) -> Iterator[memoryview]:
        """What the table has of the states from `first` to `last`, piece by piece."""
        for start in range(first, last, PIECE // 64):
            with self._search.worker.table.stored(kind, start, min(last, start + PIECE // 64)) as piece:
                yield piece

    def _hold(self) -> None:
        """Keep other runs out of the folder as long as this process lives. Raises `UsageError` when one is in it."""
        if not self._folder.is_dir():
            return
        path = self._folder / LOCK
        while self._lock is None:
            try:
                # Nothing is ever written to it: whose file it is makes no difference.
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
            with suppress(FileNotFoundError):  # a run that has just ended has removed it, or another one made it anew
                if os.path.samestat(path.stat(), os.fstat(lock.fileno())):
                    self._lock = lock
                    return
            lock.close()

    def _begin(self) -> None:
        """A small file that says that nothing is there yet, and empty files; raises `UsageError` over a checkpoint.

        Files that an earlier run left without finishing a first checkpoint are listed in such a small file, and made anew.
        """
        path = self._folder / MANIFEST
        expect_writable(path, CHECKPOINT)
        if path.exists() and self._manifest()["mark"] is not None:
            raise UsageError(
                f"{self._folder} holds a checkpoint",
                remedy="go on from it with --resume, or name another folder, or remove it",
            )
        try:
            self._hold()
            if not path.exists():
                for name in FILES:
                    expect_writable(self._folder / name, CHECKPOINT)
            self._replace(None)
            for name in FILES:
                (self._folder / name).unlink(missing_ok=True)  # a hard link of it stays as it is
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
        document["checksum"] = _sum(document)
        write(self._folder / MANIFEST, json.dumps(document), CHECKPOINT)
        handle = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _load(self) -> None:
        """Put the search where the checkpoint was. Raises `InputError` for one of another run, or one that is damaged."""
        document = self._manifest()
        if document.get("fingerprint") != self._print:
            raise InputError(
                f"the checkpoint in {self._folder} is of another run: model, parameters, properties or version"
                f" differ (it is of {document.get('model')}, version {document.get('version')})",
                remedy="start anew with --checkpoint and another folder",
            )
        if document["mark"] is None:
            raise InputError(f"the run in {self._folder} had no checkpoint yet", remedy=_ANEW)
        mark = self._mark(document["mark"])
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
            raise InputError(f"there is no checkpoint in {self._folder}", remedy="start one with --checkpoint")
        document: dict[str, Any] = read_json(path, object, _ANEW)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise InputError(f"{path} is no checkpoint of this kind", remedy=_ANEW)
        if document.pop("checksum", None) != _sum(document):
            raise InputError(f"{path} is damaged", remedy=_ANEW)
        why = misfit(document, _SHAPE)
        if why:
            raise InputError(f"{path}: {why}", remedy=_ANEW)
        return document

    def _mark(self, data: Mapping[str, Any]) -> Snapshot:
        """The state of the search that the small file tells of. Raises `InputError` for one that no search was in."""
        search, names = self._search, {str(at): at for at in range(len(self._search.properties))}
        mark = Snapshot(
            levels=tuple(data["levels"]),
            initial=data["initial"],
            stuck=data["stuck"],
            facts=tuple(data["facts"]),
            news=tuple(data["news"]),
            events={
                names.get(k, -1): SearchEvent(v["state"], v["instance"], v["mistake"])
                for k, v in data["events"].items()
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
            raise InputError(f"{self._folder / MANIFEST}: a number in it is out of range", remedy=_ANEW)
        return mark

    def _expect_long(self, path: Path, size: int) -> None:
        """Raises `InputError` for a file that is shorter than `size`."""
        if why := why_no_file(path):
            raise InputError(f"{path} {why}", remedy="start anew")
        if path.stat().st_size < size:
            raise InputError(f"{path} is shorter than its checkpoint says", remedy="start anew")

    def _read(self, kind: int, path: Path, count: int) -> None:
        """Read the records of `count` states into memory, and cut off what the checkpoint does not cover.

        Raises `InputError` for a file that is not as it was then; it is left as it is.
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


def _sum(document: Mapping[str, Any]) -> int:
    """The checksum of the small file, itself left out."""
    return zlib.crc32(json.dumps(json.loads(json.dumps(document)), sort_keys=True).encode())
