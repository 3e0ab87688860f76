"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable

CLOSE = 0.15
"""Largest difference in similarity to the best suggestion at which another one is offered beside it."""


def nearest(name: str, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """The names in `known` closest to `name`, best first, at most `most`; `cutoff` is the least similarity, from 0 to 1."""
    import difflib  # imported on demand: only errors need it

    return difflib.get_close_matches(name, list(known), n=most, cutoff=cutoff)


def suggest(name: str, known: Iterable[str], otherwise: str) -> str:
    """A remedy: ``did you mean 'failover'?`` for the closest public name in `known`; `otherwise` if no name is close."""
    found = nearest(name, (n for n in known if not n.startswith("_")))
    return f"did you mean {found[0]!r}?" if found else otherwise


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """``did you mean failover?`` with up to three names, each after `prefix`; "" if no name is close."""
    names = list(known)
    near = nearest(name, names, 3, cutoff=0.6)
    if near:
        import difflib

        alike = [difflib.SequenceMatcher(None, n, name).ratio() for n in near]
        near = [n for n, ratio in zip(near, alike, strict=True) if ratio >= alike[0] - CLOSE]
    near += [n for n in names if name and name in n and n not in near][: 3 - len(near)]
    return f"did you mean {' or '.join(prefix + n for n in near)}?" if near else ""
