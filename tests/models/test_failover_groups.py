"""Groups against pairs: partitions to release on every small graph; regions, restarts, releases of any groups by SMT."""

from __future__ import annotations

from itertools import chain, combinations, product

import pytest
import z3

from streamproof_models.failover.graph import Partition
from streamproof_models.failover.regions import Regions, pipelined_regions
from streamproof_models.failover.release import partitions_to_release
from streamproof_models.failover.small_graphs import job_graphs
from streamproof_models.failover.topology import Topology

TASKS, EDGES, GROUPS = 4, 2, 2


def released_by_pairs(regions: Regions, finished: frozenset[int]) -> set[Partition]:
    """The partitions to release by their definition, pair of tasks by pair of tasks."""
    topology = regions.topology
    readers: dict[Partition, list[int]] = {}
    for edge, consumers in zip(topology.graph.edges, topology.consumes(), strict=True):
        for consumer, producers in enumerate(consumers):
            for producer in producers if edge.exchange.rereadable else ():
                readers.setdefault((edge.dataset, producer), []).append(regions.of((edge.target, consumer)))
    return {partition for partition, found in readers.items() if set(found) <= finished}


@pytest.mark.parametrize(("tasks", "expected"), [(3, 408), pytest.param(4, 40948, marks=pytest.mark.long)])
def test_partitions_to_release_are_those_by_pairs(tasks: int, expected: int) -> None:
    """On every graph of up to `tasks` tasks, datasets shared or not, for each set of finished regions."""
    situations = 0
    for graph in chain(*(job_graphs(size, sharing=True) for size in range(1, tasks + 1))):
        regions = pipelined_regions(Topology(graph))
        numbers = range(len(regions.members))
        for finished in chain.from_iterable(combinations(numbers, size) for size in range(len(numbers) + 1)):
            done = frozenset(finished)
            assert partitions_to_release(regions, done) == released_by_pairs(regions, done), (graph, finished)
            situations += 1
    assert situations == expected


class AnyGroups:
    """Up to four tasks and two edges with any groups: each task writes to and reads from at most one group of an edge."""

    def __init__(self) -> None:
        self.writes = self._flags("writes")
        self.reads = self._flags("reads")
        self.glues = [z3.Bool(f"glues_{e}") for e in range(EDGES)]
        self.lost = [[z3.Bool(f"lost_{e}_{t}") for t in range(TASKS)] for e in range(EDGES)]
        self.rules = []
        for side, e in product((self.writes, self.reads), range(EDGES)):
            self.rules += [z3.AtMost(*(side[e, t, g] for g in range(GROUPS)), 1) for t in range(TASKS)]
        for e, g in product(range(EDGES), range(GROUPS)):
            written, read = (z3.Or([side[e, t, g] for t in range(TASKS)]) for side in (self.writes, self.reads))
            self.rules.append(written == read)  # no group without producers or without consumers

    @staticmethod
    def _flags(name: str) -> dict[tuple[int, int, int], z3.BoolRef]:
        keys = product(range(EDGES), range(TASKS), range(GROUPS))
        return {(e, t, g): z3.Bool(f"{name}_{e}_{t}_{g}") for e, t, g in keys}

    def pair(self, e: int, producer: int, consumer: int) -> z3.BoolRef:
        """Whether a consumer reads a producer over an edge."""
        return z3.Or([z3.And(self.writes[e, producer, g], self.reads[e, consumer, g]) for g in range(GROUPS)])

    def is_valid(self, claim: z3.BoolRef) -> bool:
        """Whether a claim is true of all groups."""
        solver = z3.Solver()
        solver.add(*self.rules, z3.Not(claim))
        return bool(solver.check() == z3.unsat)


def joined_by_pairs(any_groups: AnyGroups) -> list[z3.BoolRef]:
    """For each task whether pairs of glued tasks join it to task 0."""
    now: list[z3.BoolRef] = [z3.BoolVal(t == 0) for t in range(TASKS)]
    for _ in range(TASKS - 1):
        now = [
            z3.Or(now[t], *(
                z3.And(any_groups.glues[e], now[u], z3.Or(any_groups.pair(e, t, u), any_groups.pair(e, u, t)))
                for e in range(EDGES) for u in range(TASKS)
            ))
            for t in range(TASKS)
        ]  # fmt: skip
    return now


