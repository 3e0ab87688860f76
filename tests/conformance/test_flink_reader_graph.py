"""Job graphs of recorded runs: by the REST API, by the logs, and how the two agree."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamproof.base.errors import InputError
from streamproof.conformance.flink import (
    Edge,
    FlinkRun,
    JobGraph,
    Vertex,
    find_runs,
    graph_of,
    read_rest,
    read_run,
)
from streamproof.conformance.flink.graph import pattern_of, producers_of, same_connections
from streamproof.conformance.flink.rest import NoAnswer, Subtask

JOB = "337d69de26fec894361caf2e7c702644"
HEAD = re.compile(r"\d{4}-\d\d-\d\d ")


def graph_from_log(run: FlinkRun, job: str) -> JobGraph:
    """The graph without the answers beside the logs."""
    return graph_of(replace(run, rest={}), job)


def only_job(run: FlinkRun) -> str:
    """The job of a run that has one."""
    (job,) = run.jobs
    return job


def _shape(graph: JobGraph) -> set[tuple[str, str, str | None, str | None]]:
    """Edges by names, with patterns distinguished only where they connect subtasks differently."""
    vertices = {vertex.id: vertex for vertex in graph.vertices}

    def pattern(edge: Edge) -> str | None:
        sizes = vertices[edge.source].parallelism or 0, vertices[edge.target].parallelism or 0
        return "either" if same_connections(*sizes) else edge.pattern

    return {(vertices[e.source].name or "", vertices[e.target].name or "", pattern(e), e.exchange) for e in graph.edges}


def _kept(run: Path, target: Path, keep: Callable[[str, str], bool]) -> FlinkRun:
    """A run of which only the records remain that `keep` keeps, given the file's name and the head."""
    target.mkdir()
    for log in run.glob("*.log"):
        kept, on = [], True
        for line in log.read_text().splitlines(keepends=True):
            on = keep(log.name, line) if HEAD.match(line) else on
            kept += [line] if on else []
        (target / log.name).write_text("".join(kept))
    return read_run(target)


def _not_debug(name: str, line: str) -> bool:
    return " DEBUG " not in line


def test_logs_and_rest_agree(flink_logs: Path, flink_credit: Path) -> None:
    """In every run the logs at DEBUG give the whole graph that the REST API states, datasets aside."""
    compared = 0
    for folder in (flink_logs, flink_credit):
        for source in find_runs(folder):
            run = read_run(source)
            job = only_job(run)
            logged, stated = graph_from_log(run, job), read_rest(run.rest[job], job).graph
            assert logged.complete, (run.name, logged.missing)
            assert stated.complete, (run.name, stated.missing)
            assert set(logged.vertices) == set(stated.vertices)
            assert _shape(logged) == _shape(stated)
            compared += 1
    assert compared == 30


def test_the_diamond(flink_logs: Path) -> None:
    """The graph of the batch diamond in full, with the dataset of each edge."""
    run = read_run(flink_logs / "b-lostpart-1")
    a, b = "cbc357ccb763df2852fee8c4fc7d55f2", "9dd63673dd41ea021b896d5203f3ba7c"
    c, d = "e883208d19e3c34f8aaf2a3168a63337", "560f5a62081aef551d14739acec3a961"
    graph = graph_from_log(run, JOB)
    assert graph.name == "batch-diamond"
    assert graph.vertices == (
        Vertex(a, "Source: A-source -> A", 2),
        Vertex(b, "B", 4),
        Vertex(c, "C -> C-sink: Writer", 2),
        Vertex(d, "D -> D-sink: Writer", 2),
    )
    assert graph.edges == (
        Edge(a, b, "ALL_TO_ALL", "BLOCKING", "52fee8c566899c4ecbc357cd21702584", input=0),
        Edge(b, c, "ALL_TO_ALL", "BLOCKING", "1b896d521a4e6c5e9dd63673f39c9be4", input=0),
        Edge(b, d, "POINTWISE", "BLOCKING", "1b896d51e3f636509dd63673bd4465d6", input=0),
    )
    assert [(x.id[:8], x.producer == b, dict(x.subpartitions)) for x in graph.datasets] == [
        ("1b896d51", True, {0: 1, 1: 1, 2: 1, 3: 1}),
        ("1b896d52", True, {0: 2, 1: 2, 2: 2, 3: 2}),
        ("52fee8c5", False, {0: 4, 1: 4}),
    ]
    both = graph_of(run, JOB)
    assert both.origin == "rest"
    assert {(e.source, e.target, e.dataset) for e in both.edges} == {
        (e.source, e.target, e.dataset) for e in graph.edges
    }
    assert {e.ship for e in both.edges} == {"REBALANCE", "RESCALE"}


