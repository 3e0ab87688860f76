"""Memory sizes in text form: 500MB, 4GB, 4GiB."""

from __future__ import annotations

import re

from streamproof.system.errors import UsageError

UNITS = {
    "": 1, "B": 1,
    "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
    "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40,
}  # fmt: skip
"""Bytes per unit, in capitals; a single letter is a power of two, as for `ulimit` and the Java machine."""
_WRITTEN = {"TB": 10**12, "TiB": 1 << 40, "GB": 10**9, "GiB": 1 << 30, "MB": 10**6, "MiB": 1 << 20, "B": 1}


def parse_bytes(text: str) -> int:
    """The number of bytes in a text such as ``4GB`` or ``1.5 GiB``. Raises `UsageError`."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    unit = UNITS.get(found[2].upper()) if found else None
    amount = int(float(found[1]) * unit) if found and unit else 0
    if amount <= 0:
        raise UsageError(f"{text!r} is not a memory size", remedy="write it as 500MB, 4GB or 4GiB")
    return amount


def bytes_text(amount: int) -> str:
    """The exact text of a size, in the largest unit that divides it."""
    unit = next(name for name, size in _WRITTEN.items() if amount % size == 0)
    return f"{amount // _WRITTEN[unit]}{unit}"


def bytes_about(amount: int) -> str:
    """A readable text of a size: exact for a round one, else with three digits."""
    exact = bytes_text(amount)
    if len(exact.rstrip("BGKMTi")) <= 4:
        return exact
    unit = next((name for name in ("TB", "GB", "MB") if amount >= _WRITTEN[name]), "B")
    return f"{amount / _WRITTEN[unit]:.3g}{unit}"
