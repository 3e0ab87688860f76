"""Independent pipelines: the parts of a job whose subtasks exchange no records while they run.

Where a job asks for it, an operator whose subtasks are in several pipelines becomes an operator for each: NAME_0, NAME_1, ...
So each pipeline is a region of its own, which is deployed, fails and restarts alone. Two subtasks are in one pipeline if a
pipelined exchange is between them, if they read what one subtask has stored, or if they are co-located. What is stored by
pointwise exchanges is between two whole pipelines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from streamproof_runtime.errors import JobError
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.graph import Channel, ExecutionGraph
from streamproof_runtime.jobs.operators import Exchange, Operator, subtask_names


def in_pipelines(job: Job) -> Job:
    """The job with an operator for each part of an operator. Raises `JobError` for a job with loops."""
    for edge in job.edges:
        if edge.feedback:
            raise JobError(
                f"{edge.target} is the head of loop {job.operators[edge.target].scope}: the regions of a job with loops "
                "consist of operators; leave out regions_of_subtasks"
            )
    graph = ExecutionGraph(job)
    pipeline = _pipelines(job, graph)
    made = replace(job, operators={}, edges=[], chains=[], regions_of_subtasks=False)
    part_of: dict[str, str] = {}
    for operator in job.operators.values():
        for part, tasks in _parts(operator, pipeline):
            made.add(part)
            part_of.update(dict.fromkeys(tasks, part.name))
    for edge in job.edges:
        own = (c for c in graph.channels.values() if c.edge is edge)
        for source, target in dict.fromkeys((part_of[c.source], part_of[c.target]) for c in own):
            made.edges.append(replace(edge, source=source, target=target))
    return made


def record(job: Job, made: Job) -> dict[str, Any]:
    """What the log says of a job and its parts: operators with their parallelism, the streams between them, and the operator,
    the first subtask and the parallelism of each part."""
    kinds = {Exchange.FORWARD: "POINTWISE", Exchange.RESCALE: "POINTWISE"}
    return {
        "vertices": [[o.name, o.parallelism] for o in job.operators.values()],
        "streams": [[e.source, e.target, kinds.get(e.exchange, "ALL_TO_ALL"), e.is_stored] for e in job.edges],
        "parts": {o.name: [o.part_of or o.name, o.first, o.parallelism] for o in made.operators.values()},
    }


def _parts(operator: Operator, pipeline: Mapping[str, str]) -> Iterator[tuple[Operator, list[str]]]:
    """An operator for each pipeline, with its subtasks; the operator itself, if it is in one."""
    tasks: dict[str, list[str]] = {}
    for task in subtask_names(operator):
        tasks.setdefault(pipeline[task], []).append(task)
    first = 0
    for number, (of, own) in enumerate(tasks.items()):
        if len(tasks) == 1:
            yield operator, own
        else:
            name, group = f"{operator.name}_{number}", operator.co_location and f"{operator.co_location} of {of}"
            part = replace(operator, name=name, parallelism=len(own), co_location=group)
            part.part_of, part.first, part.of = operator.name, first, operator.parallelism
            yield part, own
        first += len(own)


def _pipelines(job: Job, graph: ExecutionGraph) -> dict[str, str]:
    """Each subtask with the first one of its pipeline."""
    found = {task: task for task in graph.tasks}

    def join(tasks: Iterable[str]) -> bool:
        """Whether this has changed something."""
        old = {found[task] for task in tasks}
        if len(old) < 2:
            return False
        first = next((task for task in graph.tasks if found[task] in old), "")
        found.update((task, first) for task in graph.tasks if found[task] in old)
        return True

    channels, operators = [*graph.channels.values()], [*job.operators.values()]
    for channel in channels:
        if not channel.edge.is_stored:
            join((channel.source, channel.target))
    for tasks in _grouped(channels, lambda c: (id(c.edge), c.source) if c.edge.is_stored else None, "target"):
        join(tasks)
    for group in {operator.co_location for operator in operators} - {""}:
        for beside in zip(*(subtask_names(o) for o in operators if o.co_location == group), strict=False):
            join(beside)
    while True:
        aligned = [c for c in channels if c.edge.is_stored and c.edge.exchange in (Exchange.FORWARD, Exchange.RESCALE)]
        together = [
            *_grouped(aligned, lambda c: (id(c.edge), found[c.target]), "source"),
            *_grouped(aligned, lambda c: (id(c.edge), found[c.source]), "target"),
            *(between for o in operators for between in _between(subtask_names(o), found)),
        ]
        if not any(map(join, together)):
            return found


def _grouped(channels: Iterable[Channel], key: Any, end: str) -> list[list[str]]:
    """The sources or targets of channels by a key; those without one are left out."""
    found: dict[Any, list[str]] = {}
    for channel in channels:
        if (own := key(channel)) is not None:
            found.setdefault(own, []).append(getattr(channel, end))
    return [*found.values()]


def _between(tasks: tuple[str, ...], pipeline: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """The subtasks from one to the next one of the same pipeline: a part of an operator has no gaps."""
    places: dict[str, list[int]] = {}
    for at, task in enumerate(tasks):
        places.setdefault(pipeline[task], []).append(at)
    for of in places.values():
        for one, other in pairwise(of):
            yield tasks[one : other + 1]
