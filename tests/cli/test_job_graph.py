"""``streamproof check failover --job-graph``: a user's own job, its regions, what restarts, and whether it can hang."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from streamproof_models.failover.graph import Edge, Exchange, JobGraph, JobGraphError, Pattern, Vertex
from streamproof_models.failover.machine import Failover
from streamproof_models.failover.regions import pipelined_regions
from streamproof_models.failover.restart import tasks_to_restart
from streamproof_models.failover.topology import Topology
from streamproof_models.topologies import JOB_GRAPHS
from streamproof_specs.job_graphs import what_if


def rest(edges: list[tuple[str, str, str, str]], parallelism: dict[str, int]) -> str:
    """The REST API's answer to /jobs/JOB for edges (source, target, exchange, ship strategy)."""
    ids = {name: f"{at:032x}" for at, name in enumerate(parallelism)}
    nodes = [
        {
            "id": ids[name],
            "description": name,
            "parallelism": parallelism[name],
            "inputs": [
                {"id": ids[source], "num": at, "exchange": exchange, "ship_strategy": strategy}
                for at, (source, target, exchange, strategy) in enumerate(edges)
                if target == name
            ],
        }
        for name in parallelism
    ]
    vertices = [{"id": ids[name], "name": name, "parallelism": size} for name, size in parallelism.items()]
    plan = {"jid": "f" * 32, "name": "mine", "nodes": nodes}
    return json.dumps({"jid": "f" * 32, "name": "mine", "state": "RUNNING", "vertices": vertices, "plan": plan})


DETOUR = [("A", "B", "pipelined", "FORWARD"), ("A", "C", "blocking", "FORWARD"), ("C", "B", "blocking", "FORWARD")]


def test_own_job_is_checked_with_its_regions_and_the_names_of_its_vertices(streamproof: Any, tmp_path: Path) -> None:
    """All properties; tasks are named as in Flink's logs; the answer to a question is printed and in the JSON."""
    file = tmp_path / "job.json"
    sizes = {"Source: <a>": 2, "Sink": 1}
    file.write_text(rest([("Source: <a>", "Sink", "blocking", "REBALANCE")], sizes), encoding="utf-8")
    words = ("check", "failover", "--job-graph", str(file), "--what-if", "lose=Source: <a>(2/2)")
    out = streamproof(*words, "--json", "answer.json").out
    assert "3 tasks in 3 pipelined regions\n  region 1: Source: <a> (1/2)\n" in out
    assert (
        "if lose=Source: <a>(2/2): 2 of 3 tasks restart\n  region 2: Source: <a> (2/2)\n  region 3: Sink (1/1)\n" in out
    )
    assert "holds: 11 of 11 properties" in out
    assert "warning" not in out
    answer = json.loads((Path.cwd() / "answer.json").read_text(encoding="utf-8"))
    assert answer["facts"][-1] == "  region 3: Sink (1/1)"


def test_names_may_have_any_characters(streamproof: Any, tmp_path: Path) -> None:
    """Two failures of tasks whose names look like parts of a question; control characters are escaped."""
    file, odd = tmp_path / "job.json", "a; x=1 \x1b[31m"
    file.write_text(rest([(odd, "lose=b", "blocking", "FORWARD")], {odd: 1, "lose=b": 1}), encoding="utf-8")
    done = streamproof("check", "failover", "--job-graph", str(file), "--what-if", f"fail={odd}(1/1); lose=lose=b(1/1)")
    assert done.code == 0
    assert "2 of 2 tasks restart\n  region 1: a; x=1 \\x1b[31m (1/1)\n  region 2: lose=b (1/1)\n" in done.out
    assert "\x1b" not in done.out


