"""Reading files, with the errors a user can act on."""

from __future__ import annotations

from pathlib import Path

from streamproof.system.errors import InputError


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
