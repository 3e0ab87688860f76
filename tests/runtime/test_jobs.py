"""Jobs of the runtime: the API and what it refuses, scopes, results with and without faults."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from runtime_runs import JOBS, example, verdicts
from shares import share
from streamproof.conformance import judge
from streamproof_runtime import Connected, Job, JobError, Scope, Stream
from streamproof_runtime.jobmaster.regions import regions
from streamproof_runtime.jobs.graph import ExecutionGraph
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_specs.failover.runtime import BINDING as FAILOVER


def same(found: Any, expected: Any, tolerance: float) -> bool:
    """Whether results agree: numbers with a fraction within the tolerance, everything else exactly."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[k], v, tolerance) for k, v in expected.items())
    return abs(found - expected) <= tolerance if isinstance(expected, float) else bool(found == expected)


@pytest.mark.parametrize("name", share(JOBS, 2))
def test_results_are_right_under_heavy_faults(name: str) -> None:
    """Every example ends with its expected result, whatever fails; some of the runs have restarted."""
    module = example(name)
    attempts = 0
    for seed in range(4, 8) if name == "pagerank" else range(40):
        outcome = Simulation(module.job(), seed=seed, level="heavy").run()
        assert outcome.finished, (seed, outcome.reason)
        assert outcome.lost == 0
        assert same(outcome.results, module.expected(), getattr(module, "TOLERANCE", 0)), seed
        attempts += outcome.attempts - 1
    assert attempts > 0


def test_expected_results_are_those_of_networkx() -> None:
    """What the examples expect is what networkx and `Counter` compute."""
    pagerank, paths, components, words = map(example, ("pagerank", "shortest_paths", "components", "word_count"))
    steps = nx.google_matrix(nx.DiGraph(pagerank.EDGES), pagerank.DAMPING, nodelist=pagerank.VERTICES)
    rank = np.linalg.matrix_power(steps, 200)[0]  # networkx's own `pagerank` needs another library
    assert same(pagerank.expected()["ranks"], {v: float(r) for v, r in enumerate(rank)}, 1e-9)
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(paths.EDGES)
    assert paths.expected()["distances"] == nx.single_source_dijkstra_path_length(graph, paths.START)
    found = nx.connected_components(nx.Graph(components.EDGES))
    assert components.expected()["labels"] == {v: min(part) for part in found for v in part}
    assert words.expected()["counts"] == Counter(" ".join(words.LINES).split())


def test_exchanges_and_binary_operations() -> None:
    """Union, connect, broadcast, rebalance and chains give each record its way."""
    job = Job()
    numbers = job.source("numbers", list(range(10)), parallelism=2)
    even, odd = numbers.filter(lambda n: n % 2 == 0), numbers.filter(lambda n: n % 2)
    even.union(odd.map(lambda n: -n)).collect("united")
    even.rebalance().process("spread", lambda c, n: [(c.subtask, n)], parallelism=3).collect("spread_out")
    odd.broadcast().process("copy", lambda c, n: [(c.subtask, n)], parallelism=2).collect("copies")
    letters = job.source("letters", ["a", "b"])
    letters.connect(numbers, "both", lambda _, r: [r], lambda _, r: [r + 100]).collect("connected")
    results = Simulation(job).run().results
    assert sorted(results["united"]) == [-9, -7, -5, -3, -1, 0, 2, 4, 6, 8]
    assert sorted(n for _, n in results["spread_out"]) == [0, 2, 4, 6, 8]
    assert len({subtask for subtask, _ in results["spread_out"]}) == 3
    assert sorted(results["copies"]) == [(s, n) for s in range(2) for n in (1, 3, 5, 7, 9)]
    assert sorted(map(str, results["connected"])) == sorted(["a", "b", *(str(n + 100) for n in range(10))])


