"""The manifest of a search in a shared folder: at the end of each level, all that is needed to continue it.

It is replaced atomically, and names only files that are complete. The files of each run have names of their own: of two runs
in one folder, the second takes it over, and the first ends at its next manifest.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from streamproof.base.errors import InputError, UsageError
from streamproof.base.reading import Shape, misfit
from streamproof.base.records import dataclass
from streamproof.explicit.compiled.checkpoint import MARK, NUMBER, checksum, mark_of
from streamproof.explicit.distributed.shared_folder import SharedFolder
from streamproof.explicit.distributed.sorted_files import sorted_names
from streamproof.explicit.level_search import Snapshot
from streamproof.system.fingerprint import fingerprint

if TYPE_CHECKING:
    from streamproof.explicit.compiled.search import CompiledSearch

FORMAT = "streamproof.distributed/1"
MANIFEST = "search.json"
_ANEW = "start anew with --spill and an empty folder"
_SHAPE: Shape = {
    "format": str,
    "version": str,
    "model": str,
    "fingerprint": str,
    "run": str,
    "partitions": NUMBER,
    "segments": [{"first": NUMBER, "count": NUMBER, "name": str}],
    "known": [[{"name": str, "count": NUMBER}]],
    "mark": (None, MARK),
}


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """States with consecutive numbers from `first` on: a file for each partition, ascending by number, whose name begins with
    `name`."""

    first: int
    count: int
    name: str

    def files(self, partitions: int) -> tuple[str, ...]:
        """The files, by partition."""
        return tuple(f"{self.name}-{part}" for part in range(partitions))


@dataclass(slots=True)
class Stored:
    """The states in files, and for each partition the sorted files of known states, with their numbers of states."""

    segments: list[StoredSegment] = field(default_factory=list)
    known: list[tuple[tuple[str, int], ...]] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Number of states."""
        return sum(segment.count for segment in self.segments)

    def names(self) -> Iterator[str]:
        """The names of all files."""
        for segment in self.segments:
            yield from segment.files(len(self.known))
        for name, _ in chain.from_iterable(self.known):
            yield from sorted_names(name)


class Manifests:
    """The manifests of one search in its folder.

    Raises `UsageError` for a folder with another search, `InputError` for one that cannot be resumed.
    """

    def __init__(self, search: CompiledSearch, folder: SharedFolder, version: str) -> None:
        self._search = search
        self._folder = folder
        self._version = version
        names = ",".join(p.name for p in search.properties)
        reduced = [] if search.task.symmetry is None else ["symmetry"]
        self._print = fingerprint(search.system, FORMAT, version, names, str(search.layout.words), *reduced)
        self.run = uuid.uuid4().hex[:12]
        """The beginning of the names of this run's files."""
        self._held = False

    def begin(self) -> None:
        """Take the folder. Raises `UsageError` if it has other files."""
        self._folder.make()
        found = self._folder.names()
        if MANIFEST in found and self._read()["mark"] is not None:
            raise UsageError(
                f"{self._folder.place} holds a search", remedy="continue it with --resume, or name an empty folder"
            )
        if found and MANIFEST not in found:
            raise UsageError(
                f"{self._folder.place} has other files, such as {found[0]}", remedy="name an empty or a new folder"
            )
        self._folder.remove(found)
        self._put(None, None)

    def load(self) -> tuple[int, Snapshot, dict[str, Any]]:
        """The number of partitions, the end of the last complete level, and the names of its files; takes the folder."""
        document = self._read()
        if document["fingerprint"] != self._print:
            raise InputError(
                f"the search in {self._folder.place} is of another run: model, parameters, properties or version differ"
                f" (it is of {document['model']}, version {document['version']})",
                remedy=_ANEW,
            )
        if document["mark"] is None:
            raise InputError(f"the search in {self._folder.place} was ended before its first manifest", remedy=_ANEW)
        mark = mark_of(document["mark"], self._search, f"{self._folder.place}/{MANIFEST}", _ANEW)
        known, segments, partitions = document["known"], document["segments"], document["partitions"]
        counts = [segment["count"] for segment in segments]
        firsts = [sum(counts[:at]) for at in range(len(counts))]
        stored = sum(run["count"] for files in known for run in files)
        if (
            [segment["first"] for segment in segments] != firsts
            or sum(counts) != mark.known
            or stored != mark.known
            or len(known) != partitions
        ):
            raise InputError(f"{self._folder.place}/{MANIFEST}: its numbers do not agree", remedy=_ANEW)
        used = {f"{segment['name']}-{part}" for segment in segments for part in range(partitions)}
        used |= {name for files in known for run in files for name in sorted_names(run["name"])}
        missing = sorted(used - set(self._folder.names()))
        if missing:
            raise InputError(f"{self._folder.place}/{missing[0]} is missing", remedy=_ANEW)
        return partitions, mark, document

    def take_over(self, mark: Snapshot, stored: Stored) -> None:
        """Continue a search that was loaded: remove the files of levels that were not finished."""
        self._held = False
        self._put(mark, stored)
        kept = {MANIFEST, *stored.names()}
        self._folder.remove(name for name in self._folder.names() if name not in kept)

    def write(self, mark: Snapshot, stored: Stored) -> None:
        """Write the end of a level. Raises `UsageError` if another run has taken the folder."""
        self._put(mark, stored)

    def expect_ours(self) -> None:
        """Raises `UsageError` if another run has taken the folder."""
        if self._held and self._read()["run"] != self.run:
            raise UsageError(f"another run has begun in {self._folder.place}", remedy="name a folder of its own")

    def _put(self, mark: Snapshot | None, stored: Stored | None) -> None:
        self.expect_ours()
        document = {
            "format": FORMAT,
            "version": self._version,
            "model": self._search.system.name,
            "fingerprint": self._print,
            "run": self.run,
            "partitions": len(stored.known) if stored else 0,
            "segments": [asdict(s) for s in stored.segments] if stored else [],
            "known": _named(stored.known) if stored else [],
            "mark": asdict(mark) if mark else None,
        }
        self._folder.put(MANIFEST, json.dumps({**document, "checksum": checksum(document)}).encode())
        self._held = True

    def _read(self) -> dict[str, Any]:
        place = f"{self._folder.place}/{MANIFEST}"
        if not self._folder.has(MANIFEST):
            raise InputError(f"{self._folder.place} has no search", remedy="start one with --spill")
        try:
            document: Any = json.loads(self._folder.get(MANIFEST))
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise InputError(f"{place} is not the manifest of a search of this format", remedy=_ANEW)
        if document.pop("checksum", None) != checksum(document):
            raise InputError(f"{place} is damaged", remedy=_ANEW)
        why = misfit(document, _SHAPE)
        if why:
            raise InputError(f"{place}: {why}", remedy=_ANEW)
        return document


def _named(known: Sequence[Sequence[tuple[str, int]]]) -> list[list[Mapping[str, Any]]]:
    return [[{"name": name, "count": count} for name, count in files] for files in known]
