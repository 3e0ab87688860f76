"""Flink logs: its log files as an event log, its REST answers and logs as a job graph.

From a file to events: `logfiles` reads its lines, `layouts` chooses their layout, `log_records` parses the heads
of lines and joins lines to records, `message_forms` parses messages.
"""

from streamproof.conformance.flink.delivery import find_copies
from streamproof.conformance.flink.graph import Dataset, Edge, JobGraph, Vertex
from streamproof.conformance.flink.identifiers import Attempt, Partition
from streamproof.conformance.flink.jobgraph import graph_of
from streamproof.conformance.flink.joins import NO_CHECKPOINT, RESTORES, UNNAMED, missing_restores
from streamproof.conformance.flink.log_records import MORE, Problem, Problems, problem_lines
from streamproof.conformance.flink.logfiles import RunFiles, find_runs, read_lines
from streamproof.conformance.flink.reader import TORN, read_run
from streamproof.conformance.flink.rest import NoAnswer, RestJob, read_rest
from streamproof.conformance.flink.run import FlinkRun, Process
from streamproof.conformance.flink.times import DAY, ClockReading, Moment

__all__ = [
    "DAY",
    "MORE",
    "NO_CHECKPOINT",
    "RESTORES",
    "TORN",
    "UNNAMED",
    "Attempt",
    "ClockReading",
    "Dataset",
    "Edge",
    "FlinkRun",
    "JobGraph",
    "Moment",
    "NoAnswer",
    "Partition",
    "Problem",
    "Problems",
    "Process",
    "RestJob",
    "RunFiles",
    "Vertex",
    "find_copies",
    "find_runs",
    "graph_of",
    "missing_restores",
    "problem_lines",
    "read_lines",
    "read_rest",
    "read_run",
]
