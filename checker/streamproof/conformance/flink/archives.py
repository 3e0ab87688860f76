"""Compressed logs and archives: their content as files, within bounds.

The members of a tar or zip archive are unpacked once into a temporary folder under names of streamproof's own, and are known
by the path `ARCHIVE/MEMBER`. Members that are no regular files, that lead out of the archive, or that exceed the bounds are
passed over with a reason. Unpacked data is bounded in total, and in proportion to the packed size.
"""

from __future__ import annotations

import atexit
import bz2
import codecs
import gzip
import io
import json
import lzma
import os
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, cast

from streamproof.base.optional import expect_pyarrow
from streamproof.base.reading import bytes_read, open_regular, parsed
from streamproof.base.records import dataclass
from streamproof.conformance.flink.layouts import MESSAGES

MOST_UNPACKED: Final = 16 << 30
"""Maximum size of one unpacked log or archive, in bytes."""
FREELY: Final = 256 << 20
"""Size of unpacked data, in bytes, up to which its proportion to the packed data is not restricted."""
MOST_TIMES: Final = 300
"""Maximum proportion of unpacked to packed data. Logs shrink to a tenth or a thirtieth."""
MOST_MEMBERS: Final = 10_000
_LARGEST: Final = 256 << 20
"""Maximum size of a JSON document in one line, or of an answer of Loki's or of CloudWatch's, in bytes."""
_PEEKED: Final = 8192
_ANSWER: Final = re.compile(rb'"resultType"\s*:\s*"streams"|"results"\s*:\s*\[\s*\[\s*\{\s*"field"')
_MOST_DEPTH: Final = 16
DAMAGED: Final = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)
"""Exceptions for damaged compressed data, besides some of `OSError`."""
_FORMATS: Final = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ\x00": "xz"}
_OTHERS: Final = {
    b"\x04\x22\x4d\x18": "compressed by lz4",
    b"\x1f\x9d": "compressed by compress",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
}
_USTAR: Final = (257, b"ustar")
_ZIP: Final = b"PK\x03\x04"
_A_ZIP: Final = "a zip archive"


class Bomb(Exception):
    """Unpacked data exceeds the bounds."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A file or a member of an archive that is not read, with the reason as the end of a sentence."""

    file: Path
    why: str


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The content of an archive: the paths of its members, and what was passed over."""

    members: tuple[Path, ...]
    passed: tuple[Passed, ...]


_real: dict[Path, Path] = {}
_known: dict[tuple[Path, int, int], Unpacked] = {}


def real(path: Path) -> Path:
    """The file with the content of a path: the path itself, or an archive's unpacked member."""
    return _real.get(path, path)


def is_member(path: Path) -> bool:
    """Whether a path is that of an archive's member."""
    return path in _real


def files_in(folder: Path, names: re.Pattern[str]) -> list[Path]:
    """The files of a folder, or the members of an archive's folder, whose names match; without either, those beside the
    archive."""
    while not folder.is_dir() and folder.parent != folder:
        found = sorted(path for path in _real if path.parent == folder and names.fullmatch(path.name))
        if found:
            return found
        folder = folder.parent
    return sorted(file for file in folder.glob("*") if names.fullmatch(file.name) and file.is_file())


def format_of(file: Path) -> str:
    """The compression of a file by its first bytes: gzip, bz2, zstd, xz, or empty."""
    start = _start(real(file))
    return next((name for magic, name in _FORMATS.items() if start.startswith(magic)), "")


def unsupported(file: Path) -> str:
    """The name of a compression or an archive that is not supported, as the end of a sentence; else empty."""
    start = _start(real(file))
    return next((name for magic, name in _OTHERS.items() if start.startswith(magic)), "")


def archive_of(file: Path) -> str:
    """The kind of an archive, compressed or not, as the end of a sentence; empty for another file."""
    if _is_zip(file):
        return _A_ZIP
    return "a tar archive" if _unpacked_start(file)[_USTAR[0] :].startswith(_USTAR[1]) else ""


def _is_zip(file: Path) -> bool:
    return _start(real(file)).startswith(_ZIP)


