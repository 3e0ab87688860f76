"""The binding of Flink's logs to region scheduling: which region is scheduled and deployed when, by the JobManager's lines.

A region is scheduled when all partitions that it reads from other regions are finished (begun, for hybrid exchanges), as a
whole, and soon: before any other report is handled. Its tasks are deployed in one step. Restart sets are the failover
machine's matter; here a task is scheduled again only if a decision has announced it, and its consumers wait for it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from streamproof.conformance import (
    Constraint,
    Event,
    Instance,
    Move,
    Observation,
    Plan,
    StateReader,
    Stream,
    Task,
    Unit,
)
from streamproof.conformance.flink import FlinkRun, RestJob, problem_lines, read_run
from streamproof_specs.failover.flink.every_scheduler import hang
from streamproof_specs.failover.flink.explain import listed
from streamproof_specs.failover.flink.jobmanager_log import DECISIONS
from streamproof_specs.failover.flink.recorded_machine import RecordedGraph, recorded_graph
from streamproof_specs.failover.flink.speculation import Groups
from streamproof_specs.flink.given_graph import given_graph, graph_for, with_remedy
from streamproof_specs.flink.scope import FlinkLogs, damage, doubted, outside, unscheduled
from streamproof_specs.regions.flink.recorded_machine import JobRegions, region_rules

LINES = frozenset({"exec.transition", "exec.deploy", "job.transition", "region.built", "failover.global", *DECISIONS})
_BEGINNINGS = frozenset({"job.graph", "failover.strategy", "sched.strategy", "sched.adaptive", "graph.vertex"})
_STRATEGY = ".PipelinedRegionSchedulingStrategy"


class FlinkRegions(FlinkLogs):
    """Follows the scheduling of every job of a recorded Flink run."""

    reads_job_graph = True

    def plan(self, run: Any, job_graph: Path | None) -> Plan:
        """One case per job. Raises `InputError` for unreadable logs and for another job's graph."""
        logged = read_run(run)
        given = given_graph(logged, job_graph)
        cases = tuple(doubted(regions_of(logged, job, given), logged, "exec.") for job in logged.jobs)
        problems, unknown = problem_lines(logged.problems), sum(logged.unknown.values())
        return Plan(logged.name, cases, logged.merged(), unknown, problems, nothing=logged.content)


def regions_of(run: FlinkRun, job: str, given: RestJob | None = None) -> Unit:
    """The scheduling of one job as a behaviour."""
    never = unscheduled(run, job)
    if never is not None:
        return never
    events = run.of_job(job)
    title = run.jobs[job]
    master = [e for e in events if e.event in LINES | _BEGINNINGS]
    reasons = outside(run, job, [e for e in master if e.event not in ("region.built", "graph.vertex")])
    if reasons.texts:
        return Unit(job, title, (), False, reasons.texts, damage(run))
    try:
        recorded = recorded_graph(graph_for(run, job, given)[0])
    except ValueError as gap:
        return Unit(job, title, (), False, (with_remedy(str(gap), given),), damage(run))
    groups = Groups.of(master, reasons.announced) if reasons.announced else None
    if groups is not None and groups.left is not None:
        return Unit(job, title, (), False, (f"{groups.left}: the machine does not follow that",), damage(run))
    reading = _Reading(recorded, master if groups is None else groups.events, groups is not None)
    observations = tuple(reading.observations())
    if groups is not None:
        observations = groups.restored(observations)
    rules = reading.rules
    task = Task(
        job, rules.system, (Stream(observations),), explainer=_RegionExplainer(reading.job), grounding=rules.instances
    )
    note = hang(reading.waiting(), reading.job.regions)
    title = f"{title}, {len(reading.job.regions)} region{'' if len(reading.job.regions) == 1 else 's'}"
    return Unit(job, title, (task,), damage=damage(run), notes=() if note is None else (note,))


