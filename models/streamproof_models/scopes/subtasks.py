"""The execution graph of a scoped graph: subtasks, and a channel for each pair of connected subtasks."""

from __future__ import annotations

from dataclasses import dataclass

from streamproof_models.scopes.graph import Edge, Pattern, ScopedGraph, StreamScope, reachable


@dataclass(frozen=True, slots=True)
class Link:
    """A channel between two subtasks."""

    name: str
    source: str
    target: str
    edge: Edge
    feedback: bool


class Subtasks:
    """Subtasks by the name of their operator, with a number if there are several, and channels as ``a>b`` or ``b~a``."""

    def __init__(self, graph: ScopedGraph) -> None:
        """Expands operators to subtasks and edges to channels."""
        self.graph = graph
        self.operator_of = {task: o for o in graph.operators for task in _tasks(o.name, o.parallelism)}
        self.links = {link.name: link for link in self._links()}
        self.tasks = tuple(self.operator_of)
        self.heads = tuple(task for task in self.tasks if graph.is_head(self.operator_of[task]))
        self.sources = tuple(task for task in self.tasks if not self._named(target=task))
        self.inputs = {task: self._named(target=task, feedback=False) for task in self.tasks}
        self.outputs = {task: self._named(source=task, feedback=False) for task in self.tasks}
        self.feedback_inputs = {task: self._named(target=task, feedback=True) for task in self.tasks}

    def _links(self) -> list[Link]:
        made = []
        for arrow, edges in ((">", self.graph.edges), ("~", self.graph.feedback)):
            for edge in edges:
                sources, targets = (_tasks(n, self.graph.operator(n).parallelism) for n in (edge.source, edge.target))
                pairs = [(a, b) for a in sources for b in targets]
                if edge.pattern is Pattern.POINTWISE:
                    pairs = list(zip(sources, targets, strict=True))
                elif edge.pattern is Pattern.RESCALE:
                    n, m = len(sources), len(targets)
                    # Producer i of n and consumer j of m have a part of the unit interval in common.
                    pairs = [
                        (a, b) for i, a in enumerate(sources) for j, b in enumerate(targets) if _shares(i, j, n, m)
                    ]
                made += [Link(a + arrow + b, a, b, edge, arrow == "~") for a, b in pairs]
        return made

    def _named(self, **attributes: object) -> tuple[str, ...]:
        """The channels with these attributes."""
        return tuple(
            name for name, link in self.links.items() if all(getattr(link, a) == v for a, v in attributes.items())
        )

    def scope(self, task: str) -> StreamScope:
        """The scope of a subtask."""
        return self.operator_of[task].scope

    def heads_of(self, scope: StreamScope) -> tuple[str, ...]:
        """The heads of a scope: the subtasks of its head operator."""
        return tuple(head for head in self.heads if self.scope(head) == scope)

    def is_only_head(self, head: str) -> bool:
        """Whether a head is the only one of its scope."""
        return self.operator_of[head].parallelism == 1

    def peers(self, head: str) -> tuple[str, ...]:
        """The other heads of its scope with a path from the head to them within the scope."""
        scope = self.scope(head)
        inside = [(n.source, n.target) for n in self.links.values() if scope.contains(self.scope(n.source))]
        reached = reachable({head}, [(a, b) for a, b in inside if scope.contains(self.scope(b))])
        return tuple(other for other in self.heads_of(scope) if other != head and other in reached)

    def outer_heads(self, head: str) -> tuple[tuple[str, ...], ...]:
        """For each scope around that of a head its heads with a path to this head."""
        before, _ = self.upstream(head)
        outer = [scope for scope in self.graph.scopes if scope.is_outer_of(self.scope(head))]
        return tuple(tuple(h for h in self.heads_of(scope) if h in before) for scope in outer)

    def upstream(self, task: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Subtasks from which a record can reach `task`, including itself, and channels in which one can."""
        reached = reachable({task}, [(link.target, link.source) for link in self.links.values()])
        channels = tuple(name for name, link in self.links.items() if link.target in reached)
        return tuple(t for t in self.tasks if t in reached), channels


def _tasks(name: str, parallelism: int) -> tuple[str, ...]:
    return (name,) if parallelism == 1 else tuple(f"{name}{i}" for i in range(parallelism))


def _shares(i: int, j: int, n: int, m: int) -> bool:
    """Whether subtask `i` of `n` sends to subtask `j` of `m`: the fewer ones have shares of the others, in their order."""
    if n >= m:
        return j == ((i + 1) * m - 1) // n
    return i == j * n // m
