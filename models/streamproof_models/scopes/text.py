"""The text of scoped graphs: ``a L:b L:c d; a>b b>c c>d; c~b``."""

from __future__ import annotations

import re

from streamproof_models.scopes.graph import ROOT, Edge, Operator, Pattern, ScopedGraph, ScopeError, StreamScope
from streamproof_models.scopes.rules import validate

_NAME = r"[A-Za-z0-9_]+"
_OPERATOR = re.compile(rf"(?:(?P<scope>{_NAME}(?:\.{_NAME})*):)?(?P<name>{_NAME})(?:\*(?P<parallelism>[0-9]+))?")
_EDGE = re.compile(rf"(?P<source>{_NAME})(?P<arrow>>[>=]?|~~?)(?P<target>{_NAME})")


_PATTERNS = {
    "": Pattern.POINTWISE,
    ">": Pattern.ALL_TO_ALL,
    "~": Pattern.ALL_TO_ALL,
    "=": Pattern.RESCALE,
}


def parse(text: str) -> ScopedGraph:
    """The graph described by a text, checked by `validate`.

    Three sections between semicolons, each a list of words: operators (``name``, ``LOOP.LOOP:name``, ``name*2`` for two
    subtasks), edges (``a>b``, ``a>>b`` all-to-all, ``a>=b`` rescaled) and feedback edges (``c~b``, ``c~~b`` all-to-all).
    Raises `ScopeError`.
    """
    return validate(parse_unchecked(text))


def parse_unchecked(text: str) -> ScopedGraph:
    """The graph described by a text, without `validate`; raises `ScopeError` for a syntax error."""
    sections = [section.split() for section in text.split(";")]
    if len(sections) > 3:
        raise ScopeError(f"{text!r} has {len(sections)} sections; there are operators; edges; feedback edges")
    operators, edges, feedback = (*sections, [], [], [])[:3]
    return ScopedGraph(
        tuple(_operator(word) for word in operators),
        tuple(_edge(word, ">", "edges, the second section") for word in edges),
        tuple(_edge(word, "~", "feedback edges, the third section") for word in feedback),
    )


def _operator(word: str) -> Operator:
    if (found := _OPERATOR.fullmatch(word)) is None:
        raise ScopeError(
            f"{word!r} among the operators, the first section, is not of the form LOOP.LOOP:name*parallelism"
        )
    scope = StreamScope(tuple((found["scope"] or "").split("."))) if found["scope"] else ROOT
    return Operator(found["name"], scope, int(found["parallelism"] or 1))


def _edge(word: str, arrow: str, where: str) -> Edge:
    found = _EDGE.fullmatch(word)
    if found is None or found["arrow"][0] != arrow:
        raise ScopeError(f"{word!r} among the {where}, is not of the form a{arrow}b or a{arrow}{arrow}b")
    return Edge(found["source"], found["target"], _PATTERNS[found["arrow"][1:]])
