"""``streamproof`` and ``python -m streamproof``."""

import atexit
import gc
import os
import sys
from contextlib import suppress
from typing import NoReturn

GARBAGE = 100_000
"""Objects that may be made before Python looks for cyclic garbage: what a start makes stays, and is not worth a look."""


def main() -> int:
    """Run the command line; returns the exit code."""
    gc.set_threshold(GARBAGE)
    from streamproof.cli.app import run

    return run(sys.argv[1:])


def program() -> NoReturn:
    """Run the command line and leave, with its exit code.

    What was written is flushed and what asked to be called at the end is called; the memory goes back as a whole. Python
    would take everything apart first, which is a tenth of a short run.
    """
    code = main()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    program()
