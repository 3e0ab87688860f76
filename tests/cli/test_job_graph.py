"""``streamproof check failover --job-graph``: a user's own job, its regions, what restarts, and whether it can hang."""

from __future__ import annotations

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import product
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest

from streamproof import UsageError, Verdict, check
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, JobGraphError, Pattern, Vertex
from streamproof_models.failover.machine import Failover
from streamproof_models.failover.named_job_graphs import JOB_GRAPHS
from streamproof_models.failover.regions import pipelined_regions
from streamproof_models.failover.restart import tasks_to_restart
from streamproof_models.failover.topology import Topology
from streamproof_models.failover.variants import MergeWithinLogicalRegionOnly
from streamproof_specs.failover.job_graphs import graph_of_file, regions_of, scheduled_by_flink, what_if
from streamproof_specs.failover.properties import SPEC

ALL_TO_ALL = ("HASH", "REBALANCE", "BROADCAST")
ODD = (
    "A",
    "Map 1",
    "Map1",
    "a; b",
    "lose=Z",
    "fail=A(1/1)",
    "x (1/2)",
    "<b>",
    "\x1b[31m",
    "A -> B",
    "A, B",
    "C#0",
    "A(1/1); fail=B",
)


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


OTHER_RULES = "--variant no-fence-eager and --variant early-release"
DETOUR = [("A", "B", "pipelined", "FORWARD"), ("A", "C", "blocking", "FORWARD"), ("C", "B", "blocking", "FORWARD")]


def test_own_job_is_checked_with_its_regions_and_the_names_of_its_vertices(streamproof: Any, tmp_path: Path) -> None:
    """All properties; tasks are named as in Flink's logs; the answer to a question is printed and in the JSON."""
    file = tmp_path / "job.json"
    sizes = {"Source: <a>": 2, "Sink": 1}
    file.write_text(rest([("Source: <a>", "Sink", "blocking", "REBALANCE")], sizes), encoding="utf-8")
    words = ("check", "failover", "--job-graph", str(file))
    done = streamproof(*words, "--what-if", "lose=Source: <a>(2/2)", "--json", "answer.json")
    out = done.out
    assert "3 tasks in 3 pipelined regions\n  region 1: Source: <a> (1/2)\n" in out
    assert (
        "if lose=Source: <a>(2/2): 2 of 3 tasks restart\n  region 2: Source: <a> (2/2)\n  region 3: Sink (1/1)\n" in out
    )
    answer = json.loads((Path.cwd() / "answer.json").read_text(encoding="utf-8"))
    assert answer["facts"][-3:] == [
        "  at most 3 of 3, if results with finished readers had been released; then also",
        "  region 1: Source: <a> (1/2)",
        "  at least 1 of 3, whatever has finished, if they run or a reader needs their results: Source: <a> (2/2)",
    ]
    assert (done.err, answer["warnings"]) == ("", [])
    assert (done.code, answer["verdict"], answer["exit_code"], answer["properties"]) == (0, "answered", 0, [])
    assert "holds" not in out
    done = streamproof(*words, "--what-if", "lose=Sink (1/1)", "--coverage")
    assert (done.code, "--what-if does not support --coverage" in done.err) == (2, True)
    assert "holds: 13 of 13 properties" in streamproof(*words).out


def test_names_may_have_any_characters(streamproof: Any, tmp_path: Path) -> None:
    """Two failures of tasks whose names look like parts of a question; control characters are escaped."""
    file, odd = tmp_path / "job.json", "a; x=1 \x1b[31m"
    file.write_text(rest([(odd, "lose=b", "blocking", "FORWARD")], {odd: 1, "lose=b": 1}), encoding="utf-8")
    done = streamproof("check", "failover", "--job-graph", str(file), "--what-if", f"fail={odd}(1/1); lose=lose=b(1/1)")
    assert done.code == 0
    assert "2 of 2 tasks restart\n  region 1: a; x=1 \\x1b[31m (1/1)\n  region 2: lose=b (1/1)\n" in done.out
    assert "\x1b" not in done.out


