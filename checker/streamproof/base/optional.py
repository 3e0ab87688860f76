"""Packages that a plain installation does not have."""

from __future__ import annotations

from importlib.util import find_spec

from streamproof.base.errors import SystemFailure


def expect_pyarrow(purpose: str, extra: str = "parquet") -> None:
    """Raises `SystemFailure`, which names the `extra` with pyarrow, if it is not installed."""
    if find_spec("pyarrow") is None:
        raise SystemFailure(f"{purpose} requires pyarrow", remedy=f"pip install 'streamproof[{extra}]'")
