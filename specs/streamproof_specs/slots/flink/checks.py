"""Lines about slots that contradict other lines of the same process, or the lines of another one about the same object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streamproof.conformance import Event

ENDED = ("FINISHED", "CANCELED", "FAILED")

Key = tuple[str, int]
"""Process and position of an event."""


def wrong_lines(
    events: Sequence[Event], cluster: Iterable[Event], places: Mapping[str, str], *, complete: bool
) -> dict[Key, str]:
    """The lines of a job that cannot be true, each with the reason.

    `events` are the job's, `cluster` those about TaskManagers; `places` has the TaskManager of each process. `complete`:
    no part of the JobManager's log is missing.
    """
    deployed = {e.args["attempt"]: e for e in reversed(events) if e.event == "exec.deploy"}
    wrong: dict[Key, str] = {}
    wrong.update(_on_other_executors(events, places))
    wrong.update(_deployments(events, deployed))
    wrong.update(_freed_under_tasks(events))
    if complete:
        wrong.update(_on_lost_executors(events, cluster))
        wrong.update(_shared_wrongly(events))
    return wrong


def _where(event: Event) -> str:
    return f"{Path(event.file or event.process).name}:{event.line}"


def _deployments(events: Sequence[Event], deployed: Mapping[str, Event]) -> Iterator[tuple[Key, str]]:
    """`submitTask` activates the slot and then logs the task, in the TaskManager's main thread."""
    active: dict[str, list[Event]] = {}
    seen: set[tuple[str, str | None, str]] = set()
    for event in events:
        if event.event == "slot.tm.activate":
            known = active.setdefault(event.process, [])
            about = (event.process, event.ts, event.args["alloc"])
            # A line that was delivered again does not show which one is the last.
            known[:] = [*(e for e in known if e.ts == event.ts or about in seen), event]
            seen.add(about)
        elif event.event == "tm.submit":
            alloc, other, last = event.args["alloc"], deployed.get(event.args["attempt"]), active.get(event.process)
            if last and all(e.args["alloc"] != alloc for e in last):
                text = (
                    f"the task is deployed into slot {alloc}, but the slot activated for it is {last[-1].args['alloc']}"
                )
                yield (event.process, event.seq), f"{text} at {_where(last[-1])}"
            elif other is not None and other.args["alloc"] != alloc:
                at, against = (other, event) if last else (event, other)
                text = (
                    f"the slot of the attempt is {at.args['alloc']}, but {against.args['alloc']} at {_where(against)}"
                )
                yield (at.process, at.seq), text


def _freed_under_tasks(events: Sequence[Event]) -> Iterator[tuple[Key, str]]:
    """A TaskManager that frees a slot with tasks fails them at once, with a line for each."""
    inside: dict[tuple[str, str], set[str]] = {}
    slot: dict[tuple[str, str], str] = {}
    freed: dict[tuple[str, str], Event] = {}
    later: dict[tuple[str, str], Event] = {}
    for event in events:
        name, args = event.event, event.args
        about = (event.process, args.get("attempt", ""))
        match name:
            case "tm.submit":
                slot[about] = args["alloc"]
                inside.setdefault((event.process, args["alloc"]), set()).add(args["attempt"])
            case "slot.tm.free" if args["state"] != "RELEASING":
                for attempt in inside.get((event.process, args["alloc"]), ()):
                    freed[event.process, attempt] = event
            case "tm.failext" if args["what"] == "fail":
                freed.pop(about, None)
            case "tm.transition" | "tm.final" if about in slot:
                if about in freed:
                    later.setdefault(about, event)
                if name == "tm.final":
                    inside[event.process, slot[about]].discard(args["attempt"])
    for about, event in freed.items():
        if about in later:
            after = later[about]
            task = f"{after.args['task']} ({after.args['subtask'] + 1}/{after.args['parallelism']})"
            text = f"slot {event.args['alloc']} is freed under {task}, which is not failed"
            yield (event.process, event.seq), f"{text}: it is {after.args['new']} at {_where(after)}"