def joined_by_groups(any_groups: AnyGroups) -> list[z3.BoolRef]:
    """The same over groups: a group is reached with one of its tasks, and reaches all of them."""
    now: list[z3.BoolRef] = [z3.BoolVal(t == 0) for t in range(TASKS)]
    sides = (any_groups.writes, any_groups.reads)
    for _ in range(TASKS - 1):
        reached = {
            (e, g): z3.And(
                any_groups.glues[e], z3.Or([z3.And(now[t], side[e, t, g]) for t in range(TASKS) for side in sides])
            )
            for e in range(EDGES)
            for g in range(GROUPS)
        }
        now = [
            z3.Or(now[t], *(z3.And(reached[e, g], z3.Or([side[e, t, g] for side in sides])) for e, g in reached))
            for t in range(TASKS)
        ]
    return now


def restarted(any_groups: AnyGroups, grouped: bool) -> list[z3.BoolRef]:
    """For each task whether it restarts with task 0: consumers of restarted tasks, producers of lost inputs."""
    a = any_groups
    now: list[z3.BoolRef] = [z3.BoolVal(t == 0) for t in range(TASKS)]
    for _ in range(TASKS - 1):
        new = list(now)
        for e in range(EDGES):
            if grouped:
                for g in range(GROUPS):
                    starts = z3.Or([z3.And(now[t], a.writes[e, t, g]) for t in range(TASKS)])
                    misses = z3.Or([z3.And(now[t], a.reads[e, t, g]) for t in range(TASKS)])
                    for t in range(TASKS):
                        new[t] = z3.Or(
                            new[t],
                            z3.And(starts, a.reads[e, t, g]),
                            z3.And(misses, a.writes[e, t, g], a.lost[e][t]),
                        )
            else:
                for t, u in product(range(TASKS), repeat=2):
                    new[t] = z3.Or(
                        new[t],
                        z3.And(now[u], a.pair(e, u, t)),
                        z3.And(now[u], a.pair(e, t, u), a.lost[e][t]),
                    )
        now = new
    return now


def test_regions_over_any_groups_are_those_by_pairs() -> None:
    """By SMT: whatever the groups of two edges between four tasks are, both computations join the same tasks."""
    groups = AnyGroups()
    both = zip(joined_by_groups(groups), joined_by_pairs(groups), strict=True)
    assert groups.is_valid(z3.And([one == other for one, other in both]))


def test_restarts_over_any_groups_are_those_by_pairs() -> None:
    """By SMT: the same for the tasks to restart, whatever is lost."""
    groups = AnyGroups()
    both = zip(restarted(groups, grouped=True), restarted(groups, grouped=False), strict=True)
    assert groups.is_valid(z3.And([one == other for one, other in both]))


def test_releases_over_any_groups_are_those_by_pairs() -> None:
    """By SMT: a group is releasable if and only if every reader of each of its partitions has finished."""
    groups = AnyGroups()
    finished = [z3.Bool(f"finished_{t}") for t in range(TASKS)]
    for e, p in product(range(EDGES), range(TASKS)):
        consumed = [
            z3.And([z3.Implies(groups.reads[e, t, g], finished[t]) for t in range(TASKS)]) for g in range(GROUPS)
        ]
        by_group = z3.And([z3.Implies(groups.writes[e, p, g], consumed[g]) for g in range(GROUPS)])
        by_pair = z3.And([z3.Implies(groups.pair(e, p, t), finished[t]) for t in range(TASKS)])
        assert groups.is_valid(by_group == by_pair)


@pytest.mark.parametrize("dropped", ["writes", "reads"])
def test_a_group_without_one_side_would_join_more(dropped: str) -> None:
    """The condition that no group is without producers or without consumers is necessary: the claims can fail."""
    groups = AnyGroups()
    groups.rules = [rule for rule in groups.rules if not z3.is_eq(rule)]
    groups.rules += [z3.Not(flag) for flag in (groups.writes if dropped == "writes" else groups.reads).values()]
    both = zip(joined_by_groups(groups), joined_by_pairs(groups), strict=True)
    assert not groups.is_valid(z3.And([one == two for one, two in both]))
