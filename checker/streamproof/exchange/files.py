"""Reading and writing files, with the errors a user can act on; a file is complete or not there."""

from __future__ import annotations

import os
import time
from pathlib import Path

from streamproof.system.errors import InputError, SystemFailure


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` in one piece, making the folders on the way.

    Raises `SystemFailure` when that is impossible; an older file at `path` is then untouched.
    """
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """As `write_text`, for any data."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        name = path.parent / f".{path.name}.{os.getpid()}-{time.monotonic_ns():x}"
        with name.open("xb") as file:
            try:
                file.write(data)
                file.close()
                os.replace(name, path)
            except BaseException:
                name.unlink()
                raise
    except OSError as error:
        raise SystemFailure(f"{path} cannot be written: {error.strerror or error}") from error


def read_text(path: Path) -> str:
    """The text of a UTF-8 file. Raises `InputError` when there is none to read."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist", remedy="check the path") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder", remedy="name a file in it") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: byte {error.start} is {error.object[error.start]:#x}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
