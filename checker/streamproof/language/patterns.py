"""Patterns for places in a composition: ``flow.pool``, ``lane[0].room``, ``lane[c].push(kind='A')``."""

from __future__ import annotations

import ast
from typing import Any, TypeAlias

from streamproof.system.errors import Loc, ModelError
from streamproof.system.records import dataclass


@dataclass(frozen=True, slots=True)
class Given:
    """A constant index: ``lane[0]``."""

    value: Any


@dataclass(frozen=True, slots=True)
class Named:
    """A parameter of the joint action: ``lane[c]``."""

    name: str


@dataclass(frozen=True, slots=True)
class All:
    """All indices at once: ``lane[:]``."""


Index: TypeAlias = Given | Named | All | None


@dataclass(frozen=True, slots=True)
class Segment:
    """One name of a dotted path, with its index."""

    name: str
    index: Index


@dataclass(frozen=True, slots=True)
class Pattern:
    """A place: its path, and for actions the arguments in parentheses (None: no parentheses)."""

    text: str
    way: tuple[Segment, ...]
    name: str
    args: tuple[tuple[str | None, Given | Named], ...] | None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters in the pattern."""
        found = [s.index.name for s in self.way if isinstance(s.index, Named)]
        return (*found, *(value.name for _, value in self.args or () if isinstance(value, Named)))


def parsed(text: str, loc: Loc | None) -> Pattern:
    """Parses a place. Raises `ModelError` for invalid text."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise _unreadable(text, loc) from None
    args: tuple[tuple[str | None, Given | Named], ...] | None = None
    if isinstance(node, ast.Call):
        by_position = tuple((None, _value(a, text, loc)) for a in node.args)
        args = (*by_position, *((k.arg, _value(k.value, text, loc)) for k in node.keywords))
        node = node.func
    if isinstance(node, ast.Name):
        return Pattern(text, (), node.id, args)
    if not isinstance(node, ast.Attribute):
        raise _unreadable(text, loc)
    return Pattern(text, _way(node.value, text, loc), node.attr, args)


def _way(node: ast.expr, text: str, loc: Loc | None) -> tuple[Segment, ...]:
    index: Index = None
    if isinstance(node, ast.Subscript):
        whole = isinstance(node.slice, ast.Slice) and node.slice.lower is node.slice.upper is node.slice.step is None
        index = All() if whole else _value(node.slice, text, loc)
        node = node.value
    match node:
        case ast.Name(id=name):
            return (Segment(name, index),)
        case ast.Attribute(value=inner, attr=name):
            return (*_way(inner, text, loc), Segment(name, index))
    raise _unreadable(text, loc)


def _value(node: ast.expr, text: str, loc: Loc | None) -> Given | Named:
    if isinstance(node, ast.Name):
        return Named(node.id)
    try:
        return Given(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError):
        raise _unreadable(text, loc) from None


def _unreadable(text: str, loc: Loc | None) -> ModelError:
    return ModelError(
        f"{text!r} names nothing in a composition",
        loc=loc,
        remedy="write 'part.name', 'part[0].name', 'part[i].action(c, kind=2)' or 'part[:].action()'",
    )
