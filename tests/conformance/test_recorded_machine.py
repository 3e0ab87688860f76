"""The machine that follows recorded jobs: its restart sets are those of the failover machine, on random job graphs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nonempty import nonempty
from shares import share
from streamproof.conformance import Instance, compile_model, judge
from streamproof.conformance.flink import JobGraph as LoggedGraph
from streamproof.conformance.flink.graph import Edge as LoggedEdge
from streamproof.conformance.flink.graph import Vertex as LoggedVertex
from streamproof.conformance.moves import SystemMoves
from streamproof.system import State
from streamproof_models.failover.flink import FlinkRules
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, Pattern, Vertex
from streamproof_models.failover.machine import Failover
from streamproof_models.failover.named_job_graphs import JOB_GRAPHS
from streamproof_models.failover.regions import pipelined_regions
from streamproof_models.failover.restart import least_fixpoint
from streamproof_models.failover.small_graphs import job_graphs
from streamproof_models.failover.topology import Topology
from streamproof_models.failover.variants import (
    Individual,
    NoDownstreamRestart,
    NoVersioning,
    RegionWithoutBacktracking,
    RestartAll,
)
from streamproof_specs.failover.flink.binding import BINDING
from streamproof_specs.failover.flink.recorded_machine import _SYSTEMS, RecordedFailover, recorded_graph

EXCHANGES = ("BLOCKING", "BLOCKING", "HYBRID_FULL", "PIPELINED_BOUNDED")


@st.composite
def logged_graphs(draw: st.DrawFn) -> LoggedGraph:
    """Job graphs as a reader of logs gives them: up to five vertices of up to four subtasks, any edges forwards."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    vertices = tuple(LoggedVertex(f"{at:032x}", f"V{at}", size) for at, size in enumerate(sizes))
    edges = []
    for target in range(1, len(sizes)):
        for source in draw(st.sets(st.integers(0, target - 1))):
            pattern = draw(st.sampled_from(("POINTWISE", "ALL_TO_ALL")))
            exchange = draw(st.sampled_from(EXCHANGES))
            dataset = f"{len(edges):032x}" if draw(st.booleans()) else None
            edges.append(LoggedEdge(vertices[source].id, vertices[target].id, pattern, exchange, dataset))
    return LoggedGraph("j", "job", vertices, tuple(edges), (), True, (), "log")


class Verified(FlinkRules):
    """The variant `flink` on a job graph of one's own, with any number of failures."""

    budgeted = False

    def __init__(self, graph: JobGraph, restarts: int) -> None:
        self._graph = graph
        super().__init__(restarts=restarts)

    def job_graph(self) -> JobGraph:
        """The given one."""
        return self._graph

    task_name = RecordedFailover.task_name


DATA = {"__init__", "job_graph", "task_name", "setup", "narrow"}
"""What gives the machine its job graph and its bounds."""
DECISIONS = {"state", "places", "place", "begin_restart", "take_over", "restarts_task"}
"""What keeps decisions in another form."""


def test_the_recorded_machine_has_no_rules_of_its_own() -> None:
    """It overrides how decisions are kept, which the next test compares step by step, and no action."""
    own = {
        name
        for name, value in vars(RecordedFailover).items()
        if callable(value) or isinstance(value, property | cached_property)
    }
    assert own == DATA | DECISIONS
    actions = {action.name for action in compile_model(Verified(JOB_GRAPHS["pair"](), restarts=1)).actions}
    assert not actions & own


