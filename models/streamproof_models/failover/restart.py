"""Which tasks to restart after a task failed: the functional core of backtracking failover.

The regions to restart are the least set that

1. contains the region of the failed task,
2. with a region contains the producer's region of every partition that it reads and that cannot be read
   again,
3. with a region contains every region that reads anything it writes.

Rule 2 recomputes lost inputs. Rule 3 is there because a recomputed partition may differ from the one
before, so whoever has read the old one has to start over. Of these regions' tasks, the ones in state
CREATED are left out at the end: there is nothing to restart. The search itself goes through them.

`tasks_to_restart` walks regions and groups, each once, in linear time. `least_fixpoint` is the definition,
pair by pair. `Strategy` names the coarser and the weaker rules that Flink had, or might have had, instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from itertools import chain

from streamproof_models.failover.graph import Partition, Task
from streamproof_models.failover.regions import Regions
from streamproof_models.failover.topology import Connection


class Strategy(Enum):
    """The strategy: which tasks restart with a failed task."""

    BACKTRACKING = "backtracking"
    """Rules 1, 2 and 3: what Flink does since 1.9."""
    ALL = "all"
    """Every task of the job."""
    INDIVIDUAL = "individual"
    """The failed task alone."""
    REGION = "region"
    """Rule 1: the failed region, without backtracking and without its consumers (Flink 1.3 to 1.8)."""
    NO_DOWNSTREAM = "no-downstream"
    """Rules 1 and 2: consumers go on with what they have read."""
    NO_BACKTRACKING = "no-backtracking"
    """Rules 1 and 3: lost inputs are not recomputed."""


_RULES = {
    Strategy.BACKTRACKING: (True, True),
    Strategy.REGION: (False, False),
    Strategy.NO_DOWNSTREAM: (True, False),
    Strategy.NO_BACKTRACKING: (False, True),
}
"""Per strategy that uses regions: whether rule 2 applies, whether rule 3 applies."""


def tasks_to_restart(
    regions: Regions,
    failed: Task,
    unavailable: Collection[Partition] = (),
    created: Collection[Task] = (),
    strategy: Strategy = Strategy.BACKTRACKING,
) -> frozenset[Task]:
    """The tasks to restart because `failed` failed.

    Args:
        regions: the regions of the job (`pipelined_regions`).
        failed: the task that failed.
        unavailable: the partitions that can no longer be read. Those of an exchange that cannot be read twice
            need not be listed.
        created: the tasks in state CREATED.
        strategy: the rules.

    Raises:
        JobGraphError: a task or partition named is not of this job.
    """
    topology = regions.topology
    number = topology.number(failed)
    for partition in unavailable:
        topology.check_partition(partition)
    waiting = {topology.number(task) for task in created}
    match strategy:
        case Strategy.ALL:
            restarted: Iterable[int] = range(len(topology.tasks))
        case Strategy.INDIVIDUAL:
            restarted = (number,)
        case _:
            involved = regions_to_restart(regions, regions.of_task[number], unavailable, strategy)
            restarted = chain.from_iterable(regions.members[region] for region in involved)
    return frozenset(topology.tasks[task] for task in restarted if task not in waiting)


def regions_to_restart(
    regions: Regions,
    failed: int,
    unavailable: Collection[Partition] = (),
    strategy: Strategy = Strategy.BACKTRACKING,
) -> list[int]:
    """The regions to restart because region `failed` failed, in the order found.

    Raises:
        ValueError: the strategy does not work on regions.
    """
    if strategy not in _RULES:
        raise ValueError(f"strategy {strategy.value!r} does not work on regions; use tasks_to_restart")
    return _Search(regions, unavailable, *_RULES[strategy]).closure(failed)


class _Search:
    """One breadth-first search over regions that looks at every group at most once in each direction."""

    def __init__(
        self, regions: Regions, unavailable: Collection[Partition], backtracking: bool, downstream: bool
    ) -> None:
        self._regions = regions
        self._lost: dict[str, set[int]] = {}
        for dataset, subtask in unavailable:
            self._lost.setdefault(dataset, set()).add(subtask)
        connections = regions.topology.connections
        # Only edges that can lead to another region matter; a glued edge never does, in either direction.
        crossing = [(i, c) for i, c in enumerate(connections) if not c.edge.exchange.glues]
        self._inputs: dict[str, list[tuple[int, Connection]]] = {}
        self._outputs: dict[str, list[tuple[int, Connection]]] = {}
        for i, c in crossing:
            if backtracking and (not c.edge.exchange.rereadable or c.edge.dataset in self._lost):
                self._inputs.setdefault(c.edge.target, []).append((i, c))
            if downstream:
                self._outputs.setdefault(c.edge.source, []).append((i, c))

    def closure(self, failed: int) -> list[int]:
        """The regions to restart, in the order found."""
        regions, tasks = self._regions, self._regions.topology.tasks
        found = {failed: None}  # a dict, for its order
        queue = [failed]
        read: set[tuple[int, int]] = set()
        written: set[tuple[int, int]] = set()
        for region in queue:
            for task in regions.members[region]:
                vertex = tasks[task][0]
                reached: list[int] = []
                for i, c in self._inputs.get(vertex, ()):
                    group = c.group_of_consumer(task)
                    if (i, group) not in read:
                        read.add((i, group))
                        reached += self._unusable(c, group)
                for i, c in self._outputs.get(vertex, ()):
                    group = c.group_of_producer(task)
                    if (i, group) not in written:
                        written.add((i, group))
                        reached += c.group_consumers(group)
                for other in reached:
                    new = regions.of_task[other]
                    if new not in found:
                        found[new] = None
                        queue.append(new)
        return queue

    def _unusable(self, connection: Connection, group: int) -> Iterator[int]:
        """The producers of a group whose partitions cannot be read again."""
        producers = connection.group_producers(group)
        if not connection.edge.exchange.rereadable:
            yield from producers
            return
        start, lost = connection.producers.start, self._lost[connection.edge.dataset]
        if len(lost) < len(producers):
            yield from (start + subtask for subtask in lost if start + subtask in producers)
        else:
            yield from (producer for producer in producers if producer - start in lost)


def least_fixpoint(
    regions: Regions,
    failed: Task,
    unavailable: Collection[Partition] = (),
    created: Collection[Task] = (),
) -> frozenset[Task]:
    """The tasks to restart by literal application of the three rules, pair by pair: slow, and meant for comparison.

    Starting from nothing, the rules are applied to all the tasks so far until nothing is added. Only the
    regions are taken from elsewhere.
    """
    topology = regions.topology
    region_of = {task: regions.of(task) for task in topology.tasks}
    reads = [
        ((edge.source, producer), (edge.target, consumer), edge)
        for edge, consumers in zip(topology.graph.edges, topology.consumes(), strict=True)
        for consumer, producers in enumerate(consumers)
        for producer in producers
    ]
    lost = set(unavailable)
    so_far: frozenset[Task] = frozenset()
    while True:
        wanted = {region_of[failed]}
        for producer, consumer, edge in reads:
            if consumer in so_far and ((edge.dataset, producer[1]) in lost or not edge.exchange.rereadable):
                wanted.add(region_of[producer])
            if producer in so_far:
                wanted.add(region_of[consumer])
        more = frozenset(task for task in topology.tasks if region_of[task] in wanted)
        if more == so_far:
            return more - frozenset(created)
        so_far = more
