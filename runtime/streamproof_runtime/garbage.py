"""Garbage collection of a run: its records and events are many, live long, and have no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 100_000
"""New objects before the collector looks for cycles among them; Python's default is 700."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Looks for cycles rarely."""
    first, *others = gc.get_threshold()
    gc.set_threshold(max(first, YOUNG) if first else 0, *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)
