"""The job graph of a recorded job: the given one, else that of the run."""

from __future__ import annotations

from pathlib import Path

from streamproof.conformance import InputError
from streamproof.conformance.flink import FlinkRun, JobGraph, RestJob, graph_of, read_rest


def given_graph(run: FlinkRun, path: Path | None) -> RestJob | None:
    """The given job graph, which must be that of one of the run's jobs. Raises `InputError` otherwise."""
    if path is None:
        return None
    if len(run.jobs) == 1:
        return read_rest(path, next(iter(run.jobs)))
    given = read_rest(path)
    if given.job not in run.jobs:
        raise InputError(
            f"{path}: the job graph is that of job {given.job}, which the run {run.name} does not have",
            remedy=f"its jobs are {', '.join(run.jobs) or 'not named by any log'}",
        )
    return given


def graph_for(run: FlinkRun, job: str, given: RestJob | None) -> tuple[JobGraph, str]:
    """The job graph of a job, and where it is from."""
    if given is not None and given.job == job:
        return given.graph, "job graph given"
    graph = graph_of(run, job)
    return graph, "job graph from the logs" if graph.origin == "log" else "job graph from the REST answer"


def with_remedy(gap: str, given: RestJob | None) -> str:
    """What is missing, with the remedy."""
    unknown_graph = given is None and gap.startswith("the job graph is not known")
    remedy = (
        "put the REST API's answer about the job beside the logs as rest-JOB.json, or use validate --job-graph FILE"
    )
    return f"{gap}; {remedy}" if unknown_graph else gap