def test_job_that_flink_never_schedules_is_not_green(streamproof: Any, tmp_path: Path) -> None:
    """The cycle A > B pipelined, A > C > B blocking: the variant with Flink's own rule of merging is judged in the same run,
    as rows of its own, by every verb that judges the job; the warning is printed with -q too, and is in the JSON."""
    file = tmp_path / "job.json"
    file.write_text(rest(DETOUR, {"A": 1, "B": 1, "C": 1}), encoding="utf-8")
    job = ("failover", "--job-graph", str(file))
    warning = "Flink 2.3 never schedules this job (variant merge-within-logical-region-only): the regions"
    warning += " {A (1/1), B (1/1)}, {C (1/1)} wait for each other's results"
    row = "deadlock (merge-within-logical-region-only)"
    for words in (("check",), ("check", "--por"), ("prove",), ("simulate", "--walks", "3", "--seed", "1")):
        done = streamproof(words[0], *job, *words[1:], "--property", "deadlock", "-q", "--json", f"{words[0]}.json")
        answer = json.loads(Path(f"{words[0]}.json").read_text(encoding="utf-8"))
        found = {p["name"]: (p["verdict"], p["expected"]) for p in answer["properties"]}
        assert (done.code, answer["exit_code"], found[row]) == (11, 11, ("violated", None)), words
        assert found["deadlock"][0] == ("inconclusive" if words[0] == "simulate" else "holds")
        assert f"streamproof: warning: {warning}" in done.err
        assert answer["warnings"][0].startswith(warning)
    assert (Path.cwd() / "streamproof-out/failover-merge-within-logical-region-only/deadlock.itf.json").is_file()
    done = streamproof("export", *job, "--format", "promela", "--out", "exported", "--json", "export.json")
    assert (done.code, f"streamproof: warning: {warning}" in done.err) == (0, True)
    assert json.loads(Path("export.json").read_text(encoding="utf-8"))["warnings"][0].startswith(warning)
    variant = ("--variant", "merge-within-logical-region-only", "--property", "deadlock")
    done = streamproof("check", *job, *variant, "--json", "check.json")
    rows = [p["name"] for p in json.loads(Path("check.json").read_text(encoding="utf-8"))["properties"]]
    assert (done.code, rows) == (11, ["deadlock"])
    for words in (("check", "--agree"), ("prove", "--any", "failures")):
        done = streamproof(words[0], *job, *words[1:])
        assert (done.code, "merge-within-logical-region-only" in done.err.splitlines()[-1]) == (2, True), done


def test_jobs_with_the_same_regions_in_flink_have_no_further_rows(streamproof: Any, tmp_path: Path) -> None:
    """The warning names the two rules that Flink lacks; a job without stored results, and a named graph, have none."""
    file = tmp_path / "job.json"
    for exchange, warned in (("blocking", [OTHER_RULES]), ("pipelined", [])):
        file.write_text(rest([("A", "B", exchange, "FORWARD")], {"A": 1, "B": 1}), encoding="utf-8")
        done = streamproof("check", "failover", "--job-graph", str(file), "-q", "--json", "a.json")
        answer = json.loads(Path("a.json").read_text(encoding="utf-8"))
        rows = {p["name"]: p["verdict"] for p in answer["properties"]}
        assert (done.code, len(rows), rows["regions_scheduled (Flink 2.3)"]) == (0, 13, "holds")
        assert [warning.partition("check ")[2] for warning in answer["warnings"]] == warned
    assert streamproof("check", "failover", "-p", "topology=pair", "--property", "deadlock").err == ""


