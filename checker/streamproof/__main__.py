"""``streamproof`` and ``python -m streamproof``."""

import atexit
import errno
import gc
import io
import os
import select
import sys
from contextlib import suppress
from typing import Any, NoReturn

LOOK = 0.2
"""Seconds between two looks for an interrupt while nobody reads what is written."""
GARBAGE = 100_000
"""Objects that may be made before Python looks for cyclic garbage: what a start makes stays, and is not worth a look."""


class OwnOutput(io.FileIO):
    """The program's standard output, as long as its number still belongs to it."""

    def __init__(self, handle: int) -> None:
        from streamproof import interrupts

        super().__init__(handle, "w")
        self._interrupts = interrupts
        self._file = interrupts.identity(handle)

    def write(self, data: Any, /) -> int:
        """Write bytes, as many as fit, once whoever reads them has room.

        Raises `OSError` when a model has closed the file, and its number is another file's, and `BrokenPipeError` when
        nobody reads in a run that was interrupted.
        """
        if self._interrupts.identity(self.fileno()) != self._file:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        while not select.select([], [self], [], LOOK)[1]:
            if self._interrupts.requested():
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        return super().write(memoryview(data)[: select.PIPE_BUF])


def main() -> int:
    """Run the command line; returns the exit code."""
    gc.set_threshold(GARBAGE)
    from streamproof.cli.app import run

    return run(sys.argv[1:])


def program() -> NoReturn:
    """Run the command line, in a process that another one watches, and leave with its exit code.

    What was written is flushed and what asked to be called at the end is called; the memory goes back as a whole. Python
    would take everything apart first, which is a tenth of a short run.
    """
    from streamproof.supervisor import supervised

    _open_streams()
    os._exit(supervised(_work))


def _work() -> NoReturn:
    from streamproof import interrupts

    # Standard output is for answers alone: what a model, or a program that it starts, writes goes to standard error.
    answers = os.dup(1)
    os.dup2(2, 1)
    written = io.BufferedWriter(OwnOutput(answers))
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    sys.stdout = io.TextIOWrapper(written, encoding, errors, line_buffering=os.isatty(answers))
    try:
        code = main()
    except SystemExit as end:  # the completion of shells ends this way
        code = end.code if isinstance(end.code, int) else 0
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    interrupts.finished(code)
    answered, sys.stdout = sys.stdout, sys.stderr
    atexit._run_exitfuncs()
    for stream in (answered, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _open_streams() -> None:
    """Give the program the standard streams that whoever started it has closed: input is empty, messages get lost, and
    output ends the program as a pipe does that nobody reads."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(_as(0, os.open(os.devnull, os.O_RDONLY)), encoding="utf-8")
    if sys.stdout is None:
        reading, writing = os.pipe()
        sys.stdout = os.fdopen(_as(1, writing), "w", encoding="utf-8")
        if reading != 1:
            os.close(reading)
    if sys.stderr is None:
        sys.stderr = os.fdopen(_as(2, os.open(os.devnull, os.O_WRONLY)), "w", encoding="utf-8")


def _as(number: int, file: int) -> int:
    """Make an open file the one with that number."""
    if file != number:
        os.dup2(file, number)
        os.close(file)
    return number


if __name__ == "__main__":
    program()
