"""Imports and working folder of a model: access to the modules beside it.

A folder on `sys.path` serves every import of the process: streamproof and its libraries try to import modules that may
be missing (`msvcrt`, a solver that is not installed), and would run a file of that name. Therefore only imports by the
model and its neighbours find modules beside it, after all installed ones.
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
"""Modules that import on behalf of others: Python's import machinery, and the one that makes calls for a model in
proofs for every size."""


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
