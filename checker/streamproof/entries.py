"""Access to registered and neighbouring code: entry points of installed packages, imports and working folder of a model.

Entry points are read directly from ``entry_points.txt``. `importlib.metadata` takes longer to import than the check of a
small model; it is used only for packages outside of plain folders, such as packages in an archive.

A folder on `sys.path` serves every import of the process: streamproof and its libraries try to import modules that may
be missing (`msvcrt`, a solver that is not installed), and would run a file of that name. Therefore only imports by the
model and its neighbours find modules beside it, after all installed ones.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from streamproof.base.records import dataclass

BINDINGS: Final = "streamproof.bindings"
"""The entry-point group of bindings of recorded runs, by the name of their model, or ``model:kind``."""
BINDINGS_ON_REQUEST: Final = "streamproof.bindings_on_request"
"""The same for bindings that judge runs only if their model is named, or all models are."""
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
    for text in _listings(_import_path()):
        for entry in _entries(text, group):
            if entry.name == name:
                return entry
    return None


def every(group: str) -> dict[str, Entry]:
    """All registered entries by name, in alphabetical order."""
    return dict(_every(group, _import_path()))


@lru_cache(maxsize=16)
def _every(group: str, path: _ImportPath) -> dict[str, Entry]:
    from importlib.metadata import entry_points

    return {e.name: Entry(e.name, e.value) for e in sorted(entry_points(group=group), key=lambda e: e.name)}


_ImportPath = tuple[tuple[str, int], ...]


def _import_path() -> _ImportPath:
    """The folders of the import path with the times of their last change: what is installed there is read once."""
    found: dict[str, int] = {}
    for folder in sys.path:
        with suppress(OSError):
            where = os.path.abspath(folder)
            found[where] = os.stat(where).st_mtime_ns
    return tuple(found.items())


@lru_cache(maxsize=4)
def _listings(path: _ImportPath) -> list[str]:
    """The contents of the files ``entry_points.txt`` of installed packages."""
    found = []
    for folder, _ in path:
        with suppress(OSError):
            for name in sorted(name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info"))):
                with suppress(OSError, UnicodeDecodeError):
                    found.append(Path(folder, name, "entry_points.txt").read_text(encoding="utf-8"))
    return found


def _entries(text: str, group: str) -> Iterator[Entry]:
    """The entries of one group; the format is sections in brackets with lines ``name = value``."""
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line == f"[{group}]"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield Entry(name.strip(), value.strip())


_MACHINERY = re.compile(r"(importlib|_frozen_importlib|_frozen_importlib_external)(\.|$)")
"""Modules that import on behalf of others."""


class _Neighbours:
    """A finder for `sys.meta_path`: the modules of a folder, for imports from the model and its neighbours."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.names: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of the folder, if one of the folder's own modules imports it."""
        if path is not None or not {name, _importer()} & self.names:
            return None
        found = PathFinder.find_spec(name, [self.folder])
        if found is not None:
            self.names.add(name)
        return found


def _importer() -> str:
    """The top-level name of the importing module."""
    frame = sys._getframe(2)
    while frame.f_back is not None and _MACHINERY.match(str(frame.f_globals.get("__name__"))):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def admit(name: str, folder: str) -> None:
    """Lets the module `name`, and modules that it imports from there, import from a folder, after all installed modules."""
    known = (finder for finder in sys.meta_path if isinstance(finder, _Neighbours) and finder.folder == folder)
    finder = next(known, None) or _Neighbours(folder)
    finder.names.add(name.partition(".")[0])
    if finder not in sys.meta_path:
        sys.meta_path.append(finder)


def is_neighbour(name: str) -> bool:
    """Whether a module is the model's own file, or was found in its folder."""
    names = (finder.names for finder in sys.meta_path if isinstance(finder, _Neighbours))
    return any(name.partition(".")[0] in own for own in names)


_folders: dict[str, str] = {}
"""The current working folders of models that have changed theirs."""


@contextmanager
def working_folder(model: str, *, again: bool = True) -> Iterator[None]:
    """Runs a block of model code, whose change of the working folder does not affect streamproof's own files.

    The block starts in the folder to which an earlier block of the same model changed.
    """
    if not again:
        _folders.pop(model, None)
    here = os.open(".", os.O_PATH | os.O_CLOEXEC)
    try:
        with suppress(KeyError, OSError):
            os.chdir(_folders[model])
        yield
    finally:
        if not os.path.samestat(os.stat("."), os.fstat(here)):
            with suppress(OSError):
                _folders[model] = os.getcwd()
            os.fchdir(here)
        os.close(here)