class Followed:
    """The recorded machine beside the verified one: each of its steps is one of the verified machine, before which decisions
    that restart nothing may have been carried out."""

    def __init__(self, graph: JobGraph, restarts: int, pending: int | None) -> None:
        verified, recorded = Verified(graph, restarts=restarts), RecordedFailover(graph, pending, restarts=restarts)
        self.tasks, self.both = verified.tasks, pending is None
        self.places = max(recorded.places, 1)
        self.verified, self.recorded = (SystemMoves(compile_model(m)) for m in (verified, recorded))
        self.restarts = self.verified.instances("restart")
        self.names = [v.name for v in self.verified.system.variables]

    def seen(self, state: State) -> dict[str, Any]:
        """A state of the verified machine as the recorded one has it."""
        values = dict(zip(self.names, state, strict=True))
        version = dict(zip(self.tasks, values.pop("version"), strict=True))
        values.pop("read", None)
        for kept in ("restarting", "awaiting"):
            places: list[set[str]] = [set() for _ in range(self.places)]
            for k, tasks in enumerate(values[kept]):
                places[k % self.places] |= {t for t in tasks if kept == "awaiting" or version[t] == k}
            values[kept] = tuple(map(frozenset, places))
        return values

    def own(self, state: State) -> dict[str, Any]:
        """A state of the recorded machine by variables."""
        return dict(zip((v.name for v in self.recorded.system.variables), state, strict=True))

    def compare(self) -> int:
        """The number of steps of the recorded machine, all of them compared, in all states that both reach together. With a
        place for each decision, each step of the verified machine is one of the recorded, too, or changes nothing there."""
        (first,), (start,) = (m.interpreter.initial_states() for m in (self.recorded, self.verified))
        assert self.own(first) == self.seen(start)
        todo, known, steps = [(first, start)], {(first, start)}, 0
        while todo:
            mine, theirs = todo.pop()
            pairs = []
            for step, after in self.taken(self.recorded, mine):
                pairs.append((after, self.matched(theirs, step, self.own(after))))
                steps += 1
            for step, after in self.taken(self.verified, theirs) if self.both else ():
                pairs.append(
                    (mine if self.seen(after) == self.seen(theirs) else self.repeated(mine, step, after), after)
                )
            for pair in pairs:
                if pair not in known:
                    known.add(pair)
                    todo.append(pair)
        return steps

    @staticmethod
    def taken(moves: SystemMoves, state: State) -> Iterator[tuple[Instance, State]]:
        """The steps from a state."""
        for action in moves.system.actions:
            for instance in action.instances:
                after = moves.take(instance, state)
                if after is not None:
                    yield instance, after

    def matched(self, state: State, step: Instance, after: dict[str, Any]) -> State:
        """A state of the verified machine after the same step; decisions have other places there."""
        same = [i for i in self.verified.instances(step.action) if i.args == step.args or step.action == "restart"]
        for before in self.settled(state):
            for instance in same:
                found = self.verified.take(instance, before)
                if found is not None and self.seen(found) == after:
                    return found
        raise AssertionError(f"the verified machine has no step {step} from {self.seen(state)} to {after}")

    def repeated(self, state: State, step: Instance, after: State) -> State:
        """The state of the recorded machine after a step of the verified one."""
        (same,) = (i for i in self.recorded.instances(step.action) if i.args == step.args)
        found = self.recorded.take(same, state)
        assert found is not None, (step, self.own(state))
        assert self.own(found) == self.seen(after), step
        return found

    def settled(self, state: State) -> list[State]:
        """The state, and those after decisions were carried out that restart nothing."""
        found = [state]
        for at in found:
            for instance in self.restarts:
                after = self.verified.take(instance, at)
                if after is not None and after not in found and self.seen(after) == self.seen(at):
                    found.append(after)
        return found


def hybrid_pair() -> JobGraph:
    """A > B, kept on disk and read while it is written."""
    return JobGraph((Vertex("A"), Vertex("B")), (Edge("A", "B", Pattern.POINTWISE, Exchange.HYBRID_FULL, "A>B"),))


@pytest.mark.parametrize(
    ("graph", "restarts", "pending", "steps"),
    [
        (JOB_GRAPHS["pair"](), 2, None, 1353),
        (JOB_GRAPHS["pair"](), 3, 1, 2508),
        (JOB_GRAPHS["pipelined-pair"](), 3, 2, 1570),
        (hybrid_pair(), 2, None, 7936),
        (JOB_GRAPHS["chain"](), 2, 1, 5948),
    ],
)
def test_each_step_is_one_of_the_verified_machine(
    graph: JobGraph, restarts: int, pending: int | None, steps: int
) -> None:
    """In all reachable states: with a place for each decision, and with fewer, used in turn."""
    assert Followed(graph, restarts, pending).compare() == steps


@pytest.mark.parametrize(("tasks", "every"), share([(1, 1), (2, 1), (3, 10)], 3))
def test_each_step_is_one_of_the_verified_machine_on_small_graphs(tasks: int, every: int) -> None:
    """On every job graph with this number of tasks, or a share of them."""
    graphs = job_graphs(tasks, (Exchange.PIPELINED, Exchange.BLOCKING, Exchange.HYBRID_FULL))
    for graph in nonempty(islice(graphs, 0, None, every)):
        assert Followed(graph, 2, None).compare() > 0
        assert Followed(graph, 2, 1).compare() > 0


@pytest.mark.long
@settings(max_examples=300)
@given(logged_graphs(), st.data())
def test_restart_sets_are_those_of_the_function_on_job_graphs(logged: LoggedGraph, data: st.DataObject) -> None:
    """Whatever failed, was lost, and was named: as many rounds as there are exchanges in a chain are enough."""
    model = RecordedFailover(recorded_graph(logged).graph, restarts=1)
    status = st.sampled_from(("NONE", "PRODUCING", "STORED", "GONE", "RELEASED"))
    state = SimpleNamespace(partition={p: data.draw(status) for p in model.partitions})
    failed = data.draw(st.sampled_from(model.tasks))
    named = data.draw(st.sampled_from((None, *model.partitions)))
    restarted = model.regions_to_restart(state, failed, named)
    topology = Topology(model.job_graph())
    size = {v.name: v.parallelism for v in model.job_graph().vertices}
    lost = {
        (edge.dataset, n)
        for edge in model.job_graph().edges
        if edge.exchange.rereadable
        for n in range(size[edge.source])
        if model.is_lost(state, f"{edge.dataset}#{n}" if size[edge.source] > 1 else edge.dataset, named)
    }
    task = dict(zip(model.tasks, topology.tasks, strict=True))
    defined = least_fixpoint(pipelined_regions(topology, model.merging), task[failed], lost)
    assert {task[t] for r, tasks in model.regions.items() if restarted[r] for t in tasks} == defined


