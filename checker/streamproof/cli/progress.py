"""One line on the terminal about what is being done; nothing where standard error is no terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from streamproof.system.foreign import inner, visible


class Status:
    """Call it with a line of text; each replaces the one before, and the last is removed at the end of the block."""

    def __init__(self, *, live: bool = True) -> None:
        self._live = live and sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        """Show `text`."""
        if self._live:
            import shutil  # for a terminal only: it takes as long to import as ten of our modules

            width = shutil.get_terminal_size().columns
            inner(sys.stderr).write(f"\r\x1b[2K{visible(text)[: max(width - 1, 1)]}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line, so that what is written next starts on a clean one."""
        if self._live:
            inner(sys.stderr).write("\r\x1b[2K")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.clear()
