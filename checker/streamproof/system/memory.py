"""Memory sizes: current and peak memory of this process, and memory of the machine, in bytes."""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress
from pathlib import Path


def peak_bytes() -> int:
    """The largest resident memory of this process so far.

    Linux's `ru_maxrss` is inherited by a child process, however small it is; `VmHWM` is not.
    """
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident_bytes() -> int:
    """The current memory of this process; 0 if the operating system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory_of_machine() -> int | None:
    """The memory available to this process: the machine's, or the limit of its container."""
    known: list[int] = []
    with suppress(OSError, ValueError):
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            known.append(int(Path(limit).read_text()))
    return min(known, default=None)
