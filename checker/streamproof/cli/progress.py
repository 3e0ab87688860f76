"""Status lines on the terminal; no output if standard error is not a terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

from streamproof.system.foreign import inner, visible
from streamproof.system.verdict import Progress

if TYPE_CHECKING:
    from streamproof.symbolic import Effort


class Status:
    """A status line: each call replaces its text, and the end of the block removes it."""

    def __init__(self, *, live: bool = True) -> None:
        self._live = live and sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        """Show `text`."""
        if self._live:
            import shutil  # for a terminal only, as its import is slow

            width = shutil.get_terminal_size().columns
            inner(sys.stderr).write(f"\r\x1b[2K{visible(text)[: max(width - 1, 1)]}")
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
    """Shows the progress of an engine: counts of states or a solver's effort. Close it before other output."""

    def __init__(self) -> None:
        from streamproof.report.console import ProgressPrinter

        self._states = ProgressPrinter()
        self._status = Status()

    def __call__(self, progress: Progress | Effort) -> None:
        """Show the progress."""
        if isinstance(progress, Progress):
            self._states(progress)
        else:
            self._status(effort_text(progress))

    def close(self) -> None:
        """Remove the status line."""
        self._states.close()
        self._status.clear()


def effort_text(effort: Effort, later: float = 0.0) -> str:
    """One line about the solver's effort, `later` seconds after it was reported."""
    return (
        f"{effort.elapsed + later:.0f} s: {effort.doing}, depth {effort.depth}, {effort.queries} queries, "
        f"{effort.undecided} undecided"
    )