@dataclass
class _Reading:
    """The lines of one job, which one JobMaster ran."""

    recorded: RecordedGraph
    events: Sequence[Event]
    speculative: bool = False
    _left: bool = False
    """Whether the job is being terminated."""
    _troubled: bool = False
    """Whether a task has failed."""
    _finished: list[str] = field(default_factory=list)
    """Tasks that have finished since the last line before which all regions with their inputs must be scheduled."""
    _started: bool = False
    _sourced: bool = False
    """Whether regions without inputs were looked for."""
    _renewed: set[int] = field(default_factory=set)

    @cached_property
    def job(self) -> JobRegions:
        """The regions of the job."""
        return self._machine[0]

    @cached_property
    def rules(self) -> Any:
        """The machine."""
        return self._machine[1]

    @cached_property
    def _machine(self) -> tuple[JobRegions, Any]:
        announced = sum(e.args["count"] for e in self.events if e.event in DECISIONS)
        numbers = max((e.args["number"] for e in self.events if e.event == "exec.transition"), default=0)
        return region_rules(self.recorded.graph, numbers, announced, self._ordered)

    @cached_property
    def _eager(self) -> bool:
        """Whether the scheduler schedules region by region."""
        strategies = [e.args["strategy"] for e in self.events if e.event == "sched.strategy"]
        return bool(strategies) and all(s.endswith(_STRATEGY) for s in strategies) and not self.speculative

    @cached_property
    def _ordered(self) -> bool:
        """Whether the log shows the topological order of the vertices, and it is that of the job graph."""
        logged = [self.recorded.label.get(e.args["vertex"]) for e in self.events if e.event == "graph.vertex"]
        return self._eager and logged == [v.name for v in self.recorded.graph.vertices]

    # --- what the log shows of restarts

    @cached_property
    def _decisions(self) -> list[int]:
        return [at for at, e in enumerate(self.events) if e.event in DECISIONS]

    @cached_property
    def _begun(self) -> dict[str, list[tuple[int, int]]]:
        """For each task the positions of its lines "to SCHEDULED", with the numbers of the attempts."""
        found: dict[str, list[tuple[int, int]]] = {}
        for at, event in enumerate(self.events):
            if event.event == "exec.transition" and event.args["new"] == "SCHEDULED":
                task = self.recorded.task_of(event)
                if task is not None:
                    found.setdefault(task, []).append((at, event.args["number"]))
        return found

    @cached_property
    def _together(self) -> dict[int, list[tuple[str, int, int]]]:
        """For a decision, by its number: the tasks that it certainly restarts, each with the position of the line "to
        SCHEDULED" of its next attempt and that attempt's number. Only this decision is between two attempts of the task."""
        found: dict[int, list[tuple[str, int, int]]] = {}
        for task, lines in self._begun.items():
            for (before, last), (at, number) in pairwise(lines):
                if number <= last:
                    continue
                first = bisect_left(self._decisions, before)
                if bisect_right(self._decisions, at) - first == 1:
                    found.setdefault(first, []).append((task, at, number))
        return found

    def _number_after(self, task: str, at: int) -> int | None:
        """The number of the next attempt of a task that is scheduled at a position or later."""
        lines = self._begun.get(task, [])
        place = bisect_left(lines, (at, -1))
        return lines[place][1] if place < len(lines) else None

    def _renewals(self, at: int, task: str, number: int) -> tuple[Move, ...]:
        """Before the line "to SCHEDULED" of a task: the tasks that are reset with it, and were not yet."""
        known = {task: number}
        for other in self.job.regions[self.job.region_of[task]]:
            following = self._number_after(other, at)
            if following is not None:
                known.setdefault(other, following)
        decision = bisect_right(self._decisions, at) - 1
        certain = self._together.get(decision, [])
        if decision not in self._renewed and any(there == at for _, there, _ in certain):
            self._renewed.add(decision)
            for other, _, following in certain:
                known.setdefault(other, following)
        return tuple(Move("renew", {"t": other, "n": n}, optional=True) for other, n in known.items())

    # --- lines

    def observations(self) -> Iterator[Observation]:
        """One for each line about scheduling."""
        built = 0
        for at, event in enumerate(self.events):
            match event.event:
                case "exec.transition":
                    yield self._transition(at, event)
                case "exec.deploy":
                    yield self._deployed(event)
                case "region.built":
                    built += event.args["new"]
                    yield self._built(event, built)
                case "job.transition":
                    self._left = self._left or event.args["new"] in ("FAILING", "FAILED", "CANCELLING", "SUSPENDED")
                    moves = (Move("complete"),) if event.args["new"] == "FINISHED" else ()
                    prompt = () if event.args["new"] == "RUNNING" else self._prompt()
                    yield Observation(event, (moves,), before=prompt)
                case name if name in DECISIONS:
                    self._troubled = True
                    whole = name == "failover.global.restart"
                    yield Observation(event, ((Move("decide", {"n": event.args["count"], "whole": whole}),),))
                case _:
                    self._troubled = self._troubled or event.event == "failover.global"

    def _built(self, event: Event, built: int) -> Observation:
        """Vertices may be added while the job runs, and their regions with them."""
        total, known = event.args["total"], len(self.job.regions)
        last = event is [e for e in self.events if e.event == "region.built"][-1]
        if total != built or total > known or (last and self._eager and total < known):
            wrong = f"{total} pipelined regions are built, but the job graph has {known}"
            if total != built:
                wrong = f"{event.args['new']} pipelined regions are built, {built} in all, but the line says {total}"
            return Observation(event, impossible=wrong)
        return Observation(event)

    def _deployed(self, event: Event) -> Observation:
        task = self.recorded.task_of(event)
        if task is None:
            return Observation(event, impossible=f"the job graph has no task {event.args['attempt']}")
        placed = Constraint(
            lambda look: f"{task} is deployed, but it is {look('status', task)}",
            lambda look: look("status", task) == "DEPLOYING",
        )
        return Observation(event, before=(placed,))

    def _transition(self, at: int, event: Event) -> Observation:
        args = event.args
        task, number, new = self.recorded.task_of(event), args["number"], args["new"]
        if task is None:
            return Observation(event, impossible=f"the job graph has no task {args['attempt']}")
        region = self.job.region_of[task]
        before: tuple[Constraint, ...] = (self._present(task, number),) if new != "SCHEDULED" else ()
        match new:
            case "SCHEDULED":
                self._started = True
                shown = Constraint(
                    lambda look: (
                        f"the line is about attempt {number} of {task}, the next one is {look('attempt', task)}"
                    ),
                    lambda look: look("attempt", task) == number,
                )
                anew = self._renewals(at, task, number) if number > 0 else ()
                first = (*anew, Move("schedule", {"r": region}), Move("show", {"t": task}))
                return Observation(event, ((Move("show", {"t": task}),), first), (shown,))
            case "DEPLOYING":
                deploy = Move("deploy", {"t": task})
                return Observation(event, ((deploy,), (Move("assign", {"r": region}), deploy)), before=before)
            case "INITIALIZING":
                return Observation(event, ((Move("initialize", {"t": task}),),), before=(*before, *self._prompt()))
            case "RUNNING":
                return Observation(event, ((Move("run", {"t": task}),),), before=(*before, *self._prompt()))
            case "FINISHED":
                prompt = self._prompt()
                self._finished.append(task)
                # A very fast task has no line "to RUNNING".
                finish = (Move("run", {"t": task}, optional=True), Move("finish", {"t": task}))
                return Observation(event, (finish,), before=(*before, *prompt))
            case "CANCELING":
                return Observation(event, ((Move("cancel", {"t": task}),),))
            case _:
                self._troubled = self._troubled or new == "FAILED"
                return Observation(event, ((Move("stop", {"t": task}),),), before=())

    def _present(self, task: str, number: int) -> Constraint:
        return Constraint(
            lambda look: (
                f"the line is about attempt {number} of {task}, but the present one is {look('attempt', task)}"
            ),
            lambda look: look("attempt", task) == number,
        )

    def _prompt(self) -> tuple[Constraint, ...]:
        """Up to the first failure, the regions whose inputs are there are scheduled before the next report is handled."""
        if not self._eager or self._troubled or self._left or not (self._started or self._finished):
            return ()
        groups = dict.fromkeys(g for t in self._finished for g in self.job.outputs[t])
        sources = [] if self._sourced else [r for r, read in self.job.inputs.items() if not read]
        self._sourced = True
        self._finished.clear()
        if not groups and not sources:
            return ()

        def owed(look: StateReader) -> Iterator[str]:
            ready = dict.fromkeys(r for g in groups if look("unfinished", g) == 0 for r in self.job.readers[g])
            for r in (*sources, *ready):
                there = all(look("unfinished", g) == own for g, own in self.job.inputs[r])
                if there and look("status", self.job.regions[r][0]) == "CREATED":
                    yield r

        return (
            Constraint(
                lambda look: f"the inputs of {listed(list(owed(look)))} are there, and it was not scheduled",
                lambda look: next(owed(look), None) is None,
            ),
        )

    def waiting(self) -> dict[str, list[str]]:
        """The regions of which no task was scheduled, with the regions whose results they read."""
        made_by = {g: dict.fromkeys(self.job.region_of[p] for p in made) for g, made in self.job.producers.items()}
        return {
            r: [other for g, _ in self.job.inputs[r] for other in made_by[g] if other != r]
            for r, tasks in self.job.regions.items()
            if self._begun.keys().isdisjoint(tasks)
        }


