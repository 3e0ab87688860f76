"""What installed packages register under a group of entry points, read without the machinery that installs packages.

`importlib.metadata` answers the same question and takes longer to import than a small model takes to check; it is asked
where the folders that Python imports from do not tell, as for packages inside an archive.
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
"""The group in which bindings of recorded runs register, each under the name of its model."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An object that a package registers: its name, and where it is, ``package.module:Name``."""

    name: str
    value: str

    def load(self) -> Any:
        """The object; raises whatever importing it raises."""
        module, _, path = self.value.partition("[")[0].strip().partition(":")
        found: Any = importlib.import_module(module.strip())
        for part in filter(None, path.strip().split(".")):
            found = getattr(found, part)
        return found


def quick(group: str, name: str) -> Entry | None:
    """What is registered as `name`, if the package lies in a folder that Python imports from."""
    for text in _listings():
        for entry in _entries(text, group):
            if entry.name == name:
                return entry
    return None


def every(group: str) -> dict[str, Entry]:
    """All that is registered, by name, in alphabetical order."""
    from importlib.metadata import entry_points

    return {e.name: Entry(e.name, e.value) for e in sorted(entry_points(group=group), key=lambda e: e.name)}


def _listings() -> Iterator[str]:
    """The files ``entry_points.txt`` of what is installed."""
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
    """The entries of one group; the file has sections in brackets and lines ``name = value``."""
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line == f"[{group}]"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield Entry(name.strip(), value.strip())
