"""Pipelined regions and restart sets of random job graphs: Flink's classes beside the functions of the models.

    FLINK_DIST=flink-dist-VERSION.jar python adapters/flink-classes/graphs.py [GRAPHS] [SEED] [FAULT]

In each graph a task fails eight times, with other partitions unavailable. Ends with 161 and prints the graph at the first
difference.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

from streamproof.driving.connection import ProcessConnection
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, Pattern, Task, Vertex
from streamproof_models.failover.regions import pipelined_regions
from streamproof_models.failover.restart import tasks_to_restart
from streamproof_models.failover.topology import Topology

EXCHANGES = [x for x in Exchange if x is not Exchange.PIPELINED_APPROXIMATE]
"""An approximate exchange is not one of the model's."""


def random_graph(rng: Random) -> JobGraph:
    """A graph of up to six vertices of up to four tasks, whose datasets may have several readers."""
    vertices = tuple(Vertex(chr(65 + i), rng.randint(1, 4)) for i in range(rng.randint(1, 6)))
    edges: list[Edge] = []
    for n, target in enumerate(vertices):
        for source in rng.sample(vertices[:n], rng.randint(0, min(n, 3))):
            shared = [e for e in edges if e.source == source.name]
            if shared and rng.random() < 0.3:
                e = rng.choice(shared)
                edges.append(Edge(source.name, target.name, e.pattern, e.exchange, e.dataset))
            else:
                pattern, exchange = rng.choice(list(Pattern)), rng.choice(EXCHANGES)
                edges.append(Edge(source.name, target.name, pattern, exchange, f"{source.name}{target.name}"))
    return JobGraph(vertices, tuple(edges))


def main(graphs: int, seed: int, fault: str) -> int:
    """Compares `graphs` graphs; the exit code."""
    rng, compared = Random(seed), 0
    adapter = ProcessConnection(f"{Path(__file__).with_name('run.sh')} {fault}", 120)
    for number in range(graphs):
        graph = random_graph(rng)
        topology = Topology(graph)
        regions = pipelined_regions(topology)
        parallelism = {v.name: v.parallelism for v in graph.vertices}

        def name(task: Task, parallelism: dict[str, int] = parallelism) -> str:
            return f"{task[0]} ({task[1] + 1}/{parallelism[task[0]]})"

        parameters = {"topology": graph.text}
        call = {
            "call": "reset",
            "protocol": "streamproof.drive/1",
            "model": "graphs",
            "parameters": parameters,
            "seed": seed,
        }
        flink = adapter.call(call)[1].get("state")["regions"]
        ours = [[name(topology.tasks[t]) for t in members] for members in regions.members]
        if flink != ours:
            print(f"graph {number}: {graph.text}\n  regions of Flink    {flink}\n  regions of the model {ours}")
            return 161
        rereadable = {e.dataset for e in graph.edges if e.exchange.rereadable}
        partitions = [p for p in graph.partitions if p[0] in rereadable]
        created = rng.sample(topology.tasks, rng.randint(0, len(topology.tasks) - 1))
        running = [t for t in topology.tasks if t not in created]
        for _ in range(8):
            failed = rng.choice(running)
            lost = [p for p in partitions if rng.random() < 0.2]
            size = {d: v.parallelism for d, v in graph.datasets.items()}
            names = [d if size[d] == 1 else f"{d}#{i}" for d, i in lost]
            args = {"failed": name(failed), "unavailable": names, "created": [name(t) for t in created]}
            answer = adapter.call({"call": "do", "action": "restart", "args": args})[1].get("state")
            expected = sorted(name(t) for t in tasks_to_restart(regions, failed, lost, created))
            compared += 1
            if sorted(answer["restarting"]) != expected:
                print(
                    f"graph {number}: {graph.text}\n  {args}\n  Flink     {answer['restarting']}\n  the model {expected}"
                )
                return 161
    adapter.close()
    print(f"{graphs} graphs with the same regions, {compared} failures with the same tasks to restart")
    return 0


if __name__ == "__main__":
    graphs, seed, fault = [*sys.argv[1:], *("1000", "1", "")[len(sys.argv) - 1 :]]
    sys.exit(main(int(graphs), int(seed), fault))
