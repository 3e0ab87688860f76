"""What belongs to a model: the modules beside it, and its working folder.

A folder on `sys.path` serves every import of the process: streamproof and its libraries look for modules that are not
there (`msvcrt`, a solver that is not installed), and would run a file of that name. So only the model's own imports, and
those of its neighbours, find what is beside it, after everything that is installed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_MACHINERY = re.compile(
    r"(importlib|_frozen_importlib|_frozen_importlib_external)(\.|$)|streamproof\.language\.guarded$"
)
"""Modules through which others import: Python's, and the one that makes calls for a model in proofs for every value."""


class _Neighbours:
    """A finder of `sys.meta_path`: the modules of a folder, for those of them that are known to it, by their names."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.names: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where a module is, if it is here, and one of the folder's modules asks for it."""
        if path is not None or not {name, _importer()} & self.names:
            return None
        found = PathFinder.find_spec(name, [self.folder])
        if found is not None:
            self.names.add(name)
        return found


def _importer() -> str:
    """The top-level name of the module that asks for another one."""
    frame = sys._getframe(2)
    while frame.f_back is not None and _MACHINERY.match(str(frame.f_globals.get("__name__"))):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def admit(name: str, folder: str) -> None:
    """Let the module `name`, and what it imports from there, find modules in a folder, after all that are installed."""
    known = (finder for finder in sys.meta_path if isinstance(finder, _Neighbours) and finder.folder == folder)
    finder = next(known, None) or _Neighbours(folder)
    finder.names.add(name.partition(".")[0])
    if finder not in sys.meta_path:
        sys.meta_path.append(finder)


_folders: dict[str, str] = {}
"""The working folders of models that have changed theirs."""


@contextmanager
def working_folder(model: str, *, again: bool = True) -> Iterator[None]:
    """The block is code of a model, which may change the working folder for itself, and for none of streamproof's files.

    It has the folder that an earlier block of the model has changed to, if it is not the first one.
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
