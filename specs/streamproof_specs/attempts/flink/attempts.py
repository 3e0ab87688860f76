"""Execution attempts of a job, one behaviour each: the logs of the JobManager and the TaskManagers must be consistent.

Each JobMaster (a leader session: another process, or another execution graph in the same one) is a separate stream. A
new one replays attempts that finished before as "CREATED to FINISHED", under the identifiers of the earlier graph.

Clocks of different machines are not compared. A line of one process follows a line of another where the attempt's
machine requires it: a task is received after it was deployed; the JobManager records RUNNING after the task has
reported it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf

from streamproof import System
from streamproof.conformance import Event, Observation, Stream, Task, compile_model
from streamproof.conformance.flink import Attempt, FlinkRun
from streamproof_models.attempts.machine import OVER, TaskAttempt
from streamproof_specs.attempts.flink.agreement import contradictions
from streamproof_specs.attempts.flink.attempt_lines import (
    OF_MASTER,
    OF_TASK,
    STORE_LINES,
    TASK_LINES,
    UNSEEN,
    AttemptExplainer,
    in_partial_order,
)
from streamproof_specs.attempts.flink.task_lines import missing_debug_lines, never_received, unasked
from streamproof_specs.attempts.properties import SPEC
from streamproof_specs.flink.clocks import REPORTED
from streamproof_specs.flink.process_facts import ProcessFacts
from streamproof_specs.flink.scope import gap

Session = tuple[str, str]
"""A JobMaster: its process and the execution graph that it built for the job; empty before the first log line about it."""

_REQUESTS = frozenset({"part.reqremote", "part.reqlocal", "net.partreq.client", "gate.retrigger"})


@lru_cache(maxsize=64)
def attempt_system(partitions: int, may_cut: bool) -> System:
    """The machine of an attempt with a number of result partitions."""
    return compile_model(TaskAttempt(partitions=partitions, may_cut=may_cut), SPEC.properties)


@dataclass(slots=True)
class _Lines:
    """The records of one attempt."""

    name: str = ""
    number: int = 0
    sessions: dict[Session, list[Event]] = field(default_factory=dict)
    """Lines of each JobMaster."""
    tasks: dict[str, list[Event]] = field(default_factory=dict)
    """By process."""
    partitions: dict[str, int] = field(default_factory=dict)

    def own(self, graph: str, complete: bool) -> Session | None:
        """The JobMaster that created the attempt, if its lines about it are complete from the start."""
        for session, (first, *_) in self.sessions.items():
            if session[1] == graph or (not session[1] and (complete or first.args.get("old") == "CREATED")):
                return session
        return None


def in_sessions(events: Iterable[Event]) -> Iterator[tuple[Event, Session]]:
    """Events of one job, each with the JobMaster of its process at that time."""
    graphs: dict[str, str] = {}
    for event in events:
        if event.event == "job.graph":
            graphs[event.process] = event.args["graph"]
        yield event, (event.process, graphs.get(event.process, ""))


def is_replayed(event: Event, session: Session) -> bool:
    """Whether a JobMaster recovers an attempt of another one's execution graph as finished."""
    if event.event != "exec.transition" or session[1] in ("", event.args["graph"]):
        return False
    return (event.args["old"], event.args["new"]) == ("CREATED", "FINISHED")


@dataclass(slots=True)
class _Present:
    """The current attempts of each task of a JobMaster: one, or under speculative execution the concurrent ones, until
    one has finished."""

    numbers: dict[tuple[str, int], frozenset[int]] = field(default_factory=dict)
    _running: dict[tuple[str, int], frozenset[int]] = field(default_factory=dict)

    def see(self, event: Event, replayed: bool) -> None:
        """Adds a transition of an execution."""
        task, new = (event.args["vertex"], event.args["subtask"]), event.args["new"]
        number, running = frozenset({event.args["number"]}), self._running.get(task, frozenset())
        if new in OVER:
            self._running[task] = running - number
        if new == "FINISHED" and (replayed or number <= running):
            self.numbers[task] = number
        elif new == "SCHEDULED":
            self.numbers[task] = self._running[task] = running | number


