"""The Loops API of FLIP-15 as a builder of scoped graphs: it rejects every graph that no program can construct.

A job has sources; an operator transforms a stream into another; a loop is a function from the stream at its head to the pair
of its feedback and its output. The stream that a loop returns belongs to the scope around it, whichever operator produces it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from streamproof_models.scopes.graph import ROOT, Edge, Operator, Pattern, ScopedGraph, ScopeError, StreamScope
from streamproof_models.scopes.rules import validate


class Job:
    """A job under construction."""

    def __init__(self) -> None:
        """Without any operator."""
        self._operators: list[Operator] = []
        self._edges: list[Edge] = []
        self._feedback: list[Edge] = []

    def source(self, name: str, parallelism: int = 1) -> Stream:
        """A stream from outside, of the root scope."""
        return self._add(Operator(name, ROOT, parallelism), ())

    def graph(self) -> ScopedGraph:
        """The graph constructed so far, validated; raises `ScopeError`."""
        return validate(ScopedGraph(tuple(self._operators), tuple(self._edges), tuple(self._feedback)))

    def _add(self, operator: Operator, inputs: tuple[str, ...], pointwise: bool = False) -> Stream:
        if any(o.name == operator.name for o in self._operators):
            raise ScopeError(f"operator {operator.name} is there twice")
        self._operators.append(operator)
        self._edges += [self._edge(name, operator, pointwise) for name in inputs]
        return Stream(self, operator.scope, (operator.name,))

    def _edge(self, source: str, target: Operator, pointwise: bool) -> Edge:
        return Edge(source, target.name, Pattern.POINTWISE if pointwise else Pattern.ALL_TO_ALL)

    def _operator(self, name: str) -> Operator:
        return next(o for o in self._operators if o.name == name)

    def _close(self, feedback: Stream, head: Operator) -> None:
        self._feedback += [self._edge(name, head, False) for name in feedback.makers]


@dataclass(frozen=True)
class Stream:
    """A stream of one scope, made by one operator, or by several after a union."""

    job: Job
    scope: StreamScope
    makers: tuple[str, ...]

    def op(self, name: str, parallelism: int = 1, pointwise: bool = False) -> Stream:
        """The output of an operator."""
        return self.job._add(Operator(name, self.scope, parallelism), self.makers, pointwise)

    def chain(self, name: str) -> Stream:
        """The output of an operator chained into the same task: not an operator of the graph, and of the same scope."""
        for maker in map(self.job._operator, self.makers):
            if maker.scope != self.scope:
                raise ScopeError(
                    f"{name} (scope {self.scope}) cannot be chained to {maker.name} (scope {maker.scope}): "
                    "chained operators are of one scope"
                )
        return self

    def union(self, other: Stream) -> Stream:
        """The union of both streams; raises `ScopeError` unless they have the same scope."""
        self._binary("union", other)
        return replace(self, makers=self.makers + tuple(m for m in other.makers if m not in self.makers))

    def connect(self, other: Stream, name: str, parallelism: int = 1) -> Stream:
        """The output of an operator with two inputs (a join, a co-group); raises `ScopeError` as `union` does."""
        self._binary("connect", other)
        return self.union(other).op(name, parallelism)

    def iterate(
        self, loop: str, head: str, body: Callable[[Stream], tuple[Stream, Stream]], parallelism: int = 1
    ) -> Stream:
        """The output of a loop: `body` makes feedback and output from the stream at the head; raises `ScopeError`."""
        scope = self.scope.nest(loop)
        entry = Operator(head, scope, parallelism)
        return self._closed(entry, body(self.job._add(entry, self.makers)))

    def iterate_with_feedback(self, loop: str, body: Callable[[Connected], tuple[Stream, Stream]]) -> Stream:
        """Like `iterate`, for feedback of another type: `body` gives the operator that joins it to the input."""
        connected = Connected(self, self.scope.nest(loop), [])
        results = body(connected)
        if len(connected.heads) != 1:
            raise ScopeError(f"loop {connected.scope} joins input and feedback {len(connected.heads)} times, not once")
        return self._closed(connected.heads[0], results)

    def _closed(self, head: Operator, results: tuple[Stream, Stream]) -> Stream:
        for kind, stream in zip(("feedback", "output"), results, strict=True):
            if stream.scope != head.scope:
                raise ScopeError(
                    f"the {kind} of loop {head.scope} is a stream of {' and '.join(stream.makers)} "
                    f"(scope {stream.scope}), not one of the loop"
                )
        feedback, output = results
        self.job._close(feedback, head)
        return replace(output, scope=self.scope)

    def _binary(self, operation: str, other: Stream) -> None:
        if self.scope != other.scope:
            raise ScopeError(
                f"{operation} of {' and '.join(self.makers)} (scope {self.scope}) with {' and '.join(other.makers)} "
                f"(scope {other.scope}): binary operations are on streams of one scope"
            )


@dataclass(frozen=True)
class Connected:
    """The input of a loop and its feedback, which one operator, the head, reads."""

    input: Stream
    scope: StreamScope
    heads: list[Operator]

    def op(self, name: str, parallelism: int = 1) -> Stream:
        """The output of the head."""
        head = Operator(name, self.scope, parallelism)
        self.heads.append(head)
        return self.input.job._add(head, self.input.makers)
