"""A user's own job: its graph from Flink's REST API, its regions, and which tasks a failure restarts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from streamproof import UsageError
from streamproof_models.failover.graph import Exchange, JobGraph, Partition, Task
from streamproof_models.failover.machine import BatchJob, Failover
from streamproof_models.failover.named_job_graphs import is_text
from streamproof_models.failover.regions import Merging, Regions, pipelined_regions
from streamproof_models.failover.restart import Strategy, regions_to_restart, tasks_to_restart
from streamproof_models.failover.topology import Topology

AS_FLINK = "merge-within-logical-region-only"
MOST_TERMS, MOST_TOGETHER, MOST_LOSSES = 1_000_000, 33, 4_096
"""Largest number of terms of the rules, of tasks that are scheduled together in a search of all states, and of pairs of a
region and a set of partitions lost with it."""
LARGER = 12
"""Number of terms whose reading takes as long as that of the terms of a failing task and another task or channel."""
_AT_WORK = ("SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING")
SHOWN = 20
"""Largest number of regions listed, and of tasks of one region."""
_QUESTION = re.compile(r"(?P<what>fail|lose|lose-tm)=(?P<task>.+)", re.DOTALL)
_BETWEEN = re.compile(r"(;\s*(?=(?:fail|lose|lose-tm)=))")
_REMEDY = (
    "write lose=TASK or fail=TASK, several with ; between them, as in --what-if 'lose=B(2/4); fail=C', or lose-tm=ID"
)
Asked = tuple[str, str, Sequence[Task]]
"""A part of a question: its word, what it names, and the tasks that it is about."""


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
    for waiting in _never(model):
        yield f"{waiting}; the model itself merges them"
    if isinstance(model, Failover) and type(model).variant is None and model.partitions:
        yield (
            "the model itself waits with a task whose input a pending restart discards, and keeps a partition that a pending"
            " restart reads; the logs of Flink show neither rule: check --variant no-fence-eager and --variant early-release"
        )


def _never(model: BatchJob) -> Iterator[str]:
    """The circles of regions of a job given as text that Flink 2.3 never schedules."""
    if not is_text(model.topology):
        return
    flink = pipelined_regions(Topology(model.job_graph()), Merging.LOGICAL_REGION)
    for cycle in flink.cycles():
        parts = [_listed(_named(model, [flink.topology.tasks[t] for t in flink.members[r]])) for r in cycle]
        waiting = "}, {".join(parts)
        yield (
            f"Flink 2.3 never schedules this job (variant {AS_FLINK}): the regions {{{waiting}}} wait for each other's"
            " results"
        )


def as_flink(model: BatchJob) -> tuple[str, ...]:
    """The variants that describe Flink where the model itself does not: of a job given as text, if Flink 2.3 divides it into
    other regions."""
    if not is_text(model.topology):
        return ()
    return (AS_FLINK,) if pipelined_regions(Topology(model.job_graph()), Merging.LOGICAL_REGION).cycles() else ()


def grouped_infeasible(model: BatchJob, search: bool) -> str | None:
    """The same for a model whose regions fail with any set of lost partitions."""
    count, pairs = len(model.partitions), len(model.regions) << min(len(model.partitions), 64)
    if pairs > MOST_LOSSES:
        return f"{len(model.tasks):,} tasks: any set of {count:,} partitions may be lost when a region fails"
    return infeasible(model, search)


def infeasible(model: BatchJob, search: bool) -> str | None:
    """Why a job has too many tasks for the model's rules, or for a `search` of all states; None if it may be possible.

    Each failure of a task and each missing input has a term for every pair of a region and a reader of a partition, and
    larger ones for all tasks and channels. A search
    of all states meets, of the tasks that are scheduled together, each set of running ones.
    """
    restarts = len(model.tasks) + sum(map(len, model.reads.values()))
    terms = restarts * max(len(model.regions) - 1, 0) * sum(map(len, model.consuming_regions.values()))
    terms += LARGER * len(model.tasks) * (len(model.tasks) + len(model.channels))
    first = (tasks for tasks in model.regions.values() if not any(model.upstream[t] for t in tasks))
    together = sum(map(len, first))
    if model.merging is Merging.TOPOLOGY:  # else some regions may never be scheduled
        together = max(together, *map(len, model.regions.values()))
    if terms > MOST_TERMS:
        return f"{len(model.tasks):,} tasks: the rules of this model would have about {terms:,} terms"
    if search and together > MOST_TOGETHER:
        return f"{len(model.tasks):,} tasks: a search of all states would meet more than 2^{together} states"
    return None


def scheduled_by_flink(model: BatchJob) -> Iterator[tuple[str, bool, str]]:
    """Whether Flink 2.3 schedules every region of a job given as text sooner or later, from its graph alone."""
    if not is_text(model.topology):
        return
    flink = pipelined_regions(Topology(model.job_graph()), Merging.LOGICAL_REGION)
    never = _never_scheduled(flink)
    if not never:
        why = f"no two of its {len(flink.members):,} regions wait for each other"
        yield "regions_scheduled (Flink 2.3)", True, why
        return
    tasks = [flink.topology.tasks[t] for region in sorted(never) for t in flink.members[region]]
    never_all = f"{len(tasks):,} of {len(model.tasks):,} tasks are never scheduled, and the job hangs"
    why = f"with the scheduler Default, regions wait for each other's results: {never_all}"
    yield "regions_scheduled (Flink 2.3)", False, f"{why}: {_listed(_named(model, tasks))}"


def _never_scheduled(regions: Regions) -> set[int]:
    """The regions that wait for each other, and those that read from such ones, directly or not."""
    found = {region for cycle in regions.cycles() for region in cycle}
    readers, open_ = regions.dependencies() if found else [], list(found)
    while open_:
        more = readers[open_.pop()] - found
        found |= more
        open_ += more
    return found


def what_if(model: BatchJob, question: str, given: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """The tasks that restart when tasks fail (``fail=B(2/4)``), are lost with their results (``lose=B(2/4)``), or a
    TaskManager is lost with all its tasks (``lose-tm=ID``; the file ``given["job_graph"]`` has their places).

    A lost result fails its consumers, whose restart makes its producer run again, and the producer's restart its
    consumers: it is the same set as if the lost task fails itself. Tasks that were never scheduled do not restart. The
    least set is that of the regions of what fails or is lost, where nothing else has been scheduled or released. The
    greatest is that at a moment at which every result that can have been released has been: any whose readers are all
    in regions without a failing task. If the file has the states of the subtasks, the set and the decisions at that moment
    are stated as well. Raises `UsageError`.
    """
    rules = ("fail_over", "regions_to_restart")
    if isinstance(model, Failover) and any(getattr(type(model), r) is not getattr(Failover, r) for r in rules):
        why = f"--what-if answers by Flink's rule, not by that of variant {model.variant}"
        raise UsageError(why, remedy="leave out --variant")
    regions = pipelined_regions(Topology(model.job_graph()), model.merging)
    file = _RecordedMoment.of(given["job_graph"]) if "job_graph" in given else _RecordedMoment({}, {})
    total = len(model.tasks)
    if file.adaptive:
        _asked(model, regions.topology.graph, question, file.places)
        yield f"if {question.strip()}: {total} of {total} tasks restart"
        yield "  the job runs under the adaptive scheduler, which restarts the whole job after any failure of a running task"
        return
    failed: list[Task] = []
    lost: list[Partition] = []
    certain: set[int] = set()
    asked = _asked(model, regions.topology.graph, question, file.places)
    for what, _, tasks in asked:
        failed += tasks
        of = {regions.of(task) for task in tasks}
        certain |= of if what != "lose-tm" or len(of) == 1 else set()
        if what != "fail":
            lost += _stored(regions, tasks)
    restarted = _restarting(regions, failed, lost)
    yield f"if {question.strip()}: {len(restarted)} of {total} tasks restart"
    yield from _by_region(model, regions, restarted)
    yield "  when every task has been scheduled, and every other result can be read; a task never scheduled does not restart"
    released = _releasable(regions, {regions.of(task) for what, _, tasks in asked if what == "fail" for task in tasks})
    greatest = _restarting(regions, failed, [*lost, *released])
    if greatest == restarted:
        yield "  no more at any other moment, whatever results were released before"
    else:
        yield f"  at most {len(greatest)} of {total}, if results with finished readers had been released; then also"
        yield from _by_region(model, regions, greatest - restarted)
    upstream = {r for region in certain for r in regions_to_restart(regions, region, (), Strategy.NO_DOWNSTREAM)}
    least = [regions.topology.tasks[t] for region in sorted(upstream) for t in regions.members[region]]
    for what, name, tasks in asked:
        if what == "lose-tm":
            many = f"{len(tasks)} task{'' if len(tasks) == 1 else 's'}"
            yield f"  TaskManager {name} has {many}: {_listed(_named(model, tasks))}"
    unplaced = file.unplaced(regions) if any(what == "lose-tm" for what, _, _ in asked) else []
    if unplaced:
        yield f"  the file has no TaskManager for {_listed(_named(model, unplaced))}: more may restart"
    several = any(what == "lose-tm" for what, _, _ in asked) and not least
    yield (
        "  at least none, if none of its tasks runs and no result on it is needed; else the region of one of its tasks"
        if several
        else f"  at least {len(least)} of {total}, whatever has finished, if they run or a reader needs their results: "
        + _listed(_named(model, least))
    )
    if file.state not in ("RUNNING", "UNKNOWN"):
        yield f"  the job of the file is {file.state}: the sets are those of a time at which it runs"
    yield from file.decisions(model, regions, asked)
    yield from (f"  {waiting}" for waiting in _never(model))


def _restarting(regions: Regions, failed: Iterable[Task], unavailable: Collection[Partition]) -> frozenset[Task]:
    """The tasks to restart because tasks fail, each region once."""
    by_region = {regions.of(task): task for task in failed}
    return frozenset[Task]().union(*(tasks_to_restart(regions, task, unavailable) for task in by_region.values()))


def _stored(regions: Regions, tasks: Collection[Task]) -> list[Partition]:
    """The partitions of tasks that outlive these."""
    by_vertex: dict[str, list[int]] = {}
    for vertex, subtask in tasks:
        by_vertex.setdefault(vertex, []).append(subtask)
    written = ((c.edge.dataset, c.edge.source) for c in regions.topology.connections if not c.edge.exchange.glues)
    return list(dict.fromkeys((dataset, i) for dataset, source in written for i in by_vertex.get(source, ())))


@dataclass(frozen=True, slots=True)
class _RecordedMoment:
    """What the answers about a job say of the moment when they were given: the tasks of each TaskManager, and the states."""

    places: Mapping[str, Sequence[Task]]
    states: Mapping[Task, str]
    adaptive: bool = False
    """Whether the job runs under the adaptive scheduler, which restarts all tasks after any failure."""
    state: str = "UNKNOWN"
    """That of the job."""

    @classmethod
    def of(cls, path: str) -> _RecordedMoment:
        """The moment in a file."""
        from streamproof.conformance.flink import read_rest
        from streamproof_specs.failover.flink.recorded_machine import recorded_graph

        answer = read_rest(path)
        recorded = recorded_graph(answer.graph)
        label, size = recorded.label, recorded.size
        places: dict[str, list[Task]] = {}
        states: dict[Task, str] = {}
        for (vertex, number), subtask in answer.subtasks.items():
            if vertex not in label or not 0 <= number < size[vertex]:
                continue
            if subtask.taskmanager is not None:
                places.setdefault(subtask.taskmanager, []).append((label[vertex], number))
            if subtask.state is not None:
                states[label[vertex], number] = subtask.state
        now = states if answer.state == "RUNNING" else {}
        return cls(places, now, answer.scheduler == "Adaptive", answer.state)

    def unplaced(self, regions: Regions) -> list[Task]:
        """The tasks that may have been deployed, and of which it is not known where."""
        placed = {task for tasks in self.places.values() for task in tasks}
        waiting = {task for task, state in self.states.items() if state in ("CREATED", "SCHEDULED")}
        return [task for task in regions.topology.tasks if task not in placed | waiting]

    def decisions(self, model: BatchJob, regions: Regions, asked: Sequence[Asked]) -> Iterator[str]:
        """What restarts at this moment, a line for each decision in Flink's order: first the tasks at work fail, while the
        results of the lost ones still count as available; then readers miss these results."""
        states, topology = self.states, regions.topology
        if set(states) != set(topology.tasks):
            return
        counts = Counter(states.values())
        yield f"  at the moment of the file: {', '.join(f'{n} {state}' for state, n in sorted(counts.items()))}"
        if not counts.keys() <= {"CREATED", *_AT_WORK, "FINISHED"}:
            yield "    a restart or a cancellation is under way, so what follows is open"
            return
        created = [task for task in topology.tasks if states[task] == "CREATED"]
        tracked = [t for t in topology.tasks if states[t] not in ("CREATED", "SCHEDULED")]
        finished = {task for task in topology.tasks if states[task] == "FINISHED"}
        over = {r for r, members in enumerate(regions.members) if all(topology.tasks[t] in finished for t in members)}
        unfinished = set(range(len(regions.members))) - over
        here = set(_stored(regions, tracked)) - set(_releasable(regions, unfinished))
        away = [p for p in _stored(regions, topology.tasks) if p not in here]
        failing = [t for _, _, tasks in asked for t in tasks if states[t] in _AT_WORK]
        lost = [t for what, _, tasks in asked if what != "fail" for t in tasks if t in finished]
        idle = [t for what, _, tasks in asked if what == "fail" for t in tasks if states[t] not in _AT_WORK]
        if idle:
            yield f"    not at work, so it does not fail: {_listed(_named(model, idle))}"
        done = frozenset[Task]()
        first = {regions.of(t): t for t in sorted(failing, key=topology.number, reverse=True)}
        for task in sorted(first.values(), key=topology.number):
            if task in done:
                continue  # it is being cancelled by then, and ends as CANCELED
            restarted = tasks_to_restart(regions, task, away, created)
            yield f"    {_named(model, [task])[0]} fails: {_listed(_named(model, sorted(restarted, key=topology.number)))}"
            done |= restarted
        missing = [p for p in _stored(regions, lost) if p in here]
        for c in topology.connections:
            for producers, consumers in c.groups():
                gone = [p for p in producers if (c.edge.dataset, p - c.producers.start) in missing]
                for consumer in consumers if gone else ():
                    task = topology.tasks[consumer]
                    wanted = [topology.tasks[p] for p in gone if topology.tasks[p] not in done]
                    if not wanted or task in finished - done:
                        continue
                    more = tasks_to_restart(regions, task, [*away, *missing], created) | {task}
                    what = f"{_named(model, [task])[0]} misses what {_named(model, wanted)[0]} wrote"
                    yield f"    then {what}: {_listed(_named(model, sorted(more, key=topology.number)))}"
                    done |= more
        yield f"    {len(done)} of {len(topology.tasks)} tasks restart" if done else "    nothing restarts"


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
        if c.edge.exchange.glues or c.edge.exchange is Exchange.BLOCKING_PERSISTENT:
            continue
        start = c.producers.start
        for producers, consumers in c.groups():
            parts = [(c.edge.dataset, p - start) for p in producers]
            found.update(dict.fromkeys(parts))
            if any(regions.of_task[consumer] in unfinished for consumer in consumers):
                needed.update(parts)
    return [partition for partition in found if partition not in needed]


def _asked(model: BatchJob, graph: JobGraph, question: str, places: Mapping[str, Sequence[Task]]) -> list[Asked]:
    """The parts of a question. A name may look like several parts: the shortest names that make sense are taken. A vertex
    with one task may be named without its number. `places` are the tasks of each TaskManager."""
    exact = {
        model.task_name(v.name, i, v.parallelism): (v.name, i) for v in graph.vertices for i in range(v.parallelism)
    }
    spaceless: dict[str, list[Task]] = {}
    parts: dict[str, list[Task]] = {}
    alone = {v.name for v in graph.vertices if v.parallelism == 1}
    for name, task in exact.items():
        spaceless.setdefault(_squeezed(name), []).append(task)
        for part in (task[0], *_parts(task[0])):
            for number in (name.removeprefix(task[0]), *([""] if task[0] in alone else ())):
                if number or part:
                    parts.setdefault(_squeezed(part + number), []).append(task)

    def tasks(what: str, name: str) -> list[Sequence[Task]]:
        if what == "lose-tm":
            return [places[name.strip()]] if name.strip() in places else []
        known = [exact[name]] if name in exact else spaceless.get(_squeezed(name)) or parts.get(_squeezed(name), [])
        return [[task] for task in known]

    pieces = _BETWEEN.split(question.strip())
    most = max(len(_BETWEEN.split(name)) for name in (*exact, *places))
    rest: dict[int, list[Asked]] = {len(pieces) + 1: []}
    for at in range(len(pieces) - 1, -1, -2):
        for end in range(at + 1, min(len(pieces), at + most) + 1, 2):
            found = _QUESTION.fullmatch("".join(pieces[at:end]))
            if found and end + 1 in rest and len(meant := tasks(found["what"], found["task"])) == 1:
                rest[at] = [(found["what"], found["task"].strip(), meant[0]), *rest[end + 1]]
                break
    if 0 in rest:
        return rest[0]
    some = ", ".join(model.tasks[:SHOWN]) + (", ..." if len(model.tasks) > SHOWN else "")
    for piece in pieces[::2]:
        found = _QUESTION.fullmatch(piece)
        if found is None:
            raise UsageError(f"--what-if {question!r}: {piece!r} is no question", remedy=_REMEDY)
        if len(meant := tasks(found["what"], found["task"])) != 1:
            if found["what"] == "lose-tm":
                raise _unknown_place(found["task"].strip(), places)
            why = "several tasks" if meant else "no task"
            raise UsageError(f"--what-if: the job has {why} {found['task'].strip()!r}", remedy=f"its tasks: {some}")
    raise AssertionError("every part means one task")


def _unknown_place(name: str, places: Mapping[str, Sequence[Task]]) -> UsageError:
    if places:
        return UsageError(f"--what-if: no task is on TaskManager {name!r}", remedy=f"known are {', '.join(places)}")
    return UsageError(
        "--what-if lose-tm: it is not known which tasks each TaskManager has",
        remedy="give --job-graph FILE with the answers to /jobs/JOB/vertices/VERTEX under `subtasks`, as"
        " docs/flink-incident.md collects them, or the job's archive",
    )


def _parts(vertex: str) -> set[str]:
    """Shorter names of a vertex: those of its chained operators, without the kind before them, as in `Source: A -> B`."""
    operators = vertex.split(" -> ")
    return {name for o in operators for name in (o, o.rpartition(": ")[2]) if name not in ("", vertex)}


def _named(model: BatchJob, tasks: Sequence[Task]) -> list[str]:
    size = {v.name: v.parallelism for v in model.job_graph().vertices}
    return [model.task_name(vertex, subtask, size[vertex]) for vertex, subtask in tasks]


def _listed(tasks: tuple[str, ...] | list[str]) -> str:
    more = len(tasks) - SHOWN
    return ", ".join(tasks[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _squeezed(task: str) -> str:
    return "".join(task.split())
