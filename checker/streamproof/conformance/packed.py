"""Errors for paths that cannot be read as recorded runs: archives, pipes, patterns without a match."""

from __future__ import annotations

import glob
import gzip
import os
import zlib
from pathlib import Path
from typing import Final

from streamproof.system.errors import InputError
from streamproof.system.reading import why_no_file

_MAGIC: Final = {
    b"BZh": "compressed by bzip2",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
    b"\xfd7zXZ\x00": "compressed by xz",
    b"\x04\x22\x4d\x18": "compressed by lz4",
    b"PK\x03\x04": "a zip archive",
}
_UNPACKED: Final = ("compressed by bzip2", "compressed by zstd", "compressed by xz", "a tar archive")
"""What a reader of archives unpacks itself."""
_TAR: Final = (257, b"ustar")
"""The position of a tar archive's magic number."""


def packed_as(file: Path) -> str:
    """The compression or archive format of a file, as the end of a sentence; empty for plain and gzipped text."""
    try:
        with file.open("rb") as stream:
            start = stream.read(_TAR[0] + len(_TAR[1]))
        if start.startswith(b"\x1f\x8b"):
            with gzip.open(file) as unpacked:
                start = unpacked.read(_TAR[0] + len(_TAR[1]))
    except (OSError, EOFError, zlib.error):
        return ""  # reading it reports the error
    if start[_TAR[0] :] == _TAR[1]:
        return "a tar archive"
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), "")


def expect_recorded(path: Path, *, archives: bool = False) -> None:
    """Raises `InputError` for a path that is neither a folder nor a readable file, and for a pattern without a match.
    `archives`: the reader unpacks compressed files and archives itself."""
    text = os.fspath(path)
    if glob.has_magic(text) and not path.exists():
        found = [Path(match) for match in sorted(glob.glob(text, recursive=True))]
        if not found:
            raise InputError(f"nothing matches the pattern {text}", remedy="name logs, folders of logs, or a pattern")
    else:
        found = [path]
    for file in found:
        if file.is_dir():
            continue
        why = why_no_file(file)
        if why:
            raise InputError(f"{file} {why}", remedy="name logs, folders of logs, or a pattern")
        packed = packed_as(file)
        if packed and not (archives and packed in _UNPACKED):
            raise InputError(f"{file} is {packed}", remedy="unpack it, and give the files in it")
