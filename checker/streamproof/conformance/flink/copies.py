"""Detection of copied log files: a log that was collected twice, in whole or in part."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import dropwhile, islice
from pathlib import Path
from typing import Final

from streamproof.base.reading import open_regular
from streamproof.base.records import dataclass
from streamproof.conformance.flink.archives import real, size_of
from streamproof.conformance.flink.log_records import plain_text, time_of

_PROBED: Final = 5000
"""Number of initial lines that are searched for the first record of a file."""
_ALIKE: Final = 50
"""Maximum number of files with the same first record that are compared, because every pair takes time."""
_OPEN: Final = 64
"""Maximum number of simultaneous comparisons within one file: more occur only if one record is repeated many times."""


@dataclass(slots=True)
class _CopyComparison:
    """A possible copy: its lines, from its first record on, as far as they match the other file."""

    file: Path
    lines: Iterator[bytes]
    expected: bytes | None

    def take(self, text: str) -> bool:
        """Whether the next line of the other file matches. A last line may be truncated."""
        raw, self.expected = self.expected, next(self.lines, None)
        if raw is None:
            return False
        mine = plain_text(raw)
        return mine == text or (self.expected is None and not raw.endswith(b"\n") and text.startswith(mine))


def find_copies(
    files: Sequence[Path],
    read: Callable[[Path], Iterable[bytes]],
    begins: Callable[[bytes], object] = time_of,
) -> dict[Path, Path]:
    """Files whose records are all contained, contiguously, in another file, each with that file. Of two equal files,
    the one with the longer name is the copy. `begins` recognises the first line of a record."""
    copies = _equal(files)
    files = [file for file in files if file not in copies]
    heads: dict[str, list[Path]] = {}
    for file in files:
        found = next(((n, raw) for n, raw in enumerate(islice(read(file), _PROBED)) if begins(raw)), None)
        if found is not None:
            heads.setdefault(plain_text(found[1]), []).append(file)
    within: dict[Path, set[Path]] = {}
    if sum(map(len, heads.values())) > 1:
        for file in files:
            for part in _within(file, heads, read, begins):
                within.setdefault(part, set()).add(file)
    kept = sorted(files, key=lambda file: (len(file.name), file.name))
    for file in reversed(kept):
        holders = [other for other in kept if other in within.get(file, ()) and other not in copies]
        if holders:
            copies[file] = holders[0]
    return copies


def _equal(files: Sequence[Path]) -> dict[Path, Path]:
    """Files with the same bytes as another one, each with the one of the shortest name."""
    sizes: dict[int, list[Path]] = {}
    for file in sorted(files, key=lambda file: (len(file.name), file.name)):
        with suppress(OSError):
            sizes.setdefault(size_of(file), []).append(file)
    found: dict[Path, Path] = {}
    for alike in sizes.values():
        first: dict[bytes, Path] = {}
        for file in alike if len(alike) > 1 and sizes.get(0) is not alike else ():
            with suppress(OSError), open_regular(real(file)) as content:
                kept = first.setdefault(hashlib.file_digest(content, "sha256").digest(), file)
                if kept != file:
                    found[file] = kept
    return found


def _within(
    file: Path,
    heads: dict[str, list[Path]],
    read: Callable[[Path], Iterable[bytes]],
    begins: Callable[[bytes], object],
) -> set[Path]:
    """The files wholly contained in one file."""
    found: set[Path] = set()
    open_: list[_CopyComparison] = []
    for raw in read(file):
        if not raw or (raw == b"\n" and not open_):
            continue
        text = plain_text(raw)
        for other in heads.get(text, ())[:_ALIKE]:
            if other != file and other not in found and len(open_) < _OPEN:
                records = dropwhile(lambda line: not begins(line), read(other))
                lines = filter(None, records)
                open_.append(_CopyComparison(other, lines, next(lines, None)))
        if open_:
            open_ = [one for one in open_ if one.take(text)]
            found.update(one.file for one in open_ if one.expected is None)
            open_ = [one for one in open_ if one.expected is not None]
    return found
