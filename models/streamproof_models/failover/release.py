"""Which partitions may be released: those that no unfinished region still has to read."""

from __future__ import annotations

from collections.abc import Collection

from streamproof_models.failover.graph import Partition
from streamproof_models.failover.regions import Regions


def partitions_to_release(regions: Regions, finished: Collection[int]) -> frozenset[Partition]:
    """The partitions that can be read again and whose readers' regions are all among the finished ones.

    A group is releasable if the regions of all its consumers have finished, a partition if all groups that have it are
    (Flink's `RegionPartitionGroupReleaseStrategy`). Every group is looked at once. A partition without readers is none.

    Args:
        regions: the regions of the job.
        finished: the numbers of the regions all of whose tasks have finished.
    """
    releasable: set[Partition] = set()
    needed: set[Partition] = set()
    for connection in regions.topology.connections:
        if not connection.edge.exchange.rereadable:
            continue
        dataset, first = connection.edge.dataset, connection.producers.start
        for producers, consumers in connection.groups():
            consumed = all(regions.of_task[task] in finished for task in consumers)
            (releasable if consumed else needed).update((dataset, task - first) for task in producers)
    return frozenset(releasable - needed)
