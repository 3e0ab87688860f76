"""A model as it was at a commit: its files are taken from git, and read in a process of their own.

The folder of the commit takes the place of the working tree in the import path of that process, so that the model, its
neighbours and packages installed from the tree are those of the commit.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from streamproof.base.errors import Exit, InputError, StreamproofError, SystemFailure, UsageError
from streamproof.base.processes import can_fork, in_processes
from streamproof.base.records import dataclass, replace
from streamproof.selection import Selection
from streamproof.system.model import System, parameter_json


@dataclass(frozen=True, slots=True)
class ReadSystem:
    """A system that was read, and the extent of its comparison with plain Python."""

    system: System
    compared: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Failed:
    """An error of reading the model of a commit."""

    message: str
    remedy: str
    exit_code: int


class ErrorAtBase(StreamproofError):
    """An error of the model at the commit; its exit code is that of the error."""

    def __init__(self, message: str, remedy: str, exit_code: int) -> None:
        self.exit_code = Exit(exit_code)
        super().__init__(message, remedy=remedy)


def read_at(revision: str, model: str, select: Callable[[str], Selection]) -> ReadSystem:
    """The system that `select` chooses for the text of a model, at a commit of the repository of the working folder.

    Raises `UsageError` without a repository, for an unknown commit, and for a model that is not part of it; `ErrorAtBase` for
    an error of the model there; `SystemFailure` without git.
    """
    if not can_fork():
        raise SystemFailure("the model of a commit needs a process of its own", remedy="end the threads of this one")
    top = Path(_git("rev-parse", "--show-toplevel").decode().rstrip("\n"))
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}", revision=revision)
    with TemporaryDirectory(prefix="streamproof-base-") as folder:
        root = Path(os.path.realpath(folder))
        archive = _git("-C", str(top), "archive", "--format=tar", commit.decode().strip())
        # A commit without files is a tar file without members, which cannot be opened.
        with suppress(tarfile.ReadError), tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as files:
            files.extractall(root, filter="data")
        here = root / Path(os.path.realpath(os.getcwd())).relative_to(os.path.realpath(top))
        text = _within(model, top, root, revision)

        def read(_: None) -> ReadSystem | _Failed:
            return _read(root, Path(os.path.realpath(top)), here, revision, lambda: select(text))

        for _, outcome in in_processes(read, [None], 1, f"model at {revision}"):
            match outcome:
                case ReadSystem():
                    return outcome
                case _Failed(message, remedy, code):
                    raise ErrorAtBase(message, remedy, code)
        raise SystemFailure(
            f"the process that read the model at {revision} ended early", remedy="run it again, or check out the commit"
        )


def _git(*words: str, revision: str = "") -> bytes:
    try:
        done = subprocess.run(["git", *words], capture_output=True, check=False)
    except OSError as error:
        raise SystemFailure(f"git cannot be run: {error.strerror}", remedy="install git") from None
    if done.returncode:
        if revision:
            raise UsageError(f"no commit {revision!r}", remedy="name a branch, a tag or a commit; fetch it if needed")
        said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise UsageError(f"git {words[0]}: {said}", remedy="run it in a git repository that has the model's file")
    return done.stdout


def _within(model: str, top: Path, root: Path, revision: str) -> str:
    """The text of a model with its file in the folder of the commit. Raises `InputError` if the commit has no such file."""
    place, colon, name = (model, "", "") if model.endswith(".py") else model.rpartition(":")
    if not place.endswith(".py"):
        return model
    full = os.path.realpath(place)
    if not full.startswith(os.path.realpath(top) + os.sep):
        raise UsageError(f"{place} is not in the repository {top}", remedy="give a file of the repository")
    there = root / os.path.relpath(full, os.path.realpath(top))
    if not there.is_file():
        raise InputError(f"{place} does not exist at {revision}", remedy="name another commit")
    return f"{there}{colon}{name}"


def _read(root: Path, top: Path, here: Path, revision: str, select: Callable[[], Selection]) -> ReadSystem | _Failed:
    """In the process of its own: the system, with the commit in place of the working tree."""

    def at_commit(text: str) -> str:
        return text.replace(f"{root}{os.sep}", f"{revision}:")

    try:
        if here.is_dir():
            os.chdir(here)
        sys.path[:] = [str(_moved(Path(folder), top, root)) for folder in sys.path]
        loaded = set(sys.modules)
        selection = select()
        system, compared = selection.compared()
        outside = _outside(loaded, root, top, selection)
        if outside:
            return _Failed(
                f"{outside} is that of the working tree, not of {revision}",
                "give the model as a file of the repository, or compare two check-outs",
                Exit.USAGE,
            )
        return ReadSystem(_portable(system), dict(compared.to_json()))
    except StreamproofError as error:
        where = f"{error.loc}: " if error.loc else ""
        return _Failed(
            f"at {revision}: {at_commit(where + error.message)}", at_commit(error.remedy), int(error.exit_code)
        )


def _moved(folder: Path, top: Path, root: Path) -> Path:
    """A folder of the working tree as the same one of the commit, if that has it."""
    full = Path(os.path.realpath(folder))
    if str(folder) and full.is_relative_to(top):
        there = root / full.relative_to(top)
        if there.is_dir():
            return there
    return folder


def _outside(loaded: set[str], root: Path, top: Path, selection: Selection) -> str:
    """A module that the model loaded from the working tree although the commit has its file; empty if there is none."""
    own = sys.modules.get(selection.target.spec.model.__module__)
    found = [module for name, module in list(sys.modules.items()) if name not in loaded]
    for module in [*([] if own is None else [own]), *found]:
        file = getattr(module, "__file__", None)
        name = getattr(module, "__name__", "")
        if not isinstance(file, str) or name.partition(".")[0] == "streamproof":
            continue
        full = Path(os.path.realpath(file))
        if full.is_relative_to(root):
            continue
        if module is own or (full.is_relative_to(top) and (root / full.relative_to(top)).is_file()):
            return f"the module {name}"
    return ""


def _portable(system: System) -> System:
    """The system without values of the model's own classes."""
    parameters = {name: parameter_json(value) for name, value in system.parameters.items()}
    constraint = system.constraint
    if constraint is not None:
        constraint = replace(constraint, free=_portable(constraint.free))
    return replace(system, parameters=parameters, constraint=constraint)


def named_parameters(system: System) -> Mapping[str, Any]:
    """The parameters of a system as JSON data."""
    return {name: parameter_json(value) for name, value in system.parameters.items()}
