"""Failover of every job graph: what `failover` does is possible in it, small instances explored, and the proof."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from model_verdicts import established
from shares import share
from streamproof import Native
from streamproof.cli.verbs import run
from streamproof.explicit.exploration import explore
from streamproof.system import Interpreter
from streamproof_models.failover.any_graph import FailoverAnyGraph
from streamproof_models.failover.machine import Failover
from streamproof_models.failover.named_job_graphs import JOB_GRAPHS
from streamproof_specs.failover.any_graph import SPEC
from streamproof_specs.failover.properties import SPEC as FAILOVER

COUNTS: dict[str | None, tuple[int, int, int]] = {
    None: (13264, 54784, 19),
    "no-downstream-restart": (2573712, 14518980, 26),
    "individual": (23216, 92040, 19),
    "no-fence": (2579472, 14547420, 26),
    "no-versioning": (39904, 186784, 25),
    "attempt-reuse": (9328, 38400, 16),
    "no-topological-order": (15120, 62720, 18),
    "unnoticed-loss": (18640, 77040, 20),
}
"""Distinct states, generated states and depth."""
LARGE = ("no-downstream-restart", "no-fence")
"""Variants that show with three tasks."""
FREE = "tasks,partitions,decisions"
QUICK = ("pair", "pipelined-pair")


@pytest.mark.parametrize(
    "variant", [pytest.param(v, marks=[pytest.mark.long] if v in LARGE else []) for v in (None, *SPEC.model.variants)]
)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """Each broken rule shows in what is expected of it."""
    established(SPEC, variant, COUNTS[variant])


class Graph:
    """The job graph of an instance of `failover` as relations."""

    def __init__(self, m: Failover) -> None:
        self.tasks = list(m.tasks)
        named: dict[str, tuple[str, set[str]]] = {}
        for channel, (producer, consumer) in m.channels.items():
            named.setdefault(channel.partition("<")[2], (producer, set()))[1].add(consumer)
        for partition, producer in m.partitions.items():
            named.setdefault(partition, (producer, set()))
        self.partitions = list(named)
        self.region = [self.tasks.index(m.regions[m.region_of[t]][0]) for t in self.tasks]
        self.producer = [self.tasks.index(named[p][0]) for p in self.partitions]
        self.reads = [[t in named[p][1] for t in self.tasks] for p in self.partitions]
        self.rereadable = [p in m.partitions for p in self.partitions]

    def state(self, m: Failover, s: Any) -> dict[str, Any]:
        """A state of `failover`, without a restart set that is drawn up."""
        k = range(m.decisions)
        return {
            "region": self.region,
            "producer": self.producer,
            "reads": self.reads,
            "rereadable": self.rereadable,
            "job": s.job,
            "status": [s.status[t] for t in self.tasks],
            "attempt": [s.attempt[t] for t in self.tasks],
            "partition": [
                s.partition[p] if p in m.partitions else pipelined(s.status[self.tasks[self.producer[i]]])
                for i, p in enumerate(self.partitions)
            ],
            "read": [
                [s.read[f"{t}<{p}"] if self.reads[i][z] else None for z, t in enumerate(self.tasks)]
                for i, p in enumerate(self.partitions)
            ],
            "decided": s.decided,
            "restarting": [*([t in s.restarting[j] for t in self.tasks] for j in k), [False for _ in self.tasks]],
            "awaiting": [*([t in s.awaiting[j] for t in self.tasks] for j in k), [False for _ in self.tasks]],
            "version": [s.version[t] for t in self.tasks],
        }

    def restart_set(self, s: dict[str, Any], failed: int, missing: int | None) -> list[bool]:
        """The least set that meets the three conditions, when the attempt of `failed` has ended."""
        chosen = {failed}
        gone = [
            s["partition"][p] in ("NONE", "RELEASED") or p == missing or self.producer[p] == failed
            for p in range(len(self.partitions))
        ]
        while True:
            more = {t for t in range(len(self.tasks)) if self.region[t] in {self.region[c] for c in chosen}}
            for p, producer in enumerate(self.producer):
                readers = {z for z in range(len(self.tasks)) if self.reads[p][z]}
                if producer in chosen:
                    more |= readers
                if readers & chosen and self.rereadable[p] and gone[p]:
                    more.add(producer)
            if more <= chosen:
                return [t in chosen for t in range(len(self.tasks))]
            chosen |= more


def pipelined(status: str) -> str:
    """What the machine of every job graph notes of a partition that cannot be read again: it is read by nobody."""
    noted = dict.fromkeys(("SCHEDULED", "RUNNING", "CANCELING"), "PRODUCING") | {"FINISHED": "STORED"}
    return noted.get(status, "NONE")


@pytest.mark.parametrize(
    "topology", [pytest.param(t, marks=[] if t in QUICK else [pytest.mark.long]) for t in sorted(JOB_GRAPHS)]
)
def test_each_step_of_failover_is_possible(topology: str) -> None:
    """With the least restart set, and a release after the step in which the last reader finishes."""
    concrete, system = Native(Failover(topology=topology)), FAILOVER.system(None, topology=topology)
    interpreter = Interpreter(system)
    m = concrete.model
    m.setup()
    graph = Graph(m)
    size = {"tasks": len(graph.tasks), "partitions": max(len(graph.partitions), 1), "decisions": m.decisions}
    abstract = Native(FailoverAnyGraph(**size))
    seen: dict[Any, dict[str, Any]] = {}

    def look(state: Any) -> dict[str, Any]:
        """The state as one of every job graph."""

        def note(machine: Any, s: Any) -> bool:
            found.update(graph.state(machine, s))
            return True

        found: dict[str, Any] = {}
        concrete.holds(note, state)
        return found

    todo = list(interpreter.initial_states())
    seen.update((state, look(state)) for state in todo)
    steps = 0
    while todo:
        state = todo.pop()
        for step in interpreter.steps(state):
            if step.state not in seen:
                seen[step.state] = look(step.state)
                todo.append(step.state)
            steps += 1
            possible(graph, abstract, seen[state], step.instance, seen[step.state])
    counts = explore(system).counts
    assert (len(seen), steps) == (counts.distinct, counts.generated - 1)


def possible(graph: Graph, abstract: Native, before: dict[str, Any], taken: Any, after: dict[str, Any]) -> None:
    """One step is one of the machine, which leads to the same state once partitions are released."""
    named = dict(taken.args)
    args = {}
    if "t" in named:
        args["t"] = graph.tasks.index(named["t"])
    if "p" in named:
        args["p"] = graph.partitions.index(named["p"])
    if "k" in named:
        args["k"] = named["k"]
    if "r" in named:
        args["r"] = next(
            graph.region[i] for i, t in enumerate(graph.tasks) if t in abstract_region(named["r"], graph.tasks)
        )
    drawn = [False for _ in graph.tasks]
    if taken.action in ("fail", "miss"):
        drawn = graph.restart_set(before, args["t"], args.get("p"))
    found = abstract.step({**before, "chosen": drawn}, taken.action, **args)
    assert found is not None, taken.label
    for p, name in enumerate(after["partition"]):
        if name == "RELEASED" and before["partition"][p] != "RELEASED":
            found = abstract.step(found, "release", p)
            assert found is not None, taken.label
    assert found == abstract.values({**after, "chosen": drawn}), taken.label


def abstract_region(region: str, tasks: list[str]) -> list[str]:
    """The tasks in the name of a region."""
    return [t for t in tasks if t in region.replace(" more", "").split("+")]


@pytest.mark.long
def test_safety_is_proved_for_every_job_graph(tmp_path: Path) -> None:
    """With a certificate that the verifier accepts."""
    out, certificate = tmp_path / "proof.json", tmp_path / "proof.cert"
    words = ["prove", "failover_any_graph", "--any", FREE, "--timeout", "900"]
    assert run([*words, "-q", "--json", str(out), "--certificate", str(certificate)]) == 0
    verdicts = {p["name"]: (p["verdict"], p["sizes"]) for p in json.loads(out.read_text())["properties"]}
    assert len(verdicts) == 20
    assert {*verdicts.values()} == {("holds", "any")}
    assert run(["verify-certificate", str(certificate), "-q"]) == 0


@pytest.mark.long
@pytest.mark.parametrize("variant", share(SPEC.model.variants, 1))
def test_what_a_variant_breaks_is_not_proved(variant: str, tmp_path: Path) -> None:
    """What the search refutes is proved of no variant."""
    out = tmp_path / "proof.json"
    words = ["prove", "failover_any_graph", "--variant", variant, "--any", FREE, "--timeout", "900"]
    run([*words, "-q", "--json", str(out), "--out", str(tmp_path)])
    verdicts = {p["name"]: p["verdict"] for p in json.loads(out.read_text())["properties"]}
    assert len(verdicts) == 20
    assert all(verdicts[name] != "holds" for name in SPEC.expected[variant])
