"""A user's own job: its graph from Flink's REST API, its regions, and which tasks a failure restarts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from streamproof import UsageError
from streamproof_models.failover.graph import Exchange, JobGraph, Partition, Task
from streamproof_models.failover.machine import BatchJob, Failover
from streamproof_models.failover.named_job_graphs import is_text
from streamproof_models.failover.regions import Merging, Regions, pipelined_regions
from streamproof_models.failover.restart import tasks_to_restart
from streamproof_models.failover.topology import Topology

AS_FLINK = "merge-within-logical-region-only"
MOST_TERMS, MOST_TOGETHER = 1_000_000, 33
"""Largest number of terms of the rules, and of tasks that are scheduled together in a search of all states."""
SHOWN = 20
"""Largest number of regions listed, and of tasks of one region."""
_QUESTION = re.compile(r"(?P<what>fail|lose)=(?P<task>.+)", re.DOTALL)
_BETWEEN = re.compile(r"(;\s*(?=(?:fail|lose)=))")
_REMEDY = "write lose=TASK or fail=TASK, several with ; between them, as in --what-if 'lose=B(2/4); fail=C'"


def graph_of_file(path: str) -> Mapping[str, Any]:
    """A user's job graph in a file: the REST API's answer about a job, its plan, or an archive.

    Raises `InputError` for another file, and `UsageError` for a job with exchanges that the model does not have.
    """
    from streamproof.conformance.flink import read_rest
    from streamproof_specs.failover.flink.recorded_machine import recorded_graph

    try:
        return {"topology": recorded_graph(read_rest(path).graph).graph.text, "parallelism": 1}
    except ValueError as error:
        raise UsageError(f"{path}: {error}", remedy="give the REST API's answer about another job") from None


def regions_of(model: BatchJob) -> Iterator[str]:
    """The regions of a job given as text; nothing for the catalogue."""
    if not is_text(model.topology):
        return
    regions = list(model.regions.values())
    yield f"{len(model.tasks)} tasks in {len(regions)} pipelined region{'' if len(regions) == 1 else 's'}"
    for number, tasks in enumerate(regions[:SHOWN], 1):
        yield f"  region {number}: {_listed(tasks)}"
    if len(regions) > SHOWN:
        yield f"  and {len(regions) - SHOWN} more"


def cautions(model: BatchJob) -> Iterator[str]:
    """What the model itself has otherwise than Flink, for a job given as text: the regions that wait for each other in Flink
    2.3, and the rules of which its logs show nothing."""
    if not is_text(model.topology):
        return
    flink = pipelined_regions(Topology(model.job_graph()), Merging.LOGICAL_REGION)
    for cycle in flink.cycles():
        parts = [_listed(_named(model, [flink.topology.tasks[t] for t in flink.members[r]])) for r in cycle]
        waiting = "}, {".join(parts)
        yield (
            f"Flink 2.3 never schedules this job (variant {AS_FLINK}): the regions {{{waiting}}} wait for each other's"
            " results; the model itself merges them"
        )
    if type(model).variant is None and model.partitions:
        yield (
            "the model itself waits with a task whose input a pending restart discards, and keeps a partition that a pending"
            " restart reads; the logs of Flink show neither rule: check --variant no-fence-eager and --variant early-release"
        )


def as_flink(model: BatchJob) -> tuple[str, ...]:
    """The variants that describe Flink where the model itself does not: of a job given as text, if Flink 2.3 divides it into
    other regions."""
    if not is_text(model.topology):
        return ()
    return (AS_FLINK,) if pipelined_regions(Topology(model.job_graph()), Merging.LOGICAL_REGION).cycles() else ()


def infeasible(model: BatchJob, search: bool) -> str | None:
    """Why a job has too many tasks for the model's rules, or for a `search` of all states; None if it may be possible.

    Each failure of a task and each missing input has a term for every pair of a region and a reader of a partition. A search
    of all states meets, of the tasks that are scheduled together, each set of running ones.
    """
    restarts = len(model.tasks) + sum(map(len, model.reads.values()))
    terms = restarts * max(len(model.regions) - 1, 0) * sum(map(len, model.consuming_regions.values()))
    first = (tasks for tasks in model.regions.values() if not any(model.upstream[t] for t in tasks))
    together = sum(map(len, first))
    if model.merging is Merging.TOPOLOGY:  # else some regions may never be scheduled
        together = max(together, *map(len, model.regions.values()))
    if terms > MOST_TERMS:
        return f"{len(model.tasks):,} tasks: the rules of this model would have about {terms:,} terms"
    if search and together > MOST_TOGETHER:
        return f"{len(model.tasks):,} tasks: a search of all states would meet more than 2^{together} states"
    return None


def what_if(model: BatchJob, question: str) -> Iterator[str]:
    """The tasks that restart when tasks fail (``fail=B(2/4)``) or are lost with their results (``lose=B(2/4)``).

    A lost result fails its consumers, whose restart makes its producer run again, and the producer's restart its
    consumers: it is the same set as if the lost task fails itself. Tasks that were never scheduled do not restart. The
    greatest set is that at a moment at which every result that can have been released has been: any whose readers are all
    in regions without a failing task. Raises `UsageError`.
    """
    if any(getattr(type(model), rule) is not getattr(Failover, rule) for rule in ("fail_over", "regions_to_restart")):
        why = f"--what-if answers by Flink's rule, not by that of variant {model.variant}"
        raise UsageError(why, remedy="leave out --variant")
    regions = pipelined_regions(Topology(model.job_graph()), model.merging)
    failed: list[Task] = []
    lost: list[Partition] = []
    asked = _asked(model, regions.topology.graph, question)
    for what, task in asked:
        failed.append(task)
        if what == "lose":
            lost += dict.fromkeys(
                (c.edge.dataset, task[1]) for c in regions.topology.connections
                if c.edge.source == task[0] and c.edge.exchange.rereadable
            )  # fmt: skip
    restarted = frozenset[Task]().union(*(tasks_to_restart(regions, task, lost) for task in failed))
    yield f"if {question.strip()}: {len(restarted)} of {len(model.tasks)} tasks restart"
    yield from _by_region(model, regions, restarted)
    yield "  when every task has been scheduled, and every other result can be read; a task never scheduled does not restart"
    released = _releasable(regions, {regions.of(task) for what, task in asked if what == "fail"})
    greatest = frozenset[Task]().union(*(tasks_to_restart(regions, t, [*lost, *released]) for t in failed))
    if greatest == restarted:
        yield "  no more at any other moment, whatever results were released before"
        return
    yield f"  at most {len(greatest)} of {len(model.tasks)}, if results with finished readers had been released; then also"
    yield from _by_region(model, regions, greatest - restarted)


def _by_region(model: BatchJob, regions: Regions, chosen: Collection[Task]) -> Iterator[str]:
    for number, members in enumerate(regions.members, 1):
        tasks = [regions.topology.tasks[t] for t in members if regions.topology.tasks[t] in chosen]
        if tasks:
            yield f"  region {number}: {_listed(_named(model, tasks))}"


def _releasable(regions: Regions, unfinished: Collection[int]) -> list[Partition]:
    """The partitions that the JobMaster releases once their readers have finished, without those read by the regions
    `unfinished`."""
    topology, found, needed = regions.topology, dict[Partition, None](), set[Partition]()
    for c in topology.connections:
        if not c.edge.exchange.rereadable or c.edge.exchange is Exchange.BLOCKING_PERSISTENT:
            continue
        start = c.producers.start
        for producers, consumers in c.groups():
            parts = [(c.edge.dataset, p - start) for p in producers]
            found.update(dict.fromkeys(parts))
            if any(regions.of_task[consumer] in unfinished for consumer in consumers):
                needed.update(parts)
    return [partition for partition in found if partition not in needed]


def _asked(model: BatchJob, graph: JobGraph, question: str) -> list[tuple[str, Task]]:
    """The parts of a question. A name may look like several parts: the shortest names that make sense are taken."""
    exact = {
        model.task_name(v.name, i, v.parallelism): (v.name, i) for v in graph.vertices for i in range(v.parallelism)
    }
    spaceless: dict[str, list[Task]] = {}
    for name, task in exact.items():
        spaceless.setdefault(_squeezed(name), []).append(task)

    def tasks(name: str) -> list[Task]:
        return [exact[name]] if name in exact else spaceless.get(_squeezed(name), [])

    pieces = _BETWEEN.split(question.strip())
    most = max(len(_BETWEEN.split(name)) for name in exact)
    rest: dict[int, list[tuple[str, Task]]] = {len(pieces) + 1: []}
    for at in range(len(pieces) - 1, -1, -2):
        for end in range(at + 1, min(len(pieces), at + most) + 1, 2):
            found = _QUESTION.fullmatch("".join(pieces[at:end]))
            if found and end + 1 in rest and len(meant := tasks(found["task"])) == 1:
                rest[at] = [(found["what"], meant[0]), *rest[end + 1]]
                break
    if 0 in rest:
        return rest[0]
    some = ", ".join(model.tasks[:SHOWN]) + (", ..." if len(model.tasks) > SHOWN else "")
    for piece in pieces[::2]:
        found = _QUESTION.fullmatch(piece)
        if found is None:
            raise UsageError(f"--what-if {question!r}: {piece!r} is no question", remedy=_REMEDY)
        if len(meant := tasks(found["task"])) != 1:
            why = "several tasks" if meant else "no task"
            raise UsageError(f"--what-if: the job has {why} {found['task'].strip()!r}", remedy=f"its tasks: {some}")
    raise AssertionError("every part means one task")


def _named(model: BatchJob, tasks: list[Task]) -> list[str]:
    size = {v.name: v.parallelism for v in model.job_graph().vertices}
    return [model.task_name(vertex, subtask, size[vertex]) for vertex, subtask in tasks]


def _listed(tasks: tuple[str, ...] | list[str]) -> str:
    more = len(tasks) - SHOWN
    return ", ".join(tasks[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _squeezed(task: str) -> str:
    return "".join(task.split())
