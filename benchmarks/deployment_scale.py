"""Deployment at scale: execution graph, regions, restart set and deployment descriptors of two vertices A > B.

    python benchmarks/deployment_scale.py [--parallelism 1000 10000 50000] [--ids structured]

Per kind of edge and parallelism, processor time in milliseconds: topology and regions; the restart set of B0 when all
its inputs are lost; the descriptors of all tasks by groups; the same edge by edge, measured for some tasks and
multiplied if there are more than two million pairs (marked ~). Then the descriptors that both make, and bytes: of one
task of B edge by edge, and as a compressed block; of all tasks edge by edge, and as blocks made once. The seed reports
72 % less by compression.

Exits with 1 if a block does not have the descriptors of its tasks.
"""

from __future__ import annotations

import argparse
import sys
import tracemalloc
from collections.abc import Callable
from time import process_time
from typing import TypeVar

from streamproof_models.failover.deployment import AttemptIds, Deployment, Place, read_block
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, Pattern, Vertex
from streamproof_models.failover.regions import pipelined_regions
from streamproof_models.failover.restart import tasks_to_restart
from streamproof_models.failover.topology import Topology

PAIRS = 2_000_000
"""Pairs of tasks up to which edge by edge is measured as a whole."""
SLOTS = 8
"""Tasks on a TaskManager."""
KINDS = [(pattern, exchange) for pattern in Pattern for exchange in (Exchange.BLOCKING, Exchange.PIPELINED)]
COLUMNS = (
    "parallelism",
    "edge",
    "regions",
    "restart set",
    "by groups",
    "edge by edge",
    "descriptors by groups",
    "edge by edge",
    "a task, bytes",
    "compressed",
    "saved",
    "all tasks, bytes",
    "made",
    "peak MiB",
)

_T = TypeVar("_T")


def timed(work: Callable[[], _T]) -> tuple[float, _T]:
    """Processor time in milliseconds, and the result."""
    start = process_time()
    result = work()
    return (process_time() - start) * 1000, result


def deployment(topology: Topology, ids: AttemptIds) -> Deployment:
    """Every task at a place, `SLOTS` tasks on each TaskManager; no block goes to the blob server."""
    places = [
        Place(f"taskmanager-{t // SLOTS}:6122-{t // SLOTS:06x}", f"10.0.{t // SLOTS // 256}.{t // SLOTS % 256}", 6121)
        for t in range(len(topology.tasks))
    ]
    return Deployment(topology, places, ids, threshold=sys.maxsize)


def row(parallelism: int, pattern: Pattern, exchange: Exchange, ids: AttemptIds) -> tuple[list[str], bool]:
    """The row of one kind of edge, and whether blocks and descriptors edge by edge agree."""
    edge = Edge("A", "B", pattern, exchange, "d")
    graph = JobGraph((Vertex("A", parallelism), Vertex("B", parallelism)), (edge,))
    regions_took, regions = timed(lambda: pipelined_regions(Topology(graph)))
    lost = [("d", subtask) for subtask in range(parallelism)]
    restart_took, _ = timed(lambda: tasks_to_restart(regions, ("B", 0), lost))

    topology, readers = regions.topology, graph.vertices[1].tasks
    grouped_took, blocks = timed(lambda: _deployed(deployment(topology, ids)))
    alone = deployment(topology, ids)
    made, pairs = topology.connections[0].descriptors, topology.connections[0].pairs
    some = readers[: max(1, len(readers) * PAIRS // max(pairs, PAIRS))]
    edges_took, sizes = timed(lambda: [sum(map(len, alone.edge_by_edge(task))) for task in some])
    factor, about = len(readers) / len(some), "~" if len(some) < len(readers) else ""
    (plain,), (block,) = alone.edge_by_edge(readers[0]), alone.inputs(readers[0])
    agree = isinstance(block, bytes) and b"".join(d.serialised() for d in read_block(block)) == plain

    tracemalloc.start()
    _deployed(deployment(topology, ids))
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    cells = (
        f"{parallelism:,}",
        f"{pattern.name} {exchange.name}",
        f"{regions_took:.0f}",
        f"{restart_took:.2g}" if restart_took < 10 else f"{restart_took:.0f}",
        f"{grouped_took:.0f}",
        f"{about}{edges_took * factor:,.0f}",
        f"{made:,} | {pairs:,}",
        f"{len(plain):,}",
        f"{len(block):,}" if isinstance(block, bytes) else "",
        f"{1 - len(block) / len(plain):.0%}" if isinstance(block, bytes) else "",
        f"{about}{sum(sizes) * factor:,.0f}",
        f"{blocks:,}",
        f"{peak:.1f}",
    )
    return list(cells), agree


def _deployed(plan: Deployment) -> int:
    """The bytes of the blocks that were made, when all tasks have been deployed."""
    blocks = {
        id(block): len(block) for t in plan.topology.tasks for block in plan.inputs(t) if isinstance(block, bytes)
    }
    return sum(blocks.values())


def main() -> int:
    """Prints the table; the exit code is 1 if blocks and descriptors edge by edge differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallelism", type=int, nargs="+", default=[1_000, 10_000, 50_000], help="of both vertices")
    parser.add_argument(
        "--ids", choices=[i.value for i in AttemptIds], default="structured", help="form of attempt ids"
    )
    options = parser.parse_args()
    if min(options.parallelism) < 1:
        parser.error("--parallelism must be 1 or more")
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|")
    all_agree = True
    for parallelism in options.parallelism:
        for pattern, exchange in KINDS:
            cells, agree = row(parallelism, pattern, exchange, AttemptIds(options.ids))
            all_agree &= agree
            print("| " + " | ".join(cells) + " |", flush=True)
    if not all_agree:
        print("a block differs from the descriptors made edge by edge", file=sys.stderr)
    return 0 if all_agree else 1


if __name__ == "__main__":
    sys.exit(main())
