"""Suites: what they promise to cover is computed anew with networkx, and what they forbid is forbidden."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import pytest

from random_systems import random_system
from streamproof.base.errors import EvaluationError, InputError
from streamproof.base.records import replace
from streamproof.conformance.event import Event
from streamproof.conformance.event_log import EventLog
from streamproof.conformance.events import write_ndjson
from streamproof.conformance.validation import verdicts_on
from streamproof.driving import suite as suites
from streamproof.driving.drive_subject import Subject
from streamproof.driving.script import read_scripts
from streamproof.driving.suite import Suite, SuiteScript, make_suite, random_suite
from streamproof.driving.testing import subject_of
from streamproof.selection import selected
from streamproof.system import Interpreter, System
from streamproof.system.expr import Ite, children

LEASE = str(Path(__file__).resolve().parents[2] / "examples" / "lease" / "lease.py")


def graph_of(system: System) -> nx.MultiDiGraph:
    """All reachable states, and the steps between them, by the interpreter. Raises `EvaluationError`."""
    interpreter, graph = Interpreter(system), nx.MultiDiGraph()
    queue = list(interpreter.initial_states())
    graph.add_nodes_from(queue)
    met = set(queue)
    while queue:
        state = queue.pop()
        for step in interpreter.steps(state):
            graph.add_edge(state, step.state, instance=step.instance)
            if step.state not in met:
                met.add(step.state)
                queue.append(step.state)
    return graph


def outcomes(system: System, state: Any, instance: Any) -> set[object]:
    """The conditions inside the updates of an instance that are evaluated in a state, with their values."""
    evaluation, found = Interpreter(system).evaluation(state), set[object]()

    def look(term: Any) -> None:
        if isinstance(term, Ite):
            value = evaluation.value(term.cond)
            found.add((instance.action, term.cond if term.cond.loc is None else term.cond.loc, bool(value)))
            look(term.cond)
            look(term.then if value else term.other)
        else:
            for part in children(term):
                look(part)

    for _, expr in instance.updates:
        look(expr)
    return found


def expect_covered(system: System, suite: Suite) -> None:
    """Every script is a behaviour, every instance and every pair of actions is in one, every refusal is disabled."""
    graph, interpreter = graph_of(system), Interpreter(system)
    edges = list(graph.edges(data="instance"))
    instances = {i.key for _, _, i in edges}
    pairs = {(a.action, b.action) for _, t, a in edges for _, _, b in graph.out_edges(t, data="instance")}
    branches: set[object] = set().union(*(outcomes(system, s, i) for s, _, i in edges))
    covered: set[object] = set()
    taken: set[object] = set()
    follow: set[tuple[str, str]] = set()
    for script in suite.scripts:
        assert interpreter.is_initial(script.trace.states[0])
        for (before, after), instance in zip(pairwise(script.trace.states), script.trace.steps, strict=True):
            assert interpreter.take(instance, before) == after
            taken.add(instance.key)
            covered |= outcomes(system, before, instance)
        follow |= {(a.action, b.action) for a, b in pairwise(script.trace.steps)}
        for at, own in script.refused.items():
            for refusal in own:
                like = [
                    i
                    for i in system.instances
                    if (i.action, i.args) == (refusal.instance.action, refusal.instance.args)
                ]
                assert not any(interpreter.enabled(i, script.trace.states[at]) for i in like)
    assert (taken, follow, covered) == (instances, pairs, branches)
    assert (suite.instances, suite.pairs, suite.states) == (len(instances), len(pairs), len(graph))
    assert suite.branches == len(branches)
    assert suite.least <= suite.steps
    for script in suite.scripts:
        assert not any(contains(other, script) for other in suite.scripts if other is not script)


def contains(longer: SuiteScript, script: SuiteScript) -> bool:
    """Whether the states and steps of a script are a part of those of another one."""
    states, steps = script.trace.states, [step.key for step in script.trace.steps]
    keys, count = [step.key for step in longer.trace.steps], len(steps)
    starts = range(len(keys) - count + 1)
    return any(keys[k : k + count] == steps and longer.trace.states[k : k + count + 1] == states for k in starts)


def refused(suite: Suite) -> Counter[object]:
    """The refusals of a suite, each with its state."""
    return Counter(
        (s.trace.states[at], r.instance.key, r.because)
        for s in suite.scripts
        for at, own in s.refused.items()
        for r in own
    )


@pytest.mark.parametrize("seeds", [25, pytest.param(400, marks=pytest.mark.long)])
def test_random_systems_are_covered(seeds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of random systems, every instance, every pair and every refusal is in the suite, and no script is in another one."""
    found: Counter[str] = Counter()
    for seed in range(seeds):
        system = replace(random_system(Random(seed)), properties=(), lemmas=())
        try:
            graph_of(system)
        except EvaluationError:
            continue
        if next(Interpreter(system).initial_states(), None) is None:
            continue
        suite = make_suite(Subject(system), 10_000)
        expect_covered(system, suite)
        with monkeypatch.context() as patch:
            patch.setattr(suites, "_not_contained", list)
            whole = make_suite(Subject(system), 10_000)
        assert refused(whole) == refused(suite)
        found["left out"] += 10 * (len(whole.scripts) - len(suite.scripts))
        found["scripts"] += len(suite.scripts)
        found["refusals"] += suite.refusals
    assert min(found.values()) > seeds // 3


