"""Regions and restart sets of two vertices of parallelism 10,000: time and memory, compared with Flink.

    python benchmarks/restart_scale.py [--parallelism 10000] [--runs 7]

The job is A > B with one edge. For each kind of edge this prints a row of medians over the runs, and below it the times of
the classes of Flink 2.3.0 for the same input (warm JVM, Java 17, -Xmx1g, SerialGC; medians of several runs, or ranges). The
two were measured on different machines, and Flink's topology has more data: compare orders of magnitude, not percentages.

The size of every restart set is checked. Exits with 1 if one is wrong.
"""

from __future__ import annotations

import argparse
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TypeVar

from streamproof_models.failover.graph import Edge, Exchange, JobGraph, Partition, Pattern, Vertex
from streamproof_models.failover.regions import Merging, Regions, pipelined_regions
from streamproof_models.failover.restart import tasks_to_restart
from streamproof_models.failover.topology import Topology

_T = TypeVar("_T")

COLUMNS = (
    "edge",
    "topology + regions",
    "regions, cycle search everywhere",
    "A0 fails",
    "B0 fails",
    "B0, one input lost",
    "B0, all inputs lost",
    "peak memory",
)

FLINK = {
    (Pattern.ALL_TO_ALL, Exchange.BLOCKING, 1_000): ("14.3", "73", "5.6", "0.13", "1.1", "3.3"),
    (Pattern.ALL_TO_ALL, Exchange.PIPELINED, 1_000): ("7.3", "53", "5.9", "2.0", "1.8", "3.2"),
    (Pattern.POINTWISE, Exchange.PIPELINED, 1_000): ("14", "6.7", "0.07", "0.02-0.04", "0.02", "0.02"),
    (Pattern.ALL_TO_ALL, Exchange.BLOCKING, 10_000): ("109", "6632", "79", "0.8", "31", "57"),
    (Pattern.ALL_TO_ALL, Exchange.PIPELINED, 10_000): ("39", "1934", "18", "17", "10", "14"),
    (Pattern.POINTWISE, Exchange.PIPELINED, 10_000): ("61", "24", "0.10-0.12", "0.02-0.04", "0.02-0.04", "0.01-0.04"),
}
"""Times of Flink 2.3.0 in milliseconds, in the order of the columns."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of edge, with the required sizes of the four restart sets at parallelism p: (factor of p, constant)."""

    pattern: Pattern
    exchange: Exchange
    sizes: tuple[tuple[int, int], ...]


KINDS = (
    Kind(Pattern.ALL_TO_ALL, Exchange.BLOCKING, ((1, 1), (0, 1), (1, 1), (2, 0))),
    Kind(Pattern.ALL_TO_ALL, Exchange.PIPELINED, ((2, 0), (2, 0), (2, 0), (2, 0))),
    Kind(Pattern.POINTWISE, Exchange.PIPELINED, ((0, 2), (0, 2), (0, 2), (0, 2))),
    Kind(Pattern.POINTWISE, Exchange.BLOCKING, ((0, 2), (0, 1), (0, 2), (0, 2))),
)


def timed(runs: int, work: Callable[[], _T]) -> tuple[float, _T]:
    """The median time of the runs in milliseconds, and the result of the last run."""
    times = []
    for _ in range(runs):
        start = perf_counter()
        result = work()
        times.append((perf_counter() - start) * 1000)
    return median(times), result


def build(graph: JobGraph) -> Regions:
    """Topology and regions of a job graph."""
    return pipelined_regions(Topology(graph))


def peak_mib(work: Callable[[], object]) -> float:
    """Peak memory of Python objects during the work, in MiB."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def measure(kind: Kind, parallelism: int, runs: int) -> tuple[list[str], bool]:
    """The row of one kind of edge, and whether all restart sets have the right size."""
    graph = JobGraph(
        (Vertex("A", parallelism), Vertex("B", parallelism)), (Edge("A", "B", kind.pattern, kind.exchange, "d"),)
    )
    built, regions = timed(runs, lambda: build(graph))
    everywhere, _ = timed(runs, lambda: pipelined_regions(Topology(graph), Merging.TOPOLOGY))
    everything = [("d", subtask) for subtask in range(parallelism)]
    questions: list[tuple[str, list[Partition]]] = [("A", []), ("B", []), ("B", [("d", 0)]), ("B", everything)]
    row = [f"{kind.pattern.name} {kind.exchange.name}", f"{built:.1f}", f"{everywhere:.1f}"]
    right = True
    for (failed, lost), (times, plus) in zip(questions, kind.sizes, strict=True):

        def restart(vertex: str = failed, unavailable: list[Partition] = lost) -> frozenset[tuple[str, int]]:
            return tasks_to_restart(regions, (vertex, 0), unavailable)

        took, restarted = timed(runs, restart)
        right &= len(restarted) == times * parallelism + plus
        row.append(f"{took:.3g} ({len(restarted):,} tasks)")
    memory = peak_mib(lambda: tasks_to_restart(build(graph), ("B", 0), everything))
    return [*row, f"{memory:.1f} MiB"], right


def main() -> int:
    """Prints the table; the exit code is 1 if a restart set has the wrong size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallelism", type=int, default=10_000, help="of both vertices (default 10000)")
    parser.add_argument("--runs", type=int, default=7, help="runs per figure (default 7)")
    options = parser.parse_args()
    if options.parallelism < 1 or options.runs < 1:
        parser.error("--parallelism and --runs must be 1 or more")
    print(f"Two vertices of parallelism {options.parallelism:,}; milliseconds, median of {options.runs} runs.\n")
    print("| " + " | ".join(COLUMNS) + " |")
    print("|---" * len(COLUMNS) + "|")
    all_right = True
    for kind in KINDS:
        row, right = measure(kind, options.parallelism, options.runs)
        all_right &= right
        print("| " + " | ".join(row) + " |")
        flink = FLINK.get((kind.pattern, kind.exchange, options.parallelism))
        if flink:
            print("| " + " | ".join(["Flink 2.3.0", *flink, "-"]) + " |")
    if not all_right:
        print("a restart set has the wrong size", file=sys.stderr)
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
