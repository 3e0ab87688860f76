"""Output of results: JSON to a file or standard output, traces to a folder, files for continuous integration; status lines.

Foreign files are never replaced. There are no status lines if standard error is not a terminal.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from streamproof import interrupts
from streamproof.base.errors import Loc
from streamproof.base.files import JUNIT, SARIF, Form, answer_form, expect_writable, write
from streamproof.base.options import flag, resident_bytes
from streamproof.base.records import dataclass
from streamproof.base.text import inner, standard_output, visible
from streamproof.report.console import progress_text
from streamproof.system.verdict import Progress

if TYPE_CHECKING:
    from streamproof.symbolic.solver import Effort

STANDARD = "-"


def write_json(document: Any, where: str | None, form: Form | None = None) -> None:
    """Write JSON data to the file `where`, to standard output for ``-``, or nowhere for None.

    The default form is that of its ``schema``.
    """
    if where is None:
        return
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    if where == STANDARD:
        inner(standard_output()).write(text)
    else:
        write(Path(where), text, form or answer_form(document["schema"]))


def people(json_to: str | None) -> TextIO:
    """The stream for text: standard error if standard output has the JSON result."""
    return sys.stderr if json_to == STANDARD else standard_output()


def expect_json_writable(where: str | None, form: Form | str) -> None:
    """Raises `SystemFailure`, before the work begins, if the file of ``--json`` cannot be written.

    `form` is the form of the result, or its schema.
    """
    if where is not None and where != STANDARD:
        expect_writable(Path(where), answer_form(form) if isinstance(form, str) else form)


@dataclass(frozen=True, slots=True)
class CiFiles:
    """The forms of the result for continuous integration. Raises `SystemFailure` for a file that cannot be written."""

    junit: Path | None = flag("Also write the result as JUnit XML.", unit="FILE")
    sarif: Path | None = flag("Also write what does not hold as SARIF 2.1.0.", unit="FILE")
    annotations: bool = flag(
        "Also print a GitHub workflow command for what does not hold, which marks the file and line.", default=False
    )

    def __post_init__(self) -> None:
        for path, form in ((self.junit, JUNIT), (self.sarif, SARIF)):
            if path is not None:
                expect_writable(path, form)

    def write(
        self, document: Mapping[str, Any], json_to: str | None, places: Mapping[str, Loc | None] | None = None
    ) -> None:
        """Writes what the options ask for. `document` is the verb's JSON; `places` has the places of properties."""
        if not (self.junit or self.sarif or self.annotations):
            return
        from streamproof.report.ci_formats import cases, junit, sarif, workflow_commands

        given = list(cases(document, places or {}))
        if self.junit:
            write(self.junit, junit(document["schema"].partition("/")[0].replace(".", " "), given), JUNIT)
        if self.sarif:
            write(self.sarif, sarif(document["version"], given), SARIF)
        if self.annotations:
            for text in workflow_commands(given):
                inner(people(json_to)).write(text + "\n")  # texts that look like such commands are changed elsewhere


def is_live() -> bool:
    """Whether standard error is a terminal that understands escape sequences."""
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")


class Status:
    """A status line: each call replaces its text, and the end of the block removes it."""

    def __init__(self, *, live: bool = True) -> None:
        self._live = live and is_live()

    def __call__(self, text: str) -> None:
        """Show `text`."""
        interrupts.known(visible(text))
        if self._live:
            import shutil  # for a terminal only, as its import is slow

            width = shutil.get_terminal_size().columns
            inner(sys.stderr).write(f"{interrupts.how_to_end()}\r\x1b[2K{visible(text)[: max(width - 1, 1)]}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line, so that the next output starts on a clean line."""
        if self._live:
            inner(sys.stderr).write("\r\x1b[2K")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.clear()


class EngineProgress:
    """Shows the progress of an engine: counts of states or a solver's effort. Close it before other output.

    Counts are shown once a second in place on a terminal, otherwise in one line per minute. Rates are measured since the
    previous line of the same stage.
    """

    def __init__(self) -> None:
        self._status = Status()
        self._live = is_live()
        self._printed = time.monotonic()
        self._before: dict[str, Progress] = {}

    def __call__(self, progress: Progress | Effort) -> None:
        """Show the progress; counts if the last line is old enough."""
        if not isinstance(progress, Progress):
            self._status(effort_text(progress))
            return
        now = time.monotonic()
        if now - self._printed < (1.0 if self._live else 60.0):
            return
        before = self._before.get(progress.stage, Progress(0.0, 0, 0, 0, 0))
        text = progress_text(progress, before, resident_bytes())
        self._printed, self._before[progress.stage] = now, progress
        if self._live:
            self._status(text)
        else:
            sys.stderr.write(f"{interrupts.how_to_end()}{text}\n")
            sys.stderr.flush()

    def close(self) -> None:
        """Remove the status line."""
        self._status.clear()


def effort_text(effort: Effort, later: float = 0.0) -> str:
    """One line about the solver's effort, `later` seconds after it was reported."""
    return (
        f"{effort.elapsed + later:.0f} s: {effort.doing}, depth {effort.depth}, {effort.queries} queries, "
        f"{effort.undecided} undecided"
    )
