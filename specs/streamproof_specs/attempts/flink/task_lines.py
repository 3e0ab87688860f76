"""TaskManager lines that cannot be genuine, and missing lines, judged from the lines alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from streamproof.conformance import Event
from streamproof.conformance.flink import Attempt, FlinkRun
from streamproof_specs.attempts.flink.attempt_lines import STORE_LINES, TASK_LINES

SAMPLED = 2
"""Minimum number of lines without their preceding DEBUG line, which distinguishes sampling from a single removed line."""

Wrong = tuple[tuple[str, int], str]
"""Process and position of an event, and why it cannot be true."""


def never_received(
    run: FlinkRun,
    events: Iterable[Event],
    received: Collection[tuple[str, str]],
    speaks: Mapping[str, Collection[str]],
) -> Iterator[Wrong]:
    """Lines about an attempt, or a partition of an attempt, that the TaskManager never received, if its log is complete
    from its start in one file. `Task` and `ResultPartitionManager` log nothing else."""
    for event in events:
        process = run.processes[event.process]
        if event.event not in TASK_LINES | STORE_LINES or not process.started or len(process.files) > 1:
            continue
        attempt = event.args.get("attempt") or event.args["producer"]
        if "tm.submit" in speaks[event.process] and (event.process, attempt) not in received:
            about = "a partition of " if event.event in STORE_LINES else ""
            text = f"the line is about {about}{attempt}, which {process.tm or process.name} never received"
            yield (event.process, event.seq), text


def unasked(name: str, processes: Iterable[Sequence[Event]]) -> Iterator[Wrong]:
    """Transitions of an attempt to CANCELING without the preceding line of `Task.cancelExecution`, at the same level."""
    for events in processes:
        requested = False
        for event in events:
            requested |= event.event == "tm.failext" and event.args["what"] == "cancel"
            if event.event == "tm.transition" and event.args["new"] == "CANCELING" and not requested:
                text = f"{name} is CANCELING, but no line before says that it is to be cancelled"
                yield (event.process, event.seq), text


def missing_debug_lines(
    tasks: Mapping[str, Mapping[str, Sequence[Event]]], events: Iterable[Event], speaks: Mapping[str, Collection[str]]
) -> str | None:
    """Why a contradiction proves nothing, if several DEBUG lines are missing and not a single one: an appender discards
    or samples them. `tasks` are the TaskManagers' lines of each attempt by process, `events` those of the job."""
    first: dict[str, set[tuple[str, ...]]] = {
        "part.registered": set(),
        "part.releasing": set(),
        "slot.logical.request": set(),
    }
    later: dict[str, set[tuple[str, ...]]] = {"part.released": set(), "slot.logical.alloc": set()}
    for event in events:
        for found in (first, later):
            if event.event in found:
                about = _stored(event) if event.event.startswith("part.") else (event.process, event.args["lreq"])
                found[event.event].add(about)
    registered: dict[str, Counter[str]] = {}
    for _, dataset, producer in first["part.registered"]:
        registered.setdefault(Attempt.parse(producer).vertex, Counter())[dataset] += 1
    # One line may be wrong about its dataset.
    writes = {v: {d for d, n in counts.items() if 2 * n > max(counts.values())} for v, counts in registered.items()}
    lacking = set[tuple[str, ...]]()
    for text, processes in tasks.items():
        for process, lines in processes.items():
            # Partitions are registered before the task is INITIALIZING.
            set_up = any(e.event == "tm.transition" and e.args["new"] == "INITIALIZING" for e in lines)
            if set_up and "part.registered" in speaks[process]:
                lacking |= {(process, dataset, text) for dataset in writes.get(Attempt.parse(text).vertex, ())}
    several = len(lacking - first["part.registered"])
    for before, after in (("part.releasing", "part.released"), ("slot.logical.request", "slot.logical.alloc")):
        several += sum(before in speaks[about[0]] for about in later[after] - first[before])
    return None if several < SAMPLED else f"{several} lines at DEBUG are missing, without which others are not logged"


def _stored(event: Event) -> tuple[str, str, str]:
    """The process of a partition, its dataset, its producer."""
    return event.process, event.args["dataset"], event.args["producer"]
