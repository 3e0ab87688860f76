"""Deployment descriptors by groups against descriptors pair by pair, after restarts too."""

from __future__ import annotations

from random import Random

import pytest

from streamproof_models.failover.deployment import AttemptIds, BlobKey, Deployment, Place, read_block
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, JobGraphError, Pattern, Vertex
from streamproof_models.failover.topology import Topology


def random_job(rng: Random) -> JobGraph:
    """Two to four vertices, each edge with its own dataset or with an earlier one of the same producer."""
    vertices = tuple(Vertex(name, rng.randint(1, 4)) for name in "ABCD"[: rng.randint(2, 4)])
    edges: list[Edge] = []
    for at, target in enumerate(vertices):
        for source in vertices[:at]:
            shared = [e for e in edges if e.source == source.name]
            if shared and rng.random() < 0.3:
                edges.append(Edge(source.name, target.name, shared[0].pattern, Exchange.BLOCKING, shared[0].dataset))
            elif rng.random() < 0.7:
                name = f"d{len(edges)}"
                edges.append(Edge(source.name, target.name, rng.choice(list(Pattern)), Exchange.BLOCKING, name))
    return JobGraph(vertices, tuple(edges))


def at(number: int) -> Place:
    """The place of a task that nothing moved."""
    return Place(f"tm-{number // 2}", f"10.0.0.{number // 2}", 6121)


def deployment(graph: JobGraph, **options: object) -> Deployment:
    """A deployment with two tasks on each TaskManager."""
    topology = Topology(graph)
    return Deployment(topology, [at(n) for n in range(len(topology.tasks))], **options)  # type: ignore[arg-type]


def told(plan: Deployment, task: tuple[str, int]) -> list[list[tuple[int, Place]]]:
    """The partitions and places that a task is given, by edge."""
    blocks = (plan.blobs[i] if isinstance(i, BlobKey) else i for i in plan.inputs(task))
    return [[(d.number, d.place) for d in read_block(block)] for block in blocks]


@pytest.mark.parametrize("ids", list(AttemptIds))
def test_blocks_are_the_descriptors_pair_by_pair(ids: AttemptIds) -> None:
    """On 150 random jobs, after each of four random restarts, with blocks inline and as blobs."""
    rng = Random(f"deployment {ids.value}")
    restarted = 0
    for _ in range(150):
        graph = random_job(rng)
        plan = deployment(graph, ids=ids, threshold=rng.choice((1, 4, 10**6)))
        for _ in range(5):
            expected: dict[tuple[str, int], list[list[tuple[int, Place]]]] = {task: [] for task in graph.tasks}
            for edge, consumers in zip(graph.edges, plan.topology.consumes(), strict=True):
                for consumer, producers in enumerate(consumers):
                    places = [plan.places[plan.topology.number((edge.source, p))] for p in producers]
                    expected[edge.target, consumer].append(list(zip(producers, places, strict=True)))
            for task in graph.tasks:
                assert told(plan, task) == expected[task]
                blocks = [plan.blobs[i] if isinstance(i, BlobKey) else i for i in plan.inputs(task)]
                decoded = [b"".join(d.serialised() for d in read_block(block)) for block in blocks]
                assert decoded == plan.edge_by_edge(task)
            used = {i for task in graph.tasks for i in plan.inputs(task) if isinstance(i, BlobKey)}
            assert set(plan.blobs) == used, "a blob that nobody needs is on the server"
            some = rng.sample(graph.tasks, rng.randint(0, len(graph.tasks)))
            plan.restart(some, {task: Place("moved", "10.0.1.1", rng.randint(1, 9)) for task in some[:1]})
            restarted += len(some)
    assert restarted > 1000


def test_an_all_to_all_edge_has_one_block_until_a_producer_restarts() -> None:
    """A pointwise edge has one for each group; a restarted reader is sent the same."""
    vertices = (Vertex("A", 6), Vertex("B", 6), Vertex("C", 3))
    edges = (
        Edge("A", "B", Pattern.ALL_TO_ALL, Exchange.BLOCKING, "d"),
        Edge("A", "C", Pattern.POINTWISE, Exchange.BLOCKING, "e"),
    )
    plan = deployment(JobGraph(vertices, edges))
    before = {task: plan.inputs(task) for task in plan.topology.tasks}
    assert plan.made == 1 + 3
    assert len({id(before["B", n][0]) for n in range(6)}) == 1
    plan.restart([("B", 2), ("C", 0)])
    assert {task: plan.inputs(task) for task in plan.topology.tasks} == before
    assert plan.made == 4
    plan.restart([("A", 3)])
    after = {task: plan.inputs(task) for task in plan.topology.tasks}
    assert plan.made == 6
    assert {task for task in before if before[task] != after[task]} == {*(("B", n) for n in range(6)), ("C", 1)}


def test_a_block_goes_to_the_blob_server_from_the_threshold_on() -> None:
    """The threshold is descriptors times readers."""
    graph = JobGraph((Vertex("A", 3), Vertex("B", 4)), (Edge("A", "B", Pattern.ALL_TO_ALL, Exchange.BLOCKING, "d"),))
    assert isinstance(deployment(graph, threshold=13).inputs(("B", 0))[0], bytes)
    plan = deployment(graph, threshold=12)
    (key,) = plan.inputs(("B", 0))
    assert isinstance(key, BlobKey)
    assert plan.inputs(("B", 3)) == (key,)
    plan.restart([("A", 0)])
    assert not plan.blobs
    assert plan.inputs(("B", 0)) != (key,)


def test_unknown_tasks_and_missing_places_are_refused() -> None:
    """One sentence each."""
    graph = JobGraph((Vertex("A"), Vertex("B")), (Edge("A", "B", Pattern.POINTWISE, Exchange.BLOCKING, "d"),))
    with pytest.raises(ValueError, match="1 places for 2 tasks"):
        Deployment(Topology(graph), [Place("tm", "h", 1)])
    plan = deployment(graph)
    for wrong in (("C", 0), ("B", 1)):
        with pytest.raises(JobGraphError, match="has no task"):
            plan.inputs(wrong)
        with pytest.raises(JobGraphError, match="has no task"):
            plan.restart([wrong])
        with pytest.raises(JobGraphError, match="has no task"):
            plan.edge_by_edge(wrong)
