"""``check --watch``: the check again whenever a file that the model consists of is saved with other content.

Each run is a fork of this process, which has loaded the program and nothing of the user: a run reads all files of the model
again, and a start costs nothing. Files are compared by content, byte code of the user's modules is neither read nor written:
neither knows two edits within one tick of the clock.
"""

from __future__ import annotations

import errno
import gc
import hashlib
import importlib
import json
import os
import signal
import sys
import sysconfig
import time
from collections.abc import Iterable
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
from pathlib import Path
from typing import Any, NoReturn

import streamproof
from streamproof.base.errors import UsageError
from streamproof.base.text import inner, standard_output, visible
from streamproof.cli.verbs import BROKEN_PIPE, run
from streamproof.supervisor import finish, supervised

PAUSE = 0.1
"""Interval between two looks at the files, in seconds."""
INSTALLED = tuple(
    {os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
"""Folders of files that no user edits."""
OURS = os.path.dirname(os.path.realpath(streamproof.__file__)) + os.sep
Content = dict[str, str | None]
"""The digest of each file and folder, None for one that does not exist."""


def watch(model: str, words: list[str]) -> NoReturn:
    """Runs the program with `words` now, and again after each change of a Python file that the last run read, or of the list
    of those in the folder of the model and in those where it looked for modules, until Ctrl-C.

    Raises `UsageError` for a model without a file. One that is deleted later may come back: editors replace files.
    """
    place = model if model.endswith(".py") else model.rpartition(":")[0]
    if not place.endswith(".py"):
        raise UsageError("--watch needs the file of a model", remedy="give file.py, or file.py:Name")
    if not Path(place).is_file():
        raise UsageError(f"{place} does not exist", remedy="check the path")
    folder, read = os.path.realpath(Path(place).parent), Content()
    while True:
        before = _now(dict.fromkeys([folder, *_beside(folder), *read]))
        report = _run(words)
        # A file that was known is compared with its content before the run, another one with what the run read. One that has
        # changed meanwhile may have been missing when the run looked for it.
        seen = report.get("read", before)
        kept = {name: digest for name, digest in before.items() if name in (folder, *seen) or _digest(name) != digest}
        read = {**seen, **kept}
        sys.stderr.write(f"streamproof: watching {visible(str(Path(place).parent))}; Ctrl-C ends\n")
        sys.stderr.flush()
        _prepare(report.get("modules", ()))
        while _now(read) == read:
            time.sleep(PAUSE)


def _beside(folder: str | Path) -> list[str]:
    """The Python files of a folder, without the hidden ones of editors."""
    with suppress(OSError), os.scandir(folder) as entries:
        names = [entry.path for entry in entries if entry.name.endswith(".py") and not entry.name.startswith(".")]
        return sorted(map(os.path.realpath, names))
    return []


def _now(names: Iterable[str]) -> Content:
    """The content of files and folders."""
    return {name: _digest(name) for name in names}


def _digest(name: str) -> str | None:
    """The digest of a file, or of the list of the Python files of a folder; None if there is none."""
    try:
        text = json.dumps(_beside(name)).encode() if os.path.isdir(name) else Path(name).read_bytes()
        return hashlib.blake2b(text).hexdigest()
    except OSError:
        return None


def _prepare(modules: Iterable[str]) -> None:
    """Loads what the last run loaded of the program, for the next ones."""
    for name in modules:
        importlib.import_module(name)
    gc.freeze()


def _run(words: list[str]) -> dict[str, Any]:
    """One run in a process of its own; its files and modules, or nothing if it was killed. Raises `BrokenPipeError` if nobody
    reads what it prints."""
    standard_output().flush()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        os._exit(supervised(lambda: finish(lambda: _check(words, writing))))
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as stream:
            text = stream.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except KeyboardInterrupt:
        os.kill(child, signal.SIGINT)  # it prints what it has found so far
        os.waitpid(child, 0)
        raise
    if code == BROKEN_PIPE:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
    return json.loads(text) if text else {}


def _check(words: list[str], report: int) -> int:
    """One run; reports which files of the user it read, as it read them, and which modules of the program."""
    sys.argv, sys.stdout = [sys.argv[0], *words], inner(standard_output())
    read, known = Content(), set(sys.modules)

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("open", "os.listdir") or not isinstance(arguments[0], str | os.PathLike):
            return
        if event == "os.listdir" or str(arguments[0]).endswith(".py"):
            name = os.path.realpath(str(arguments[0]))
            if name not in read and not (name + os.sep).startswith((*INSTALLED, OURS)):
                read[name] = None  # reading it here is such an event, too
                read[name] = _digest(name)

    sys.addaudithook(note)
    sys.path_hooks.insert(0, _fresh)
    sys.path_importer_cache.clear()
    try:
        return run(words)
    finally:
        modules = [name for name in sys.modules if name not in known and name.partition(".")[0] == "streamproof"]
        with suppress(OSError), os.fdopen(report, "w") as stream:
            json.dump({"read": read, "modules": modules}, stream)


class _FreshLoader(SourceFileLoader):
    """Compiles each file; byte code on disk is for the size of a file and the second of its change."""

    def path_stats(self, path: Any) -> NoReturn:
        """Without a time there is no byte code."""
        raise OSError


def _fresh(path: str) -> Any:
    """Finds the user's modules. Raises `ImportError` for folders of the program and of installed packages."""
    where = os.path.realpath(path) + os.sep
    if where.startswith((*INSTALLED, OURS)):
        raise ImportError
    return FileFinder.path_hook((ExtensionFileLoader, EXTENSION_SUFFIXES), (_FreshLoader, SOURCE_SUFFIXES))(path)
