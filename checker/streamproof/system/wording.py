"""Numbers in sentences."""

from __future__ import annotations


def number_of(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun, in the singular for one: `1 step`, `2,000 steps`; `many` is an irregular plural."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
