"""Verdicts on the scheduling in simulated runs of Flink, and tampered copies of their events."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

from streamproof.conformance import Event, Plan, RunVerdict, judge
from streamproof.conformance.flink import FlinkRun, read_run
from streamproof_specs.regions.flink.binding import regions_of
from synthetic_flink import JOB, Cluster


def written(cluster: Cluster, folder: Path) -> FlinkRun:
    """The run of a simulated cluster, with the lines at DEBUG that show the order of the vertices."""
    path = cluster.write(folder)
    log = path / "jobmanager.log"
    lines = log.read_text().splitlines(keepends=True)
    head = "2026-01-01 00:00:00,000 DEBUG org.apache.flink.runtime.executiongraph.ExecutionGraph       [] - "
    vertices = [
        f"{head}Connecting ExecutionJobVertex {at + 1:032x} ({v.name}) to {min(at, 1)} predecessors.\n"
        for at, v in enumerate(cluster.graph.vertices)
    ]
    log.write_text("".join([*lines[:3], *vertices, *lines[3:]]))
    return read_run(path)


def verdict_on(run: FlinkRun) -> RunVerdict:
    """The verdict of the binding."""
    return judge(Plan("run", (regions_of(run, JOB),), run.events), "regions")[0]


def tampered(rng: Random, events: list[Event]) -> list[Event]:
    """One line is removed, moved, repeated, exchanged with another one, or is about another state, task or number."""
    at = rng.choice(
        [n for n, e in enumerate(events) if e.event in ("exec.transition", "failover.restart", "job.transition")]
    )
    event, copy = events[at], list(events)
    match rng.randrange(5):
        case 0:
            del copy[at]
        case 1:
            to = rng.randrange(len(events))
            copy.insert(to, copy.pop(at))
        case 2:
            other = rng.choice([n for n, e in enumerate(events) if e.event == event.event])
            copy[at], copy[other] = copy[other], copy[at]
        case 3:
            copy.insert(rng.randrange(at, len(events)) + 1, event)
        case _ if event.event == "failover.restart":
            copy[at] = replace(event, args={**event.args, "count": max(0, event.args["count"] - 1)})
        case _ if event.event == "exec.transition":
            new = rng.choice(("SCHEDULED", "DEPLOYING", "RUNNING", "FINISHED", "CANCELED"))
            copy[at] = replace(event, args={**event.args, "new": new})
        case _:
            del copy[at]
    return [replace(e, seq=n, line=n + 1) for n, e in enumerate(copy)]
