"""Reading files, with the errors a user can act on."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from streamproof.system.bounded import read_regular
from streamproof.system.errors import InputError

MOST: Final = 1 << 30
"""Bytes of a file."""


def read_text(path: Path) -> str:
    """The text of a UTF-8 file. Raises `InputError` when there is none to read."""
    try:
        return read_regular(path, MOST).decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: byte {error.start} is {error.object[error.start]:#x}") from None
