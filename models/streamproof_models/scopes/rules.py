"""The rules of the Loops API: which scoped graphs its programs can construct (FLIP-15, part I)."""

from __future__ import annotations

from collections.abc import Iterator

from streamproof_models.scopes.graph import ROOT, Edge, Pattern, ScopedGraph, ScopeError, reachable


def validate(graph: ScopedGraph) -> ScopedGraph:
    """The graph itself, if the Loops API can construct it; else raises `ScopeError` with the first violated rule."""
    for rule in (_well_formed, _loops_are_closed, _inputs_have_one_scope, _sources_reach_all):
        for reason in rule(graph):
            raise ScopeError(reason)
    return graph


def _well_formed(graph: ScopedGraph) -> Iterator[str]:
    names = [o.name for o in graph.operators]
    if not names:
        yield "a graph has at least one operator"
    for name in names:
        if names.count(name) > 1:
            yield f"operator {name} is there twice"
    for operator in graph.operators:
        if operator.parallelism < 1:
            yield f"operator {operator.name} has parallelism {operator.parallelism}, the least is 1"
    for edge in (*graph.edges, *graph.feedback):
        for name in (edge.source, edge.target):
            if name not in names:
                yield f"edge {edge.source} to {edge.target}: there is no operator {name}"
        if graph.edges.count(edge) + graph.feedback.count(edge) > 1:
            yield f"edge {edge.source} to {edge.target} is there twice"
        from_, to = (graph.operator(name).parallelism for name in (edge.source, edge.target))
        if edge.pattern is Pattern.POINTWISE and from_ != to:
            yield (
                f"edge {edge.source} to {edge.target} is pointwise between {from_} and {to} subtasks; make it all-to-all"
            )


def _loops_are_closed(graph: ScopedGraph) -> Iterator[str]:
    for edge in graph.feedback:
        source, target = graph.operator(edge.source), graph.operator(edge.target)
        if target.scope == ROOT:
            yield f"feedback {_ends(graph, edge)}: it ends outside every loop"
        elif not target.scope.contains(source.scope):
            yield f"feedback {_ends(graph, edge)}: it starts outside the loop that it closes"
    for scope in graph.scopes:
        heads = graph.heads(scope)
        if len(heads) != 1:
            names = " and ".join(h.name for h in heads) or "none"
            yield f"loop {scope} has one operator that its feedback leads to, its head; here it is {names}"


def _inputs_have_one_scope(graph: ScopedGraph) -> Iterator[str]:
    for edge in graph.edges:
        source, stream = graph.operator(edge.source).scope, graph.stream_scope(edge)
        if not stream.contains(source):
            yield (
                f"edge {_ends(graph, edge)}: a stream of scope {source} is not one of scope {stream}; a loop is entered at "
                "its head, by a stream of the scope around it, and all inputs of an operator are streams of one scope"
            )


def _sources_reach_all(graph: ScopedGraph) -> Iterator[str]:
    forward = [(e.source, e.target) for e in graph.edges]
    for operator in graph.operators:
        if operator.name in reachable({b for a, b in forward if a == operator.name}, forward):
            yield f"operator {operator.name} reaches itself without a feedback edge"
    reached = reachable({o.name for o in graph.sources}, forward)
    for operator in graph.operators:
        if operator.name not in reached:
            yield f"no source reaches operator {operator.name}"
    for source in graph.sources:
        if source.scope != ROOT:
            yield f"source {source.name} is in scope {source.scope}; sources are outside every loop"


def _ends(graph: ScopedGraph, edge: Edge) -> str:
    a, b = graph.operator(edge.source), graph.operator(edge.target)
    return f"from {a.name} (scope {a.scope}) to {b.name} (scope {b.scope})"