def format_inside(file: Path) -> str:
    """As `format_of` or `unsupported`, of the unpacked content."""
    start = _unpacked_start(file)
    return next((name for magic, name in (_FORMATS | _OTHERS | {_ZIP: _A_ZIP}).items() if start.startswith(magic)), "")


def _unpacked_start(file: Path) -> bytes:
    try:
        with open_bounded(file) as stream:
            return stream.read(512)
    except (OSError, Bomb, *DAMAGED):
        return b""


def open_bounded(file: Path) -> IO[bytes]:
    """A file's unpacked content. Reading raises `Bomb` beyond the bounds, `OSError` or one of `DAMAGED` for damage."""
    raw = _unpacked(file)
    start = raw.peek(_PEEKED)
    if start[:2] not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        if start.lstrip()[:1] in (b"[", b"{") and (b"\n" not in start.rstrip() or _ANSWER.search(start)):
            return _by_line(raw) or _unpacked(file)
        return raw
    decoder = codecs.getreader("utf-16")(raw, "replace")
    return cast(IO[bytes], io.BufferedReader(_Recoded(decoder)))


def _unpacked(file: Path) -> io.BufferedReader:
    place = real(file)
    kind = format_of(file)
    raw = open_regular(place)
    return io.BufferedReader(_Bounded(_opened(kind, raw), raw, place.stat().st_size)) if kind else raw


def _by_line(raw: IO[bytes]) -> IO[bytes] | None:
    """The records of a JSON document, one a line; None if it is none, or too large."""
    data = raw.read(_LARGEST + 1)
    try:
        found = parsed(data.decode(errors="replace")) if len(data) <= _LARGEST else None
    except (ValueError, RecursionError):
        return None
    lines = [json.dumps(record) for record in _records(found)]
    return cast(IO[bytes], io.BytesIO("".join(f"{line}\n" for line in lines).encode())) if lines else None


