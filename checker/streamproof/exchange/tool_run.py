"""Running an external tool, Spin or TLC, in a folder, and its results in our terms."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Generic, NamedTuple, TypeVar

from streamproof.base.errors import Exit, StreamproofError, SystemFailure
from streamproof.system.model import Kind
from streamproof.system.verdict import Trace, Verdict

Report = TypeVar("Report")


class Refuted(StreamproofError):
    """A behaviour of a tool that the interpreter rejects: a defect of the tool, the export or the interpreter."""

    exit_code = Exit.DISAGREE


class ToolCounts(NamedTuple, Generic[Report]):
    """Counts of a tool, in our terms, with its own `report`.

    They are comparable if the search is not `truncated` and found no `mistake` of the model.
    """

    distinct: int
    generated: int
    depth: int | None
    """Levels, the initial one being 1; None after a depth-first search."""
    mistake: int | None
    """The level of the first state (depth first: of some state) with a model error."""
    truncated: str | None
    """Why the search is incomplete; None if it is complete."""
    report: Report


class ToolVerdict(NamedTuple):
    """A tool's verdict for one property.

    `length`: the number of states of the behaviour that shows it, if that is shortest; None for infinite behaviours and after
    a depth-first search. `trace`: that behaviour, of TLC; if a finite one already violates a temporal property, it is that
    one, without a loop.
    """

    property: str
    kind: Kind
    verdict: Verdict
    length: int | None = None
    trace: Trace | None = None
    because: str = ""
    """Why the tool does not decide it."""


@contextmanager
def folder_with(files: Mapping[str, str], folder: Path | None) -> Iterator[Path]:
    """A folder, `folder` or a temporary one, with these files. Raises `SystemFailure` if they cannot be written."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="streamproof-") as place, folder_with(files, Path(place)) as found:
            yield found
        return
    try:
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SystemFailure(f"{folder} cannot be written: {error.strerror or error}") from error
    yield folder


def printed(command: Sequence[str], folder: Path, seconds: float, tool: str = "") -> Iterator[str]:
    """The output of a command, line by line; `tool` is its name in messages.

    Raises `SystemFailure` if it cannot be started, or exceeds the time limit.
    """
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise SystemFailure(f"{command[0]} cannot be started: {error.strerror or error}") from error
    assert process.stdout is not None
    timer = Timer(seconds, process.kill)
    timer.start()
    try:
        for line in process.stdout:
            yield line.rstrip("\n")
        late = not timer.is_alive()
    finally:
        timer.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
    if late:
        raise SystemFailure(f"{tool or command[0]} did not finish within {seconds:g} s")
