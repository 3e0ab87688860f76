"""The machine that follows the scheduling in Flink's logs: each of its steps is a step of the explored variant `flink`, and a
change of the rules of that variant shows in verdicts.

The model `regions` is compared with the same variant, so that both have its rules.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest

from loading import load
from one_lie_of_each_kind import outcomes
from shares import share
from simulated_regions import tampered, verdict_on, written
from streamproof import Spec, refines
from streamproof.conformance.flink import FlinkRun
from streamproof.conformance.validation import validate_paths
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof.system.interpreter import Interpreter
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, Pattern, Vertex
from streamproof_models.failover.named_job_graphs import job_graph
from streamproof_models.failover.topology import Topology
from streamproof_models.regions.core import SchedulingCore
from streamproof_models.regions.machine import RegionScheduling
from streamproof_models.regions.variants import NotCountedAgain, NotWaiting, StepwiseRestart
from streamproof_specs.regions.flink.recorded_machine import JobRegions, RecordedRegions, region_rules
from synthetic_flink import Cluster, random_run
from tampering import region_lies

OVERRIDES = {
    *("state", "setup"),
    *("schedule", "deploy", "run", "finish", "stop", "renew"),
}
"""What the machine overrides: structure from the log, history variables, and guards before the rule of the variant."""


class Compared(RecordedRegions):
    """The machine, and the variant that it has to follow, for one job graph."""

    given: ClassVar[int] = 1
    """A job graph as text has its own parallelisms."""

    def __init__(self, graph: JobGraph, **given: Any) -> None:
        self.graph = graph.text
        self.full = StepwiseRestart(topology=self.graph, parallelism=1)
        connections = enumerate(Topology(graph).connections)
        names = [f"{at}/{number}" for at, c in connections for number, _ in enumerate(c.groups())]
        self.recorded = dict(zip(self.full.groups, names, strict=True))
        super().__init__(JobRegions.of(graph), **given)

    @refines(StepwiseRestart, topology="graph", parallelism="given", restarts="restarts")
    def follows(self, s):  # type: ignore[no-untyped-def]
        """Groups inside a region have no counter in the machine: what it would be."""
        return {"unfinished": {g: self.counter(s, g) for g in self.full.groups}}

    def counter(self, s, g):  # type: ignore[no-untyped-def]
        """The unfinished partitions of a group."""
        if self.recorded[g] in self.producers:
            return s.unfinished[self.recorded[g]]
        return sum(int(not self.full.is_there(s, t, g)) for t in self.full.producers[g])


def small_graph(rng: Random) -> JobGraph:
    """Up to three vertices with up to two subtasks, and any exchanges forwards that the machine has."""
    sizes = [rng.randint(1, 2) for _ in range(rng.randint(1, 3))]
    vertices = tuple(Vertex(chr(ord("A") + at), size) for at, size in enumerate(sizes))
    kinds = (Exchange.BLOCKING, Exchange.BLOCKING, Exchange.HYBRID_FULL, Exchange.PIPELINED_BOUNDED)
    edges = []
    for z in range(1, len(sizes)):
        for a in rng.sample(range(z), rng.randint(0, z)):
            edges.append(
                Edge(vertices[a].name, vertices[z].name, rng.choice([*Pattern]), rng.choice(kinds), f"{len(edges)}")
            )
    return JobGraph(vertices, tuple(edges))


def follows(graph: JobGraph, **given: int) -> None:
    """Every step of the machine is one of the variant, or changes only history."""
    system = Spec(Compared).compiled(Compared(graph, attempts=1, **given))
    found = {f.property: f.verdict for f in explore(system).findings if f.property.startswith("follows")}
    found.pop("follows_fairness")  # logs end
    assert (graph, found) == (graph, {"follows_start": Verdict.HOLDS, "follows": Verdict.HOLDS})


def test_the_machine_overrides_what_is_listed() -> None:
    """Each rule of the variant that it has anew contains the rule itself."""
    inherited = {name for name in vars(RecordedRegions) if hasattr(StepwiseRestart, name) and not name.startswith("_")}
    assert inherited - {"name", "variant", "variants"} == OVERRIDES
    for name in OVERRIDES - {"setup"}:
        assert f"super().{name}(" in inspect.getsource(getattr(RecordedRegions, name))
    for base in (RecordedRegions, RegionScheduling):
        assert issubclass(base, SchedulingCore)


@pytest.mark.parametrize("topology", ["pair", "chain", "mixed", "pipelined-pair", "cyclic-detour", "tee"])
def test_each_step_is_one_of_the_explored_variant(topology: str) -> None:
    """In job graphs of the catalogue."""
    follows(job_graph(topology), restarts=1)


@pytest.mark.parametrize("part", share(range(8), 8))
def test_each_step_is_one_of_the_explored_variant_in_random_graphs(part: int) -> None:
    """With hybrid exchanges, too."""
    rng = Random(part)
    graphs = [small_graph(rng) for _ in range(6)]
    for graph in graphs:
        if len(graph.tasks) < 5:
            follows(graph, restarts=1, ordered=rng.random() < 0.5)


@pytest.mark.parametrize(
    ("topology", "eager"),
    [("pair", False), ("chain", False), ("mixed", False), ("pipelined-pair", False), ("pair", True), ("mixed", True)],
)
def test_the_verified_model_has_the_same_rules(topology: str, eager: bool) -> None:
    """Forgetting descriptors, blobs and releases, each step of `regions` is one of the variant, or changes nothing.

    A failure, which restarts tasks in one step, is a sequence: each of them ends, unless it has, and is renewed.
    """
    model = RegionScheduling(topology=topology, parallelism=1, eager=eager)
    system = RegionScheduling.system(topology=topology, parallelism=1, eager=eager)
    restarts = len(model.tasks)
    core = Interpreter(SchedulingCore.system("flink", topology=topology, parallelism=1, eager=eager, restarts=restarts))
    rules = {(i.action, *(value for _, value in i.args)): i for i in core.system.instances}
    places = [[v.name for v in system.variables].index(v.name) for v in core.system.variables[:2]]
    interpreter = Interpreter(system)
    seen, states = set[str](), [*interpreter.initial_states()]
    reached = {*states}
    while states:
        before = states.pop()
        for step in interpreter.steps(before):
            action, args = step.instance.action, [value for _, value in step.instance.args]
            seen.add(action)
            status, after = ([state[at] for at in places] for state in (before, step.state))
            if action in ("schedule", "deploy", "run", "finish"):
                moves = [(action, args[0])]
            else:
                ended = [(t, old) for t, old, new in zip(model.tasks, status[0], after[0], strict=True) if old != new]
                stops = [("stop", t) for t, old in ended if old != "FINISHED"]
                moves = [*stops, *(("renew", t) for t, _ in ended)]
                assert action == "fail" or not moves
            state: Any = (*status, restarts)
            for move in moves:
                state = core.take(rules[move], state)
            assert [*state[:2]] == after, (action, args)
            if step.state not in reached:
                reached.add(step.state)
                states.append(step.state)
    never = set() if eager and topology == "pair" else {"update_partitions"}
    never |= {"load", "release"} if topology == "pipelined-pair" else set()
    assert seen >= {a.name for a in system.actions} - never


# --- what is changed in the rules shows


def changed(owner: type, name: str, line: int, text: str, folder: Path) -> Callable[..., Any]:
    """A rule with another text in place of one of its lines."""
    lines = textwrap.dedent(inspect.getsource(vars(owner)[name])).splitlines()
    lines[line] = " " * (len(lines[line]) - len(lines[line].lstrip())) + text
    head = "from streamproof import WEAK, action, require\n\n\n"
    found: Callable[..., Any] = getattr(load(head + "\n".join(lines) + "\n", folder), name)
    return found


def guards() -> Iterator[tuple[type, str, int]]:
    """The guards of the variant: the class that has the rule, its name, and the line."""
    for name in ("schedule", "deploy", "run", "finish", "stop", "renew"):
        owner = next(c for c in StepwiseRestart.__mro__ if name in vars(c))
        for line, text in enumerate(inspect.getsource(vars(owner)[name]).splitlines()):
            if text.strip().startswith("require("):
                yield owner, name, line


@pytest.fixture
def no_rules_kept() -> Iterator[None]:
    """Rules that were lowered are those of the test; the classes were compared with their sources before."""
    region_rules(job_graph("pair"), 0, 0, False)
    region_rules.cache_clear()
    yield
    region_rules.cache_clear()


RULES = {name: (owner, line) for owner, name, line in reversed([*guards()])}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_that_is_never_enabled_shows(
    name: str, flink_logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_rules_kept: None
) -> None:
    """A recorded run is no longer accepted."""
    owner, line = RULES[name]
    monkeypatch.setattr(owner, name, changed(owner, name, line, "require(False)", tmp_path))
    [verdict] = validate_paths([flink_logs / "a-taskfail-1"], model="regions")
    assert verdict.answer == "rejected"


@pytest.fixture(scope="module")
def tampered_logs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[FlinkRun, str, int | None]]:
    """Tampered logs of simulated runs, each with its verdict and the line of the rejection."""
    found = []
    for seed in range(20):
        rng = Random(seed)
        run = written(random_run(rng), tmp_path_factory.mktemp("run") / str(seed))
        twice = [at for at, e in enumerate(run.events) if e.args.get("new") == "DEPLOYING"][:1]
        edits = [run.events[: at + 1] + run.events[at:] for at in twice]
        for events in (*edits, *(tampered(rng, list(run.events)) for _ in range(10))):
            copy = replace(run, events=tuple(events))
            found.append((copy, *verdict(copy)))
    return found


def verdict(run: FlinkRun) -> tuple[str, int | None]:
    """The answer, and the line of the rejection."""
    found = verdict_on(run)
    return found.answer, None if found.rejection is None else found.rejection.event.line


SURVIVORS = {("renew", "s.restarts_left > 0")}
"""Guards that no log needs: the number of restarts is taken from the log, and decisions announce each."""


@pytest.mark.parametrize(("owner", "name", "line"), share(guards(), 9))
def test_a_guard_that_is_dropped_shows(
    owner: type,
    name: str,
    line: int,
    tampered_logs: list[tuple[FlinkRun, str, int | None]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    no_rules_kept: None,
) -> None:
    """A tampered log is accepted, or rejected at another line."""
    text = inspect.getsource(vars(owner)[name]).splitlines()[line].strip()
    monkeypatch.setattr(owner, name, changed(owner, name, line, "pass", tmp_path))
    shows = any(verdict(run) != (answer, at) for run, answer, at in tampered_logs)
    assert shows == ((name, text.removeprefix("require(").removesuffix(")")) not in SURVIVORS)


def put_in_place(variant: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine follows the rules of a variant."""
    for name, member in vars(variant).items():
        if inspect.isfunction(member):
            monkeypatch.setattr(StepwiseRestart, name, member, raising=False)


def test_counters_that_are_not_reset_show(
    flink_logs: Path, monkeypatch: pytest.MonkeyPatch, no_rules_kept: None
) -> None:
    """In a run whose producers restart, a lie is missed."""
    put_in_place(NotCountedAgain, monkeypatch)
    assert [o.kind for o in outcomes(region_lies, flink_logs / "b-lostpart-1") if o.is_missed]


def test_a_region_without_one_of_its_inputs_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_rules_kept: None
) -> None:
    """The line about the end of a producer comes after those about its consumer."""
    cluster = Cluster(job_graph("join"))
    cluster.complete()
    run = written(cluster, tmp_path)
    ends = [e for e in run.events if e.args.get("new") == "FINISHED" and e.args.get("task") == "E"]
    late = (*(e for e in run.events if e not in ends), *ends)
    lie = replace(run, events=tuple(replace(e, seq=n, line=n + 1) for n, e in enumerate(late)))
    expected = verdict(lie)
    put_in_place(NotWaiting, monkeypatch)
    region_rules.cache_clear()
    assert expected[0] == "rejected"
    assert verdict(lie) != expected
