"""The names that somebody probably meant who wrote one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Up to `most` of the names `known` that are like `name`, the best first; `cutoff` is how alike, from 0 to 1."""
    import difflib  # only mistakes need it

    return difflib.get_close_matches(name, list(known), n=most, cutoff=cutoff)
