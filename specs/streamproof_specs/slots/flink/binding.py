"""The binding of Flink's logs to slot allocation: every allocation id of a job is followed through its own machine.

The machine is `slot_views` with one allocation. The ResourceManager, the JobMaster and each TaskManager write streams of
their own, whose clocks are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from streamproof.conformance import Event, Observation, Plan, Stream, Task, Unit
from streamproof.conformance.flink import FlinkRun, problem_lines, read_run
from streamproof_specs.failover.flink.binding import MASTER_EVENTS
from streamproof_specs.flink.process_facts import ProcessFacts
from streamproof_specs.flink.scope import FlinkLogs, damage, doubted, outside, unscheduled
from streamproof_specs.slots.flink.checks import Key, wrong_lines
from streamproof_specs.slots.flink.delivered import Delivered
from streamproof_specs.slots.flink.gather import SlotLines, gather
from streamproof_specs.slots.flink.lines import HIDDEN_WITHOUT, SlotExplainer
from streamproof_specs.slots.flink.logical_slots import logical_slots
from streamproof_specs.slots.flink.recorded_machine import OF_JM, OF_RM, OF_TASKS, OF_TE, slot_system

SAMPLED = 4
"""Minimum number of missing lines at DEBUG that distinguishes a sample from a single removed or changed line."""

_CLUSTER = frozenset({"rm.close", "rm.register", "rm.slotregister"})
_BEGINNINGS = frozenset({"job.graph", "failover.strategy", "sched.strategy", "sched.adaptive"})
_BEFORE = {
    "slot.jm.match": "slot.jm.offers",
    "slot.jm.reserve": "slot.jm.match",
    "slot.jm.freereserved": "slot.jm.reserve",
    "slot.rm.complete": "slot.rm.pending",
    "slot.rm.freed": "slot.rm.complete",
}
"""Lines at DEBUG, each with one that precedes it."""


class FlinkSlots(FlinkLogs):
    """Follows every slot allocation of the jobs of a recorded Flink run."""

    def plan(self, run: Any, job_graph: Path | None) -> Plan:
        """One case per job; a job graph is not needed. Raises `InputError` for unreadable logs."""
        logged = read_run(run)
        facts = ProcessFacts.of(logged)
        cases = tuple(doubted(slots_of(logged, facts, job), logged, "slot.") for job in logged.jobs)
        problems, unknown = problem_lines(logged.problems), sum(logged.unknown.values())
        return Plan(logged.name, cases, logged.merged(), unknown, problems, nothing=logged.content)


def slots_of(run: FlinkRun, facts: ProcessFacts, job: str) -> Unit:
    """The slot allocations of one job, each as a behaviour."""
    never = unscheduled(run, job)
    if never is not None:
        return never
    delivered = Delivered.of(_events(run, job))
    events = delivered.events
    reasons = outside(run, job, [e for e in events if e.event in MASTER_EVENTS | _BEGINNINGS])
    slots = _Slots(run, facts, job, events, reasons.complete)
    tasks = tuple(slots.tasks())
    unjudged = () if reasons.complete else reasons.texts
    title = f"{run.jobs[job]}, {len(tasks)} slots"
    logical, missing = logical_slots(job, run.of_job(job), reasons.complete)
    doubt = delivered.doubt or slots.sampled or slots.silent or (sample_of(missing) if missing >= SAMPLED else None)
    return Unit(job, title, (*tasks, *logical), False, unjudged, damage(run), doubt, tuple(slots.notes()))


def sample_of(missing: int) -> str:
    """Why a contradiction proves nothing."""
    return f"{missing} lines at DEBUG are missing, without which others are not logged"


def _events(run: FlinkRun, job: str) -> tuple[Event, ...]:
    """The lines of a job. A slot whose job no line names is judged with the first job."""
    known = run.of_job(job)
    if len(run.jobs) < 2 or job != next(iter(run.jobs)):
        return known
    strange = [e for e in run.of_job("") if "alloc" in e.args]
    return tuple(sorted((*known, *strange), key=lambda e: (e.process, e.seq))) if strange else known


@dataclass
class _Slots:
    """The allocations of one job. `complete`: the JobManager's log of the job is complete from its beginning."""

    run: FlinkRun
    facts: ProcessFacts
    job: str
    events: Sequence[Event]
    complete: bool

    def tasks(self) -> Iterator[Task]:
        """One behaviour per allocation, in the order of first occurrence."""
        for alloc, lines in self._lines.items():
            yield self._task(alloc, lines)

    def notes(self) -> Iterator[str]:
        """What is missing."""
        blind = sum(not self._watched(lines) for lines in self._lines.values())
        if blind:
            yield f"{blind} of {len(self._lines)} slots are judged without the TaskManager's log"

    @property
    def sampled(self) -> str | None:
        """Why a contradiction proves nothing, if several lines at DEBUG are missing."""
        missing = 0
        for lines in self._lines.values():
            for process, events in (*lines.rm.items(), *lines.jm.items()):
                spoken, seen, lacking = self.facts.families[process], set[str](), set[str]()
                for event in events:
                    before = _BEFORE.get(event.event)
                    if before in spoken and before not in seen:
                        lacking.add(event.event)
                    seen.add(event.event)
                missing += len(lacking)
        return None if missing < SAMPLED else sample_of(missing)

    @property
    def silent(self) -> str | None:
        """Why lines of a TaskManager may be missing: all of a kind are. It frees slots at DEBUG if that level is on."""
        for lines in self._lines.values():
            freeing = any(_is_freed_by_report(es) for es in lines.rm.values())
            for process in lines.te:
                spoken = self.facts.families[process]
                if freeing and "slot.tm.free" not in spoken:
                    return f"no line of {process} says that a slot is freed: all lines at DEBUG may be missing"
                if "tm.submit" in spoken and "slot.tm.activate" not in spoken:
                    return f"no line of {process} says that a slot is activated: those of its logger may be missing"
        return None

    # --- collection

    @cached_property
    def _lines(self) -> dict[str, SlotLines]:
        return gather(self.events, [e for e in self.run.events if e.event == "rm.close"])

    @cached_property
    def _wrong(self) -> Mapping[Key, str]:
        places = {name: process.tm for name, process in self.run.processes.items() if process.tm is not None}
        cluster = [e for e in self.run.events if e.event in _CLUSTER]
        wrong = wrong_lines(self.events, cluster, places, complete=self.complete)
        return {**dict(self._undeployed()), **wrong}

    def _undeployed(self) -> Iterator[tuple[Key, str]]:
        """Tasks that were received, but not deployed by the only JobMaster."""
        if not self.complete or len(self._masters) != 1:
            return
        (master,) = self._masters
        graphs = {e.args["graph"] for e in self.events if e.event in ("exec.transition", "exec.deploy")}
        deployed = {e.args["attempt"] for e in self.events if e.event == "exec.deploy"}
        ends = self.facts.clocks.end(master)
        for event in self.events:
            strange = event.event == "tm.submit" and event.args["graph"] in graphs
            if strange and event.args["attempt"] not in deployed and ends >= self.facts.clocks.latest([event]):
                text = f"a task is received for slot {event.args['alloc']}, but none was deployed into it"
                yield (event.process, event.seq), text

    @cached_property
    def _masters(self) -> frozenset[str]:
        """Processes with a JobMaster of the job."""
        return frozenset(e.process for e in self.events if e.event in ("exec.transition", "exec.deploy"))

    @cached_property
    def _spoken(self) -> frozenset[str]:
        """The families of the job's lines."""
        return frozenset(e.event for e in self.events)

    # --- one allocation

    def _task(self, alloc: str, lines: SlotLines) -> Task:
        wording = SlotExplainer(alloc, "slot.jm.freereserved" in self._spoken)
        started = [p for p, es in lines.rm.items() if any(e.event == "slot.rm.alloc" for e in es)]
        rm: dict[str, list[Event]] = {p: lines.rm[p] for p in started} if self._is_whole(started) else {}
        masters = list(lines.jm) if lines.jm else list(self._masters)
        follows = self._is_whole(masters) and len(masters) <= 1 and (self.complete or bool(set(masters) & set(started)))
        jm = (lines.jm or {p: [] for p in masters}) if follows else {}
        watched = self._watched(lines)
        te = lines.te if watched else {}
        hidden = {action for action, family in HIDDEN_WITHOUT.items() if family not in self._spoken}
        if not (self.run.version or "").startswith("2."):
            hidden |= {"reserve"}  # a free slot is reserved without that line
        if not rm and self.complete and self._names_slots():
            rm = {p: [] for p in self._masters}
        elif not rm:
            hidden |= OF_RM
        if not follows:
            hidden |= OF_JM
        elif len(self._masters) > 1:
            hidden |= {"forget"}
        if not watched:
            hidden |= OF_TE - OF_TASKS
        known = [e for part in (rm, jm, te) for es in part.values() for e in es]
        streams = [
            Stream(self._seen(wording, es), actions, self._ends(process, known))
            for part, actions in ((rm, OF_RM), (jm, OF_JM), (te, OF_TE))
            for process, es in part.items()
        ]
        offers = sum(e.event == "slot.tm.offer" for es in te.values() for e in es)
        return Task(self.job, slot_system(offers), tuple(streams), frozenset(hidden), wording)

    def _seen(self, wording: SlotExplainer, events: Sequence[Event]) -> list[Observation]:
        found: list[Observation] = []
        inside = set[str]()
        for event in events:
            wrong = self._wrong.get((event.process, event.seq))
            is_last = event.event == "tm.final" and inside == {event.args["attempt"]}
            if event.event == "tm.submit":
                inside.add(event.args["attempt"])
            elif event.event == "tm.final":
                inside.discard(event.args["attempt"])
            line = wording.line(event, is_last=is_last) if wrong is None else Observation(event, impossible=wrong)
            found.append(line)
        return found

    def _ends(self, process: str, events: Sequence[Event]) -> bool:
        """Whether a process's log may end before the last of these events that another one logged."""
        return self.facts.clocks.end(process) < self.facts.clocks.latest(e for e in events if e.process != process)

    def _is_whole(self, processes: Sequence[str]) -> bool:
        """Whether no part of the JobManager's logs is missing."""
        return self.complete or all(len(self.run.processes[p].files) < 2 for p in processes)

    def _names_slots(self) -> bool:
        """Whether the ResourceManager's lines have allocation ids, as those of the fine-grained slot manager."""
        return "slot.rm.alloc" in self._spoken and any(lines.rm for lines in self._lines.values())

    def _watched(self, lines: SlotLines) -> bool:
        """Whether the log of the TaskManager has everything about the allocation."""
        if lines.te:
            return all(self._from_start(process, es) for process, es in lines.te.items())
        if lines.place is None:
            return False
        known = [
            e
            for es in (*lines.rm.values(), *lines.jm.values())
            for e in es
            if e.event in ("slot.rm.alloc", "exec.deploy")
        ]
        return any(
            process.tm == lines.place
            and process.started
            and len(process.files) < 2
            and "slot.tm.request" in self.facts.families.get(name, ())
            and self.facts.clocks.covers(name, known)
            for name, process in self.run.processes.items()
        )

    def _from_start(self, process: str, events: Sequence[Event]) -> bool:
        """Whether a TaskManager's lines about an allocation begin with it, and none is in a missing part."""
        if len(self.run.processes[process].files) < 2:
            return self.run.processes[process].started or events[0].event == "slot.tm.request"
        of_slot = [e for e in events if "alloc" in e.args]
        return (
            of_slot[0].event == "slot.tm.request"
            and of_slot[-1].event == "slot.tm.free"
            and (len({e.file for e in events}) == 1)
        )


def _is_freed_by_report(events: Sequence[Event]) -> bool:
    """Whether the ResourceManager frees the slot of a TaskManager to which it is connected."""
    first = next((e.event for e in events if e.event in ("slot.rm.freeing", "rm.close")), None)
    return first == "slot.rm.freeing"


BINDING = FlinkSlots()
