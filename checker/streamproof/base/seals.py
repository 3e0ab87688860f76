"""Seals: a text that streamproof wrote for this user is recognised by a keyed hash (BLAKE2, RFC 7693).

The key is a file in the cache folder that only the user can read. Without a cache folder there are no seals.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from streamproof.base.errors import SystemFailure
from streamproof.base.files import KEY, write

CACHE_VARIABLE = "STREAMPROOF_CACHE"
"""The environment variable with the cache folder; empty: no cache."""
_MAGIC = b"streamproof key 1\n"


def cache_folder() -> Path | None:
    """The folder for what streamproof keeps for a user; None: nothing is kept."""
    named = os.environ.get(CACHE_VARIABLE)
    if named is not None:
        return Path(named) if named else None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "streamproof" if os.path.isabs(base) else None


def only_ours(about: os.stat_result) -> bool:
    """Whether only this user and root can write to a file or folder."""
    return about.st_uid in (0, os.geteuid()) and not about.st_mode & 0o022


def seal_of(text: str) -> str | None:
    """The seal of a text; None if there is no key, and none can be kept."""
    key = _key(create=True)
    return None if key is None else _hash(key, text)


def is_sealed(text: str, seal: str) -> bool:
    """Whether this is the seal that this user's streamproof gave a text."""
    from hmac import compare_digest  # for replays only

    key = _key(create=False)
    return key is not None and compare_digest(_hash(key, text).encode(), seal.encode("utf-8", "replace"))


def _hash(key: bytes, text: str) -> str:
    from hashlib import blake2b  # for models of a user's file, which load it

    return blake2b(text.encode("utf-8", "surrogateescape"), key=key, digest_size=32).hexdigest()


def _key(*, create: bool) -> bytes | None:
    folder = cache_folder()
    if folder is None:
        return None
    path = folder / "own.key"
    with suppress(OSError, SystemFailure, ValueError):
        if create and not path.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write(path, _MAGIC + os.urandom(32).hex().encode() + b"\n", KEY, 0o600)
        about = folder.lstat()
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            own = os.fstat(handle)
            content = file.read(len(_MAGIC) + 64)
        private = stat.S_ISREG(own.st_mode) and only_ours(own) and not own.st_mode & 0o077
        if stat.S_ISDIR(about.st_mode) and only_ours(about) and private and content.startswith(_MAGIC):
            key = bytes.fromhex(content[len(_MAGIC) :].decode("ascii", "replace"))
            return key if len(key) == 32 else None
    return None
