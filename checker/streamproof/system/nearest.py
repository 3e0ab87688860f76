"""The names that somebody probably meant who wrote one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable

CLOSE = 0.15
"""How much less alike than the best name another one may be that is offered beside it."""


def nearest(name: str, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Up to `most` of the names `known` that are like `name`, the best first; `cutoff` is how alike, from 0 to 1."""
    import difflib  # only mistakes need it

    return difflib.get_close_matches(name, list(known), n=most, cutoff=cutoff)


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """The question ``did you mean failover?`` with up to three names, each after `prefix`, or nothing."""
    names = list(known)
    near = nearest(name, names, 3, cutoff=0.6)
    if near:
        import difflib

        alike = [difflib.SequenceMatcher(None, n, name).ratio() for n in near]
        near = [n for n, ratio in zip(near, alike, strict=True) if ratio >= alike[0] - CLOSE]
    near += [n for n in names if name and name in n and n not in near][: 3 - len(near)]
    return f"did you mean {' or '.join(prefix + n for n in near)}?" if near else ""