def test_datasets_that_cannot_be_distinguished(flink_logs: Path) -> None:
    """Two datasets of one producer to two consumers alike: neither edge is given one, both have type and pattern."""
    run = read_run(flink_logs / "i117-bulk-1")
    graph = graph_from_log(run, only_job(run))
    names = {vertex.id: vertex.name for vertex in graph.vertices}
    assert {(names[e.target], e.dataset is None, e.exchange) for e in graph.edges} == {
        ("PartialSolution (Bulk Iteration)", False, "PIPELINED"),
        ("Map (step)", True, "PIPELINED"),
        ("DataSink (out)", True, "PIPELINED"),
        ("Sync (Bulk Iteration)", True, "PIPELINED"),
    }
    assert graph.complete


def test_info_logs_have_no_edges(flink_logs: Path, tmp_path: Path) -> None:
    """At INFO there are vertices and no edges, and the graph says what would tell them."""
    run = _kept(flink_logs / "f-clean-batch-2", tmp_path / "run", _not_debug)
    graph = graph_from_log(run, only_job(run))
    assert {(vertex.name, vertex.parallelism) for vertex in graph.vertices} == {
        ("Source: A-source -> A", 3),
        ("B", 4),
        ("C -> C-sink: Writer", 2),
        ("D -> D-sink: Writer", 4),
    }
    assert graph.edges == ()
    assert not graph.complete
    assert graph.missing[-1] == (
        "the edges (the JobManager logs them at DEBUG: org.apache.flink.runtime.executiongraph)"
    )


def test_info_logs_have_the_edges_that_broke(flink_logs: Path, tmp_path: Path) -> None:
    """A failure that names a partition tells an edge even at INFO, but neither its type nor its pattern."""
    run = _kept(flink_logs / "b-lostpart-1", tmp_path / "run", _not_debug)
    graph = graph_from_log(run, only_job(run))
    assert _shape(graph) == {("B", "C -> C-sink: Writer", None, None), ("B", "D -> D-sink: Writer", None, None)}
    assert "the exchange type of the edge from 'B' to 'D -> D-sink: Writer'" in graph.missing
    assert "how the edge from 'B' to 'C -> C-sink: Writer' connects subtasks" in graph.missing


def test_threads_tell_the_edges(flink_logs: Path, tmp_path: Path) -> None:
    """With thread names the TaskManagers' logs alone give the whole graph; without, they say which inputs lack."""
    threads = read_run(flink_logs / "a-taskfail-2")
    run = _kept(flink_logs / "a-taskfail-2", tmp_path / "threads", lambda name, line: name.startswith("taskmanager"))
    graph = graph_from_log(run, only_job(run))
    assert graph.complete
    assert _shape(graph) == _shape(graph_from_log(threads, only_job(threads)))
    run = _kept(flink_logs / "a-taskfail-1", tmp_path / "plain", lambda name, line: name.startswith("taskmanager"))
    graph = graph_from_log(run, only_job(run))
    assert graph.edges == ()
    assert {line for line in graph.missing if "inputs" in line} == {
        "1 of the 1 inputs of 'B'",
        "1 of the 1 inputs of 'C -> C-sink: Writer'",
        "1 of the 1 inputs of 'D -> D-sink: Writer'",
    }


def test_a_jobmanagers_log_alone(flink_logs: Path) -> None:
    """The JobManager states the edges, but neither types nor patterns."""
    run = read_run(flink_logs / "c-disjoint-1" / "jobmanager.log")
    graph = graph_from_log(run, only_job(run))
    assert _shape(graph) == {("Source: S", "M", None, None), ("M", "K: Writer", None, None)}
    assert len(graph.missing) == 4


def test_inputs_that_were_announced_and_not_stated(flink_logs: Path, tmp_path: Path) -> None:
    """If a line about an input is lost, the graph says whose input is missing."""
    lost = "Connecting input 0 of vertex 0a44"
    run = _kept(flink_logs / "c-disjoint-1", tmp_path / "run", lambda name, line: lost not in line)
    graph = graph_from_log(run, only_job(run))
    assert not graph.complete
    assert graph.missing == ("1 of the 1 inputs of 'M'",)


