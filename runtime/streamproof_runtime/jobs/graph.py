"""The execution graph of a job: subtasks, the channels between them, and its text in the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from streamproof_runtime.errors import JobError
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.operators import Edge, Exchange, Operator, subtask_names
from streamproof_runtime.jobs.scopes import Scope


@dataclass(frozen=True, slots=True)
class Channel:
    """A FIFO channel between two subtasks."""

    name: str
    source: str
    target: str
    edge: Edge


class ExecutionGraph:
    """Subtasks by name, channels as ``a>b``, or ``b~a`` for feedback."""

    def __init__(self, job: Job) -> None:
        """Raises `JobError` for a job without sources."""
        self.job = job
        self.operator_of: dict[str, Operator] = {}
        self.number: dict[str, int] = {}
        for operator in job.operators.values():
            for i, task in enumerate(subtask_names(operator)):
                self.operator_of[task], self.number[task] = operator, i
        if not self.operator_of:
            raise JobError(f"job {job.name} has no source")
        self.channels = {c.name: c for feedback in (False, True) for e in job.edges for c in self._expand(e, feedback)}
        self.tasks = tuple(self.operator_of)
        self.heads = frozenset(c.target for c in self.channels.values() if c.edge.feedback)

    def _expand(self, edge: Edge, feedback: bool) -> Iterable[Channel]:
        if edge.feedback is not feedback:
            return
        sources, targets = (subtask_names(self.job.operators[name]) for name in (edge.source, edge.target))
        for i, source in enumerate(sources):
            for j, target in enumerate(targets):
                if _connects(edge.exchange, i, j, len(sources), len(targets)):
                    yield Channel(f"{source}{'~' if feedback else '>'}{target}", source, target, edge)

    def writers(self, dataset: str) -> list[str]:
        """The subtasks that store a dataset."""
        return [task for task, operator in self.operator_of.items() if operator.writes == dataset]

    def scope(self, task: str) -> Scope:
        """The scope of a subtask."""
        return self.operator_of[task].scope

    def inputs(self, task: str, *, feedback: bool) -> tuple[str, ...]:
        """The channels into a subtask."""
        return tuple(n for n, c in self.channels.items() if c.target == task and c.edge.feedback is feedback)

    def outputs(self, task: str, *, feedback: bool) -> tuple[str, ...]:
        """The channels out of a subtask."""
        return tuple(n for n, c in self.channels.items() if c.source == task and c.edge.feedback is feedback)

    def __str__(self) -> str:
        """Operators; edges; feedback edges, as in ``a L:b*2 L:c; a>>b b>>c; c~~b``: a doubled arrow is all-to-all, ``a>=b``
        rescales."""
        operators = " ".join(
            (f"{o.scope}:" if o.scope.level else "") + o.name + (f"*{o.parallelism}" if o.parallelism > 1 else "")
            for o in self.job.operators.values()
        )
        sections = [operators, self._written(">", False), self._written("~", True)]
        while not sections[-1]:
            sections.pop()
        return "; ".join(sections)

    def _written(self, arrow: str, feedback: bool) -> str:
        edges = [e for e in self.job.edges if e.feedback is feedback]
        arrows = {Exchange.FORWARD: arrow, Exchange.RESCALE: f"{arrow}="}
        return " ".join(e.source + arrows.get(e.exchange, 2 * arrow) + e.target for e in edges)


def _connects(exchange: Exchange, source: int, target: int, sources: int, targets: int) -> bool:
    """Whether a channel is between two subtasks, by their numbers. Shares are as even as division allows."""
    if exchange is Exchange.FORWARD:
        return source == target
    if exchange is not Exchange.RESCALE:
        return True
    if sources >= targets:
        return target * sources // targets <= source < (target + 1) * sources // targets
    return -(-source * targets // sources) <= target < -(-(source + 1) * targets // sources)


def graphs(jobs: Iterable[Job]) -> str:
    """The execution graphs of the jobs of a session."""
    return " | ".join(str(ExecutionGraph(job)) for job in jobs)