@dataclass(frozen=True, slots=True)
class _RegionExplainer:
    """Explanations in terms of the scheduler."""

    job: JobRegions

    def why_not(self, move: Move, look: StateReader) -> str | None:
        """Why an action is disabled."""
        args = move.args
        half = self._half_done(look)
        match move.action:
            case "schedule":
                return half or self._not_schedulable(args["r"], look)
            case "show" if look("unseen", args["t"]):
                return f"{args['t']} is scheduled in another order than that of the job graph"
            case "show":
                return f"{args['t']} is {look('status', args['t'])}: it is scheduled with its region"
            case "deploy" if look("status", args["t"]) != "SCHEDULED":
                return f"{args['t']} is {look('status', args['t'])}, not SCHEDULED"
            case "renew" if look("left") == 0:
                return f"{args['t']} is scheduled again, but no decision to restart it is open"
            case "renew":
                return f"attempt {args['n']} of {args['t']} begins, but attempt {look('attempt', args['t'])} is " + str(
                    look("status", args["t"])
                )
            case "initialize" | "run" | "finish" | "cancel" if half is None:
                return f"{args['t']} is {look('status', args['t'])}"
            case "stop" if half is None:
                return f"{args['t']} is {look('status', args['t'])} and cannot stop"
            case "complete":
                waiting = [t for t in self.job.tasks if look("status", t) != "FINISHED"]
                return f"the job is FINISHED, but not {listed(waiting)}"
            case _:
                return half

    def _half_done(self, look: StateReader) -> str | None:
        """What the scheduler has begun and not ended."""
        current = look("region")
        if look("chosen"):
            lacking = [t for t in self.job.regions[current] if look("unseen", t)]
            return f"the region of {current} is being scheduled: {listed(lacking)} must be scheduled with it"
        if look("deploying"):
            lacking = [t for t in self.job.regions[current] if look("status", t) == "SCHEDULED"]
            return f"the region of {current} is being deployed: {listed(lacking)} must be deployed with it"
        return None

    def _not_schedulable(self, region: str, look: StateReader) -> str:
        begun = [t for t in self.job.regions[region] if look("status", t) != "CREATED"]
        over = [t for t in begun if look("status", t) in ("FINISHED", "ENDED")]
        if over and look("left") == 0:
            return f"{over[0]} is {look('status', over[0])}, and no decision has announced that it is scheduled again"
        if begun:
            return f"{begun[0]} is {look('status', begun[0])}; {'its region' if len(begun) > 1 else 'it'} was scheduled"
        for g, own in self.job.inputs[region]:
            if look("unfinished", g) != own:
                lacking = [
                    f"{p} is {look('status', p)}"
                    for p in self.job.producers[g]
                    if self.job.region_of[p] != region
                    and look("status", p) in (("CREATED",) if g in self.job.early else _UNFINISHED)
                ]
                return f"{region} is scheduled before its inputs are there: {listed(lacking)}"
        return f"{region} is scheduled after a region that comes later in the job graph"

    def expected(self, enabled: Sequence[Instance], look: StateReader, event: Event) -> Iterable[tuple[int, str]]:
        """Regions that may be scheduled."""
        if look("chosen"):
            current = look("region")
            yield (
                0,
                next(f"{t} switched from CREATED to SCHEDULED" for t in self.job.regions[current] if look("unseen", t)),
            )


_UNFINISHED = ("CREATED", "SCHEDULED", "DEPLOYING", "RUNNING", "ENDED")

BINDING = FlinkRegions()