def test_a_chain_of_causes_may_be_long() -> None:
    """Up to a maker, down to its readers, up again: the search turns as often as the graph can make it."""
    ids = [f"{at:032x}" for at in range(6)]
    # 0 -> 1 <- 2 -> 3 <- 4 -> 5: each exchange is entered once, in turn against and along its direction.
    edges = tuple(
        LoggedEdge(ids[a], ids[z], "ALL_TO_ALL", "BLOCKING") for a, z in ((0, 1), (2, 1), (2, 3), (4, 3), (4, 5))
    )
    vertices = tuple(LoggedVertex(i, f"V{at}", 1) for at, i in enumerate(ids))
    logged = LoggedGraph("j", "job", vertices, edges, (), True, (), "log")
    model = RecordedFailover(recorded_graph(logged).graph, restarts=1)
    lost = SimpleNamespace(partition=dict.fromkeys(model.partitions, "NONE"))
    kept = SimpleNamespace(partition=dict.fromkeys(model.partitions, "STORED"))
    assert [*model.regions_to_restart(lost, "V0 (1/1)", None).values()] == [True] * 6
    assert [*model.regions_to_restart(kept, "V0 (1/1)", None).values()] == [True, True, False, False, False, False]


def test_vertices_of_one_name_are_distinguished() -> None:
    """The second of two vertices with the same name bears its identifier."""
    vertices = (LoggedVertex("a" * 32, "Map", 1), LoggedVertex("b" * 32, "Map", 2))
    recorded = recorded_graph(LoggedGraph("j", "job", vertices, (), (), True, (), "log"))
    assert recorded.task("a" * 32, 0) == "Map (1/1)"
    assert recorded.task("b" * 32, 1) == "Map [bbbbbb] (2/2)"
    assert recorded.task("b" * 32, 2) is None


@pytest.mark.parametrize(
    ("exchange", "complete", "message"),
    [
        ("PIPELINED_APPROXIMATE", True, r"exchanges of type PIPELINED_APPROXIMATE \(A -> B\) are not followed"),
        ("BLOCKING", False, "the job graph is not known well enough: something"),
    ],
)
def test_graphs_that_cannot_be_followed_say_why(exchange: str, complete: bool, message: str) -> None:
    """An exchange that the machine does not have, a graph with gaps."""
    vertices = (LoggedVertex("a" * 32, "A", 1), LoggedVertex("b" * 32, "B", 1))
    edges = (LoggedEdge("a" * 32, "b" * 32, "ALL_TO_ALL", exchange),)
    missing = () if complete else ("something",)
    with pytest.raises(ValueError, match=message):
        recorded_graph(LoggedGraph("j", "job", vertices, edges, (), complete, missing, "log"))


RULES = {
    "no rule 3": (NoDownstreamRestart, "regions_to_restart", "b-lostpart-1"),
    "no rules 2 and 3": (RegionWithoutBacktracking, "regions_to_restart", "b-lostpart-1"),
    "everything restarts": (RestartAll, "regions_to_restart", "a-taskfail-1"),
    "the failed task restarts alone": (Individual, "fail_over", "a-pipelined-1"),
}


@pytest.mark.parametrize("case", RULES)
def test_a_changed_restart_rule_is_noticed(case: str, flink_logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FLIP-1's rule is the verified machine's also for recorded runs: with another one there, a correct run is rejected."""
    variant, name, run = RULES[case]
    assert followed(flink_logs / run) == ["accepted"]
    monkeypatch.setattr(Failover, name, vars(variant)[name])
    assert followed(flink_logs / run) == ["rejected"]


def test_missing_versions_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which decision restarts a task is kept otherwise for recorded runs: the comparison of steps notices another rule."""
    monkeypatch.setattr(Failover, "restarts_task", vars(NoVersioning)["restarts_task"])
    with pytest.raises(AssertionError, match="the verified machine has no step"):
        Followed(JOB_GRAPHS["pair"](), 2, 2).compare()


def followed(run: Path) -> list[str]:
    """The verdicts on the JobManager's lines of the jobs of a run, with machines that are built anew."""
    _SYSTEMS.clear()
    plan = BINDING.plan(run, None)
    _SYSTEMS.clear()
    jobs = tuple(replace(unit, tasks=unit.tasks[:1]) for unit in plan.cases)
    return [found.answer for found in judge(replace(plan, cases=jobs), "failover")]
