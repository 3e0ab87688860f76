"""How much memory this process uses, in bytes."""

from __future__ import annotations

import os
from pathlib import Path

from streamproof.system.memory import peak_bytes


def resident_bytes() -> int:
    """The resident memory now; the peak where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return peak_bytes()
    return pages * os.sysconf("SC_PAGE_SIZE")


def size_text(count: int) -> str:
    """Bytes as people read them, in powers of 1000: ``45 MB``."""
    if count < 1000:
        return f"{count} B"
    size = float(count)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 999.5:
            return f"{size:.3g} {unit}"
    return f"{size / 1000:.3g} TB"