def test_too_many_tasks_are_refused_from_their_number(streamproof: Any, tmp_path: Path) -> None:
    """Two sizes for which the rules would have too many terms, and one with too many states for a search without limits; the
    question is answered before."""
    file = tmp_path / "job.json"
    for sizes, count in (({"A": 1000, "B": 2, "C": 1}, "1,003"), ({"A": 40, "B": 20, "C": 1}, "61")):
        edges = [("A", "B", "blocking", "HASH"), ("B", "C", "blocking", "HASH")]
        file.write_text(rest(edges, sizes), encoding="utf-8")
        words = ("check", "failover", "--job-graph", str(file))
        done = streamproof(*words, "--json", "a.json")
        answer = json.loads(Path("a.json").read_text(encoding="utf-8"))
        assert (done.code, answer["exit_code"], answer["error"]["kind"]) == (152, 152, "TooLarge")
        assert f"{count} tasks: the rules of this model would have about" in done.err
        assert "check --what-if answers single questions" in done.err
        assert [(p["name"], p["verdict"]) for p in answer["properties"]] == [("regions_scheduled (Flink 2.3)", "holds")]
        done = streamproof(*words, "--what-if", f"fail=B (1/{sizes['B']})")
        assert (done.code, f"if fail=B (1/{sizes['B']}): 2 of {count.replace(',', '')} tasks" in done.out) == (0, True)
        assert streamproof("simulate", "failover", "--job-graph", str(file)).code == 152
    file.write_text(rest([("A", "B", "pipelined", "FORWARD")], {"A": 600, "B": 600}), encoding="utf-8")
    done = streamproof("check", "failover", "--job-graph", str(file), "--timeout", "60")
    assert (done.code, "1,200 tasks: the rules of this model would have about" in done.err) == (152, True), done.err
    file.write_text(rest([], {"A": 34}), encoding="utf-8")
    words = ("check", "failover", "--job-graph", str(file), "--property", "survives", "-q", "-p", "losses=0")
    done = streamproof(*words)
    assert (done.code, "34 tasks: a search of all states would meet more than 2^34 states" in done.err) == (152, True)
    assert streamproof(*words, "--max-states", "3").code == 160


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
        (rest([("A", "B", "pipelined_approximate", "FORWARD")], {"A": 1, "B": 1}), "PIPELINED_APPROXIMATE"),
    ):
        file.write_text(text, encoding="utf-8")
        done = streamproof("check", "failover", "--job-graph", str(file))
        assert (done.code, message in done.err) == (2, True), done


def test_answers_are_the_restart_sets_of_the_functions() -> None:
    """For each task of the catalogue, failing or lost; as text and as a name, graphs are the same."""
    queries = 0
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
                first = next(at for at, line in enumerate(answer) if line.startswith("  when every task"))
                listed = {task for line in answer[1:first] for task in line.partition(": ")[2].split(", ")}
                sizes = {v.name: v.parallelism for v in graph.vertices}
                assert listed == {model.task_name(v, i, sizes[v]) for v, i in expected}
                queries += 1
    assert queries == 2 * sum(len(build().tasks) for build in JOB_GRAPHS.values())


def pair_by_pair(
    sizes: dict[str, int], edges: list[Any], failures: list[tuple[str, str, int]], *, released: bool = False
) -> tuple[set[Any], int]:
    """The tasks that restart, and the number of regions, by the plain rules, one pair of tasks at a time. `released`: every
    stored result is lost as well, unless a region with a failing task reads it."""
    tasks = [(v, i) for v in sizes for i in range(sizes[v])]
    pairs, of_edge = [], []
    for at, (a, z, exchange, ship) in enumerate(edges):
        p, c = sizes[a], sizes[z]
        for i, j in product(range(p), range(c)):
            reads = i == j * p // c if p <= c else j * p // c <= i < (j + 1) * p // c
            if ship in ALL_TO_ALL or reads:
                pairs.append(((a, i), (z, j), exchange))
                of_edge.append(at)
    region = {t: t for t in tasks}

    def merge(one: Any, other: Any) -> None:
        old, new = region[other], region[one]
        region.update({t: new for t in tasks if region[t] == old})

    for one, other, exchange in pairs:
        if exchange.startswith("pipelined"):
            merge(one, other)
    while True:  # regions that wait for each other are one
        later = {t: {t} for t in set(region.values())}
        for _ in later:
            for one, other, _ in pairs:
                for found in later.values():
                    if region[one] in found:
                        found.add(region[other])
        waiting = next(((x, y) for x, y in product(later, later) if x != y and y in later[x] and x in later[y]), None)
        if waiting is None:
            break
        merge(*waiting)
    lost = {(v, i) for what, v, i in failures if what == "lose"}
    restarted = {region[v, i] for _, v, i in failures}
    stored = {(at, one) for at, (one, _, exchange) in zip(of_edge, pairs, strict=True) if exchange[0] != "p"}
    active = {region[v, i] for what, v, i in failures if what == "fail"}
    kept = {(at, one) for at, (one, other, _) in zip(of_edge, pairs, strict=True) if region[other] in active}
    gone = {(at, one) for at, one in stored if one in lost or (released and (at, one) not in kept)}
    for _ in tasks:
        restarted |= {region[other] for one, other, _ in pairs if region[one] in restarted}
        missed = (p for at, p in zip(of_edge, pairs, strict=True) if (at, p[0]) in gone)
        restarted |= {region[one] for one, other, _ in missed if region[other] in restarted}
    return {t for t in tasks if region[t] in restarted}, len(set(region.values()))


