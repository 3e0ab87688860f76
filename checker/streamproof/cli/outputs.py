"""Where results go: JSON to a file or standard output, traces to a folder, and never over a stranger's file."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, TextIO

from streamproof.exchange.files import write_bytes, write_text
from streamproof.system.errors import SystemFailure
from streamproof.system.records import dataclass

STANDARD = "-"


def write_json(document: Any, where: str) -> None:
    """Write JSON data to the file `where`, or to standard output for ``-``."""
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    if where == STANDARD:
        sys.stdout.write(text)
    else:
        write_text(Path(where), text)


def people(json_to: str | None) -> TextIO:
    """The stream for what people read: standard error when standard output carries JSON."""
    return sys.stderr if json_to == STANDARD else sys.stdout


def expect_writable(path: Path, *, folder: bool = False) -> None:
    """Raise `SystemFailure` now when a file (or folder) at `path` could not be written after hours of work."""
    if path.is_dir() and not folder:
        raise SystemFailure(f"{path} is a folder", remedy="name a file")
    if folder and path.exists() and not path.is_dir():
        raise SystemFailure(f"{path} is a file", remedy="name a folder")
    place = path if path.is_dir() else path.parent
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        why = "is no folder" if not place.is_dir() else "is not writable"
        raise SystemFailure(f"{path} cannot be written: {place} {why}", remedy="name another place")


def expect_json_writable(where: str | None) -> None:
    """As `expect_writable`, for ``--json``; an existing file that is not JSON is somebody's, not an older answer."""
    if where is None or where == STANDARD:
        return
    path = Path(where)
    expect_writable(path)
    try:
        with path.open("rb") as file:
            start = file.read(64).lstrip()[:1]
    except OSError:
        return
    if path.is_file() and start not in (b"", b"{", b"["):
        raise SystemFailure(f"{path} exists and is not JSON", remedy="name another file, or remove it")


@dataclass
class Folder:
    """A folder of generated files that remembers which ones it wrote, and replaces or removes only those."""

    path: Path
    written: dict[str, str] = field(default_factory=dict)

    LIST = ".streamproof.json"

    def expect_writable(self, names: Iterable[str] = ()) -> None:
        """Raise `SystemFailure` when the folder cannot be written, or holds a file of these names that is not its own."""
        self._expect_writable(names, self._ours())

    def _expect_writable(self, names: Iterable[str], ours: Collection[str]) -> None:
        expect_writable(self.path, folder=True)
        for name in names:
            if name not in ours and (self.path / name).exists():
                raise SystemFailure(
                    f"{self.path / name} exists and was not written by streamproof",
                    remedy="name another folder with --out, or remove it",
                )

    def write(self, name: str, text: str, about: str) -> Path:
        """Write a file called `name` that shows `about`; raises `SystemFailure` over a file that is not its own."""
        return self.write_bytes(name, text.encode("utf-8"), about)

    def write_bytes(self, name: str, data: bytes, about: str) -> Path:
        """As `write`, for any data."""
        self.announce({name: about})
        write_bytes(self.path / name, data)
        self.written[name] = about
        return self.path / name

    def announce(self, files: Mapping[str, str]) -> None:
        """List files, with what they show, that are about to be written. Raises `SystemFailure` over one of somebody else.

        The list comes first: a file that is listed and missing does no harm, one that is there and unlisted would.
        """
        ours = self._ours()
        self._expect_writable(files, ours)
        if not ours.items() >= files.items():
            self._note({**ours, **files})

    def forget(self, about: Collection[str]) -> None:
        """Remove its own older files that show one of `about` and were not written again."""
        ours = self._ours()
        stale = [name for name, shows in ours.items() if shows in about and name not in self.written]
        for name in stale:
            (self.path / name).unlink(missing_ok=True)
        if stale:
            self._note({name: shows for name, shows in ours.items() if name not in stale})

    def _ours(self) -> dict[str, str]:
        try:
            found = json.loads((self.path / self.LIST).read_text(encoding="utf-8"))["files"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return {str(k): str(v) for k, v in found.items()} if isinstance(found, Mapping) else {}

    def _note(self, files: Mapping[str, str]) -> None:
        document = {"about": "files that streamproof wrote here and may replace", "files": dict(sorted(files.items()))}
        write_text(self.path / self.LIST, json.dumps(document, indent=1) + "\n")
