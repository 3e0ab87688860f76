"""The test plan of FLIP-15, line by line: operations across loops, no timeouts, scopes, and the end of complex jobs."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import nested_loops
from nested_loops import levels
from runtime_processes import run
from runtime_runs import verdicts
from streamproof_runtime import Job, JobError, Scope, Stream
from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.jobs.graph import ExecutionGraph
from streamproof_runtime.simulator import faults as f
from streamproof_runtime.simulator.faults import Fault
from streamproof_runtime.simulator.simulation import Simulation


def keep(_context: Any, record: Any) -> list[Any]:
    """A function that passes its record on."""
    return [record]


def pair(one: Any, other: Any) -> tuple[Any, Any]:
    """Both."""
    return one, other


BINARY: dict[str, Callable[[Stream, Stream], Any]] = {
    "union": lambda a, b: a.union(b),
    "connect": lambda a, b: a.connect(b, "both", keep, keep),
    "join": lambda a, b: a.key_by(abs).join(b.key_by(abs), "both", pair),
    "co_group": lambda a, b: a.key_by(abs).co_group(b.key_by(abs), "both", lambda left, right: [len(left + right)]),
}
"""Every operation of the API on two streams."""


def scoped() -> tuple[Job, dict[str, Stream]]:
    """Loops beside each other and in each other; one stream of each scope, by the name of the scope."""
    job, made = Job(), dict[str, Stream]()

    def loop(*inner: tuple[str, Any]) -> Callable[[Stream], tuple[Stream, Stream]]:
        def build(stream: Stream) -> tuple[Stream, Stream]:
            made[str(stream.scope)] = stream
            out = stream
            for name, function in inner:
                out = out.iterate(name, function)
            out = out.process(f"last_of_{'_'.join(out.scope.loops)}".lower(), keep)
            return out.filter(lambda r: r < 0), out

        return build

    made["root"] = job.source("numbers", [1, 2])
    out = made["root"].iterate("L", loop(("M", loop(("N", loop()))), ("O", loop())))
    made["after"] = out.iterate("P", loop())
    made["after"].collect("all")
    return job, made


def test_binary_operations_need_one_scope() -> None:
    """Plan, line 1: API restrictions on binary operations across contexts (union, cogroup, join, connect): each operation is
    refused between every two scopes, with the operators and scopes in the message, and allowed inside each."""
    pairs = list(combinations(["root", "L", "L.M", "L.M.N", "L.O", "P"], 2))
    for (one, other), (name, operation) in ((p, o) for p in pairs for o in BINARY.items()):
        _, made = scoped()
        first, second = made[one], made[other]
        with pytest.raises(JobError, match="binary operations need streams of one scope") as error:
            operation(first, second)
        assert str(error.value).startswith(
            f"{name} of {first.makers} (scope {one}) with {second.makers} (scope {other})"
        )
    for operation in BINARY.values():
        for scope in ("root", "L", "L.M", "L.M.N", "L.O", "P"):
            _, made = scoped()
            assert str(operation(made[scope], made[scope].filter(bool)).scope) == scope


def test_the_api_has_no_other_binary_operation() -> None:
    """Plan, line 1: the list above is complete: no other method of a stream takes a second stream."""
    methods = inspect.getmembers(Stream, inspect.isfunction)
    taking = {n for n, method in methods if "other" in inspect.signature(method).parameters and not n.startswith("_")}
    assert taking == BINARY.keys()


def test_join_and_co_group_are_right() -> None:
    """Plan, line 1: the operations that are restricted exist: their results are those of plain Python, also under faults."""
    left, right = [("a", 1), ("b", 2), ("a", 3), ("c", 4)], [("a", 5), ("a", 6), ("b", 7), ("d", 8)]
    restarts = 0
    for seed in range(12):
        job = Job()
        one = job.source("left", left, parallelism=2).key_by(lambda r: r[0])
        two = job.source("right", right).key_by(lambda r: r[0])
        one.join(two, "join", lambda a, b: (a[0], a[1], b[1]), parallelism=2).collect("joined")
        grouped = one.co_group(two, "group", lambda a, b: [((a + b)[0][0], sum(n for _, n in [*a, *b]))], parallelism=2)
        grouped.collect("sums")
        crash = Fault(f.CRASH, (300 + 100 * seed) * 1000, ("tm-1",), MILLISECOND)
        outcome = Simulation(job, seed=seed, faults_given=[crash]).run()
        assert outcome.finished
        assert Counter(outcome.results["joined"]) == Counter((k, a, b) for k, a in left for q, b in right if k == q)
        most: dict[str, int] = {}
        for key, total in outcome.results["sums"]:
            most[key] = max(most.get(key, 0), total)
        assert most == {"a": 15, "b": 9, "c": 4, "d": 8}
        restarts += outcome.attempts - 1
    assert restarts
    job = Job()
    with pytest.raises(JobError, match=r"join both: the stream of b has no key; use key_by before"):
        job.source("a", [1]).key_by(abs).join(job.source("b", [1]), "both", pair)


def test_loops_have_no_timeout() -> None:
    """Plan, line 2: what depends on timeouts for the end of a loop is removed: no loop takes one."""
    for method in (Stream.iterate, Stream.iterate_with_feedback):
        assert not {p for p in inspect.signature(method).parameters if "time" in p or "wait" in p}


def test_a_loop_outlives_every_delay(tmp_path: Path) -> None:
    """Plan, line 2: a loop whose feedback is under way for long, with nobody busy meanwhile, waits for it."""
    pairs = [*combinations(("tm-1", "tm-2", "tm-3"), 2)]
    for at in range(1, 7):
        job, expected = levels()
        delays = [Fault(f.PARTITION, at * MILLISECOND // 2, pair, 50 * MILLISECOND) for pair in pairs]
        outcome = Simulation(job, seed=at, slots=1, faults_given=delays).run()
        assert (outcome.finished, outcome.lost, outcome.attempts) == (True, 0, 1)
        assert {name: Counter(records) for name, records in outcome.results.items()} == expected
        assert outcome.time > 50 * MILLISECOND
    assert {v.answer for v in verdicts(outcome, tmp_path)} == {"accepted"}


def test_scopes_are_unique_and_nest() -> None:
    """Plan, line 3: properties of StreamScopes: unique contexts, scope levels and nesting."""
    job, made = scoped()
    scopes = {name: stream.scope for name, stream in made.items() if name != "after"}
    assert made["after"].scope == Scope()
    assert len(set(scopes.values())) == len(scopes) == 6
    for name, scope in scopes.items():
        assert str(scope) == name
        assert scope.level == (0 if name == "root" else name.count(".") + 1)  # the number of its outer scopes
        assert scope.nest("X").unnest() == scope != scope.nest("X")
        assert [scope.outer(level).level for level in range(scope.level + 1)] == [*range(scope.level + 1)]
        assert scope.outer(scope.level) == scope
        for other_name, other in scopes.items():
            is_inner = name != other_name and (other_name == "root" or name.startswith(f"{other_name}."))
            assert scope.is_inner_of(other) is other.is_outer_of(scope) is is_inner
    deepest = scopes["L.M.N"]
    assert deepest.outer(deepest.level - 2) == deepest.unnest().unnest() == scopes["L"]
    for level in (-1, 4):
        with pytest.raises(JobError, match="levels are 0 to 3"):
            deepest.outer(level)
    with pytest.raises(AttributeError):
        deepest.loops = ()  # type: ignore[misc]
    graph = ExecutionGraph(job)
    for task in graph.tasks:  # operators of one loop have one scope, and what is outside every loop has the default one
        assert graph.scope(task) == next(
            (
                s
                for n, s in scopes.items()
                if task in (n.split(".")[-1].lower(), f"last_of_{n.replace('.', '_').lower()}")
            ),
            Scope(),
        )


def test_every_loop_has_a_context_of_its_own() -> None:
    """Plan, line 3: two loops of one name in one scope are refused; in different scopes they are different contexts."""
    job = Job()
    source = job.source("numbers", [1])
    source.iterate("L", lambda s: (s.process("one", keep).filter(bool), s))
    with pytest.raises(JobError, match="loop L exists already"):
        source.iterate("L", lambda s: (s, s))
    with pytest.raises(JobError, match="loop L exists already"):
        source.iterate_with_feedback("L", lambda c: (c.input, c.input))


def test_nested_and_successive_loops_terminate(tmp_path: Path) -> None:
    """Plan, line 4: termination of a complex job with multiple nested levels and different iterations one after the other:
    the results are right and the model of the baton accepts every attempt, whoever crashes."""
    job, expected = levels()
    assert {str(operator.scope) for operator in job.operators.values()} == {"root", "L", "L.M", "L.M.N", "L.O", "P"}
    restarts = 0
    for seed in range(12):
        job, expected = levels()
        crashes = [Fault(f.CRASH, 400_000 + 150_000 * seed, (f"tm-{1 + seed % 2}",), MILLISECOND)] if seed else []
        outcome = Simulation(job, seed=seed, slots=1, faults_given=crashes).run()
        assert (outcome.finished, outcome.lost) == (True, 0), (seed, outcome.reason)
        assert {name: Counter(records) for name, records in outcome.results.items()} == expected
        restarts += outcome.attempts - 1
        if seed in (0, 3, 4):
            assert {v.answer for v in verdicts(outcome, tmp_path)} == {"accepted"}
    assert restarts >= 5


@pytest.mark.long
def test_nested_and_successive_loops_terminate_on_processes(tmp_path: Path) -> None:
    """Plan, line 4: the same on processes, with kills; then many more seeds in simulation."""
    file = tmp_path / "job.py"
    support = str(Path(nested_loops.__file__).parent)
    path = f"import sys\nsys.path.insert(0, {support!r})\n"
    file.write_text(path + "from nested_loops import levels\ndef job():\n    return levels()[0]\n")
    expected = levels()[1]
    for kills in ([], ["tm-1@40"], ["tm-2@15", "jobmaster@9"]):
        found = run(file, executors=3, kills=kills)
        assert not found["wrong"]
        assert {name: Counter(records) for name, records in found["results"].items()} == expected
    for seed in range(100, 300):
        outcome = Simulation(levels()[0], seed=seed, level="severe", eager=seed % 2 == 1).run()
        assert (outcome.finished, outcome.lost) == (True, 0), (seed, outcome.reason)
        assert {name: Counter(records) for name, records in outcome.results.items()} == expected, seed
