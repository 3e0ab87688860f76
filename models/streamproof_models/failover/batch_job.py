"""The structure of one batch job: its tasks, pipelined regions, result partitions and input channels, all by name.

For a model, which has state for each of them: pair by pair, where `topology` has groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from streamproof import Model
from streamproof_models.failover.graph import JobGraph
from streamproof_models.failover.regions import Merging, connected_components, pipelined_regions
from streamproof_models.failover.topology import Connection, Topology
from streamproof_models.topologies import is_text, job_graph

K = TypeVar("K")


class BatchJob(Model):
    """A model of a job whose exchanges are pipelined or can be read again; it adds state and rules."""

    topology: str = "diamond"
    """Job graph: a name of `streamproof_models.topologies.JOB_GRAPHS`, or `JobGraph.text`."""
    parallelism: int = 1
    """Tasks per vertex of the job graph."""

    limits = {"parallelism": (1, None)}

    merging = Merging.TOPOLOGY
    """Where regions that depend on each other in a cycle are merged."""

    def job_graph(self) -> JobGraph:
        """The named job graph; a recorded run has its own."""
        return job_graph(self.topology, self.parallelism)

    def task_name(self, vertex: str, subtask: int, parallelism: int) -> str:
        """The name of a task: that of its vertex, with the number of the subtask if there are several; as Flink writes it, if
        the graph is given as text."""
        if is_text(self.topology):
            return f"{vertex} ({subtask + 1}/{parallelism})"
        return vertex if parallelism == 1 else f"{vertex}{subtask}"

    def setup(self) -> None:
        """Expands the job graph. Raises `ValueError` for an exchange of another type."""
        topology = Topology(self.job_graph())
        parallelism = {v.name: v.parallelism for v in topology.graph.vertices}
        self.tasks = tuple(self.task_name(v, i, parallelism[v]) for v, i in topology.tasks)
        regions = [tuple(self.tasks[t] for t in r) for r in pipelined_regions(topology, self.merging).members]
        self.regions: dict[str, tuple[str, ...]] = {}
        """Region -> its tasks."""
        for tasks in regions:
            name = _region_name(tasks)
            self.regions[name if name not in self.regions else f"{name} #{len(self.regions)}"] = tasks
        self.region_of = {t: r for r, tasks in self.regions.items() for t in tasks}
        self.component_of = dict(zip(self.tasks, connected_components(topology), strict=True))
        """Task -> a number for its connected component of the job graph."""
        self.partitions: dict[str, str] = {}
        """Result partition that can be read again -> its producer."""
        self.channels: dict[str, tuple[str, str]] = {}
        """Input channel -> its producer and its consumer."""
        self.partition_of: dict[str, str] = {}
        """Input channel -> its partition, if that can be read again."""
        for connection in topology.connections:
            self._connect(connection)

        region, consumed = self.region_of, [(p, self.channels[c][1]) for c, p in self.partition_of.items()]
        self.inputs = grouped(self.tasks, ((consumer, c) for c, (_, consumer) in self.channels.items()))
        """Task -> its input channels."""
        self.reads = grouped(self.tasks, ((consumer, p) for p, consumer in consumed))
        """Task -> the partitions that it reads."""
        self.outputs = grouped(self.tasks, ((producer, p) for p, producer in self.partitions.items()))
        """Task -> the partitions that it produces."""
        self.upstream = grouped(self.tasks, ((z, a) for a, z in self.channels.values() if region[a] != region[z]))
        """Task -> the producers of its inputs from other regions."""
        self.producing_region = {p: region[producer] for p, producer in self.partitions.items()}
        """Partition -> the region that produces it."""
        self.consuming_regions = grouped(self.partitions, ((p, region[consumer]) for p, consumer in consumed))
        """Partition -> the regions that read it."""

    def _connect(self, connection: Connection) -> None:
        """Adds the partitions and channels of an edge between tasks."""
        edge, first = connection.edge, connection.producers.start
        if not edge.exchange.glues and not edge.exchange.rereadable:
            raise ValueError(f"exchange {edge.exchange.value} of {edge} is not part of the machine")
        for producers, consumers in connection.groups():
            for p in producers:
                partition = f"{edge.dataset}#{p - first}" if len(connection.producers) > 1 else edge.dataset
                if edge.exchange.rereadable:
                    self.partitions[partition] = self.tasks[p]
                for c in consumers:
                    channel = f"{self.tasks[c]}<{partition}"
                    self.channels[channel] = (self.tasks[p], self.tasks[c])
                    if edge.exchange.rereadable:
                        self.partition_of[channel] = partition


def _region_name(tasks: tuple[str, ...]) -> str:
    """All tasks of a region of one or two, else the first and the number of others."""
    return "+".join(tasks) if len(tasks) < 3 else f"{tasks[0]}+{len(tasks) - 1} more"


def grouped(keys: Iterable[K], pairs: Iterable[tuple[K, str]]) -> dict[K, tuple[str, ...]]:
    """Key -> the values paired with it, each once, in their order."""
    found: dict[K, dict[str, None]] = {key: {} for key in keys}
    for key, value in pairs:
        found[key][value] = None
    return {key: tuple(values) for key, values in found.items()}
