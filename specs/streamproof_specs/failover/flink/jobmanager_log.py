"""The lines of a Flink JobManager's log as observations of the failover machine.

The JobManager changes executions in one thread, so its own log is a total order of the machine's actions, and only that
log is followed here. A failure and the decision that follows it are two lines of one step: the decision's line carries
the action. The action `restart` is not logged itself; the tracker inserts it, constrained by the job's state: the job
is RESTARTING exactly while a restart decision is pending.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from streamproof.conformance import Constraint, Event, Move, Observation, StateReader
from streamproof_specs.failover.flink.decisions import Arrival, Causes, Decision, Decisions, counted, restart_set
from streamproof_specs.failover.flink.every_scheduler import never
from streamproof_specs.failover.flink.explain import Shown, listed, switch
from streamproof_specs.failover.flink.recorded_machine import RecordedFailover, RecordedGraph

HIDDEN = frozenset({"restart"})

DECISIONS = ("failover.restart", "failover.global.restart")
"""Restart decisions, for a failed task and for a global failure."""

LEGAL: Mapping[str, frozenset[str]] = {
    "CREATED": frozenset({"SCHEDULED", "CANCELING"}),
    "SCHEDULED": frozenset({"DEPLOYING", "CANCELING", "FAILED"}),
    "DEPLOYING": frozenset({"INITIALIZING", "FINISHED", "CANCELING", "CANCELED", "FAILED"}),
    "INITIALIZING": frozenset({"RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED"}),
    "RUNNING": frozenset({"FINISHED", "CANCELING", "CANCELED", "FAILED"}),
    "CANCELING": frozenset({"CANCELED"}),
    "FINISHED": frozenset(),
    "FAILED": frozenset(),
    "CANCELED": frozenset(),
}
"""Transitions of one execution on the JobManager (`org.apache.flink.runtime.executiongraph.Execution`)."""

_STEPS = ("deploy", "initialize", "run")
_LEVEL = {"SCHEDULED": 0, "DEPLOYING": 1, "INITIALIZING": 2, "RUNNING": 3}
_OVER = ("FAILING", "FAILED", "CANCELLING", "CANCELED", "SUSPENDED")
_ENDED = ("CREATED", "FINISHED", "FAILED", "CANCELED")
_STEPPING = ("exec.transition", "exec.deploy", "job.transition", *DECISIONS)
_FIRST = ("job.graph", "failover.strategy", "sched.strategy")


@dataclass(frozen=True, slots=True)
class _Failure:
    """A FAILED line without a decision yet."""

    event: Event
    task: str


@dataclass(frozen=True, slots=True)
class Translation:
    """The lines of one job as observations, in order; `notes` are remarks on an accepted verdict."""

    observations: tuple[Observation, ...]
    decisions: Decisions
    notes: tuple[str, ...]


def translate(
    recorded: RecordedGraph, model: RecordedFailover, causes: Causes, shown: Shown, events: Sequence[Event]
) -> Translation:
    """Interprets the events of one job. `shown` receives the states in the log."""
    return _Translator(recorded, model, causes, shown).translated(events)


@dataclass(slots=True)
class _Translator:
    """Interprets the events of one job in their order, with the job's logged states."""

    recorded: RecordedGraph
    model: RecordedFailover
    causes: Causes
    shown: Shown
    left: str | None = None
    """Why the machine no longer follows the job; None while it does."""
    job: str | None = None
    """The job's state in the log; None before the first line about it in a log without its beginning."""
    eager: bool = False
    """Whether the job's scheduler schedules immediately, region by region (`PipelinedRegionSchedulingStrategy`)."""
    _regions: list[tuple[tuple[int, ...], int, tuple[int, ...]]] = field(default_factory=list)
    """The tasks of each region, the number of the producers of its inputs, and those of its hybrid inputs."""
    _producers: dict[tuple[int, ...], int] = field(default_factory=dict)
    """The producers of the inputs of regions, numbered: many regions read the same ones."""
    _place: dict[str, str] = field(default_factory=dict)
    _failure: _Failure | None = None
    _globally: Event | None = None
    """The report of a global failure, until its consequence is logged."""
    _decided: Event | None = None
    _untrack: tuple[Move, ...] = ()
    _observations: list[Observation] = field(default_factory=list)
    _decisions: list[Decision] = field(default_factory=list)
    _arrivals: list[Arrival] = field(default_factory=list)

    def translated(self, events: Sequence[Event]) -> Translation:
        """One observation for every event about the machine."""
        if any(e.event in _FIRST for e in events):
            self.job = "CREATED"
            strategies = [e.args["strategy"] for e in events if e.event == "sched.strategy"]
            self.eager = bool(strategies) and all(s.endswith(".PipelinedRegionSchedulingStrategy") for s in strategies)
        place = {t: at for at, t in enumerate(self.model.tasks)}
        for tasks in self.model.regions.values():
            producers = tuple(dict.fromkeys(place[p] for t in tasks for p in self.model.upstream[t]))
            begun = dict.fromkeys(place[p] for t in tasks for p in self.model.begun_before[t])
            inputs = self._producers.setdefault(producers, len(self._producers))
            self._regions.append((tuple(place[t] for t in tasks), inputs, tuple(begun)))
        restarted = _restarted(self.recorded, events)
        for at, event in enumerate(events):
            self.shown.read(event)
            if self.left is not None:
                observation = self._after(event)
            else:
                observation = self._unannounced(event) or self._read(event, restarted.get(at))
            if observation is not None:
                self._observations.append(self._with_untracking(event, observation))
        decisions = Decisions(tuple(self._decisions), tuple(self._arrivals))
        return Translation(tuple(self._observations), decisions, tuple(self._notes()))

    def _notes(self) -> Iterator[str]:
        if self._failure is not None:
            yield f"the log ends before the failure of {self._failure.task} is answered"
        elif self.left is not None:
            yield f"{self.left}: from then on each attempt is judged by itself"
        elif self.job != "FINISHED":
            yield f"the log ends while the job is {self.job}"

    def _with_untracking(self, event: Event, observation: Observation) -> Observation:
        """After an executor is lost, its tasks fail and restarts are decided before its partitions are forgotten,
        whichever line comes first; with the first line of another kind these are done."""
        if not self._untrack or observation.impossible is not None:
            return observation
        first = tuple((*self._untrack, *way) for way in observation.alternatives)
        if event.event in (*DECISIONS, "failover.global", "jm.disconnect", "exec.deploy") or (
            event.args.get("new") in ("FAILED", "CANCELING", "CANCELED", "RESTARTING", "DEPLOYING")
        ):
            return replace(observation, alternatives=(*observation.alternatives, *first))
        self._untrack = ()
        return replace(observation, alternatives=first)

    def _read(self, event: Event, restarted: frozenset[str] | None) -> Observation | None:
        match event.event:
            case "exec.transition":
                # The slot of a failed task is reassigned before the decision: a waiting task deploys in between.
                waiting = event.args["new"] == "DEPLOYING"
                return (None if waiting else self._unanswered(event)) or self._transition(event)
            case "exec.deploy":
                return self._deploy(event)
            case "failover.restart":
                return self._decision(event, restarted or frozenset())
            case "failover.global":
                unanswered = None if self._globally is None else self._unanswered(event)
                self._globally = event
                return unanswered or Observation(event)
            case "failover.global.restart":
                if self._globally is None:
                    return Observation(event, impossible="a decision to restart all tasks, but no global failure")
                return self._unanswered(event) or self._global(event, restarted or frozenset())
            case "job.transition":
                return self._job(event)
            case "jm.disconnect":
                return self._disconnect(event)
            case _:
                return None

    def _unannounced(self, event: Event) -> Observation | None:
        """The job switches to RESTARTING in the step of the decision, unless it is RESTARTING already."""
        if self._decided is None or event.event not in _STEPPING:
            return None
        decided, self._decided = self._decided, None
        if event.event == "job.transition" and event.args["new"] == "RESTARTING":
            return None
        return Observation(
            event,
            impossible=f"after the decision to restart in line {decided.line} no line says that the job is RESTARTING",
        )

    def _unanswered(self, event: Event) -> Observation | None:
        """A failure is followed by the decision to restart, or ends the job, in the same step."""
        reported, self._globally = self._globally, None
        if reported is not None and event.event != "failover.global.restart":
            return Observation(
                event,
                impossible=f"the global failure in line {reported.line} was answered by no decision to restart",
            )
        if self._failure is None:
            return None
        failed, self._failure = self._failure, None
        return Observation(
            event,
            impossible=f"the failure of {failed.task} (line {failed.event.line}) was answered by no decision to restart",
        )

    # --- executions

    def _transition(self, event: Event) -> Observation:
        args = event.args
        task, number, old, new = self.recorded.task_of(event), args["number"], args["old"], args["new"]
        if task is None:
            return Observation(event, impossible=f"the job graph has no task {args['vertex']}_{args['subtask']}")
        shown = self.shown
        known = shown.now(task, number) or "CREATED"
        if known != old:
            return Observation(event, impossible=f"attempt {number} of {task} was {known}, not {old}")
        if new not in LEGAL.get(old, frozenset()):
            return Observation(event, impossible=f"an execution never switches from {old} to {new}")
        last = shown.now(task, number - 1)
        if number > 0 and last not in ("FINISHED", "CANCELED", "FAILED"):
            return Observation(
                event, impossible=f"attempt {number} of {task} begins, but attempt {number - 1} is {last or 'unknown'}"
            )
        if self.job == "CREATED":
            return Observation(event, impossible="the job was not started: no line says that it is RUNNING")
        before = (
            self._in_step(),
            self._present(task, number),
            *(() if new in ("SCHEDULED", "DEPLOYING") else self._prompt(event)),
        )
        shown.change(task, number, new)
        match new:
            case "SCHEDULED":
                is_scheduled = self._holds(task, "SCHEDULED", number)
                region = self.model.region_of[task]
                schedule = Move("schedule", {"r": region})
                # The first task of a region schedules the others with it; for these the line repeats what already
                # happened.
                alternatives = ((schedule,), ()) if len(self.model.regions[region]) > 1 else ((schedule,),)
                return Observation(event, alternatives, (is_scheduled,), before)
            case "DEPLOYING" | "INITIALIZING" | "RUNNING" | "FINISHED":
                steps = (
                    *_STEPS[_LEVEL[old] : _LEVEL.get(new, len(_STEPS))],
                    *(("finish",) if new == "FINISHED" else ()),
                )
                if new == "FINISHED" and "place" in args:
                    self._place[task] = args["place"]
                if new in ("RUNNING", "FINISHED"):
                    self._arrivals.append(Arrival(len(self._observations), event, task, number))
                return Observation(event, (tuple(Move(m, {"t": task}) for m in steps),), (), before)
            case "CANCELING":
                return Observation(event, constraints=(self._to_cancel(task, number, old),), before=before)
            case "CANCELED":
                return self._canceled(event, task, old, before)
            case _:
                return self._failed(event, task, before)

    def _canceled(self, event: Event, task: str, old: str, before: tuple[Constraint, ...]) -> Observation:
        action = "cancel" if old == "CANCELING" else "withdraw"
        return Observation(event, ((Move(action, {"t": task}),),), (), before)

    def _failed(self, event: Event, task: str, before: tuple[Constraint, ...]) -> Observation:
        self._failure = _Failure(event, task)
        wrong = self.causes.contradiction(event, task)
        if wrong is not None:
            return Observation(event, impossible=wrong)
        alive = Constraint(
            lambda look: f"{task} attempt {look('attempt', task)} is {look('status', task)} and cannot fail",
            lambda look: look("status", task) in self.model.active,
        )
        return Observation(event, constraints=(alive, *self.causes.constraints(event, task)), before=before)

    def _deploy(self, event: Event) -> Observation:
        task, number = self.recorded.task_of(event), event.args["number"]
        if task is None:
            return Observation(
                event, impossible=f"the job graph has no task {event.args['vertex']}_{event.args['subtask']}"
            )
        self._place[task] = event.args["tm"]
        return Observation(
            event,
            constraints=(self._present(task, number), self._holds(task, "DEPLOYING", number)),
            before=(self._in_step(),),
        )

    # --- constraints from the job's state

    def _present(self, task: str, number: int) -> Constraint:
        return Constraint(
            lambda look: (
                f"the line is about attempt {number} of {task}, but the present one is {look('attempt', task)}"
            ),
            lambda look: look("attempt", task) == number,
        )

    @staticmethod
    def _holds(task: str, status: str, number: int) -> Constraint:
        return Constraint(
            lambda look: f"{task} attempt {number} is {look('status', task)}, not {status}",
            lambda look: look("status", task) == status,
        )

    @staticmethod
    def _to_cancel(task: str, number: int, old: str) -> Constraint:
        return Constraint(
            f"{switch(task, number, old, 'CANCELING')}, but no decision to restart it was taken",
            lambda look: look("status", task) == "CANCELING",
        )

    def _in_step(self) -> Constraint:
        """The job's state determines whether a restart decision is pending."""
        if self.job == "RESTARTING":
            return Constraint("the job is RESTARTING, but nothing is left to restart", _pending)
        if self.job == "RUNNING":
            return Constraint(
                "tasks are waiting for their restart, but no line says that the job is RESTARTING", _settled
            )
        return Constraint("", lambda look: True)

    def _prompt(self, event: Event, restoring: bool = False) -> tuple[Constraint, ...]:
        """Everything schedulable is scheduled in the same step, before anything else is logged.

        `restoring`: before a global failure, which may be due to tasks whose state cannot be restored
        (`DefaultScheduler.restartTasks`). They are not scheduled then.
        """
        if not self.eager or self.job not in ("RUNNING", "RESTARTING"):
            return ()

        def owed(look: StateReader) -> Iterator[str]:
            return self._owed(event, look, restoring)

        return (
            Constraint(
                lambda look: f"{listed(list(owed(look)))} could be scheduled and was not",
                lambda look: next(owed(look), None) is None,
            ),
        )

    def _owed(self, event: Event, look: StateReader, restoring: bool) -> Iterator[str]:
        """Attempts that Flink's scheduler would have scheduled by the line, or has scheduled without a log line.

        `restoring`: regions of reset tasks are left out.
        """
        status, number = look("status"), look("attempt")
        if "CREATED" not in status and "SCHEDULED" not in status:
            return
        finished = [all(status[p] == "FINISHED" for p in producers) for producers in self._producers]
        for tasks, inputs, begun in self._regions:
            now = {status[t] for t in tasks}
            if now == {"CREATED"}:
                ready = finished[inputs] and all(status[p] in (*self.model.active, "FINISHED") for p in begun)
                if ready and not (restoring and all(number[t] > 0 for t in tasks)):
                    yield from (f"{self.model.tasks[t]} attempt {number[t]}" for t in tasks)
            elif "SCHEDULED" in now:
                for t in tasks:
                    task = self.model.tasks[t]
                    if status[t] == "SCHEDULED" and self.shown.after(event, task, number[t]) == "CREATED":
                        yield f"{task} attempt {number[t]}"

    # --- decisions

    def _decision(self, event: Event, restarted: frozenset[str]) -> Observation:
        self._decided = event if self.job == "RUNNING" else None
        failure, self._failure = self._failure, None
        task, number = self.recorded.task_of(event), event.args["number"]
        if failure is None or failure.task != task or failure.event.args["number"] != number:
            about = f"attempt {number} of {task or event.args['attempt']}"
            other = f"; {failure.task} attempt {failure.event.args['number']} did" if failure is not None else ""
            return Observation(
                event, impossible=f"a decision to restart for {about}, which did not fail just before{other}"
            )
        if event.args["attempt"] != failure.event.args["attempt"]:
            return Observation(
                event,
                impossible=f"the failed task is {failure.event.args['attempt']}, but the decision is about"
                f" {event.args['attempt']}",
            )
        cause = (failure.event.args.get("causes") or (None,))[0]
        self._decisions.append(Decision(len(self._observations), event, f"{task}#{number}", cause))
        return Observation(
            event,
            self.causes.alternatives(failure.event, task),
            (counted(event, task, restarted),),
            (self._in_step(), *self._prompt(event)),
            reads=restart_set,
        )

    def _global(self, event: Event, restarted: frozenset[str]) -> Observation:
        self._decided = event if self.job == "RUNNING" else None
        self._decisions.append(Decision(len(self._observations), event, "", None))
        before = (self._in_step(), *self._prompt(event, restoring=True))
        counted_all = counted(event, None, restarted)
        return Observation(event, ((Move("fail_globally"),),), (counted_all,), before, reads=restart_set)

    # --- the job and the executors

    def _job(self, event: Event) -> Observation | None:
        old, new = event.args["old"], event.args["new"]
        if self.job is not None and self.job != old and not (old == "INITIALIZING" and self.job == "CREATED"):
            return Observation(event, impossible=f"the job was {self.job}, not {old}")
        if never(old, new):
            return Observation(event, impossible=f"a job never switches from {old} to {new}")
        prompt = self._prompt(event, new == "FAILING" and self._globally is not None) if new != "RUNNING" else ()
        self.job = new
        if new in _OVER:
            return self._leave(event, new, prompt)
        unanswered = self._unanswered(event)
        if unanswered is not None:
            return unanswered
        match old, new:
            case "RUNNING", "RESTARTING":
                return Observation(
                    event, constraints=(Constraint("no decision to restart is pending", _pending),), before=prompt
                )
            case "RESTARTING", "RUNNING":
                return Observation(
                    event, constraints=(Constraint("tasks to restart are still being cancelled", _settled),)
                )
            case _, "FINISHED":
                before = (Constraint("tasks are waiting for their restart", _settled), *prompt)
                return Observation(event, ((Move("complete"),),), (), before)
            case _:
                return Observation(event)

    def _leave(self, event: Event, new: str, prompt: tuple[Constraint, ...]) -> Observation:
        failure, self._failure = self._failure, None
        reported, self._globally = self._globally, None
        self.left = f"the job is {new}"
        if new == "FAILING" and failure is None and reported is None:
            return Observation(event, impossible="the job is FAILING, but no line says that anything failed")
        if failure is not None and new in ("FAILING", "FAILED"):
            return Observation(event, ((Move("give_up", {"t": failure.task}),),), before=prompt)
        return Observation(event, before=prompt)

    def _after(self, event: Event) -> Observation | None:
        """Once the job is being terminated, its tasks are; each attempt is judged individually, and none may remain."""
        args = event.args
        if event.event == "exec.transition":
            task = self.recorded.task_of(event)
            if task is not None:
                self.shown.change(task, args["number"], args["new"])
            return None
        if event.event in DECISIONS:
            return Observation(event, impossible=f"a decision to restart, but {self.left}")
        if event.event != "job.transition":
            return None
        if self.job is not None and args["old"] != self.job:
            return Observation(event, impossible=f"the job was {self.job}, not {args['old']}")
        if never(args["old"], args["new"]):
            return Observation(event, impossible=f"a job never switches from {args['old']} to {args['new']}")
        self.job = args["new"]
        if args["new"] in ("FAILED", "CANCELED"):
            alive = [f"{t} attempt {n} is {s}" for (t, n), s in self.shown.last().items() if s not in _ENDED]
            if alive:
                return Observation(event, impossible=f"the job is {args['new']}, but {', '.join(alive)}")
        return Observation(event)

    def _disconnect(self, event: Event) -> Observation | None:
        """The JobMaster forgets the partitions of a lost executor, after failing its tasks."""
        if str(event.args.get("why", "")).startswith("Stopping JobMaster"):
            return None
        lost = [t for t, tm in self._place.items() if tm == event.args["tm"]]
        gone = [p for t in lost for p in self.model.outputs[t]]
        self._untrack = (*self._untrack, *(Move("untrack", {"p": p}, optional=True) for p in gone))
        return Observation(event)