def _shared_wrongly(events: Sequence[Event]) -> Iterator[tuple[Key, str]]:
    """A slot has at most one subtask of a vertex at a time, and the JobMaster keeps it while one of its tasks is active."""
    inside: dict[tuple[str, str, str], dict[str, Event]] = {}
    slot: dict[tuple[str, str], tuple[str, str, str]] = {}
    of_graph: dict[tuple[str, str], str] = {}
    for event in events:
        args, process = event.args, event.process
        match event.event:
            case "job.transition" if args["new"] == "SUSPENDED":
                inside = {key: tasks for key, tasks in inside.items() if key[0] != process}
            case "exec.deploy":
                of_graph[process, args["alloc"]] = args["graph"]
                key = slot[process, args["attempt"]] = (process, args["graph"], args["alloc"])
                tasks = inside.setdefault(key, {})
                for other in tasks.values():
                    if other.args["vertex"] == args["vertex"] and other.args["attempt"] != args["attempt"]:
                        mine, its = (
                            f"subtask {e.args['subtask'] + 1} attempt {e.args['number']}" for e in (event, other)
                        )
                        text = f"slot {args['alloc']} is given to {mine} of {args['task']}, and has {its} of it"
                        yield (process, event.seq), f"{text} since {_where(other)}"
                tasks[args["attempt"]] = event
            case "exec.transition" if args["new"] in ENDED:
                inside.get(slot.get((process, args["attempt"]), ("", "", "")), {}).pop(args["attempt"], None)
            case "slot.jm.freereserved" | "slot.jm.releasing":
                key = (process, of_graph.get((process, args["alloc"]), ""), args["alloc"])
                for other in inside.get(key, {}).values():
                    task = f"{other.args['task']} ({other.args['subtask'] + 1}/{other.args['parallelism']})"
                    yield (process, event.seq), f"slot {args['alloc']} is freed under {task}, which is active"


def _on_lost_executors(events: Sequence[Event], cluster: Iterable[Event]) -> Iterator[tuple[Key, str]]:
    """The ResourceManager allocates no slot of a TaskManager whose connection it has closed."""
    lines = [e for e in events if e.event == "slot.rm.alloc"]
    closed: dict[tuple[str, str], Event] = {}
    registered: dict[tuple[str, str], str] = {}
    seen: set[tuple[str | None, tuple[str, str]]] = set()
    for event in sorted((*cluster, *lines), key=lambda e: (e.process, e.seq)):
        place = (event.process, str(event.args.get("tm")))
        match event.event:
            case "rm.close":
                if (event.ts or "") > registered.get(place, "") and (event.ts, place) not in seen:
                    closed[place] = event
                seen.add((event.ts, place))
            case "rm.register" | "rm.slotregister":
                registered[place] = event.ts or ""
                closed.pop(place, None)
            case "slot.rm.alloc" if place in closed:
                text = f"a slot of {place[1]} is allocated, but its connection was closed at {_where(closed[place])}"
                yield (event.process, event.seq), text


@dataclass(slots=True)
class _Facts:
    """The values that lines give for one object, with the events."""

    counts: Counter[object] = field(default_factory=Counter)
    lines: list[tuple[object, Event]] = field(default_factory=list)


def _on_other_executors(events: Sequence[Event], places: Mapping[str, str]) -> Iterator[tuple[Key, str]]:
    """All lines about an allocation have the same TaskManager and the same index. The minority is wrong, and among
    equally many the later ones."""
    facts: dict[tuple[str, str], _Facts] = {}
    known = set(places.values())
    for event in events:
        args = event.args
        alloc = args.get("alloc")
        if alloc is None:
            continue
        found: tuple[tuple[str, object], ...] = ()
        if event.event in ("slot.rm.alloc", "exec.deploy") and args["tm"] in known:
            found = (("TaskManager", args["tm"]),)
        elif event.event in ("slot.tm.request", "slot.tm.alloc") and event.process in places:
            found = (("TaskManager", places[event.process]),)
        elif event.event == "slot.tm.free":
            found = (("index", args["index"]),)
        for what, value in found:
            about = facts.setdefault((what, alloc), _Facts())
            about.counts[value] += 1
            about.lines.append((value, event))
    for (what, alloc), about in facts.items():
        if len(about.counts) > 1:
            usual = about.counts.most_common(1)[0][0]
            shown = next(event for value, event in about.lines if value == usual)
            for value, event in about.lines:
                if value != usual:
                    text = f"the {what} of slot {alloc} is {value}, but {usual} at {_where(shown)}"
                    yield (event.process, event.seq), text
