"""How much memory this process uses, and has used at most, in bytes."""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress
from pathlib import Path


def peak_bytes() -> int:
    """The largest resident memory of this process so far.

    Linux's `ru_maxrss` is inherited by the program that a process starts, however small that is; `VmHWM` is not.
    """
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident_bytes() -> int:
    """The resident memory now; the peak where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return peak_bytes()
    return pages * os.sysconf("SC_PAGE_SIZE")
