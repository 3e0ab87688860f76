"""Peak memory of this process, in bytes."""

from __future__ import annotations

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
