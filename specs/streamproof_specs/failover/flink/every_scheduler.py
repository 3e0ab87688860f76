"""What holds of a job's lines under every scheduler, also where the failover machine does not follow the job.

Each rule looks at the lines of one JobMaster alone, in their order. Restart decisions and the numbers of attempts differ
from scheduler to scheduler, and are judged with the failover machine only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import networkx

from streamproof.conformance import Event
from streamproof_specs.failover.flink.explain import listed

TERMINAL: Final = frozenset({"FINISHED", "CANCELED", "FAILED", "SUSPENDED"})
"""States of a job that an execution graph never leaves (`JobStatus.isTerminalState`)."""
JOB_BEFORE: Final[Mapping[str, frozenset[str]]] = {
    "INITIALIZING": frozenset(),
    "CREATED": frozenset({"INITIALIZING"}),
    "RUNNING": frozenset({"INITIALIZING", "CREATED", "RESTARTING", "RECONCILING"}),
    "RESTARTING": frozenset({"RUNNING"}),
    "FINISHED": frozenset({"RUNNING", "RECONCILING"}),
    "CANCELED": frozenset({"INITIALIZING", "CREATED", "RUNNING", "RESTARTING", "RECONCILING", "CANCELLING"}),
}
"""States of a job (`org.apache.flink.api.common.JobStatus`) with their predecessor states in `DefaultExecutionGraph`
and the schedulers; a job may be failed or suspended in any state that is not terminal. A job that is FAILING ends in
FAILED, unless it is cancelled, which a line says: CANCELLING."""

AT_WORK: Final = frozenset({"SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING"})


def never(old: str, new: str) -> bool:
    """Whether no job switches from one state to the other."""
    return old == new or old in TERMINAL or old not in JOB_BEFORE.get(new, {old})


def breaches(
    events: Sequence[Event], *, complete: bool, speculative: bool, adaptive: bool = False
) -> Iterator[tuple[Event, str]]:
    """The lines of one JobMaster that break a rule, each with the reason.

    `complete`: no part of its log is missing. `speculative`: a task may have several attempts at a time. `adaptive`: the
    job may end without an execution graph.
    """
    states = [e.args["new"] for e in events if e.event == "job.transition"]
    state: dict[tuple[str, str, int], dict[int, str]] = {}
    at_work: dict[tuple[str, str, int], set[int]] = {}
    name: dict[tuple[str, str, int], str] = {}
    for event in events:
        args = event.args
        if event.event == "job.transition":
            old, new = args["old"], args["new"]
            if never(old, new):
                yield event, f"a job never switches from {old} to {new}"
            if complete and new == "FINISHED" and any(at_work.values()):
                working = [
                    f"{name[task]} attempt {number} is {state[task][number]}"
                    for task in state
                    for number in sorted(at_work[task])
                ]
                yield event, f"the job is FINISHED, but {listed(working)}"
        elif event.event == "job.terminal" and complete and states and not adaptive:
            if args["new"] not in states and TERMINAL.isdisjoint(states):
                yield event, f"the job is {args['new']}, but no line says that it switched to that; it is {states[-1]}"
        elif event.event == "exec.transition" and complete:
            task = (args["graph"], args["vertex"], args["subtask"])
            name[task] = f"{args['task']} ({args['subtask'] + 1}/{args['parallelism']})"
            attempts, number, new = state.setdefault(task, {}), args["number"], args["new"]
            now_at_work = at_work.setdefault(task, set())
            other = min(now_at_work - {number}, default=None)
            if new in AT_WORK and attempts.get(number) is None and other is not None and not speculative:
                yield event, f"attempt {number} of {name[task]} begins, but attempt {other} is {attempts[other]}"
            attempts[number] = new
            (now_at_work.add if new in AT_WORK else now_at_work.discard)(number)


def deployed_to_lost(events: Sequence[Event], job: str) -> Iterator[tuple[Event, str]]:
    """Deployments to a TaskManager that the JobMaster and the ResourceManager of one process have disconnected.

    `events` are all events of that process. One that reconnects registers at the ResourceManager, perhaps a moment after it
    offered its slots to the JobMaster: a deployment counts if it never does, up to the end of the job.
    """
    lost: dict[str, Event] = {}
    closed: set[str] = set()
    found: dict[str, list[tuple[Event, str]]] = {}
    for event in events:
        tm = str(event.args.get("tm"))
        match event.event:
            case "jm.disconnect" if event.trace == job:
                lost[tm] = event
            case "rm.close":
                closed.add(tm)
            case "rm.register":
                closed.discard(tm)
                found.pop(tm, None)
            case "exec.deploy" if event.trace == job and tm in closed and tm in lost:
                reason = f"the task is deployed to {tm}, which line {lost[tm].line} disconnects, and which does not come back"
                found.setdefault(tm, []).append((event, reason))
            case "job.transition" if event.trace == job and event.args["new"] in TERMINAL:
                for several in found.values():
                    yield from several
                found.clear()


_LOST: Final = re.compile(
    r".*\.(?P<by>JobMaster|ResourceManager|Timeout)Exception: (?:The heartbeat of |Heartbeat of )?TaskManager with id"
    r" (?P<tm>\S+) (?:is no longer reachable|timed out)\.?"
)


def lost_without_line(events: Sequence[Event], job: str) -> Iterator[tuple[Event, str]]:
    """Tasks that fail because a TaskManager was lost, although no line says so.

    `events` are all events of one process. Its JobMaster or its ResourceManager writes that line before it fails the tasks.
    A log may begin between them: the first failure counts if other lines of the job precede it.
    """
    lost = {(e.args["id"], e.args["component"]) for e in events if e.event in ("hb.timeout", "hb.unreachable")}
    managers = {e.event for e in events if e.event.startswith("rm.")}
    begun = False
    for event in events:
        found = _LOST.fullmatch(event.args.get("cause", "")) if event.event == "exec.transition" else None
        if found is None or event.trace != job:
            begun |= event.trace == job and event.event == "exec.transition"
            continue
        by = {component for tm, component in lost if tm == found["tm"]}
        ours = found["by"] == "JobMaster" or (found["by"] == "ResourceManager" and "rm.register" in managers)
        missing = not any(found["by"] in component for component in by) if ours else False
        if begun and missing and event.args["new"] == "FAILED":
            yield event, f"the task fails because TaskManager {found['tm']} is lost, but no line says that it is lost"
            return


def hang(waiting: Mapping[str, Iterable[str]], tasks: Mapping[str, Collection[str]]) -> str | None:
    """Why tasks were never scheduled: regions that wait for each other's results in a circle; None if there is none.

    `waiting` has the regions of which no task was scheduled, with those whose results they read; `tasks` the tasks of all.
    """
    graph = networkx.DiGraph([(r, other) for r, others in waiting.items() for other in others if other in waiting])
    try:
        circle = networkx.find_cycle(graph)
    except networkx.NetworkXException:
        return None
    waits = (f"region {{{listed(tasks[r])}}} waits for {{{listed(tasks[other])}}}" for r, other in circle)
    return f"no task of a circle of regions was ever scheduled: {', '.join(waits)}"
