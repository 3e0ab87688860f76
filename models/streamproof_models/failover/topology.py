"""The tasks of a job graph, and who reads whom, in grouped form.

Expanding an edge task by task costs the product of the two parallelisms. That is never done here: the tasks
that read the same partitions and the partitions that are read by the same tasks come in pairs, called
*groups* (`Connection`). Both members of a group are intervals that a formula gives, so an edge takes
constant memory and all its groups are walked in time linear in the tasks. The idea is Flink 1.13's, which
keeps the groups as lists (`ConsumedPartitionGroup`, `ConsumerVertexGroup`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from streamproof_models.failover.graph import Edge, JobGraph, JobGraphError, Partition, Pattern, Task, Vertex


@dataclass(frozen=True, slots=True)
class Connection:
    """One edge between tasks, in grouped form. Tasks appear as task numbers of a `Topology`.

    `ALL_TO_ALL` has one group: everybody reads everybody. `POINTWISE` with `p` producers and `c` consumers
    has `min(p, c)` groups. With `p >= c`, group `g` is consumer `g` reading producers `g*p // c` up to and
    excluding `(g+1)*p // c`. Otherwise group `g` is producer `g` read by consumers `ceil(g*c / p)` up to
    and excluding `ceil((g+1)*c / p)`. Every producer and every consumer is in exactly one group.
    """

    edge: Edge
    producers: range
    consumers: range

    @property
    def group_count(self) -> int:
        """How many groups the edge has."""
        if self.edge.pattern is Pattern.ALL_TO_ALL:
            return 1
        return min(len(self.producers), len(self.consumers))

    @property
    def descriptors(self) -> int:
        """How many descriptors of partitions its groups have together: each is made once for a group."""
        return sum(len(producers) for producers, _ in self.groups())

    @property
    def pairs(self) -> int:
        """How many pairs of a producer and a consumer it has: the descriptors that are made for each consumer alone."""
        return sum(len(producers) * len(consumers) for producers, consumers in self.groups())

    def group_of_producer(self, task: int) -> int:
        """The group in which producer `task` is read."""
        if self.edge.pattern is Pattern.ALL_TO_ALL:
            return 0
        subtask, p, c = task - self.producers.start, len(self.producers), len(self.consumers)
        return ((subtask + 1) * c - 1) // p if p >= c else subtask

    def group_of_consumer(self, task: int) -> int:
        """The group that consumer `task` reads."""
        if self.edge.pattern is Pattern.ALL_TO_ALL:
            return 0
        subtask, p, c = task - self.consumers.start, len(self.producers), len(self.consumers)
        return subtask if p >= c else subtask * p // c

    def group_producers(self, group: int) -> range:
        """The producers of a group, an interval of task numbers."""
        if self.edge.pattern is Pattern.ALL_TO_ALL:
            return self.producers
        p, c = len(self.producers), len(self.consumers)
        if p >= c:
            return self.producers[group * p // c : (group + 1) * p // c]
        return self.producers[group : group + 1]

    def group_consumers(self, group: int) -> range:
        """The consumers of a group, an interval of task numbers."""
        if self.edge.pattern is Pattern.ALL_TO_ALL:
            return self.consumers
        p, c = len(self.producers), len(self.consumers)
        if p >= c:
            return self.consumers[group : group + 1]
        return self.consumers[-(-group * c // p) : -(-(group + 1) * c // p)]

    def groups(self) -> Iterator[tuple[range, range]]:
        """All groups as (producers, consumers), in order."""
        for group in range(self.group_count):
            yield self.group_producers(group), self.group_consumers(group)


class Topology:
    """A job graph expanded into tasks. Tasks are numbered from 0, vertex after vertex, subtask after
    subtask."""

    def __init__(self, graph: JobGraph) -> None:
        self.graph = graph
        self.tasks: tuple[Task, ...] = graph.tasks
        """The task that each number stands for."""
        self.of_vertex: dict[str, range] = {}
        """The task numbers of each vertex."""
        start = 0
        for vertex in graph.vertices:
            self.of_vertex[vertex.name] = range(start, start + vertex.parallelism)
            start += vertex.parallelism
        self.connections: tuple[Connection, ...] = tuple(
            Connection(edge, self.of_vertex[edge.source], self.of_vertex[edge.target]) for edge in graph.edges
        )
        """The expanded edges, in the order of the job graph's."""

    def number(self, task: Task) -> int:
        """The number of a task. Raises `JobGraphError` if the graph has no such task."""
        name, subtask = task
        numbers = self.of_vertex.get(name)
        if numbers is None or not 0 <= subtask < len(numbers):
            raise JobGraphError(f"the graph has no task {task!r}")
        return numbers[subtask]

    def check_partition(self, partition: Partition) -> None:
        """Raises `JobGraphError` if the graph has no such partition."""
        dataset, subtask = partition
        producer = self._producer_of.get(dataset)
        if producer is None or not 0 <= subtask < producer.parallelism:
            raise JobGraphError(f"the graph has no partition {partition!r}")

    @cached_property
    def _producer_of(self) -> dict[str, Vertex]:
        return self.graph.datasets

    def consumes(self) -> list[list[list[int]]]:
        """Per edge, per consumer subtask: the producer subtasks that it reads, ascending.

        This spells every pair out and is meant for small graphs and for comparison.
        """
        return [
            [
                [task - c.producers.start for task in c.group_producers(c.group_of_consumer(consumer))]
                for consumer in c.consumers
            ]
            for c in self.connections
        ]