def test_random_jobs_with_odd_names(tmp_path: Path) -> None:
    """Regions and answers to questions about several tasks are those of the plain rules, whatever the names look like."""
    rng, file, asked_of, fewer, larger = Random("odd"), tmp_path / "job.json", 0, 0, 0
    while asked_of < 120:
        names = rng.sample(ODD, rng.randint(1, 4))
        sizes = {name: rng.choice((1, 1, 2, 3)) for name in names}
        edges = [
            (
                a,
                z,
                rng.choice(("pipelined_bounded", "blocking", "hybrid_full")),
                rng.choice(("FORWARD", "RESCALE", *ALL_TO_ALL)),
            )
            for at, z in enumerate(names)
            for a in names[:at]
            for _ in range(rng.choice((0, 1, 1, 2)))
        ]
        failures = [
            (rng.choice(("fail", "lose")), v, rng.randrange(sizes[v])) for v in rng.choices(names, k=rng.randint(1, 3))
        ]
        file.write_text(rest(edges, sizes), encoding="utf-8")
        model = Failover(**graph_of_file(str(file)))
        question = "; ".join(f"{what}={v} ({i + 1}/{sizes[v]})" for what, v, i in failures)
        restarted, regions = pair_by_pair(sizes, edges, failures)
        said = list(what_if(model, question))
        answer = [line for line in said if not line.startswith("  Flink 2.3 never schedules this job ")]
        assert (len(answer) < len(said)) is not all(holds for _, holds, _ in scheduled_by_flink(model))
        assert answer[0] == f"if {question}: {len(restarted)} of {len(model.tasks)} tasks restart"
        least = answer.pop(next(at for at, line in enumerate(answer) if line.startswith("  at least ")))
        assert all(f"{v} ({i + 1}/{sizes[v]})" in least for _, v, i in failures)
        first = next(at for at, line in enumerate(answer) if line.startswith("  when every task"))
        listed = ", ".join(line.partition(": ")[2] for line in answer[1:first])
        greatest = pair_by_pair(sizes, edges, failures, released=True)[0]
        more = [line.partition(": ")[2] for line in answer[first + 2 :]]
        if greatest == restarted:
            assert answer[first + 1 :] == ["  no more at any other moment, whatever results were released before"]
        else:
            assert answer[first + 1].startswith(f"  at most {len(greatest)} of {len(model.tasks)}, if results ")
            assert all(f"{v} ({i + 1}/{sizes[v]})" in ", ".join(more) for v, i in greatest - restarted)
            larger += 1
        assert all(f"{v} ({i + 1}/{sizes[v]})" in listed for v, i in restarted)
        assert len(listed) == sum(len(f"{v} ({i + 1}/{sizes[v]})") + 2 for v, i in restarted) - 2
        assert f" in {regions} pipelined region" in next(iter(regions_of(model)))
        fewer += len(restarted) < len(model.tasks)
        asked_of += 1
    assert fewer > 20
    assert larger > 10


def test_every_form_of_an_answer_gives_one_graph(tmp_path: Path) -> None:
    """The job, its plan alone, the plan as the REST API wraps it, and an archive of the history server."""
    file = tmp_path / "job.json"
    job = json.loads(rest(DETOUR, {"A": 1, "B": 2, "C": 1}))
    archive = {"archive": [{"path": f"/jobs/{'f' * 32}", "json": json.dumps(job)}]}
    texts = set()
    for form in (job, {"job": job}, job["plan"], {"plan": job["plan"]}, {"plan": {"plan": job["plan"]}}, archive):
        file.write_text(json.dumps(form), encoding="utf-8")
        texts.add(graph_of_file(str(file))["topology"])
    assert len(texts) == 1


