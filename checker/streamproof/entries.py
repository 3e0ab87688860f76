"""Entry points of installed packages, read directly from ``entry_points.txt``.

`importlib.metadata` takes longer to import than the check of a small model; it is used only for packages outside of plain
folders, such as packages in an archive.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from streamproof.system.records import dataclass

BINDINGS: Final = "streamproof.bindings"
"""The entry-point group of bindings of recorded runs, by the name of their model."""
RUNTIMES: Final = "streamproof.runtimes"
"""The entry-point group of runtimes that `streamproof run` starts: modules."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered object: its name, and its location ``package.module:Name``."""

    name: str
    value: str

    def load(self) -> Any:
        """The object; raises the exceptions of its import."""
        module, _, path = self.value.partition("[")[0].strip().partition(":")
        found: Any = importlib.import_module(module.strip())
        for part in filter(None, path.strip().split(".")):
            found = getattr(found, part)
        return found


def quick(group: str, name: str) -> Entry | None:
    """The entry `name` of a package in a plain folder of the import path; else None."""
    for text in _listings():
        for entry in _entries(text, group):
            if entry.name == name:
                return entry
    return None


def every(group: str) -> dict[str, Entry]:
    """All registered entries by name, in alphabetical order."""
    from importlib.metadata import entry_points

    return {e.name: Entry(e.name, e.value) for e in sorted(entry_points(group=group), key=lambda e: e.name)}


def _listings() -> Iterator[str]:
    """The contents of the files ``entry_points.txt`` of installed packages."""
    for folder in dict.fromkeys(sys.path):
        try:
            names = sorted(name for name in os.listdir(folder or ".") if name.endswith((".dist-info", ".egg-info")))
        except OSError:
            continue
        for name in names:
            try:
                yield Path(folder, name, "entry_points.txt").read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue


def _entries(text: str, group: str) -> Iterator[Entry]:
    """The entries of one group; the format is sections in brackets with lines ``name = value``."""
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line == f"[{group}]"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield Entry(name.strip(), value.strip())
