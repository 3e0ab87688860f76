"""The cache of compiled code: files named by a hash of all that the code depends on, and loaded only where intact.

A file holds the magic line, the SHA-256 of the key, the SHA-256 of the code, and the code. Whatever is wrong with a file or
a folder, the code counts as not there, is compiled again, and replaces the file where that is possible.
"""

from __future__ import annotations

import os
import platform
import re
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

from streamproof.system.errors import SystemFailure
from streamproof.system.files import CODE, write
from streamproof.system.foreign import visible

CACHE_VARIABLE = "STREAMPROOF_CACHE"
"""The environment variable that names the folder for compiled code; empty: nothing is kept."""
KEPT = 200
"""Compiled modules in the folder; the oldest make room."""
MAGIC = b"streamproof code 2\n"
_HEAD = len(MAGIC) + 2 * (64 + 1)
"""Bytes before the code: the magic line and two lines of 64 digits."""
_OURS = re.compile(r"[0-9a-f]{64}\.(code|[^.]+\.part)|[0-9a-f]{40}\.o")
"""Names of files that this version or an earlier one wrote, those included that a killed process left half-written."""


class CacheEntry:
    """The place in the cache of the code that `parts` determine: texts by what they are, in any order."""

    def __init__(self, parts: Mapping[str, str]) -> None:
        whole = {
            **parts,
            "python": f"{sys.implementation.cache_tag} {sys.maxsize}",
            "platform": f"{sys.platform} {platform.machine()}",
        }
        # Each part with its length, so that no two sets of parts are written alike.
        text = "".join(f"{name} {len(value)}\n{value}\n" for name, value in sorted(whole.items()))
        self._digest = sha256(text.encode()).hexdigest()
        folder = _folder()
        self.path = None if folder is None else folder / f"{self._digest}.code"

    def load(self) -> bytes | None:
        """The code; None where there is none, or none that is certainly what was stored."""
        data = _read(self.path) if self.path is not None and _is_safe(self.path.parent) else None
        if data is None:
            return None
        code = data[_HEAD:]
        return code if code and data[:_HEAD] == self._header(code) else None

    def store(self, code: bytes) -> None:
        """Write the file as a whole or not at all; a folder that cannot be written is no reason to stop."""
        if self.path is None:
            return
        with suppress(OSError, SystemFailure):
            folder = self.path.parent
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_safe(folder):
                return
            with suppress(FileNotFoundError):
                self.path.unlink()  # whatever it was, it was not loaded
            write(self.path, self._header(code) + code, CODE, 0o600)
            ours = [(p.stat().st_mtime, p) for p in folder.iterdir() if _OURS.fullmatch(p.name)]
            for _, old in sorted(ours)[:-KEPT]:
                old.unlink(missing_ok=True)

    def _header(self, code: bytes) -> bytes:
        return MAGIC + f"{self._digest}\n{sha256(code).hexdigest()}\n".encode()


def _folder() -> Path | None:
    named = os.environ.get(CACHE_VARIABLE)
    if named is not None:
        return Path(named) if named else None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "streamproof" if os.path.isabs(base) else None


def _is_safe(folder: Path) -> bool:
    """Whether nobody but this user and root can put code into the folder; where others can, a note says so once."""
    try:
        about = folder.lstat()
    except OSError:
        return False
    if stat.S_ISDIR(about.st_mode) and _only_ours(about):
        return True
    _note(f"{folder} is a link or no folder, or others may write to it")
    return False


def _only_ours(about: os.stat_result) -> bool:
    return about.st_uid in (0, os.geteuid()) and not about.st_mode & 0o022


@cache
def _note(why: str) -> None:
    sys.stderr.write(f"streamproof: note: compiled code that was kept is not used: {visible(why)}\n")


def _read(path: Path) -> bytes | None:
    """The content of a regular file that only its owner, this user or root, can have written; else None."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode) or not _only_ours(about):
                _note(f"{path} is not a regular file, or others may write to it")
                return None
            data = file.read()
    except OSError:
        return None
    with suppress(OSError):
        os.utime(path)  # it was used: older ones make room first
    return data
