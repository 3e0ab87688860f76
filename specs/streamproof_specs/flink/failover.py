"""The binding of Flink's logs to the failover machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamproof.conformance.binding import Plan, Task
from streamproof.conformance.events import Event
from streamproof.conformance.flink import FlinkRun, JobGraph, find_runs, graph_from_log, read_rest, read_run
from streamproof_specs.flink.recorded import RecordedGraph, recorded_graph, recorded_system, task_name
from streamproof_specs.flink.translate import HIDDEN, Translator


class FlinkFailover:
    """Follows every job of a recorded Flink run through the failover machine."""

    model = "failover"

    def runs(self, path: Path) -> list[Any]:
        """The runs under a path: a folder of logs, a folder of such folders, a file, a glob."""
        return list(find_runs(path))

    def plan(self, run: Any, job_graph: Path | None) -> Plan:
        """One behaviour per job; jobs that cannot be followed come back settled, with the reason."""
        logged = read_run(run)
        tasks: list[Task] = []
        settled: list[dict[str, Any]] = []
        for job in logged.jobs:
            followed = self._job(logged, job, job_graph)
            (tasks if isinstance(followed, Task) else settled).append(followed)  # type: ignore[arg-type]
        return Plan(logged.name, tuple(tasks), tuple(settled), tuple(logged.merged()))

    def _job(self, run: FlinkRun, job: str, job_graph: Path | None) -> Task | dict[str, Any]:
        events = [e for e in run.of_job(job) if e.process == "jobmanager"]
        graph, origin = self._graph(run, job, job_graph)
        try:
            recorded = recorded_graph(graph)
        except ValueError as gap:
            return self._open(run, job, f"the job graph is not known well enough: {gap}", len(events))
        decisions = sum(1 for e in events if e.event == "failover.restart")
        system, model = recorded_system(recorded, decisions, _failed(recorded, events))
        translator = Translator(recorded, model)
        return Task(
            job,
            system,
            translator.observations(events),
            HIDDEN,
            (),
            f"{run.jobs[job]} ({origin})",
            lambda: translator.recoveries,
        )

    def _graph(self, run: FlinkRun, job: str, given: Path | None) -> tuple[JobGraph, str]:
        if given is not None:
            return read_rest(given, job).graph, "job graph given"
        logged = graph_from_log(run, job)
        if not logged.complete and job in run.rest:
            return read_rest(run.rest[job], job).graph, "job graph from the REST answer beside the logs"
        return logged, "job graph from the logs"

    @staticmethod
    def _open(run: FlinkRun, job: str, reason: str, read: int) -> dict[str, Any]:
        return {
            "trace": job,
            "verdict": "inconclusive",
            "reason": reason,
            "events": {"read": read},
            "title": run.jobs[job],
        }


def _failed(recorded: RecordedGraph, events: Sequence[Event]) -> set[str]:
    """Tasks with a FAILED line."""
    sizes = {v.name: v.parallelism for v in recorded.graph.vertices}
    failures = (e.args for e in events if e.event == "exec.transition" and e.args["new"] == "FAILED")
    known = ((recorded.label[a["vertex"]], a["subtask"]) for a in failures if a["vertex"] in recorded.label)
    return {task_name(label, subtask, sizes[label]) for label, subtask in known}


def events_of(run: Any) -> tuple[Event, ...]:
    """All events of a run in merged order."""
    return tuple(read_run(run).merged())


BINDING = FlinkFailover()