def _records(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects in the lists of a document; of a stream of Loki's each line, of a row of fields its fields as an object.
    None of a document that is a record itself."""
    if isinstance(value, dict):
        if any(isinstance(value.get(name), str) for name in ("event", *MESSAGES)):
            return
        lines = value.get("values")
        if isinstance(lines, list) and all(isinstance(line, list) and len(line) > 1 for line in lines):
            labels = {name: label for name, label in value.items() if name != "values"}
            yield from ({**labels, "timestamp": line[0], "line": line[1]} for line in lines)
        else:
            yield from chain.from_iterable(map(_records, value.values()))
    elif (
        isinstance(value, list) and value and all(isinstance(v, dict) and {"field", "value"} <= v.keys() for v in value)
    ):
        yield {str(v["field"]): v["value"] for v in value}
    elif isinstance(value, list):
        for item in value:
            is_record = isinstance(item, dict) and "values" not in item
            yield from (item,) if is_record else _records(item)


class _Recoded(io.RawIOBase):
    """A stream of UTF-16 text, as redirections of PowerShell write it, in UTF-8."""

    def __init__(self, text: codecs.StreamReader) -> None:
        self._text, self._held = text, b""

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        """Reads the next bytes."""
        self._held = self._held or self._text.read(1 << 14, 1 << 14).encode(errors="replace")
        data, self._held = self._held[: len(buffer)], self._held[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Closes the file too."""
        if not self.closed:
            self._text.close()
        super().close()


def unpack(archive: Path) -> Unpacked:
    """The members of an archive. Raises `OSError` or one of `DAMAGED` if it cannot be read at all."""
    status = archive.stat()
    key = (archive, status.st_size, status.st_mtime_ns)
    if key not in _known:
        _known[key] = _unpack(archive)
    return _known[key]


def _unpack(archive: Path) -> Unpacked:
    folder = Path(tempfile.mkdtemp(prefix="streamproof-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    members: dict[Path, Path] = {}
    passed: list[Passed] = []
    size = 0
    try:
        for number, (name, refused, content) in enumerate(_zipped(archive) if _is_zip(archive) else _tarred(archive)):
            if number >= MOST_MEMBERS:
                passed.append(Passed(archive, f"has more than {MOST_MEMBERS:,} members; the rest is not read"))
                break
            shown = archive / (re.sub(r"[\x00-\x1f\x7f]", "?", name).strip("/") or "?")
            why = refused or _misnamed(name)
            path = archive.joinpath(*PurePosixPath(name).parts) if not why else archive
            if not why and path in members:
                why = "is in the archive twice; the first one is read"
            if why:
                passed.append(Passed(shown, why))
                continue
            target = folder / str(number)
            if content is not None:
                with target.open("wb") as out:
                    while piece := content.read(1 << 20):
                        out.write(piece)
                        size += len(piece)
                        bytes_read("unpacking", archive.name, size, len(piece))
                members[path] = target
    except Bomb as bomb:
        passed.append(Passed(archive, f"{bomb}; the rest of it is not read"))
    except (tarfile.TarError, zipfile.BadZipFile, NotImplementedError, *DAMAGED) as error:
        passed.append(Passed(archive, f"is damaged after {len(members)} members ({error})"))
    _real.update(members)
    return Unpacked(tuple(sorted(members)), tuple(passed))


_Member = tuple[str, str, IO[bytes] | None]
"""A file in an archive: its name, why it is not read, and its content."""


def _tarred(archive: Path) -> Iterator[_Member]:
    with open_bounded(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        for item in tar:
            if not item.isdir():
                link = "is a link" if item.issym() or item.islnk() else "is no regular file"
                yield item.name, "" if item.isreg() else link, tar.extractfile(item) if item.isreg() else None


def _zipped(archive: Path) -> Iterator[_Member]:
    packed, unpacked = archive.stat().st_size, 0
    with open_regular(archive) as raw, zipfile.ZipFile(raw) as opened:
        for item in opened.infolist():
            if item.flag_bits & 1:
                yield item.filename, "is encrypted", None
            elif not item.is_dir():
                with opened.open(item) as stream:
                    bounded = _Bounded(stream, stream, packed, unpacked)
                    yield item.filename, "", cast(IO[bytes], bounded)
                    unpacked = bounded.size


def _misnamed(name: str) -> str:
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or not parts:
        return "has a name that leads out of the archive"
    if len(parts) > _MOST_DEPTH:
        return f"is in more than {_MOST_DEPTH} folders"
    if re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", name) or len(name) > 1000:
        return "has a name that cannot be printed"
    return ""


class _Bounded(io.RawIOBase):
    """A decompressed stream that ends with `Bomb` beyond the bounds."""

    def __init__(self, stream: IO[bytes], raw: IO[bytes], packed: int, size: int = 0) -> None:
        self._stream, self._raw, self._packed, self.size = stream, raw, packed, size

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        """Reads the next bytes."""
        data = self._stream.read(len(buffer))
        self.size += len(data)
        if self.size > MOST_UNPACKED:
            raise Bomb(f"it unpacks to more than {MOST_UNPACKED >> 30} GiB, which is the limit")
        if self.size > FREELY and self.size > MOST_TIMES * self._packed:
            raise Bomb(f"it unpacks to more than {MOST_TIMES} times its size, which is the limit")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Closes the file too."""
        if not self.closed:
            self._stream.close()
            self._raw.close()
        super().close()


def _opened(kind: str, raw: IO[bytes]) -> IO[bytes]:
    match kind:
        case "gzip":
            return cast(IO[bytes], gzip.GzipFile(fileobj=raw))
        case "bz2":
            return cast(IO[bytes], bz2.BZ2File(raw))
        case "xz":
            return cast(IO[bytes], lzma.LZMAFile(raw))
        case _:
            expect_pyarrow("a log compressed by zstd")
            import pyarrow

            return cast(IO[bytes], pyarrow.CompressedInputStream(pyarrow.PythonFile(raw), "zstd"))


def _start(file: Path) -> bytes:
    try:
        with open_regular(file) as stream:
            return stream.read(8)
    except (OSError, ValueError):
        return b""


def size_of(file: Path) -> int:
    """The size of a file or a member, in bytes."""
    return os.stat(real(file)).st_size