def test_spaces_may_be_left_out_where_one_task_is_meant(tmp_path: Path) -> None:
    """Two names that differ in spaces alone are distinguished as written; otherwise the question is refused."""
    file = tmp_path / "job.json"
    file.write_text(rest([("Map 1", "Map1", "blocking", "FORWARD")], {"Map 1": 1, "Map1": 1}), encoding="utf-8")
    model = Failover(**graph_of_file(str(file)))
    assert next(iter(what_if(model, "fail=Map 1 (1/1)"))).endswith("2 of 2 tasks restart")
    assert next(iter(what_if(model, "fail=Map1 (1/1)"))).endswith("1 of 2 tasks restart")
    with pytest.raises(UsageError, match=r"the job has several tasks 'Map1\(1/1\)'"):
        list(what_if(model, "fail=Map1(1/1)"))
    many = "; ".join(["fail=Map1 (1/1)"] * 5000)
    assert next(iter(what_if(model, many))).endswith("1 of 2 tasks restart")


def test_regions_whose_names_would_be_equal_are_two(tmp_path: Path) -> None:
    """Names are made of those of tasks, which may have any characters."""
    file, edges = tmp_path / "job.json", [("A", "B", "pipelined_bounded", "FORWARD")]
    file.write_text(rest(edges, {"A": 1, "B": 1, "A (1/1)+B": 1}), encoding="utf-8")
    model = Failover(**graph_of_file(str(file)))
    assert sorted(model.regions.values()) == [("A (1/1)", "B (1/1)"), ("A (1/1)+B (1/1)",)]


@pytest.mark.parametrize("variant", ["individual", "restart-all", "no-downstream-restart", "stop-at-created"])
def test_variants_with_another_rule_answer_no_questions(streamproof: Any, variant: str) -> None:
    """The answer is by Flink's rule, which these do not follow."""
    done = streamproof("check", "failover", "--variant", variant, "--what-if", "fail=A")
    assert (done.code, f"not by that of variant {variant}\n  leave out --variant" in done.err) == (2, True), done


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


def placed(sizes: dict[str, int], edges: list[tuple[str, str, str, str]], subtasks: dict[str, list[Any]]) -> str:
    """An answer with those about vertices: for each subtask its TaskManager and its state."""
    answer = json.loads(rest(edges, sizes))
    ids = {v["name"]: v["id"] for v in answer["vertices"]}
    items = {
        ids[name]: [{"subtask": at, "taskmanager-id": tm, "status": state} for at, (tm, state) in enumerate(found)]
        for name, found in subtasks.items()
    }
    return json.dumps({"job": answer, "subtasks": items})


def test_lost_taskmanagers_are_the_tasks_that_they_have(streamproof: Any, tmp_path: Path) -> None:
    """Several at once; at the moment of the file the decisions are in Flink's order: results of the lost TaskManager count as
    available until a reader misses them. Parts of names of vertices are found."""
    file, sizes = tmp_path / "job.json", {"Source: A": 2, "Map -> B": 2, "C": 1}
    edges = [("Source: A", "Map -> B", "blocking", "HASH"), ("Map -> B", "C", "blocking", "HASH")]
    now = {
        "Source: A": [("tm-1", "FINISHED"), ("tm-2", "FINISHED")],
        "Map -> B": [("tm-1", "RUNNING"), ("tm-2", "FINISHED")],
        "C": [("(unassigned)", "CREATED")],
    }
    file.write_text(placed(sizes, edges, now), encoding="utf-8")
    words = ("check", "failover", "--job-graph", str(file), "-q", "--what-if")
    out = streamproof(*words, "lose-tm=tm-1").out
    assert "  TaskManager tm-1 has 2 tasks: Source: A (1/2), Map -> B (1/2)\n" in out
    moment = out.partition("at the moment of the file: 1 CREATED, 3 FINISHED, 1 RUNNING\n")[2].splitlines()
    assert moment == [
        "    Map -> B (1/2) fails: Map -> B (1/2)",
        "    then Map -> B (1/2) misses what Source: A (1/2) wrote: Source: A (1/2), Map -> B (1/2), Map -> B (2/2)",
        "    3 of 5 tasks restart",
    ]
    both = streamproof(*words, "lose-tm=tm-1; lose-tm=tm-2; fail=A (1/2)").out
    assert "5 of 5 tasks restart\n" in both.splitlines(keepends=True)[0]
    assert "    not at work, so it does not fail: Source: A (1/2)\n" in both
    assert "\n    4 of 5 tasks restart\n" in both
    assert "1 of 5, whatever has finished" in streamproof(*words, "fail=B(1/2)").out
    for question, message in (("lose-tm=tm-3", "no task is on TaskManager 'tm-3'\n  known are tm-1, tm-2"),):
        done = streamproof(*words, question)
        assert (done.code, message in done.err) == (2, True), done
    file.write_text(rest(edges, sizes), encoding="utf-8")
    done = streamproof(*words, "lose-tm=tm-1")
    assert (done.code, "it is not known which tasks each TaskManager has" in done.err) == (2, True)
    answer = json.loads(placed(sizes, edges, {**now, "C": [*now["C"], ("tm-7", "RUNNING")]}))
    answer["job"]["schedulerType"] = "Adaptive"
    file.write_text(json.dumps(answer), encoding="utf-8")
    assert (
        "5 of 5 tasks restart\n  the job runs under the adaptive scheduler" in streamproof(*words, "fail=C (1/1)").out
    )
    done = streamproof(*words, "lose-tm=tm-7")
    assert (done.code, "no task is on TaskManager 'tm-7'" in done.err) == (2, True), (
        "the job has no second subtask of C"
    )
    now["C"] = [("tm-1", "CANCELING")]
    file.write_text(placed(sizes, edges, now), encoding="utf-8")
    assert (
        "a restart or a cancellation is under way, so what follows is open" in streamproof(*words, "lose-tm=tm-1").out
    )


