"""Jobs whose records walk through any graph: each operator sends a record on, perhaps twice, until its steps are used up.

The walk of a record depends on its number alone, so that the visits of every operator are known beforehand. The text of a
graph is that of the log: operators; edges; feedback edges, as in ``a L:b L:c; a>b b>c; c~b``.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from streamproof_runtime.errors import JobError
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.functions import Context
from streamproof_runtime.jobs.operators import Edge, Exchange, Operator, Pipe, subtask_names
from streamproof_runtime.jobs.scopes import Scope

_OPERATOR = re.compile(r"(?:([A-Za-z][\w.]*):)?([A-Za-z]\w*)(?:\*([0-9]+))?", re.ASCII)
_EDGE = re.compile(r"(\w+?)(>>?|~~?)(\w+)", re.ASCII)

Record = tuple[int, int]
"""A number, and the steps left."""


def parse(text: str) -> Job:
    """The job graph of a text, without functions; raises `JobError` for other text."""
    job = Job("walk")
    sections = [section.split() for section in text.split(";")]
    operators, edges = sections[0], [word for section in sections[1:] for word in section]
    for word in operators:
        found = _OPERATOR.fullmatch(word)
        if found is None:
            raise JobError(f"{word!r} is not of the form LOOP.LOOP:name*parallelism")
        scope, name, parallelism = found.groups()
        job.add(Operator(name, Scope(tuple(scope.split(".")) if scope else ()), int(parallelism or 1)))
    heads = {found[3] for word in edges if (found := _EDGE.fullmatch(word)) and found[2][0] == "~"}
    for word in edges:
        found = _EDGE.fullmatch(word)
        if found is None or found[1] not in job.operators or found[3] not in job.operators:
            raise JobError(f"{word!r} is not of the form a>b, a>>b, a~b or a~~b between operators of the graph")
        source, arrow, target = found.groups()
        reader, feedback = job.operators[target].scope, arrow[0] == "~"
        scope_of_stream = reader.unnest() if target in heads and not feedback else reader
        # A doubled arrow is all-to-all: by number, so that the subtask is known beforehand.
        exchange, key = (Exchange.HASH, _number) if len(arrow) == 2 else (Exchange.FORWARD, None)
        job.edges.append(Edge(source, target, scope_of_stream, exchange, key, [], feedback))
    return job


def walk(text: str, records: int = 3, steps: int = 8) -> Job:
    """A job in which records walk through a graph."""
    job = parse(text)
    fed = {edge.target for edge in job.edges}
    for operator in job.operators.values():
        if operator.name not in fed:
            operator.items = [(number, steps) for number in range(records)]
        else:
            operator.inputs = ((_moved, None),)
            operator.is_sink = not any(edge.source == operator.name for edge in job.edges)
    for name in job.operators:
        edges = [edge for edge in job.edges if edge.source == name]
        for at, edge in enumerate(edges):
            edge.pipes.append(Pipe((_taken(name, at, len(edges)),)))
    return job


def expected(job: Job) -> dict[str, dict[int, int]]:
    """How often each number reaches each sink."""
    found: dict[str, Counter[int]] = {o.name: Counter() for o in job.operators.values() if o.is_sink}
    pending = [(o.name, record) for o in job.operators.values() for record in o.items or ()]
    while pending:
        name, record = pending.pop()
        operator = job.operators[name]
        if operator.is_sink:
            found[name][record[0]] += 1
        outputs = (record,) if operator.items is not None else ((record[0], record[1] - 1),) if record[1] > 0 else ()
        for edge in (e for e in job.edges if e.source == name):
            for output in outputs:
                pending += [(edge.target, after) for pipe in edge.pipes for after in pipe.transforms[0](output)]
    return {name: dict(sorted(visits.items())) for name, visits in found.items()}


def _number(record: Record) -> int:
    return record[0]


def _moved(context: Context, record: Record) -> Iterable[Record]:
    """One step less; sinks count."""
    records = context.state.setdefault("records", {})
    records[record[0]] = records.get(record[0], 0) + 1
    return ((record[0], record[1] - 1),) if record[1] > 0 else ()


def _taken(name: str, at: int, edges: int) -> Callable[[Any], Iterable[Record]]:
    """Whether a record takes an edge: exactly one, or, for every fourth choice, also the one after it."""

    def taken(record: Record) -> Iterable[Record]:
        choice = zlib.crc32(f"{name}/{record[0]}/{record[1]}".encode())
        first = choice % edges
        both = choice % 4 == 0 and edges > 1
        return (record,) if at == first or (both and at == (first + 1) % edges) else ()

    return taken


def visits(job: Job, results: dict[str, Any]) -> dict[str, dict[int, int]]:
    """How often each number has reached each sink, by the results of its subtasks."""
    found: dict[str, Counter[int]] = {o.name: Counter() for o in job.operators.values() if o.is_sink}
    for name, counts in found.items():
        for task in subtask_names(job.operators[name]):
            counts.update(results.get(task) or {})
    return {name: dict(sorted(counts.items())) for name, counts in found.items()}