def test_the_files_are_judged_as_they_say(tmp_path: Path) -> None:
    """`validate` accepts every good script, and rejects every wrong log at its last event."""
    words = [sys.executable, "-m", "streamproof", "suite", LEASE, "--out", str(tmp_path), "--itf"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "13 instances of actions, 14 pairs of consecutive actions" in done.stdout
    listed = json.loads((tmp_path / "suite.json").read_text())
    model = subject_of(selected(LEASE))
    good = verdicts_on(tmp_path / "suite-good.ndjson", model.system)
    assert {v.trace for v in good if v.answer == "accepted"} == {s["name"] for s in listed["scripts"]}
    wrong = {b["name"]: b["wrong_event"] for b in listed["bad"]}
    bad = verdicts_on(tmp_path / "suite-bad.ndjson", model.system)
    assert {v.trace: v.rejection.index + 1 for v in bad if v.rejection is not None} == wrong
    assert "variant-unfenced" in wrong
    assert len(list(tmp_path.glob("*.itf.json"))) == len(listed["scripts"])
    scripts = read_scripts(tmp_path / "suite-good.ndjson", model.system)
    assert [s.calls for s in scripts] == [s.script().calls for s in make_suite(model, 1000).scripts]


def test_a_log_states_its_sizes(tmp_path: Path) -> None:
    """Suites of two sizes in one file are judged by the name of the model; a wrong one is rejected, not left undecided."""
    name = "reference.two_phase_commit"
    good, bad = list[Event](), list[Event]()
    for n in (2, 4):
        made = make_suite(subject_of(selected(name, parameters={"resource_managers": n})), 5000)
        good += [replace(e, trace=f"{n}-{e.trace}") for s in made.scripts for e in s.events(made.system)]
        bad += [replace(e, trace=f"{n}-{e.trace}") for b in made.bad for e in b.events]
    for events, answer in ((good, "accepted"), (bad, "rejected")):
        write_ndjson(events, tmp_path / answer)
        assert {v.answer for v in verdicts_on(tmp_path / answer, name)} == {answer}


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"client": 3}, r"log.ndjson:1: the parameters of the log: lease has no parameter 'client'"),
        ({"clients": "many"}, "'many' is not a value of type int"),
        ({"clients": -1}, "is empty"),
        ({"clients": 10**9}, "more than 1,000,000"),
        ({"clients": 3}, "clients is 3, and 2 is given for it"),
    ],
)
def test_stated_sizes_that_the_model_does_not_have_are_errors(tmp_path: Path, stated: Any, message: str) -> None:
    """With the line and the parameter; so are others than the binding has."""
    given = {"clients": 2} if stated == {"clients": 3} else {}
    write_ndjson([Event("t", "p", 0, "grant", {"client": 0}, parameters=stated)], tmp_path / "log.ndjson")
    model = selected(LEASE).target.spec
    with pytest.raises(InputError, match=message):
        verdicts_on(tmp_path / "log.ndjson", EventLog(model, **given))


@pytest.mark.long
def test_variants_with_sizes_of_their_own_are_wrong_for_these(tmp_path: Path) -> None:
    """The counterexample of a variant on another job graph is judged on this graph, which it states."""
    made, log = make_suite(subject_of(selected("failover")), 2000), tmp_path / "log.ndjson"
    variants = {bad.name: bad.events for bad in made.bad if bad.name.startswith("variant-")}
    assert {events[0].parameters["topology"] for events in variants.values() if events[0].parameters} > {
        "diamond",
        "tee",
    }
    write_ndjson((event for events in variants.values() for event in events), log)
    assert {v.trace: v.answer for v in verdicts_on(log, "failover")} == dict.fromkeys(variants, "rejected")


def test_bounds_of_an_instance_are_no_refusals() -> None:
    """That the instance has no more tokens is nothing that an implementation must refuse."""
    suite = make_suite(subject_of(selected(LEASE)), 1000)
    assert suite.beyond == 2
    assert not any("tokens" in bad.because for bad in suite.bad)


def test_random_walks_are_scripts(tmp_path: Path) -> None:
    """Walks through a state space that is not searched are behaviours with refusals, and say what they cover."""
    suite = random_suite(subject_of(selected(LEASE)), 20, 15, seed=3)
    assert (len(suite.scripts), suite.complete) == (20, False)
    assert suite.instances == 13
    assert suite.refusals > 10
    again = random_suite(subject_of(selected(LEASE)), 20, 15, seed=3)
    assert [s.script() for s in suite.scripts] == [s.script() for s in again.scripts]


@pytest.mark.long
@pytest.mark.parametrize("model", ["slot_pool", "regions", "checkpoints", "credit", "main_thread", "task_attempt"])
def test_bundled_models_have_suites(model: str) -> None:
    """Suites of bundled models: each wrong log is rejected by the model at its last event."""
    subject = subject_of(selected(model))
    suite = make_suite(subject, 200_000)
    assert suite.steps < 40 * suite.least
    assert suite.bad