@dataclass(slots=True)
class Attempts:
    """The attempts of one job. `complete`: the JobManager's log of the job is complete from its beginning."""

    run: FlinkRun
    facts: ProcessFacts
    job: str
    complete: bool
    outputs: Mapping[str, int] = field(default_factory=dict)
    """The number of outgoing edges of each vertex, if the job graph is complete."""
    _lines: dict[str, _Lines] = field(default_factory=dict)
    _wrong: dict[tuple[str, int], str] = field(default_factory=dict)
    _strange: dict[tuple[str, int], str] = field(default_factory=dict)
    """Lines of TaskManagers about attempts that they never received."""
    _place: dict[str, str] = field(default_factory=dict)
    _lost: set[str] = field(default_factory=set)
    _suspended: set[Session] = field(default_factory=set)
    _last: Session | None = None
    """The last JobMaster that created an attempt."""
    _masters: set[str] = field(default_factory=set)
    """Processes whose logs mention executions of the job."""
    _built: dict[str, Session] = field(default_factory=dict)
    """The JobMaster that built an execution graph."""
    _begun: dict[str, int] = field(default_factory=dict)
    """See `ProcessFacts.begun`."""

    def tasks(self) -> Iterator[Task]:
        """One behaviour per attempt, in the order of first occurrence."""
        self._gather()
        for text, lines in self._lines.items():
            yield self._task(text, lines)

    @property
    def sampled(self) -> str | None:
        """Why a contradiction proves nothing, if several DEBUG lines are missing; valid after `tasks`."""
        tasks = {text: lines.tasks for text, lines in self._lines.items()}
        return missing_debug_lines(tasks, self.run.of_job(self.job), self.facts.families)

    # --- collection

    def _gather(self) -> None:
        self._begun = self.facts.begun(self.job)
        events = self.run.of_job(self.job)
        named = {(e.args["task"], e.args["subtask"]): e.args["vertex"] for e in events if e.event == "exec.transition"}
        vertices = {(task, vertex) for (task, _), vertex in named.items()}
        unique = {task for task, _ in vertices if sum(t == task for t, _ in vertices) == 1}
        graph = ""
        for event, session in in_sessions(events):
            args = event.args
            self._built.setdefault(session[1], session)
            match event.event:
                case "job.transition" if args["new"] == "SUSPENDED":
                    self._suspended.add(session)
                case "exec.transition" | "exec.deploy":
                    graph = args["graph"]
                    self._masters.add(event.process)
                    self._of(args["attempt"], event).sessions.setdefault(session, []).append(event)
                    if event.event == "exec.deploy":
                        self._place[args["attempt"]], self._last = args["tm"], session
                case "exec.ignored" if args["task"] in unique and "vertex" not in args:
                    vertex = named.get((args["task"], args["subtask"]))
                    text = f"{graph}_{vertex}_{args['subtask']}_{args['number']}"
                    if session in self._lines.get(text, _Lines()).sessions:
                        self._lines[text].sessions[session].append(event)
                case "jm.disconnect" if not str(args.get("why", "")).startswith("Stopping JobMaster"):
                    self._lost.add(args["tm"])
                case name if name in TASK_LINES:
                    self._of(args["attempt"], event).tasks.setdefault(event.process, []).append(event)
                case name if name in STORE_LINES:
                    lines = self._lines.get(args["producer"]) or self._of(args["producer"], None)
                    lines.tasks.setdefault(event.process, []).append(event)
                    lines.partitions.setdefault(args["dataset"], len(lines.partitions))
                case name if name in _REQUESTS:
                    reader = args.get("by") or args.get("attempt")
                    if reader:
                        self._of(reader, None).tasks.setdefault(event.process, []).append(event)
        places = {name: process.tm for name, process in self.run.processes.items() if process.tm is not None}
        self._wrong |= contradictions(events, self.outputs, places)
        self._check_requests(events)
        self._strange = dict(never_received(self.run, events, self.facts.received, self.facts.families))
        self._wrong |= self._strange
        for lines in self._lines.values():
            self._wrong |= dict(unasked(f"{lines.name}#{lines.number}", lines.tasks.values()))

    def _of(self, text: str, event: Event | None) -> _Lines:
        lines = self._lines.setdefault(text, _Lines())
        if event is not None and not lines.name:
            args = event.args
            lines.name = f"{args['task']} ({args['subtask'] + 1}/{args['parallelism']})"
            lines.number = args["number"]
        return lines

    def _check_requests(self, events: Sequence[Event]) -> None:
        """A task requests the partitions of the attempts that were current when it was deployed."""
        present: dict[Session, _Present] = {}
        deployed: dict[str, dict[tuple[str, int], frozenset[int]]] = {}
        for event, session in in_sessions(events):
            now = present.setdefault(session, _Present())
            if event.event == "exec.transition":
                now.see(event, is_replayed(event, session))
            elif event.event == "exec.deploy":
                deployed.setdefault(event.args["attempt"], dict(now.numbers))
        for event in events:
            if event.event not in _REQUESTS:
                continue
            reader = str(event.args.get("by") or event.args.get("attempt"))
            producer = Attempt.parse(event.args["producer"])
            then = deployed.get(reader, {}).get((producer.vertex, producer.subtask))
            if then is not None and producer.number not in then:
                name = self._lines[event.args["producer"]].name if event.args["producer"] in self._lines else ""
                self._wrong[event.process, event.seq] = (
                    f"a partition of attempt {producer.number} of {name or producer} is requested, but when "
                    f"{self._lines[reader].name} was deployed the present one was {' or '.join(map(str, sorted(then)))}"
                )

    # --- one attempt

    def _task(self, text: str, lines: _Lines) -> Task:
        if not lines.name:
            parsed = Attempt.parse(text)
            lines.name, lines.number = f"{parsed.vertex}_{parsed.subtask}", parsed.number
        graph = text.partition("_")[0]
        place, own = self._place.get(text), lines.own(graph, self.complete and len(self._masters) == 1)
        if not lines.sessions and graph in self._built:
            own = self._built[graph]
        masters = [] if own is None else lines.sessions.get(own, [])
        if self._may_lack(masters) or not (self.complete or (masters and masters[0].args.get("old") == "CREATED")):
            own, masters = None, []
        took_over = own is not None and (own in self._suspended or own != self._last)
        may_cut = place is None or place in self._lost or not self.complete or took_over
        system = attempt_system(len(lines.partitions), may_cut)
        wording = AttemptExplainer(lines.name, lines.number, place or next(iter(lines.tasks), "its TaskManager"))
        hidden = UNSEEN
        if own is None and (not self.complete or lines.sessions or self._of_another(graph)):
            hidden |= OF_MASTER
        watched = {
            p: es
            for p, es in lines.tasks.items()
            if any((e.process, e.seq) in self._strange for e in es)
            or (self._from_start(p, es) and not self._may_lack([e for e in es if e.event in TASK_LINES]))
        }
        if not self._watching(place, lines, watched):
            hidden |= OF_TASK
        elif watched and not any("tm.submit" in self.facts.families[p] for p in watched):
            hidden |= {"receive"}
        if any(self._silent_on_failures(p) for p in watched):
            hidden |= {"crash"}
        known = [e for es in (masters, *watched.values()) for e in es]
        streams = [
            Stream(in_partial_order(es, [self._seen(wording, lines, e) for e in es]), OF_TASK, self._ends(p, known))
            for p, es in sorted(watched.items())
        ]
        if own is not None or not lines.sessions:
            speaking = {own[0]} if own else {p for p, s in self.facts.families.items() if "exec.transition" in s}
            silent = took_over or all(self._ends(p, known) for p in speaking)
            streams.append(Stream([self._held(wording, e) for e in masters], OF_MASTER, silent))
        streams += [
            Stream([wording.replayed(es[0])]) for session, es in lines.sessions.items() if is_replayed(es[0], session)
        ]
        return Task(self.job, system, hidden=hidden, streams=tuple(streams), explainer=wording)

    def _of_another(self, graph: str) -> bool:
        """Whether an execution graph belongs to a JobMaster without a log, judging by other logs."""
        return graph not in self._built and any(self._built)

    def _ends(self, process: str, events: Sequence[Event]) -> bool:
        """Whether a process's log may end before the last of these events that another one logged."""
        return self.facts.clocks.end(process) < self.facts.clocks.latest(e for e in events if e.process != process)

    def _may_lack(self, events: Sequence[Event]) -> bool:
        """Whether lines about an attempt may be in a missing part of a rotated log; not if one file has them all."""
        if not events or len(self.run.processes[events[0].process].files) < 2:
            return False
        return len({e.file for e in events}) > 1 or events[-1].args.get("new") not in OVER

    def _from_start(self, process: str, events: Sequence[Event]) -> bool:
        """Whether a TaskManager's account begins with the attempt rather than in the middle of it."""
        first = next((e for e in events if e.event in TASK_LINES), None)
        if first is None or first.event == "tm.submit":
            return True
        # If the log begins with active tasks, or has a gap, the line of the first of them may be in a missing part.
        begun = self._begun.get(process, inf) < first.seq or "tm.submit" not in self.facts.families[process]
        return first.args.get("old") == "CREATED" and begun and gap(self.run, (process,)) is None

    def _silent_on_failures(self, process: str) -> bool:
        """Whether a log omits failures of tasks, which Flink logs at WARN; a log of INFO lines alone has none of them."""
        said = self.facts.families[process]
        return "tm.final FAILED" in said and "tm.transition FAILED" not in said

    def _watching(self, place: str | None, lines: _Lines, watched: Mapping[str, Sequence[Event]]) -> bool:
        """Whether there is a log of the attempt's TaskManager that would mention it."""
        if any(e.event in TASK_LINES for es in watched.values() for e in es):
            return True
        if lines.tasks and not watched:
            return False
        if place is None:
            return False
        events = [e for es in lines.sessions.values() for e in es]
        deployed = [e for e in events if e.event == "exec.deploy"]
        # The first report implies that the task was received.
        reported = [e for e in events if e.args.get("new") in REPORTED][:1]
        return bool(deployed) and any(
            process.tm == place
            and "tm.transition" in self.facts.families.get(name, ())
            and self.facts.clocks.covers(name, [*deployed[-1:], *reported])
            for name, process in self.run.processes.items()
        )

    def _held(self, wording: AttemptExplainer, event: Event) -> Observation:
        wrong = self._wrong.get((event.process, event.seq))
        return wording.master(event) if wrong is None else Observation(event, impossible=wrong)

    def _seen(self, wording: AttemptExplainer, lines: _Lines, event: Event) -> Observation:
        wrong = self._wrong.get((event.process, event.seq))
        if wrong is not None:
            return Observation(event, impossible=wrong)
        if event.event in STORE_LINES:
            return wording.store(event, lines.partitions[event.args["dataset"]])
        return wording.task(event)