def keyed(mode: str) -> Job:
    """A job with every exchange and a loop."""
    job = Job("modes", mode=mode)
    numbers = job.source("numbers", range(12), parallelism=2)
    most = numbers.key_by(lambda n: n % 3).reduce("most", max, parallelism=2)
    spread = most.rebalance().process("spread", lambda _, n: [n], parallelism=3)
    spread.broadcast().process("copies", lambda c, n: [(c.subtask, n)], parallelism=2).collect("all")

    def loop(stream: Stream) -> tuple[Stream, Stream]:
        halved = stream.process("halve", lambda _, n: [n // 2])
        return halved.filter(lambda n: n > 1), halved.filter(lambda n: n <= 1)

    numbers.pipelined().iterate("L", loop).collect("ends")
    return job


def test_the_mode_decides_how_operators_outside_loops_exchange(tmp_path: Path) -> None:
    """Batch: blocking, so that there are more regions; loops, feedback and what is declared pipelined stay; the results are
    the same, and the baton and failover accept the runs."""
    streaming, batched = keyed("streaming"), keyed("batch")
    assert not any(edge.is_stored for edge in streaming.edges)
    pipelined = {(e.source, e.target) for e in batched.edges if not e.is_stored}
    assert pipelined == {("numbers", "l"), ("l", "halve"), ("halve", "l"), ("halve", "ends")}
    assert (len(regions(streaming)), len(regions(batched))) == (1, 5)
    results = []
    for seed, job in enumerate((streaming, batched, keyed("batch"))):
        outcome = Simulation(job, seed=seed, level="heavy").run()
        assert {v.answer for v in verdicts(outcome, tmp_path)} == {"accepted"}
        if job is not streaming:
            log = tmp_path / "run.ndjson"
            assert {v.answer for v in judge(FAILOVER.plan(log, None), "failover")} == {"accepted"}
        results.append({name: Counter(records) for name, records in outcome.results.items() if name == "ends"})
        assert {(s, n) for s in (0, 1) for n in (9, 10, 11)} <= {*outcome.results["all"]}
        assert len(outcome.results["all"]) == 24
    assert results == [{"ends": Counter({1: 10, 0: 2})}] * 3


def test_an_exchange_and_a_mode_that_do_not_exist_are_refused() -> None:
    """The message of the exchange names both operators."""
    numbers = Job().source("numbers", [1])
    refused(lambda: numbers.exchanged("hybrid").collect("all"), "all reads numbers", "'hybrid'", "pipelined, blocking")
    refused(lambda: Job("j", mode="mini-batch"), "job j has the mode 'mini-batch'; there are streaming, batch")
    keep: Any = lambda _, r: [r]  # noqa: E731
    refused(lambda: numbers.connect(numbers.blocking(), "both", keep, keep), "both reads numbers by two different")


def nested(made: dict[str, Stream]) -> Job:
    """A loop in a loop; the streams in it by name."""
    job = Job()

    def inner(stream: Stream) -> tuple[Stream, Stream]:
        made["inner"] = stream.process("d", lambda _, r: [r])
        return made["inner"], made["inner"]

    def outer(stream: Stream) -> tuple[Stream, Stream]:
        made["outer"] = stream
        made["left"] = stream.iterate("M", inner)
        return made["left"], made["left"]

    made["source"] = job.source("a", [1])
    made["all"] = made["source"].iterate("L", outer)
    return job


def test_scopes_are_inferred() -> None:
    """Streams have the scope of their loop, the output of a loop that around it; scopes are unique and nest."""
    made: dict[str, Stream] = {}
    job = nested(made)
    assert [made[n].scope.loops for n in ("source", "outer", "inner", "left", "all")] == [
        (),
        ("L",),
        ("L", "M"),
        ("L",),
        (),
    ]
    outer, inner = made["outer"].scope, made["inner"].scope
    assert (outer.level, inner.level) == (1, 2)
    assert inner.is_inner_of(outer)
    assert outer.is_outer_of(inner)
    assert not outer.is_inner_of(outer)
    assert inner.unnest() == outer == Scope().nest("L")
    assert outer.nest("N") != inner
    with pytest.raises(JobError, match="no scope around"):
        Scope().unnest()
    assert str(ExecutionGraph(job)) == "a L:l L.M:m L.M:d; a>l l>m m>d; d~m d~l"


def test_a_chain_never_crosses_a_scope() -> None:
    """A stateless operator is chained inside a scope; on the output of a loop it is a task of its own, outside."""
    made: dict[str, Stream] = {}
    job = nested(made)
    made["source"].map(str).filter(bool).collect("chained")
    made["all"].map(str).collect("unchained")
    graph = ExecutionGraph(job)
    assert set(graph.tasks) == {"a", "l", "m", "d", "chained", "map_1", "unchained"}
    assert graph.scope("map_1") == Scope()


def refused(build: Any, *words: str) -> None:
    """`build` is refused by a message with the words."""
    with pytest.raises(JobError) as error:
        build()
    for word in words:
        assert word in str(error.value)


def test_what_the_api_refuses() -> None:
    """Binary operations across scopes, loops that are not closed, names that clash are refused, and the operators named."""
    made: dict[str, Stream] = {}
    job = nested(made)
    keep: Any = lambda _, r: [r]  # noqa: E731
    for stream in ("inner", "outer"):
        refused(
            lambda s=stream: made["source"].union(made[s]),
            "union of a (scope root) with",
            f"scope {made[stream].scope}",
        )
        refused(lambda s=stream: made["source"].connect(made[s], "j", keep, keep), "connect of a (scope root) with")
    refused(lambda: made["inner"].union(made["left"]), "union of d (scope L.M) with d (scope L)")
    refused(
        lambda: made["source"].iterate("N", lambda s: s), "loop N with head n must return its feedback and its output"
    )
    refused(
        lambda: made["source"].iterate("K", lambda s: (made["source"], s)),
        "feedback of loop K with head k is a stream of a",
    )
    refused(
        lambda: made["source"].iterate("J", lambda s: (s, made["inner"])), "output of loop J", "stream of d (scope L.M)"
    )
    refused(lambda: made["source"].iterate("L", lambda s: (s, s)), "loop L exists already")
    refused(
        lambda: made["source"].iterate_with_feedback("F", lambda c: (c.input, c.input)),
        "joins its input and feedback 0",
    )

    def twice(connected: Connected) -> Any:
        connected.process("one", keep, keep)
        return (connected.process("two", keep, keep),) * 2

    joined = "loop T joins its input and feedback 2 times, in one, in two, not once"
    refused(lambda: made["source"].iterate_with_feedback("T", twice), joined)
    refused(lambda: made["source"].iterate("Q", lambda s: s.process("only", keep)), "a pair, not a stream of only")
    two: Any = "2"
    refused(lambda: job.source("text", [], parallelism=two), "operator text has parallelism '2'")
    source = made["source"]
    refused(lambda: source.exchanged(""), "an exchange of a without a name; there are pipelined, blocking")
    refused(
        lambda: source.key_by(str).union(source.key_by(repr)),
        "union of a with a: one of them is exchanged in another way",
    )
    refused(lambda: source.union(source.blocking()), "unite the streams first, and name the exchange of the union")
    assert source.key_by(str).union(source.map(str).key_by(str)).key is str
    refused(lambda: job.source("a", []), "operators a and a need different names")
    refused(lambda: job.source("no name", []), "cannot name an operator")
    refused(lambda: job.source("none", [], parallelism=0), "operator none has parallelism 0")
    refused(lambda: ExecutionGraph(Job()), "has no source")
    other = Job().source("b", [])
    refused(lambda: made["source"].union(other), "union of a with b: they are streams of different jobs")


def test_a_user_function_that_always_raises_fails_the_job() -> None:
    """The job fails after some attempts, with the operator and the error."""
    job = Job()
    job.source("numbers", [1, 0]).process("divide", lambda _, n: [1 // n]).collect("all")
    outcome = Simulation(job).run()
    assert not outcome.finished
    assert outcome.attempts == 3
    assert outcome.reason == "divide: ZeroDivisionError: integer division or modulo by zero"
    assert outcome.results == {}


def test_a_user_function_that_ends_the_program_fails_the_job() -> None:
    """`sys.exit`, and errors that are no `Exception`, are failures of the operator as any other."""
    job = Job()
    job.source("numbers", [1]).process("leave", lambda _, n: sys.exit(n)).collect("all")
    outcome = Simulation(job).run()
    assert (outcome.finished, outcome.reason) == (False, "leave: SystemExit: 1")


def test_a_loop_gives_way_to_operators_of_its_name() -> None:
    """Before and after it, also by the names of subtasks; the results are the same."""

    def job(*names: str) -> Job:
        made = Job()
        source, first, second = names
        numbers = made.source(source, [1, 2, 3], parallelism=2)

        def looped(loop: Stream) -> tuple[Stream, Stream]:
            doubled = loop.process(first, lambda _, n: [2 * n], parallelism=2)
            return doubled.filter(lambda n: n < 10), doubled.filter(lambda n: n >= 10)

        numbers.iterate("Loop", looped, parallelism=2).collect(second)
        return made

    for names in (
        ("numbers", "double", "all"),
        ("loop", "double", "all"),
        ("numbers", "loop", "loop_head"),
        ("a", "b", "loop1"),
    ):
        made = job(*names)
        outcome = Simulation(made, seed=3).run(10_000)
        assert sorted(outcome.results[names[2]]) == [12, 16, 16], names
        assert len(made.operators) == 4
        assert all(name == operator.name for name, operator in made.operators.items())
    with pytest.raises(JobError, match="operators all and all need different names"):
        job("numbers", "all", "all")
