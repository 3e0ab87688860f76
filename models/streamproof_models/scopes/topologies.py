"""The catalogue of scoped graphs by name: job graphs with loops on which coordination protocols are judged.

Figures are those of FLIP-15. Loops are called by capitals, operators by small letters; the head of a loop is the operator
that its feedback edges lead to.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streamproof_models.scopes.graph import ScopedGraph, ScopeError
from streamproof_models.scopes.text import parse, parse_unchecked

NAMED: Mapping[str, str] = MappingProxyType(
    {
        # no loop
        "acyclic": "a b c d; a>b a>c b>d c>d",
        # one loop
        "self-loop": "a L:b; a>b; b~b",
        "loop": "a L:b L:c; a>b b>c; c~b",
        "alignment": "a L:b L:t c; a>b b>t b>c; t~b",  # fig. 1
        "late-entry": "a m L:b; a>m m>b; b~b",
        "two-entries": "a d L:b L:c; a>b d>b b>c; c~b",
        "diamond": "a L:b L:c L:d L:e; a>b b>c b>d c>e d>e; e~b",
        "two-returns": "a L:b L:c; a>b b>c; b~b c~b",
        "two-tails": "a L:b L:c L:d; a>b b>c b>d; c~b d~b",
        "two-exits": "a L:b L:c L:d e; a>b b>c c>d c>e d>e; d~b",
        "side-branch": "a L:b L:c L:d; a>b b>c b>d; c~b",
        "bypass": "a L:b L:c d; a>b a>d b>c c>d; c~b",
        # several loops, side by side
        "sequential": "a L:b M:c d; a>b b>c c>d; b~b c~c",
        "siblings": "a L:b L.M:c L.N:d L:e; a>b b>c b>d c>e d>e; c~c d~d e~b",
        "in-turn": "a L:b L.M:c L.N:d; a>b b>c c>d; c~c d~b d~d",
        # loops in loops
        "nested": "a L:b L.M:c L.M:d L:e f; a>b b>c c>d d>e e>f; d~c e~b",  # fig. 2
        "nested-small": "a L:b L.M:c; a>b b>c; c~b c~c",
        "nested-leaving": "a L:b L.M:c L.M:d e; a>b b>c c>d d>e; c~c d~b",
        "nested-side": "a L:b L:c L.M:d; a>b b>c b>d; c~b d~d",
        "deep": "a L:b L.M:c L.M.N:d; a>b b>c c>d; d~b d~c d~d",
        # parallel subtasks
        "parallel": "a L:b*2 L:c; a>>b b>>c; c~~b",
        "parallel-self-loop": "a L:b*2; a>>b; b~~b",
        "parallel-pointwise": "a L:b*2; a>>b; b~b",
        "parallel-nested": "a L:b L.M:c*2; a>b b>>c; c~~b c~~c",
    }
)
"""Every scoped graph of the catalogue by name, as text."""

UNSCOPED = "a L:b L.M:c d; a>b a>d b>c c>d; c~b d~c"
"""A graph that the Loops API rejects and the earlier API allowed: M begins in L and closes outside it."""


def topology(text: str) -> ScopedGraph:
    """The graph with that name, or the graph described by the text; raises `ScopeError`."""
    if text == "unscoped":
        return parse_unchecked(UNSCOPED)
    if text in NAMED:
        return parse(NAMED[text])
    if not any(mark in text for mark in ";>: "):
        raise ScopeError(
            f"unknown topology {text!r}; known are {', '.join(sorted(NAMED))}, and graphs as text: {NAMED['loop']!r}"
        )
    return parse(text)
