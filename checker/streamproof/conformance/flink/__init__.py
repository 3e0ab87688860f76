"""Real Flink: its logs as an event log, its REST answers and its logs as a job graph."""

from streamproof.conformance.flink.graph import Dataset, Edge, JobGraph, Vertex
from streamproof.conformance.flink.identifiers import Attempt, Partition
from streamproof.conformance.flink.jobgraph import graph_from_log, graph_of, only_job
from streamproof.conformance.flink.logfiles import RunFiles, find_runs
from streamproof.conformance.flink.reader import read_run
from streamproof.conformance.flink.records import Problem
from streamproof.conformance.flink.rest import NoAnswer, RestAttempt, RestFailure, RestJob, read_rest
from streamproof.conformance.flink.run import FlinkRun, Process

__all__ = [
    "Attempt",
    "Dataset",
    "Edge",
    "FlinkRun",
    "JobGraph",
    "NoAnswer",
    "Partition",
    "Problem",
    "Process",
    "RestAttempt",
    "RestFailure",
    "RestJob",
    "RunFiles",
    "Vertex",
    "find_runs",
    "graph_from_log",
    "graph_of",
    "only_job",
    "read_rest",
    "read_run",
]