def test_what_a_file_does_not_say_of_the_moment_is_stated(streamproof: Any, tmp_path: Path) -> None:
    """A job that has ended, tasks without a TaskManager; a vertex with one task needs no number."""
    file, sizes = tmp_path / "job.json", {"A": 2, "Sink: C": 1}
    edges = [("A", "Sink: C", "blocking", "HASH")]
    now = {"A": [("tm-1", "FINISHED"), ("(unassigned)", "FINISHED")], "Sink: C": [("tm-1", "RUNNING")]}
    file.write_text(placed(sizes, edges, now), encoding="utf-8")
    words = ("check", "failover", "--job-graph", str(file), "-q", "--what-if")
    out = streamproof(*words, "lose-tm=tm-1").out
    assert "  the file has no TaskManager for A (2/2): more may restart\n" in out
    assert "the job of the file is" not in out
    for question in ("fail=Sink: C", "fail=C"):
        assert f"if {question}: 1 of 3 tasks restart\n" in streamproof(*words, question).out
    assert "the job has no task 'A'" in streamproof(*words, "fail=A").err
    ended = json.loads(placed(sizes, edges, now))
    ended["job"]["state"] = "FAILED"
    file.write_text(json.dumps(ended), encoding="utf-8")
    assert "  the job of the file is FAILED: the sets are those of a time at which it runs\n" in (
        streamproof(*words, "fail=C").out
    )
    file.write_text(json.dumps(ended["job"]["plan"]), encoding="utf-8")
    assert "the job of the file is" not in streamproof(*words, "fail=C").out


def test_whether_a_job_hangs_needs_no_search(streamproof: Any, tmp_path: Path) -> None:
    """Both models; also a job that is too large to search: the violation is the verdict, the other properties are open."""
    file = tmp_path / "job.json"
    file.write_text(rest(DETOUR, {"A": 1, "B": 1, "C": 1}), encoding="utf-8")
    row = "regions_scheduled (Flink 2.3)"
    for model in ("failover", "regions"):
        done = streamproof("check", model, "--job-graph", str(file), "-q", "--json", f"{model}.json")
        found = {p["name"]: p for p in json.loads(Path(f"{model}.json").read_text(encoding="utf-8"))["properties"]}
        assert (done.code, found[row]["verdict"]) == (11, "violated"), done
        assert "3 of 3 tasks are never scheduled, and the job hangs" in found[row]["because"]
    sizes = {"A": 400, "B": 400, "C": 400, "D": 1}
    file.write_text(rest([*DETOUR[:2], ("C", "B", "blocking", "HASH"), ("D", "A", "blocking", "HASH")], sizes))
    done = streamproof("check", "failover", "--job-graph", str(file), "-q", "--json", "large.json")
    answer = json.loads(Path("large.json").read_text(encoding="utf-8"))
    found = {p["name"]: p["verdict"] for p in answer["properties"]}
    assert (done.code, answer["exit_code"], answer["verdict"], found.pop(row)) == (11, 11, "violated", "violated")
    assert set(found.values()) == {"inconclusive"}
    assert "1,200 of 1,201 tasks are never scheduled" in " ".join(done.out.split())


