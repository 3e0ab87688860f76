"""Phrases shared by several reports."""

from __future__ import annotations


def number_of(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun, in the singular for one: `1 step`, `2,000 steps`; `many` is an irregular plural."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def lasso_text(stem: int, cycle: int, *, fair: bool) -> str:
    """An infinite behaviour by the steps of its stem and of its cycle; a cycle of 0 steps stutters in its last state."""
    rest = f"cycle of {cycle:,}" if cycle else "then stuttering"
    return f"{'fair lasso' if fair else 'lasso'}: stem of {number_of(stem, 'step')}, {rest}"
