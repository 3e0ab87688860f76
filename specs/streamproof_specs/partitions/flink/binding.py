"""The binding of Flink's logs to the life cycle of result partitions: on TaskManagers, at the JobMaster, and connections.

Every partition of a job on a TaskManager is one behaviour, by the lines at DEBUG of its `ResultPartitionManager`; so is the
output of each attempt at the JobMaster, and the connection of each TaskManager to the processes of a JobManager.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from streamproof.conformance import Constraint, Event, Move, Observation, Plan, StateReader, Stream, Task, Unit
from streamproof.conformance.flink import FlinkRun, Partition, problem_lines, read_run
from streamproof_specs.failover.flink.binding import MASTER_EVENTS
from streamproof_specs.flink.scope import FlinkLogs, contradicted, damage, doubted, outside
from streamproof_specs.partitions.flink import ways
from streamproof_specs.partitions.flink.lines import PartitionExplainer
from streamproof_specs.partitions.flink.recorded_machine import (
    MOST_SUBPARTITIONS,
    connection_system,
    gates_system,
    output_system,
    partition_system,
)
from streamproof_specs.slots.flink.logical_slots import delivered

SAMPLED = 2
"""Minimum number of missing lines at DEBUG that distinguishes a sample from a single removed line."""
TYPES = {"BLOCKING": True, "PIPELINED": False, "PIPELINED_BOUNDED": False}
"""Types of partitions that are followed -> whether they stay until the JobMaster releases them."""
_OF_ONE = frozenset(
    f"part.{name}"
    for name in ("init", "registered", "request", "view", "consumed", "releasing", "released", "reqlocal")
)
"""Lines that name one partition."""
_ENDED = ("FINISHED", "CANCELED", "FAILED")
_SILENT = re.compile(r"timed out\.?$|is no longer reachable\.?$")
_BEGINNINGS = frozenset({"job.graph", "failover.strategy", "sched.strategy", "sched.adaptive"})
_MANAGERS = ("StandaloneResourceManager", "ActiveResourceManager", "ResourceManager")

_UNRELEASED = "a partition before it is being released, but no line says that it is released"

Key = tuple[str, str, str]
"""Process, dataset and producer of a partition."""


class FlinkPartitions(FlinkLogs):
    """Follows the result partitions of every job of a recorded Flink run."""

    def plan(self, run: Any, job_graph: Path | None) -> Plan:
        """One case for each job with lines about partitions, or connections. Raises `InputError` for unreadable logs."""
        logged = read_run(run)
        units = [partitions_of(logged, job) for job in logged.jobs]
        return Plan(
            logged.name,
            tuple(doubted(unit, logged, "part.") for unit in units if unit.tasks),
            logged.merged(),
            sum(logged.unknown.values()),
            problem_lines(logged.problems),
            nothing="no line of the run speaks of a partition, or of a connection to a TaskManager",
        )


def partitions_of(run: FlinkRun, job: str) -> Unit:
    """The partitions of one job, each as a behaviour; with the first job, the connections to TaskManagers."""
    events = run.of_job(job)
    reasons = outside(run, job, [e for e in events if e.event in MASTER_EVENTS | _BEGINNINGS])
    stores = _Stores(run, events, bool(reasons.announced))
    tasks = [stores.task(job, key, lines) for key, lines in stores.lines.items()]
    count = len(tasks)
    tasks += [contradicted(job, event, _UNRELEASED) for event in stores.unreleased]
    gates = list(_gates(job, run, events))
    tasks += gates
    if reasons.complete:
        tasks += _outputs(job, events)
        if job == next(iter(run.jobs)):
            tasks += _connections(run, job)
    title = f"{run.jobs[job]}, {count} partition{'' if count == 1 else 's'}"
    unit = Unit(job, title, tuple(tasks), False, (), damage(run), stores.sampled)
    if count or gates:
        return unit
    others = any(e.event.startswith("part.") for e in run.events)
    lacks = (
        "no line is about a partition of the job" if others else "no log of a TaskManager has lines at DEBUG about them"
    )
    return replace(unit, unrecorded=f"partitions are not checked: {lacks}")


@dataclass
class _Stores:
    """The lines about partitions in the logs of TaskManagers."""

    run: FlinkRun
    events: Sequence[Event]
    speculative: bool

    @cached_property
    def speaks(self) -> Mapping[str, set[str]]:
        """The families of each process."""
        found: dict[str, set[str]] = {}
        for event in self.run.events:
            found.setdefault(event.process, set()).add(event.event)
        return found

    @cached_property
    def finals(self) -> Mapping[tuple[str, str], Event]:
        """The final line of each task: the JobMaster gets its report afterwards."""
        return {(e.process, e.args["attempt"]): e for e in self.events if e.event == "tm.final"}

    @cached_property
    def lines(self) -> dict[Key, list[Event]]:
        """The lines about each partition, of which the log has the beginning."""
        found: dict[Key, list[Event]] = {}
        of_attempt: dict[tuple[str, str], list[Key]] = {}
        process_keys: dict[str, dict[Key, None]] = {}
        ended: dict[tuple[str, str], list[Event]] = {}
        for event in self.events:
            args, process = event.args, event.process
            if event.event in _OF_ONE or event.event == "net.partreq":
                key = (process, args["dataset"], args["producer"])
                if event.event in ("part.init", "part.registered") and key not in process_keys.get(process, {}):
                    found.setdefault(key, []).extend(ended.get((process, args["producer"]), ()))
                    of_attempt.setdefault((process, args["producer"]), []).append(key)
                    process_keys.setdefault(process, {})[key] = None
                found.setdefault(key, []).append(event)
            elif event.event == "part.tmrelease":
                keys = {(process, p.dataset, str(p.producer)) for p in map(Partition.parse, args["partitions"])}
                for key in keys | (process_keys.get(process, {}).keys() if "job" in args else set()):
                    found.setdefault(key, []).append(event)
            elif event.event in ("part.subfinished", "part.subreleased", "part.file", "tm.transition"):
                attempt = str(args.get("attempt") or args.get("by"))
                own = of_attempt.get((process, attempt), ())
                if event.event == "tm.transition" or len(own) == 1:
                    for key in own:
                        found[key].append(event)
                if event.event == "tm.transition" and args["new"] in _ENDED:
                    ended.setdefault((process, args["attempt"]), []).append(event)
        found = {key: sorted(lines, key=lambda e: e.seq) for key, lines in found.items()}
        return {key: lines for key, lines in found.items() if self._is_followed(key, lines)}

    def _is_followed(self, key: Key, lines: Sequence[Event]) -> bool:
        """Whether a partition is of a type that is followed, on a TaskManager whose log is complete from its start."""
        kinds = {e.args["type"] for e in lines if "type" in e.args}
        process = self.run.processes[key[0]]
        speaks = {"part.registered", "part.released"} & self.speaks[key[0]]
        complete = process.started and len(process.files) < 2
        told = "part.registered" in speaks and "tm.transition" in self.speaks[key[0]]
        return len(kinds) == 1 and kinds <= TYPES.keys() and complete and told

    @cached_property
    def _lists_of(self) -> Mapping[str, list[int]]:
        """The positions of lists of partitions to release, by process."""
        found: dict[str, list[int]] = {process: [] for process in self.run.processes}
        for event in self.events:
            if event.event == "part.tmrelease":
                found[event.process].append(event.seq)
        return found

    @property
    def sampled(self) -> str | None:
        """Why a contradiction proves nothing, if several lines at DEBUG are missing."""
        missing = 0
        unlisted = set[tuple[str, int]]()
        for (process, _, _), lines in self.lines.items():
            seen = Counter(e.event for e in lines)
            spoken = self.speaks[process]
            missing += "part.registered" not in seen
            missing += "part.releasing" in spoken and seen["part.released"] > seen["part.releasing"]
            missing += self.explains(process) and seen["part.request"] > seen["part.reqlocal"] + seen["net.partreq"]
            entered = next((at for at, e in enumerate(lines) if e.event == "part.registered"), 0)
            later = any(e.event == "part.view" for e in lines[entered:])
            missing += later and seen["part.request"] == 0
            stored = any(e.args.get("new") == "FINISHED" for e in lines) and any(
                TYPES.get(e.args.get("type", ""), False) for e in lines
            )
            if stored and not any(e.event == "part.tmrelease" and self.lists(e, lines) for e in lines):
                # One line lists several partitions, which are released before the next list.
                released = next((e.seq for e in lines if e.event == "part.released"), None)
                if released is not None:
                    unlisted.add((process, bisect_left(self._lists_of[process], released)))
        silent = {process for process, _ in unlisted if "part.tmrelease" not in self.speaks[process]}
        missing += len(unlisted) + SAMPLED * len(silent)
        gates = Counter[tuple[str, str]]()
        for event in self.events:
            if event.event in ("gate.created", "gate.released"):
                gates[event.process, event.args["attempt"]] += 1 if event.event == "gate.released" else -1
        missing += sum(more > 0 for more in gates.values()) + len(self.unreleased)
        return (
            None if missing < SAMPLED else f"{missing} lines at DEBUG are missing, without which others are not logged"
        )

    @cached_property
    def unreleased(self) -> list[Event]:
        """The next lines under the lock of the `ResultPartitionManager` after those that a partition is being released, of
        partitions that are not released: it holds the lock from the one line to the other."""
        locked: dict[str, list[Event]] = {}
        for event in self.events:
            if event.event in ("part.request", "part.released"):
                locked.setdefault(event.process, []).append(event)
        found = []
        for (process, _, _), lines in self.lines.items():
            begun = next((e for e in lines if e.event == "part.releasing"), None)
            if begun is not None and not any(e.event == "part.released" for e in lines):
                found += [e for e in locked.get(process, ()) if e.seq > begun.seq][:1]
        return found

    def explains(self, process: str) -> bool:
        """Whether a log has both lines that precede a request: of a local reader, and of a remote one."""
        return {"part.reqlocal", "net.partreq"} <= self.speaks[process]

    @staticmethod
    def lists(event: Event, lines: Iterable[Event]) -> bool:
        """Whether a line lists the partition that others are about."""
        names = {f"{e.args['dataset']}#{e.args['pnum']}@{e.args['producer']}" for e in lines if "pnum" in e.args}
        return not names.isdisjoint(event.args["partitions"])

    # --- one partition

    def task(self, job: str, key: Key, lines: Sequence[Event]) -> Task:
        """The behaviour of a partition."""
        process = key[0]
        first = next(e for e in lines if "type" in e.args)
        blocking, subparts = TYPES[first.args["type"]], first.args["subparts"]
        counted = 0 if subparts > MOST_SUBPARTITIONS else subparts
        name = f"partition {first.args['pnum']} of {key[1][:8]} of attempt {key[2][-12:]}"
        reads = sum(e.event in ("part.request", "part.reqlocal", "net.partreq", "part.view") for e in lines)
        system = partition_system(blocking, counted, _room(reads))
        reading = _Reading(self, process, blocking, counted, tuple(lines))
        wording = PartitionExplainer(name)
        observations = delivered(ways.begun(filter(None, map(reading.observation, range(len(lines)))), ways.RUNNING))
        return Task(job, system, (Stream(observations),), explainer=wording)


@dataclass
class _Reading:
    """The lines about one partition."""

    stores: _Stores
    process: str
    blocking: bool
    counted: int
    lines: Sequence[Event]

    def observation(self, at: int) -> Observation | None:
        """The meaning of a line; None for one that says nothing about the partition."""
        event = self.lines[at]
        args, enter = event.args, Move("enter")
        match event.event:
            case "part.init":
                return Observation(event, ((Move("set_up"),),))
            case "part.registered":
                # Written after the lock is released: a request may come first.
                return Observation(event, ((Move("show"),), (enter, Move("show"))))
            case "part.file":
                return Observation(event, ((Move("store"),),))
            case "part.reqlocal" | "net.partreq":
                return Observation(event, ((Move("ask"),),))
            case "part.request":
                return self._request(at)
            case "part.view":
                return self._view(at)
            case "part.consumed":
                return Observation(event, ways.consumed(self._has_ended(at)))
            case "part.subfinished" | "part.subreleased":
                action = "fill" if event.event == "part.subfinished" else "free"
                return Observation(event, ((Move(action, {"i": args["sub"]}),),) if self.counted else ((),))
            case "part.releasing":
                return Observation(event, self._entered(at, ((Move("begin_release"),),)))
            case "part.released":
                released = ways.released(self.blocking)
                if "part.releasing" in self.stores.speaks[self.process]:
                    return Observation(event, released)
                return Observation(event, self._entered(at, ways.after(Move("begin_release"), released)))
            case "part.tmrelease":
                return self._listed(at)
            case "tm.transition" if args["new"] in _ENDED:
                return Observation(event, ways.FINISHED if args["new"] == "FINISHED" else ((Move("show_ended"),),))
            case _:
                return None

    def _request(self, at: int) -> Observation:
        event = self.lines[at]
        views = 0
        if not self.blocking and self.counted and "part.view" in self.stores.speaks[self.process]:
            views = _size(event)
        served = ways.requested(min(views, self.counted))
        if not self.stores.explains(self.process):
            served = ways.after(Move("ask"), served)
        return Observation(event, self._entered(at, served))

    def _view(self, at: int) -> Observation:
        """A view: by a request, or before the line "Registered" for a remote reader whose request came before."""
        event, view = self.lines[at], Move("view")
        if not self.counted:
            return Observation(event, ((),))
        if not self._is_to_come("part.registered", at):
            return Observation(event, ((view,),))
        asked: tuple[Move, ...] = (Move("ask"),)
        sizes = {1}
        if self.stores.explains(self.process):
            asked, sizes = (), {_size(e) for e in self.lines[:at] if e.event == "net.partreq"}
        granted = tuple((*asked, Move("grant", {"n": min(n, self.counted)}), view) for n in sorted(sizes))
        return Observation(event, self._entered(at, ((view,), *granted)))

    def _is_to_come(self, family: str, at: int) -> bool:
        """Whether a line of a family comes after a line."""
        return any(e.event == family for e in self.lines[at:])

    def _has_ended(self, at: int) -> bool:
        """Whether the producer has failed or was cancelled before a line."""
        return any(e.event == "tm.transition" and e.args["new"] in ("CANCELED", "FAILED") for e in self.lines[:at])

    def _entered(self, at: int, some: ways.Ways) -> ways.Ways:
        """A step under the lock, before which the partition was registered if the line about that comes later."""
        if self._is_to_come("part.registered", at):
            return (*some, *ways.after(Move("enter"), some))
        return some

    def _listed(self, at: int) -> Observation:
        """A list of partitions to release; the last one, for the job, has all that were not listed before."""
        event = self.lines[at]
        if self.stores.lists(event, self.lines):
            reader = None if "job" in event.args or not self.blocking else self._reader(at)
            wrong = None if reader is None else f"the partition is to be released, but {reader} still reads it"
            return Observation(event, ways.listed(self.blocking, "job" in event.args), impossible=wrong)
        if not self.blocking:
            return Observation(event)

        def kept(look: StateReader) -> bool:
            return look("stage") == "REGISTERED" and look("producer") == "FINISHED" and not look("listed")

        left = Constraint(
            "all partitions of the job are to be released, but this one, which was not released before, is not among them",
            lambda look: not kept(look),
        )
        return Observation(event, before=(left,))

    def _reader(self, at: int) -> str | None:
        """A task of this TaskManager that reads the partition before a line, and finishes after it. The JobMaster releases a
        partition when its consumers have finished, or ended otherwise."""
        if self.stores.speculative:
            return None
        event = self.lines[at]
        readers = {
            str(e.args["by"])
            for e in self.lines[:at]
            if e.event == "part.reqlocal" and "by" in e.args and e.seq < event.seq
        }
        return next(
            (
                reader
                for reader in sorted(readers)
                for end in [self.stores.finals.get((self.process, reader))]
                if end is not None and end.seq > event.seq and end.args["new"] == "FINISHED"
            ),
            None,
        )


def _room(most: int) -> int:
    """A bound that many behaviours share, and so their machine: a power of two."""
    return 1 << max(5, most.bit_length())


def _size(request: Event) -> int:
    """The number of subpartitions that a line asks for."""
    return 1 if "sub" in request.args else int(request.args["to"] - request.args["from"]) + 1


def _gates(job: str, run: FlinkRun, events: Sequence[Event]) -> Iterator[Task]:
    """The input gates of attempts, by the logs of TaskManagers that are complete from their start."""
    lines: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        known = run.processes[event.process]
        if event.event in ("gate.created", "gate.released") and known.started and len(known.files) < 2:
            lines.setdefault((event.process, event.args["attempt"]), []).append(event)
    finished = {
        (e.process, e.args["attempt"]) for e in events if e.event == "tm.transition" and e.args["new"] == "FINISHED"
    }
    for (process, attempt), own in lines.items():
        gates = max(sum(e.event == "gate.created" for e in own), *(e.args.get("gate", -1) + 1 for e in own))
        if gates <= MOST_SUBPARTITIONS:
            observations = delivered(ways.begun(_gate_lines(own, (process, attempt) in finished), ways.CONNECTED))
            wording = PartitionExplainer(f"an input gate of attempt {attempt[-12:]}")
            yield Task(job, gates_system(gates), (Stream(observations),), explainer=wording)


def _gate_lines(own: Sequence[Event], finished: bool) -> Iterator[Observation]:
    """The lines about the gates of an attempt, which has finished or failed."""
    created = 0
    for event in own:
        if event.event == "gate.created":
            yield Observation(event, (ways.gate_created(created),))
            created += 1
        else:
            yield Observation(event, ways.gate_closed(event.args["gate"], finished))


def _outputs(job: str, events: Sequence[Event]) -> Iterator[Task]:
    """The outputs of the attempts that the JobMaster discards."""
    lines: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        if event.event in ("exec.transition", "exec.discard"):
            lines.setdefault((event.process, event.args["attempt"]), []).append(event)
    for (_, attempt), own in lines.items():
        if any(e.event == "exec.discard" for e in own) and own[0].args.get("old") == "CREATED":
            observations = delivered(filter(None, map(_output, own)))
            yield Task(
                job, output_system(), (Stream(observations),), explainer=PartitionExplainer(f"attempt {attempt}")
            )


def _output(event: Event) -> Observation | None:
    if event.event == "exec.discard":
        return Observation(event, ways.DISCARDED)
    if event.args["new"] == "DEPLOYING":
        return Observation(event, ways.DEPLOYED)
    if event.args["new"] == "FINISHED":
        return Observation(event, ways.OUTPUT_FINISHED)
    return Observation(event, ((Move("show_ended"),),)) if event.args["new"] in _ENDED else None


def _connections(run: FlinkRun, job: str) -> Iterator[Task]:
    """The TaskManagers, as each process with a ResourceManager knows them, if its log is complete from its beginning."""
    lines: dict[tuple[str, str], list[Event]] = {}
    for event in run.events:
        tm = event.args.get("tm") if event.event in _NAMING else event.args.get("id")
        if event.event in _NAMING or event.event in ("hb.recv", "hb.mark", "hb.timeout", "hb.unreachable"):
            lines.setdefault((event.process, str(tm)), []).append(event)
    for (process, tm), own in lines.items():
        names = {e.event for e in own}
        whole = len(run.processes[process].files) < 2 and run.processes[process].role in ("jobmanager", "both")
        if not whole or own[0].event != "rm.register" or own[0].trace not in ("", job):
            continue
        losses = sum(e.event.startswith("hb.") and e.event != "hb.recv" for e in own)
        observations = delivered(_connection(e) for e in own)
        wording = PartitionExplainer(f"TaskManager {tm}")
        if names - {"rm.register"}:
            yield Task(job, connection_system(_room(losses)), (Stream(observations),), explainer=wording)


_NAMING = frozenset({"rm.register", "rm.slotregister", "rm.close", "jm.disconnect"})


def _connection(event: Event) -> Observation:
    args = event.args
    silent = bool(_SILENT.search(str(args.get("why", ""))))
    master = args.get("component") not in _MANAGERS
    match event.event:
        case "jm.disconnect":
            return Observation(event, (ways.disconnected(silent),))
        case "rm.register":
            move = Move("show_registered")
        case "rm.slotregister":
            move = Move("add_slots" if args["what"] == "Registering" else "drop_slots")
        case "rm.close":
            move = Move("show_closed", {"silent": silent})
        case "hb.recv":
            move = Move("answer")
        case "hb.mark":
            move = Move("mark")
        case _:
            move = Move("show_lost", {"master": master})
    return Observation(event, ((move,),))


BINDING = FlinkPartitions()
