"""Errors for paths that cannot be read as recorded runs: archives, pipes, patterns without a match."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Final

from streamproof.base.errors import InputError
from streamproof.base.reading import why_no_file
from streamproof.conformance.flink.archives import format_inside, format_of, is_tar, unsupported

_UNPACKED: Final = {"bz2": "compressed by bzip2", "zstd": "compressed by zstd", "xz": "compressed by xz"}
"""The compressions besides gzip that a reader of archives unpacks itself."""
_TAR: Final = "a tar archive"


def packed_as(file: Path) -> str:
    """The compression or archive format of a file, as the end of a sentence; empty for plain and gzipped text."""
    found = format_of(file)
    found = format_inside(file) if found == "gzip" else found or unsupported(file)
    return _UNPACKED.get(found, "" if found == "gzip" else found) or (_TAR if is_tar(file) else "")


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
        if packed and not (archives and packed in (*_UNPACKED.values(), _TAR)):
            raise InputError(f"{file} is {packed}", remedy="unpack it, and give the files in it")