def test_job_that_flink_never_schedules_gets_a_warning(streamproof: Any, tmp_path: Path) -> None:
    """The cycle A > B pipelined, A > C > B blocking; Flink's own rule of merging has the deadlock."""
    file = tmp_path / "job.json"
    file.write_text(rest(DETOUR, {"A": 1, "B": 1, "C": 1}), encoding="utf-8")
    out = streamproof("check", "failover", "--job-graph", str(file), "--property", "deadlock").out
    warning = "warning: Flink 2.3 never schedules this job (variant merge-within-logical-region-only): the regions"
    assert f"{warning} {{A (1/1), B (1/1)}}, {{C (1/1)}} wait for each other's results" in out
    variant = ("--variant", "merge-within-logical-region-only")
    assert streamproof("check", "failover", *variant, "--job-graph", str(file), "--property", "deadlock").code == 11


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--what-if", "lose=Z"), "the job has no task 'Z'\n  its tasks: A (1/1), B (1/1), C (1/1)"),
        (("--what-if", "lose=A(2/1)"), "the job has no task 'A(2/1)'"),
        (("--what-if", "lost A"), "'lost A' is no question\n  write lose=TASK or fail=TASK"),
        (("--what-if", ""), "'' is no question"),
        (("--topology", "chain"), "--job-graph and --topology exclude each other"),
        (("--parallelism", "2"), "--job-graph and --parallelism exclude each other"),
    ],
)
def test_bad_questions_are_refused(streamproof: Any, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    """One sentence and a remedy."""
    file = tmp_path / "job.json"
    file.write_text(rest(DETOUR, {"A": 1, "B": 1, "C": 1}), encoding="utf-8")
    done = streamproof("check", "failover", "--job-graph", str(file), *words)
    assert (done.code, message in done.err) == (2, True), done


def test_other_verbs_answer_no_questions_and_other_files_are_no_job_graph(streamproof: Any, tmp_path: Path) -> None:
    """An exchange that the model does not have, and JSON of another kind, are named."""
    done = streamproof("simulate", "failover", "--what-if", "fail=A")
    assert (done.code, "--what-if is a question that only check answers" in done.err) == (2, True)
    file = tmp_path / "job.json"
    for text, message in (
        ("[]", "job.json"),
        (rest([("A", "B", "hybrid_selective", "FORWARD")], {"A": 1, "B": 1}), "HYBRID_SELECTIVE"),
    ):
        file.write_text(text, encoding="utf-8")
        done = streamproof("check", "failover", "--job-graph", str(file))
        assert (done.code, message in done.err) == (2, True), done


def test_answers_are_the_restart_sets_of_the_functions() -> None:
    """For each task of the catalogue, failing or lost; as text and as a name, graphs are the same."""
    asked = 0
    for name, build in JOB_GRAPHS.items():
        graph = build()
        assert JobGraph.of_text(graph.text) == graph
        named = Failover(topology=name)
        model = Failover(topology=graph.text)
        assert len(model.tasks) == len(named.tasks)
        regions = pipelined_regions(Topology(graph), model.merging)
        for vertex, subtask in graph.tasks:
            size = next(v.parallelism for v in graph.vertices if v.name == vertex)
            lost = [(e.dataset, subtask) for e in graph.edges if e.source == vertex and e.exchange is Exchange.BLOCKING]
            for what, unavailable in (("fail", []), ("lose", lost)):
                expected = tasks_to_restart(regions, (vertex, subtask), unavailable)
                answer = list(what_if(model, f"{what}={vertex}({subtask + 1}/{size})"))
                assert answer[0].endswith(f": {len(expected)} of {len(model.tasks)} tasks restart")
                listed = {task for line in answer[1:] for task in line.partition(": ")[2].split(", ")}
                sizes = {v.name: v.parallelism for v in graph.vertices}
                assert listed == {model.task_name(v, i, sizes[v]) for v, i in expected}
                asked += 1
    assert asked == 2 * sum(len(build().tasks) for build in JOB_GRAPHS.values())


def test_lost_results_restart_the_consumers_that_notice_the_loss() -> None:
    """On random jobs: the set of a lost task is that of each of its consumers that fails for lack of the result."""
    rng = Random("what if")
    compared = 0
    for _ in range(60):
        vertices = tuple(Vertex(name, rng.randint(1, 3)) for name in "ABCD"[: rng.randint(2, 4)])
        edges = tuple(
            Edge(
                a.name,
                b.name,
                rng.choice(list(Pattern)),
                rng.choice([Exchange.BLOCKING, Exchange.PIPELINED]),
                f"{a.name}{b.name}",
            )
            for at, b in enumerate(vertices)
            for a in vertices[:at]
            if rng.random() < 0.7
        )
        graph = JobGraph(vertices, edges)
        model = Failover(topology=graph.text)
        topology = Topology(graph)
        regions = pipelined_regions(topology, model.merging)
        for edge, consumers in zip(graph.edges, topology.consumes(), strict=True):
            for consumer, producers in enumerate(consumers):
                for producer in producers if edge.exchange is Exchange.BLOCKING else ():
                    lost = [
                        (e.dataset, producer)
                        for e in graph.edges
                        if e.source == edge.source and e.exchange is Exchange.BLOCKING
                    ]
                    noticed = tasks_to_restart(regions, (edge.target, consumer), lost)
                    size = vertices["ABCD".index(edge.source)].parallelism
                    first = next(iter(what_if(model, f"lose={edge.source}({producer + 1}/{size})")))
                    assert f" {len(noticed)} of " in first
                    compared += 1
    assert compared > 100


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"vertices":[["A"]],"edges":[]}', '{"vertices":[["A",0]],"edges":[]}', "[]"]
)
def test_wrong_texts_of_job_graphs_are_refused(text: str) -> None:
    """With the reason."""
    with pytest.raises(JobGraphError):
        JobGraph.of_text(text)
