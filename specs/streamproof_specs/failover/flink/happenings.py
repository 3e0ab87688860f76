"""What happened to a job, in order, from the lines of Flink's logs: causes with their messages and places, decisions,
restored state, lost work. It restates lines; whether they are right is the machines' judgement."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamproof.conformance import Designed, Event, Happening, seconds_of
from streamproof.conformance.flink import FlinkRun
from streamproof_specs.failover.flink.explain import listed
from streamproof_specs.flink.process_facts import ProcessFacts

ENDED = frozenset({"FINISHED", "CANCELED", "FAILED"})
"""States of attempts that have ended, and of jobs."""
_OF_TASKMANAGER = frozenset({"tm.transition", "tm.final"})
_UNUSED = "has no more allocated slots for job"
"""Why the JobMaster disconnects a TaskManager that it does not need any more: no loss."""
_MESSAGE = 300
"""Largest number of characters shown of a message."""
_DEPLOYED = ("DEPLOYING", "INITIALIZING", "RUNNING")
"""The states of an attempt on a TaskManager."""
_FAILED_CHECKPOINT = {
    "ckpt.failed": "fails",
    "ckpt.expired": "expires before it completes",
    "ckpt.declined": "is declined",
}


def happenings(run: FlinkRun, facts: ProcessFacts, job: str) -> tuple[Happening, ...]:
    """What happened to a job, by the logs of its JobManagers and of the TaskManagers, by time; each process keeps the order
    of its lines."""
    own = run.of_job(job)
    finished = {e.args["attempt"]: e for e in own if e.event in _OF_TASKMANAGER and e.args["new"] == "FINISHED"}
    masters = dict.fromkeys(e.process for e in own if e.event in ("exec.transition", "job.transition"))
    found: list[tuple[str, Happening]] = []
    for process in masters:
        about = [*(e for e in own if e.process == process), *facts.connections.get(process, ())]
        last = ""
        checkpointed = any(e.event == "ckpt.trigger" for e in about)
        for happening in _Reader(finished, checkpointed).read(sorted(about, key=lambda e: e.seq)):
            last = max(last, happening.at or "")
            found.append((last, happening))
    others = list(_of_taskmanagers(run, facts, own, masters))
    missed = {h.text.removesuffix(_MISSES): h.at or "" for h in others if h.text.endswith(_MISSES)}
    for process in masters:
        noticed = {e.args.get("id", e.args.get("tm")) for e in facts.connections.get(process, ())
                   if e.event != "rm.register"}  # fmt: skip
        gone = _gone(run, own, process, max((at for tm, at in missed.items() if tm not in noticed), default=""))
        found += [(gone.at or "", gone)] if gone is not None else []
    found = sorted([*found, *((h.at or "", h) for h in others)], key=lambda pair: pair[0])
    return tuple(_after_the_end(happening for _, happening in found))


_MISSES = " loses its connection to the JobManager"
_NOT_REPORTED = "by the TaskManager's log; no log of a JobManager shows the end of the attempt"


def _of_taskmanagers(
    run: FlinkRun, facts: ProcessFacts, own: Sequence[Event], masters: Collection[str]
) -> Iterator[Happening]:
    """What only the logs of the TaskManagers show: a lost JobManager, tasks that fail without it, TaskManagers that end
    themselves."""
    known = {e.args["attempt"] for e in own if e.event == "exec.transition" and e.args["new"] in ENDED}
    ended: set[str] = set()
    for event in own:
        args, process = event.args, event.process
        if process in masters:
            continue
        tm = run.processes[process].tm or process
        if event.event == "tm.closejm" and _lost_jobmanager(facts, event):
            yield _at("lost", event, f"{tm}{_MISSES}")
        elif event.event == "tm.transition" and args["new"] == "FAILED" and args["attempt"] not in known:
            cause = f": {_cut(args['cause'])}" if "cause" in args else ""
            text = f"{args['task']} ({args['subtask'] + 1}/{args['parallelism']})#{args['number']} fails on {tm}{cause}"
            yield _at("failure", event, text, (_NOT_REPORTED,))
        fatal = next((e for e in facts.connections.get(process, ()) if e.event == "tm.fatal"), None)
        if fatal is not None and process not in ended:
            ended.add(process)
            cause = f": {_cut(fatal.args['cause'])}" if "cause" in fatal.args else " after a fatal error"
            yield replace(_at("lost", fatal, f"TaskManager {tm} ends itself{cause}"), process=tm)


def _gone(run: FlinkRun, own: Sequence[Event], process: str, missed: str) -> Happening | None:
    """The end of a JobManager's log while the job has not ended, if a TaskManager missed it afterwards (`missed`: when) whose
    loss is not in this log: a JobManager that is there notices that."""
    state = next((e.args["new"] for e in reversed(own) if (e.process, e.event) == (process, "job.transition")), None)
    last = next(e for e in reversed(run.events) if e.process == process)
    if state is None or state in ENDED or not missed or (last.ts or "") > missed:
        return None
    return _at("lost", last, "the JobManager is gone: its log ends", (f"the last known state of the job is {state}",))


def _after_the_end(found: Iterable[Happening]) -> Iterator[Happening]:
    """What is lost after the job has ended is no cause."""
    over = False
    for happening in found:
        yield replace(happening, kind="after") if over and happening.kind == "lost" else happening
        if happening.kind in ("job", "failure") and happening.text.startswith("the job is "):
            over = happening.text[len("the job is ") :].partition(":")[0] in ENDED


def _lost_jobmanager(facts: ProcessFacts, closed: Event) -> bool:
    """Whether a TaskManager closes its connection because it no longer reaches the JobManager."""
    before = (e for e in facts.connections.get(closed.process, ()) if closed.seq - 3 <= e.seq < closed.seq)
    return any(e.args.get("what") == "JobManager" for e in before)


_LATE = Designed(
    "the JobManager decides by what it has been told: an attempt that it fails is failed, although it has finished meanwhile",
    "flink-deviations.md#failover-flip-1-phase-2",
)


@dataclass(slots=True)
class _Reader:
    """Reads the lines of one JobManager about a job."""

    finished: Mapping[str, Event]
    """The lines of TaskManagers about attempts that finished, by attempt."""
    checkpointed: bool
    """Whether the job has checkpoints, at any time."""
    state: dict[str, str] = field(default_factory=dict)
    """The attempts with their states, in the order in which they began."""
    name: dict[str, str] = field(default_factory=dict)
    place: dict[str, str] = field(default_factory=dict)
    host: dict[str, str] = field(default_factory=dict)
    """The host of each TaskManager."""
    lost: set[str] = field(default_factory=set)
    triggered: dict[int, str | None] = field(default_factory=dict)
    """The checkpoints, with the times at which they were triggered."""
    failed: bool = False
    """Whether something failed since the last restore."""
    over: bool = False
    lacking: bool = False
    unplaced: set[str] = field(default_factory=set)
    """The attempts at work that the log does not show being deployed, since it lacks its beginning or a part."""

    def read(self, events: Sequence[Event]) -> Iterator[Happening]:
        """The happenings, in the order of the lines."""
        deployed = {e.args["attempt"] for e in events if e.event == "exec.deploy"}
        self.unplaced = {
            e.args["attempt"] for e in events if e.event == "exec.transition" and e.args["old"] in _DEPLOYED
        } - deployed
        for event in events:
            args = event.args
            match event.event:
                case "exec.deploy":
                    self.place[args["attempt"]], self.host[args["tm"]] = args["tm"], args["host"]
                    self.lacking = False
                case "exec.transition":
                    yield from self._attempt(event, args)
                case "job.transition":
                    yield from self._job(event, args)
                case "failover.restart" | "failover.global.restart":
                    yield _at("decision", event, self._decided(event, args))
                case "failover.global":
                    yield from self._failure(event, "the whole job fails", args)
                case "hb.unreachable" | "hb.timeout" if args["what"] == "TaskManager":
                    gone = event.event == "hb.unreachable"
                    how = "is no longer reachable" if gone else "is silent: its heartbeat timed out"
                    yield from self._lost(event, args["id"], how)
                case "jm.disconnect" | "rm.close" if not self.over and _UNUSED not in args["why"]:
                    yield from self._lost(event, args["tm"], f"is disconnected: {_cut(args['why'])}")
                case "rm.register" if args["tm"] in self.lost:
                    self.lost.discard(args["tm"])
                    text = f"TaskManager {self._at_host(args['tm'])} registers again"
                    yield replace(_at("returned", event, text), process=args["tm"])
                case "slot.unfulfilled" | "slot.jm.notenough" if not self.lacking:
                    self.lacking = True
                    yield _at("resources", event, "there are not enough slots for the job")
                case _ if event.event.startswith("ckpt."):
                    yield from self._checkpoint(event, args)

    def _attempt(self, event: Event, args: Mapping[str, Any]) -> Iterator[Happening]:
        attempt, new = args["attempt"], args["new"]
        self.name[attempt] = f"{args['task']} ({args['subtask'] + 1}/{args['parallelism']})"
        self.state[attempt] = new
        if new != "FAILED":
            return
        place = self.place.get(attempt, args.get("tm"))
        where = f" on {self._at_host(place)}" if place else ""
        yield from self._failure(event, f"{self.name[attempt]}#{args['number']} fails{where}", args)
        done = self.finished.get(attempt)
        if done is not None:
            seconds = _seconds(done.ts, event.ts)
            when = f" {seconds:.3f} s before" if seconds is not None and seconds >= 0 else ", but"
            text = f"finished work is discarded: {self.name[attempt]}#{args['number']} had FINISHED{where}{when}"
            place = f"{done.file}:{done.line}" if done.file and done.line else done.process
            lost = _at("discarded", event, f"{text} the JobManager fails it", (f"its end is at {place}",))
            yield replace(lost, designed=_LATE)

    def _failure(self, event: Event, what: str, args: Mapping[str, Any]) -> Iterator[Happening]:
        self.failed = True
        cause, causes = args.get("cause"), args.get("causes", ())
        facts = [f"the innermost cause is {causes[-1]}"] if len(causes) > 1 else []
        if (producer := args.get("producer")) in self.name:
            tm = self.place.get(producer)
            where = f" on {self._at_host(tm)}{', which is lost' if tm in self.lost else ''}" if tm else ""
            facts.append(f"the partition is a result of {self.name[producer]}#{producer.rpartition('_')[2]}{where}")
        yield _at("failure", event, f"{what}: {_cut(cause)}" if cause else what, facts)

    def _job(self, event: Event, args: Mapping[str, Any]) -> Iterator[Happening]:
        new = args["new"]
        again = " again, with a new execution graph" if self.over and new == "RUNNING" else ""
        self.over = new in ENDED or new == "SUSPENDED" or (self.over and not again)
        failed = new in ("FAILING", "FAILED")
        self.failed = self.failed or failed
        cause = args.get("cause")
        text = f"the job is {new}{again}" + (f": {_cut(cause)}" if cause else "")
        yield _at("failure" if failed else "job", event, text)

    def _decided(self, event: Event, args: Mapping[str, Any]) -> str:
        many = f"{args['count']} task{'' if args['count'] == 1 else 's'}"
        if event.event == "failover.global.restart":
            return f"the JobManager restarts {many}, because the whole job failed"
        of = self.name.get(args["attempt"])
        return f"the JobManager restarts {many}" + (f", because {of}#{args['number']} failed" if of else "")

    def _lost(self, event: Event, tm: str, how: str) -> Iterator[Happening]:
        if tm in self.lost:
            return
        self.lost.add(tm)
        here = [attempt for attempt, place in self.place.items() if place == tm]
        latest = {self.name[a]: a for a in self.state}
        done = [self.name[a] for a in here if self.state.get(a) == "FINISHED" and latest[self.name[a]] == a]
        work = [self.name[a] for a in here if self.state.get(a, "FINISHED") not in ENDED]
        if any(self.state.get(attempt) not in ENDED for attempt in self.unplaced):
            held = [f"it held at least {listed(work, 12)}" if work else "the log does not show which tasks it had"]
        else:
            held = [f"it held {listed(work, 12)}" if work else "no task of the job was at work on it"]
        if done:
            held.append(f"on it had finished {listed(done, 12)}")
        yield replace(_at("lost", event, f"TaskManager {self._at_host(tm)} {how}", tuple(held)), process=tm)

    def _checkpoint(self, event: Event, args: Mapping[str, Any]) -> Iterator[Happening]:
        match event.event:
            case "ckpt.trigger":
                self.triggered[args["checkpoint"]] = event.ts
            case "ckpt.restore":
                number, self.failed = args["checkpoint"], False
                since = self.triggered.get(number)
                fact = f"it was triggered {since}" if since else "it was triggered before the log begins"
                restored = _at("restored", event, f"{args['kind'].lower()} {number} is restored", (fact,))
                yield replace(restored, checkpoint=number)
            case "ckpt.none" if self.failed and self.checkpointed:
                self.failed = False
                text = "no checkpoint is found: what restarts begins without state"
                yield replace(_at("restored", event, text), checkpoint=0)
            case "ckpt.none":
                self.failed = False
            case "ckpt.savepoint":
                yield _at("restored", event, f"the job starts from the savepoint {_cut(args['path'])}")
            case kind if kind in _FAILED_CHECKPOINT:
                cause = f": {_cut(args['cause'])}" if "cause" in args else ""
                text = f"checkpoint {args['checkpoint']} {_FAILED_CHECKPOINT[kind]}{cause}"
                yield _at("checkpoint", event, text)

    def _at_host(self, tm: str | None) -> str:
        host = self.host.get(tm or "")
        return f"{tm} ({host})" if host else str(tm)


def _at(kind: str, event: Event, text: str, facts: Sequence[str] = ()) -> Happening:
    return Happening(kind, event.ts, text, tuple(facts), event.file, event.line)


def _cut(text: Any) -> str:
    shown = str(text)
    return shown if len(shown) <= _MESSAGE else f"{shown[:_MESSAGE]} ..."


def _seconds(begin: str | None, end: str | None) -> float | None:
    """The time between two times of one clock, in seconds; None if one is not known or has no date."""
    first, last = seconds_of(begin), seconds_of(end)
    return None if first is None or last is None else last - first
