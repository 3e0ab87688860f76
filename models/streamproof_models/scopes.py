"""Stream scopes and scoped graphs: the loops that contain an operator, and the job graphs of the Loops API.

A stream has a scope: the chain of loops around it. The stream that a loop returns is one of the scope *around* the loop,
whichever operator produces it, so an edge may leave several loops at once, and enters one only at its head. Therefore every
graph made of loop functions satisfies the rules of `ScopedGraph.validate`, and no other graph does (FLIP-15, part I).

Nothing is imported here, so models, generators and runtimes can share it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
    is pointwise. Construction checks nothing; `validate` does.
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

    @property
    def sinks(self) -> tuple[Operator, ...]:
        """Operators without outputs."""
        feeding = {e.source for e in (*self.edges, *self.feedback)}
        return tuple(o for o in self.operators if o.name not in feeding)

    def heads(self, scope: StreamScope) -> tuple[Operator, ...]:
        """The targets of the loop's feedback edges: one, in a valid graph."""
        fed = {e.target for e in self.feedback}
        return tuple(o for o in self.operators if o.scope == scope and o.name in fed)

    def is_head(self, operator: Operator) -> bool:
        """Whether it is the target of a feedback edge."""
        return any(e.target == operator.name for e in self.feedback)

    def within(self, scope: StreamScope) -> tuple[Operator, ...]:
        """Operators of that scope and of the scopes in it."""
        return tuple(o for o in self.operators if scope.contains(o.scope))

    def inputs(self, name: str) -> tuple[Edge, ...]:
        """Edges into an operator, except feedback."""
        return tuple(e for e in self.edges if e.target == name)

    def outputs(self, name: str) -> tuple[Edge, ...]:
        """Edges out of an operator, except feedback."""
        return tuple(e for e in self.edges if e.source == name)

    def entries(self, scope: StreamScope) -> tuple[Edge, ...]:
        """Edges into a loop."""
        return tuple(e for e in self.edges if self._inside(e.target, scope) and not self._inside(e.source, scope))

    def exits(self, scope: StreamScope) -> tuple[Edge, ...]:
        """Edges out of a loop."""
        return tuple(e for e in self._all() if self._inside(e.source, scope) and not self._inside(e.target, scope))

    def stream_scope(self, edge: Edge) -> StreamScope:
        """The scope of the edge's stream: the reader's, and for an edge into a loop the one around the loop."""
        reader = self.operator(edge.target)
        entering = self.is_head(reader) and edge not in self.feedback and reader.scope.level > 0
        return reader.scope.unnest() if entering else reader.scope

    def _all(self) -> tuple[Edge, ...]:
        return (*self.edges, *self.feedback)

    def _inside(self, name: str, scope: StreamScope) -> bool:
        return scope.contains(self.operator(name).scope)

    # --- rules of the Loops API

    def validate(self) -> ScopedGraph:
        """The graph itself, if the Loops API can construct it; else raises `ScopeError` with the first violated rule."""
        for reason in self._reasons():
            raise ScopeError(reason)
        return self

    def _reasons(self) -> Iterator[str]:
        """The violated rules, fundamental ones first."""
        yield from self._malformed()
        for edge in self.feedback:
            if (scope := self.operator(edge.target).scope) == ROOT:
                yield f"feedback {self._told(edge)}: it ends outside every loop"
            elif not self._inside(edge.source, scope):
                yield f"feedback {self._told(edge)}: it starts outside the loop that it closes"
        for scope in self.scopes:
            heads = self.heads(scope)
            if len(heads) != 1:
                names = " and ".join(h.name for h in heads) or "none"
                yield f"loop {scope} has one operator that its feedback leads to, its head; here it is {names}"
        for edge in self.edges:
            if not self.stream_scope(edge).contains(self.operator(edge.source).scope):
                yield (
                    f"edge {self._told(edge)}: a stream of scope {self.operator(edge.source).scope} is not one of scope "
                    f"{self.stream_scope(edge)}; a loop is entered at its head, by a stream of the scope around it, "
                    "and all inputs of an operator are streams of one scope"
                )
        yield from self._unreachable()

    def _malformed(self) -> Iterator[str]:
        names = [o.name for o in self.operators]
        if not names:
            yield "a graph has at least one operator"
        for name in names:
            if names.count(name) > 1:
                yield f"operator {name} is there twice"
        for operator in self.operators:
            if operator.parallelism < 1:
                yield f"operator {operator.name} has parallelism {operator.parallelism}, the least is 1"
        for edge in self._all():
            for name in (edge.source, edge.target):
                if name not in names:
                    yield f"edge {edge.source} to {edge.target}: there is no operator {name}"
            if self.edges.count(edge) + self.feedback.count(edge) > 1:
                yield f"edge {edge.source} to {edge.target} is there twice"
            parallelisms = [self.operator(name).parallelism for name in (edge.source, edge.target)]
            if edge.pattern is Pattern.POINTWISE and parallelisms[0] != parallelisms[1]:
                yield (
                    f"edge {edge.source} to {edge.target} is pointwise between {parallelisms[0]} and {parallelisms[1]} "
                    "subtasks; make it all-to-all"
                )

    def _unreachable(self) -> Iterator[str]:
        if (looped := self._on_a_cycle()) is not None:
            yield f"operator {looped} reaches itself without a feedback edge"
        reached, before = {o.name for o in self.sources}, -1
        while len(reached) > before:
            before = len(reached)
            reached |= {e.target for e in self.edges if e.source in reached}
        for operator in self.operators:
            if operator.name not in reached:
                yield f"no source reaches operator {operator.name}"
        for source in self.sources:
            if source.scope != ROOT:
                yield f"source {source.name} is in scope {source.scope}; sources are outside every loop"

    def _on_a_cycle(self) -> str | None:
        left = [o.name for o in self.operators]
        while left:
            free = [n for n in left if not any(e.target == n and e.source in left for e in self.edges)]
            if not free:
                return left[0]
            left = [n for n in left if n not in free]
        return None

    def _told(self, edge: Edge) -> str:
        a, b = self.operator(edge.source), self.operator(edge.target)
        return f"from {a.name} (scope {a.scope}) to {b.name} (scope {b.scope})"

    # --- text

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
        return " ".join(e.source + arrow * (1 + (e.pattern is Pattern.ALL_TO_ALL)) + e.target for e in edges)


_NAME = r"[A-Za-z0-9_]+"
_OPERATOR = re.compile(rf"(?:(?P<scope>{_NAME}(?:\.{_NAME})*):)?(?P<name>{_NAME})(?:\*(?P<parallelism>[0-9]+))?")
_EDGE = re.compile(rf"(?P<source>{_NAME})(?P<arrow>>>?|~~?)(?P<target>{_NAME})")


def parse(text: str) -> ScopedGraph:
    """The graph described by a text, checked by `validate`.

    Three sections between semicolons, each a list of words: operators (``name``, ``LOOP.LOOP:name``, ``name*2`` for two
    subtasks), edges (``a>b``, ``a>>b`` all-to-all) and feedback edges (``c~b``, ``c~~b`` all-to-all). Raises `ScopeError`.
    """
    return parse_unchecked(text).validate()


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
    pattern = Pattern.ALL_TO_ALL if len(found["arrow"]) == 2 else Pattern.POINTWISE
    return Edge(found["source"], found["target"], pattern)
