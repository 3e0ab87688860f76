"""The groups of a batch job: ConsumedPartitionGroup and ConsumerVertexGroup, by name, for a model with state for each."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import combinations
from typing import ClassVar

from streamproof_models.failover.machine import BatchJob
from streamproof_models.failover.regions import Regions, pipelined_regions
from streamproof_models.failover.restart import regions_to_restart
from streamproof_models.failover.topology import Topology


class GroupedJob(BatchJob):
    """A batch job whose tasks are related by groups: the partitions that the same tasks read."""

    topology: str = "mixed"
    """Job graph: a name of `streamproof_models.failover.named_job_graphs.JOB_GRAPHS`."""
    parallelism: int = 2
    """Tasks per vertex of the job graph."""
    inline: int = 0
    """Largest number of shuffle descriptors that are sent in the message instead of as a blob."""
    eager: bool = False
    """Whether all regions are scheduled at once; descriptors of unfinished partitions are sent later."""

    reads_early: ClassVar[bool] = False
    """Whether hybrid partitions are read as soon as their producers are scheduled."""

    def setup(self) -> None:
        """Adds the groups to the structure of the job, and the sets of partitions that can be unavailable."""
        super().setup()
        expanded = Topology(self.job_graph())
        self.division: Regions = pipelined_regions(expanded, self.merging)
        self.cycles = self.division.cycles()
        """Sets of regions that wait for each other."""
        self.producers: dict[str, tuple[str, ...]] = {}
        """Group -> the tasks that produce its partitions: a ConsumedPartitionGroup."""
        self.consumers: dict[str, tuple[str, ...]] = {}
        """Group -> the tasks that read all of them: its ConsumerVertexGroup."""
        self.blocking: dict[str, bool] = {}
        """Group -> whether its partitions outlive their producers."""
        self.partitions_of: dict[str, tuple[str, ...]] = {}
        """Group -> its partitions, if they can be read again."""
        self.early: set[str] = set()
        """Groups that are read as soon as their producers are scheduled."""
        for c in expanded.connections:
            edge = c.edge
            shared = sum(other.dataset == edge.dataset for other in expanded.graph.edges) > 1
            for number, (producers, consumers) in enumerate(c.groups()):
                g = edge.dataset + (edge.target if shared else "") + (f"/{number}" if c.group_count > 1 else "")
                self.producers[g] = tuple(self.tasks[p] for p in producers)
                self.consumers[g] = tuple(self.tasks[t] for t in consumers)
                self.blocking[g] = not edge.exchange.glues
                if self.reads_early and edge.exchange.hybrid:
                    self.early.add(g)
                written = [p for p in self.partitions if p.rpartition("#")[0] == edge.dataset or p == edge.dataset]
                self.partitions_of[g] = tuple(p for p in written if self.partitions[p] in self.producers[g])
        self.groups = list(self.producers)
        self.gates = [(t, g) for t in self.tasks for g in self.groups if t in self.consumers[g]]
        """(task, group that it reads): an input gate, or a part of one."""
        self.late = [(t, g) for t, g in self.gates if self.eager and self.crosses(g)]
        """The gates whose descriptors are unknown when their task is deployed."""
        self.awaited = {r: tuple((g, self.made_inside(r, g)) for g in self.inputs_of(r)) for r in self.regions}
        """Region -> the groups that it reads from other regions, each with the number of its producers in the region."""
        self.written = {t: tuple(g for g in self.groups if t in self.producers[g]) for t in self.tasks}
        """Task -> the groups with a partition of it."""

    @cached_property
    def losses(self) -> list[str]:
        """Sets of partitions, by name."""
        return [", ".join(some) or "none" for some in self.lost_together()]

    def is_offloaded(self, g: str) -> bool:
        """Whether the descriptors of a group are large enough for the blob server."""
        return len(self.producers[g]) > self.inline

    def lost_together(self) -> Iterable[tuple[str, ...]]:
        """The sets of partitions that can be unavailable when a region fails: all; a recorded run has some."""
        return [some for n in range(len(self.partitions) + 1) for some in combinations(tuple(self.partitions), n)]

    def crosses(self, g: str) -> bool:
        """Whether a group is read by another region than its producers'."""
        return len({self.region_of[t] for t in (*self.producers[g], *self.consumers[g])}) > 1

    def inputs_of(self, r: str) -> list[str]:
        """The groups that a region reads from other regions."""
        return [g for g in self.groups if self.crosses(g) and any(self.region_of[t] == r for t in self.consumers[g])]

    def made_inside(self, r: str, g: str) -> int:
        """Number of producers of a group in a region that reads it."""
        return sum(self.region_of[p] == r for p in self.producers[g])

    def groups_of(self, t: str) -> list[str]:
        """The groups that a task reads."""
        return [g for g in self.groups if t in self.consumers[g]]

    def tasks_to_restart(self, r: str, lost: str) -> list[str]:
        """The tasks that restart when a region fails and these partitions are unavailable."""
        missing = [p for p in self.partitions if p in lost.split(", ")]
        unavailable = tuple((d, int(i or 0)) for d, _, i in [p.partition("#") for p in missing])
        found = regions_to_restart(self.division, list(self.regions).index(r), unavailable)
        return [self.tasks[t] for q in sorted(found) for t in self.division.members[q]]