def decisions_taken(events: Sequence[Event]) -> int:
    """The number of restart decisions before the job is given up, cancelled or suspended."""
    over = (at for at, e in enumerate(events) if e.event == "job.transition" and e.args["new"] in _OVER)
    return sum(e.event in DECISIONS for e in events[: next(over, len(events))])


def decisions_at_once(events: Sequence[Event]) -> int:
    """The most restart decisions before the job is RUNNING again, when all of them have been carried out: no more of them
    are pending at any time."""
    most = count = 0
    for event in events:
        if event.event == "job.transition" and event.args["old"] == "RESTARTING" and event.args["new"] == "RUNNING":
            count = 0
        count += event.event in DECISIONS
        most = max(most, count)
    return most


def _pending(look: StateReader) -> bool:
    """Whether a restart decision is pending for a task: neither carried out nor superseded."""
    return any(look("restarting"))


def _settled(look: StateReader) -> bool:
    return not _pending(look)


def _restarted(recorded: RecordedGraph, events: Sequence[Event]) -> dict[int, frozenset[str]]:
    """For each decision, by its position: the tasks that the log restarts between it and the next one."""
    decisions = [at for at, e in enumerate(events) if e.event in DECISIONS]
    found: dict[int, frozenset[str]] = {}
    for at, end in pairwise([*decisions, len(events)]):
        anew = (
            recorded.task_of(e)
            for e in events[at:end]
            if e.event == "exec.transition" and e.args["new"] == "SCHEDULED" and e.args["number"] > 0
        )
        found[at] = frozenset(t for t in anew if t is not None)
    return found
