"""``streamproof`` and ``python -m streamproof``."""

# ruff: noqa: E402 -- until the supervisor has its handlers, Ctrl-C ends the program here, also while modules are loaded

import _signal  # type: ignore[import-not-found]  # what `signal` is made of: like the others here it is loaded at once
import os
import sys


def _interrupted(number: int, frame: object) -> None:
    os.write(2, b"streamproof: error: interrupted\n")
    os._exit(130)


if (__name__ == "__main__" or os.path.basename(sys.argv[0]) == "streamproof") and (
    _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler  # a caller may have it ignored
):
    _signal.signal(_signal.SIGINT, _interrupted)

import errno
import gc
import io
import select
from typing import Any, NoReturn

LOOK = 0.2
"""Interval between two checks for an interrupt while a pipe is full, in seconds."""
GARBAGE = 100_000
"""Number of new objects before a garbage collection: the objects of the start-up stay alive."""
BLAS_THREADS = "OPENBLAS_NUM_THREADS"
"""Environment variable that NumPy's linear algebra reads when it is loaded. Nothing here uses its threads, which wait for
work in a loop: 0.06 s of processor time in a short run."""


class OwnOutput(io.FileIO):
    """The program's standard output; checks that the file descriptor still refers to the same file."""

    def __init__(self, handle: int) -> None:
        from streamproof import interrupts

        super().__init__(handle, "w")
        self._interrupts = interrupts
        self._file = interrupts.identity(handle)

    def write(self, data: Any, /) -> int:
        """Write as many bytes as fit, once the reader has room.

        Raises `OSError` if a model has closed the file and its descriptor refers to another file, and `BrokenPipeError` if
        the reader does not read in an interrupted run.
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
    from streamproof.cli.verbs import run

    return run(sys.argv[1:])


def program() -> NoReturn:
    """Run the command line in a supervised process, and exit with its exit code.

    Flushes output and runs atexit functions, then exits without Python's finalisation, which would take a tenth of a short
    run.
    """
    from streamproof.supervisor import supervised

    _open_streams()
    os._exit(supervised(_work))


def _work() -> NoReturn:
    from streamproof.supervisor import finish

    # Standard output is for results only: output of a model, or of a program that it starts, goes to standard error.
    answers = os.dup(1)
    os.dup2(2, 1)
    written = io.BufferedWriter(OwnOutput(answers))
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    sys.stdout = io.TextIOWrapper(written, encoding, errors, line_buffering=os.isatty(answers))
    os.environ.setdefault(BLAS_THREADS, "1")
    finish(main)


def _open_streams() -> None:
    """Open standard streams that the parent process has closed: empty input, discarded messages, and output that behaves like
    a broken pipe."""
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
    """Move an open file to the descriptor `number`."""
    if file != number:
        os.dup2(file, number)
        os.close(file)
    return number


if __name__ == "__main__":
    program()