@pytest.mark.parametrize("searched", [False, pytest.param(True, marks=pytest.mark.long)])
def test_the_graph_and_the_search_agree_on_hangs(searched: bool) -> None:
    """On random jobs: scheduling region by region leaves the tasks that the graph names; a search of Flink's variant without
    failures finds a deadlock before the end if and only if there are some."""
    rng, hanging = Random("hangs"), 0
    for _ in range(80):
        names = "ABCD"[: rng.randint(2, 4)]
        vertices = tuple(Vertex(name, rng.randint(1, 2)) for name in names)
        edges = tuple(
            Edge(a, b, rng.choice(list(Pattern)), rng.choice([Exchange.BLOCKING, Exchange.PIPELINED]), a + b)
            for at, b in enumerate(names)
            for a in names[:at]
            if rng.random() < 0.7
        )
        graph = JobGraph(vertices, edges)
        ((_, holds, why),) = scheduled_by_flink(Failover(topology=graph.text))
        native = MergeWithinLogicalRegionOnly(topology=graph.text, failures=0, losses=0)
        begun: set[str] = set()
        while True:  # what can be scheduled, and finishes
            ready = [
                r
                for r, tasks in native.regions.items()
                if begun.isdisjoint(tasks) and all(p in begun for t in tasks for p in native.upstream[t])
            ]
            if not ready:
                break
            begun.update(native.regions[ready[0]])
        never = [t for t in native.tasks if t not in begun]
        assert holds is not bool(never)
        assert all(t in why for t in never)
        if searched and len(native.tasks) < 5:
            system = SPEC.system("merge-within-logical-region-only", topology=graph.text, failures=0, losses=0)
            assert (check(system, ["deadlock"]).verdict is Verdict.HOLDS) is holds
        hanging += not holds
    assert hanging > 3


def test_the_command_of_the_page_collects_what_a_question_needs(streamproof: Any, tmp_path: Path) -> None:
    """From answers of the API to /jobs/JOB and /jobs/JOB/vertices/VERTEX, each by itself, the file for lose-tm."""
    page = (Path(__file__).parents[2] / "docs" / "flink-incident.md").read_text(encoding="utf-8")
    command, _, rest_of_page = page.partition("logs/rest-JOB.json << 'END'\n")
    assert command.endswith("python3 - http://JOBMANAGER:8081/jobs/JOB > ")
    answer = json.loads(rest([("A", "B", "blocking", "FORWARD")], {"A": 2, "B": 2}))
    answers = {f"/jobs/{answer['jid']}": answer}
    for vertex in answer["vertices"]:
        subtasks = [
            {"subtask": n, "status": "RUNNING", "attempt": 0, "endpoint": f"host:{n}", "taskmanager-id": f"tm-{n}"}
            for n in range(vertex["parallelism"])
        ]
        answers[f"/jobs/{answer['jid']}/vertices/{vertex['id']}"] = {**vertex, "now": 1, "subtasks": subtasks}

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path in answers else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answers.get(self.path, {})).encode())

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Api)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/jobs/{answer['jid']}"
    script = rest_of_page.partition("\nEND\n")[0]
    made = subprocess.run([sys.executable, "-", url], input=script, capture_output=True, text=True, check=True).stdout
    server.shutdown()
    server.server_close()
    file = tmp_path / "rest-JOB.json"
    file.write_text(made, encoding="utf-8")
    done = streamproof("check", "failover", "--job-graph", str(file), "--what-if", "lose-tm=tm-1")
    assert (done.code, done.err) == (0, "")
    assert "  TaskManager tm-1 has 2 tasks: A (2/2), B (2/2)" in done.out
    file.write_text(json.dumps(answer), encoding="utf-8")
    done = streamproof("check", "failover", "--job-graph", str(file), "--what-if", "lose-tm=tm-1")
    assert (done.code, "as docs/flink-incident.md collects them" in done.err) == (2, True)