def _answer(flink_logs: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((flink_logs / "b-lostpart-1" / "rest-337d69de.json").read_text())
    return data


def test_a_bare_answer_will_do(flink_logs: Path, tmp_path: Path) -> None:
    """What `/jobs/:id` answers, saved as it is, gives the same graph, without the places and states of subtasks."""
    file = tmp_path / "rest-337d69de.json"
    file.write_text(json.dumps(_answer(flink_logs)["job"]))
    whole = read_rest(flink_logs / "b-lostpart-1" / "rest-337d69de.json")
    assert read_rest(file) == replace(whole, file=str(file), subtasks={})
    assert whole.subtasks["cbc357ccb763df2852fee8c4fc7d55f2", 0] == Subtask("FINISHED", "tm-1")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda d: d["job"].pop("jid"), "the field 'jid' is missing"),
        (lambda d: d["job"].update(jid="x"), "'jid' is not an identifier: 'x'"),
        (
            lambda d: d["job"].update(jid="f" * 32),
            f"the answer is about job {'f' * 32}, not {JOB}",
        ),
        (lambda d: d["job"].update(vertices=[]), "the job has no vertices"),
        (lambda d: d["job"].update(vertices={}), "'vertices' must be a list, got dict"),
        (lambda d: d["job"]["vertices"][0].pop("parallelism"), "the field 'parallelism' is missing"),
        (lambda d: d["job"]["vertices"][0].update(parallelism="2"), "'parallelism' must be a whole number, got str"),
        (
            lambda d: (d.pop("plan"), d["job"].pop("plan")),
            "the answer has no plan with nodes, so the edges are not known",
        ),
        (lambda d: d.update(job="URLError('refused')"), "the API gave no answer: URLError('refused')"),
        (lambda d: d.update(job=[]), "job must be an object, got list"),
    ],
)
def test_a_spoilt_answer_is_refused(
    flink_logs: Path, tmp_path: Path, spoil: Callable[[dict[str, Any]], object], message: str
) -> None:
    """Each part that is missing or of the wrong kind is named, with the file and what to give instead."""
    data = _answer(flink_logs)
    spoil(data)
    file = tmp_path / "rest.json"
    file.write_text(json.dumps(data))
    with pytest.raises(InputError) as caught:
        read_rest(file, JOB)
    assert caught.value.message == f"{file}: {message}"
    assert caught.value.remedy


def test_a_file_that_is_not_json_is_refused(tmp_path: Path) -> None:
    """Half a file is refused at the line where it breaks off; a missing one by its name."""
    file = tmp_path / "rest.json"
    file.write_text('{\n "job": {')
    with pytest.raises(InputError, match=r"rest\.json:2: not JSON: Expecting property name"):
        read_rest(file)
    with pytest.raises(InputError, match=r"none\.json does not exist"):
        read_rest(tmp_path / "none.json")


def test_a_silent_api_leaves_the_logs(flink_logs: Path, tmp_path: Path) -> None:
    """If all that is beside the logs is a record of the API's silence, the graph comes from the logs."""
    target = shutil.copytree(flink_logs / "g-jmloss-1", tmp_path / "run")
    (target / "rest-before-kill-3a56cf22.json").unlink()
    run = read_run(target)
    assert run.rest == {}
    graph = graph_of(run, only_job(run))
    assert (graph.origin, graph.complete) == ("log", True)
    with pytest.raises(NoAnswer, match=r"rest-3a56cf22\.json: the API gave no answer: URLError\(ConnectionRefused"):
        read_rest(target / "rest-3a56cf22.json")


def test_a_broken_answer_is_found_and_told(flink_logs: Path, tmp_path: Path) -> None:
    """A broken file beside the logs is not passed over: asking for the graph says what is wrong with it."""
    target = shutil.copytree(flink_logs / "b-lostpart-1", tmp_path / "run")
    (target / "rest-337d69de.json").write_text("{")
    run = read_run(target)
    assert dict(run.rest) == {JOB: target / "rest-337d69de.json"}
    with pytest.raises(InputError, match=r"rest-337d69de\.json:1: not JSON"):
        graph_of(run, JOB)
    assert graph_from_log(run, JOB).complete


def test_unknown_and_ambiguous_jobs(flink_logs: Path) -> None:
    """A job that the run does not have is refused with those it has; several jobs are not one."""
    run = read_run(flink_logs / "a-pipelined-1")
    with pytest.raises(InputError) as caught:
        graph_from_log(run, "0" * 32)
    assert caught.value.message == f"the run a-pipelined-1 has no job {'0' * 32}"
    assert caught.value.remedy == "jobs in its logs: 3a3f542f5923983f97fc4f4ca563b034"


@pytest.mark.parametrize(
    ("ship", "pattern"),
    [
        ("FORWARD", "POINTWISE"),
        ("Forward", "POINTWISE"),
        ("RESCALE", "POINTWISE"),
        ("REBALANCE", "ALL_TO_ALL"),
        ("HASH", "ALL_TO_ALL"),
        ("BROADCAST", "ALL_TO_ALL"),
        ("Hash Partition", "ALL_TO_ALL"),
        ("something new", None),
        (None, None),
    ],
)
def test_ship_strategies(ship: str | None, pattern: str | None) -> None:
    """A strategy that is not known gives no pattern, rather than a wrong one."""
    assert pattern_of(ship) == pattern


@pytest.mark.parametrize("producers", range(1, 8))
@pytest.mark.parametrize("consumers", range(1, 8))
def test_pointwise_reads_each_producer(producers: int, consumers: int) -> None:
    """Pointwise, every consumer reads a run of producers, every producer is read, and with few of either all are."""
    reads = [producers_of("POINTWISE", producers, consumers, consumer) for consumer in range(consumers)]
    assert all(reads)
    assert {producer for read in reads for producer in read} == set(range(producers))
    assert sum(map(len, reads)) == max(producers, consumers)
    if same_connections(producers, consumers):
        assert reads == [producers_of("ALL_TO_ALL", producers, consumers, consumer) for consumer in range(consumers)]
