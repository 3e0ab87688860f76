"""Stream scopes and scoped graphs: the loops that contain an operator, and the job graphs of the Loops API.

A stream has a scope: the chain of loops around it. The stream that a loop returns is one of the scope *around* the loop,
whichever operator produces it, so an edge may leave several loops at once, and enters one only at its head. Therefore every
graph made of loop functions satisfies the rules of `scoped_rules`, and no other graph does (FLIP-15, part I).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class ScopeError(ValueError):
    """A graph that no program of the Loops API constructs, or invalid text; the message names the error and its position."""


@dataclass(frozen=True, slots=True)
class StreamScope:
    """The loops around a stream or an operator, outermost first; equal exactly for the operators of one loop."""

    loops: tuple[str, ...] = ()

    def nest(self, loop: str) -> StreamScope:
        """The scope of a loop in this one."""
        return StreamScope((*self.loops, loop))

    def unnest(self) -> StreamScope:
        """The scope around this one; raises `ScopeError` for the outermost."""
        if not self.loops:
            raise ScopeError("the root scope has no scope around it")
        return StreamScope(self.loops[:-1])

    @property
    def level(self) -> int:
        """The number of enclosing scopes."""
        return len(self.loops)

    def is_inner_of(self, other: StreamScope) -> bool:
        """Whether it is properly inside `other`."""
        return self.level > other.level and self.loops[: other.level] == other.loops

    def is_outer_of(self, other: StreamScope) -> bool:
        """Whether `other` is properly inside it."""
        return other.is_inner_of(self)

    def contains(self, other: StreamScope) -> bool:
        """Whether `other` is equal to it or inside it."""
        return self == other or self.is_outer_of(other)

    def context_for_level(self, level: int) -> StreamScope:
        """The enclosing scope of that level, possibly itself; raises `ScopeError` if there is none."""
        if not 0 <= level <= self.level:
            raise ScopeError(f"scope {self} has the levels 0 to {self.level}, not {level}")
        return StreamScope(self.loops[:level])

    def __str__(self) -> str:
        return ".".join(self.loops) or "root"


def reachable(start: Iterable[str], edges: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The nodes of `start`, and every node reachable from them along the edges."""
    reached, edges = set(start), tuple(edges)
    while new := {b for a, b in edges if a in reached and b not in reached}:
        reached |= new
    return frozenset(reached)


ROOT = StreamScope()
"""The scope outside every loop."""


class Pattern(Enum):
    """Which subtasks an edge connects."""

    POINTWISE = "pointwise"
    """Each with the one of its number: both sides have as many."""
    ALL_TO_ALL = "all-to-all"
    RESCALE = "rescale"
    """Each with a share of the others, as even as division allows."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of the job."""

    name: str
    scope: StreamScope = ROOT
    parallelism: int = 1


@dataclass(frozen=True, slots=True)
class Edge:
    """A stream from one operator to another, by their names."""

    source: str
    target: str
    pattern: Pattern = Pattern.POINTWISE


@dataclass(frozen=True)
class ScopedGraph:
    """Operators, each with its scope, the edges between them, and the feedback edges, each to the head of a loop.

    Equal graphs have equal text: edges are kept in the order of the operators, and an edge between two single subtasks
    is pointwise. Construction checks nothing; `scoped_rules.validate` does.
    """

    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...] = ()
    feedback: tuple[Edge, ...] = ()

    def __post_init__(self) -> None:
        """Sorts the edges."""
        for field in ("edges", "feedback"):
            object.__setattr__(self, field, self._ordered(getattr(self, field)))

    def _ordered(self, edges: Iterable[Edge]) -> tuple[Edge, ...]:
        place = {o.name: (at, o.parallelism) for at, o in enumerate(self.operators)}
        unknown = (len(place), 1)
        ends = [(place.get(e.source, unknown), place.get(e.target, unknown), e) for e in edges]
        single = [
            (a, b, Edge(e.source, e.target) if a[1] == b[1] == 1 else e)
            for a, b, e in sorted(ends, key=lambda t: t[:2])
        ]
        return tuple(e for _, _, e in single)

    # --- derived properties

    def operator(self, name: str) -> Operator:
        """The operator of that name; raises `KeyError`."""
        for operator in self.operators:
            if operator.name == name:
                return operator
        raise KeyError(name)

    @property
    def scopes(self) -> tuple[StreamScope, ...]:
        """Every loop's scope, outer ones before inner ones, else in the order of the operators."""
        found = {o.scope.context_for_level(k): None for o in self.operators for k in range(1, o.scope.level + 1)}
        return tuple(sorted(found, key=lambda scope: scope.level))

    @property
    def sources(self) -> tuple[Operator, ...]:
        """Operators without inputs."""
        fed = {e.target for e in (*self.edges, *self.feedback)}
        return tuple(o for o in self.operators if o.name not in fed)

    def heads(self, scope: StreamScope) -> tuple[Operator, ...]:
        """The targets of the loop's feedback edges: one, in a valid graph."""
        fed = {e.target for e in self.feedback}
        return tuple(o for o in self.operators if o.scope == scope and o.name in fed)

    def is_head(self, operator: Operator) -> bool:
        """Whether it is the target of a feedback edge."""
        return any(e.target == operator.name for e in self.feedback)

    def entries(self, scope: StreamScope) -> tuple[Edge, ...]:
        """Edges into a loop."""
        return tuple(e for e in self.edges if self._inside(e.target, scope) and not self._inside(e.source, scope))

    def exits(self, scope: StreamScope) -> tuple[Edge, ...]:
        """Edges out of a loop."""
        inside = (e for e in (*self.edges, *self.feedback) if self._inside(e.source, scope))
        return tuple(e for e in inside if not self._inside(e.target, scope))

    def stream_scope(self, edge: Edge) -> StreamScope:
        """The scope of the edge's stream: the reader's, and for an edge into a loop the one around the loop."""
        reader = self.operator(edge.target)
        entering = self.is_head(reader) and edge not in self.feedback and reader.scope.level > 0
        return reader.scope.unnest() if entering else reader.scope

    def _inside(self, name: str, scope: StreamScope) -> bool:
        return scope.contains(self.operator(name).scope)

    def __str__(self) -> str:
        """The text that `parse` reads: operators, edges and feedback edges, as in ``a L:b L:c d; a>b b>c c>d; c~b``."""
        operators = " ".join(
            (f"{o.scope}:" if o.scope.level else "") + o.name + (f"*{o.parallelism}" if o.parallelism > 1 else "")
            for o in self.operators
        )
        sections = [operators, self._written(self.edges, ">"), self._written(self.feedback, "~")]
        return "; ".join(sections if sections[2] else sections[:2] if sections[1] else sections[:1])

    @staticmethod
    def _written(edges: tuple[Edge, ...], arrow: str) -> str:
        arrows = {Pattern.ALL_TO_ALL: 2 * arrow, Pattern.RESCALE: f"{arrow}="}
        return " ".join(e.source + arrows.get(e.pattern, arrow) + e.target for e in edges)
