"""The graph of processes and channels, and the drawing of states on it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from nonempty import nonempty
from streamproof.model_registry import bundled
from streamproof.report.token_graph import MOST_ROWS, TokenGraph, _back
from streamproof.selection import select
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import State, System
from streamproof.traces.places import leaves
from streamproof.traces.process_graph import ProcessGraph, SiteEdge
from streamproof_models.baton.machine import Routes
from streamproof_models.scopes.topologies import topology

COUNTERS = '''
from streamproof import Array, Model, Queue, Range, State, action, require

NAMES = "a", "b", "<i>c</i>"


class Line(Model):
    """Each place hands on what it has."""

    def state(self):
        wires = Array(("a>b", "b><i>c</i>"), Queue(Range(0, 1), capacity=2))
        return State(DEPTH=Array(NAMES, Range(0, 2, init=1)), WIRE=wires)

    @action(x=NAMES)
    def drop(self, s, x):
        require(s.DEPTH[x] > 0)
        s.DEPTH[x] -= 1

    @action(w=["a>b", "b><i>c</i>"])
    def put(self, s, w):
        require(len(s.WIRE[w]) < 2)
        s.WIRE[w].push(1)
'''


def system_of(model: str, *parameters: str, variant: str | None = None) -> System:
    """The system of a model."""
    return select(model, variant, None, parameters).system()


def named_edges(graph: ProcessGraph) -> set[tuple[str, str]]:
    """The edges by names."""
    return {(graph.sites[edge.source], graph.sites[edge.target]) for edge in graph.edges}


def walk(system: System, steps: int, seed: int = 1) -> Iterator[tuple[State | None, State]]:
    """Each state of a random walk, with the state before."""
    interpreter, chance = Interpreter(system), random.Random(seed)
    state = next(iter(interpreter.initial_states()))
    before = None
    for _ in range(steps):
        yield before, state
        found = list(interpreter.steps(state))
        if not found:
            return
        before, state = state, chance.choice(found).state


@pytest.mark.parametrize("name", ["nested", *(pytest.param(n, marks=pytest.mark.long) for n in ("loop", "self-loop"))])
def test_the_graph_of_a_dataflow_is_its_topology(name: str) -> None:
    """Its operators and channels, each channel between the operators that it joins."""
    links, drawn = Routes(topology(name)).links, ProcessGraph(system_of("baton", f"topology={name}"))
    expected = {(link.source, channel) for channel, link in links.items()}
    expected |= {(channel, link.target) for channel, link in links.items()}
    assert named_edges(drawn) == expected
    assert drawn.channels == set(links)


def test_pushes_and_pops_are_edges() -> None:
    """The operators of a loop and the channels between them are parts of a composition; nothing names their order."""
    assert named_edges(ProcessGraph(system_of("cyclic"))) == {
        ("source", "channel[0]"),
        ("channel[0]", "operator[0]"),
        ("operator[0]", "channel[1]"),
        ("channel[1]", "operator[1]"),
        ("operator[1]", "back"),
        ("back", "operator[0]"),
    }


def test_a_ring_by_what_is_written() -> None:
    """Without channels, a process leads to those that its steps write."""
    assert ("i 0", "i 1") in named_edges(ProcessGraph(system_of("reference.chang_roberts")))


def every_leaf_is_drawn_once(system: System, steps: int) -> None:
    """Each leaf of each state of a walk is at one site of the graph, and differs from the former state where it is marked."""
    graph, drawing = ProcessGraph(system), TokenGraph(system)
    for before, state in nonempty(list(walk(system, steps))):
        found = list(graph.at(state))
        assert [(place, seen) for _, _, place, seen in found] == list(leaves(system, state))
        assert {site for site, _, _, _ in found} <= {None, *graph.sites}
        svg = drawing.svg(state, before)
        assert (svg is not None) == drawing.drawn
        if svg is None:
            continue
        counts: dict[str | None, int] = {}
        for site, _, _, _ in found:
            counts[site] = counts.get(site, 0) + 1
        rows = len(re.findall(r'<text class="row (?!name)', svg))
        assert rows >= sum(min(count, MOST_ROWS) for count in counts.values())
        assert len(re.findall('class="row name"', svg)) == (None in counts) + len(graph.sites)
        assert svg.count('class="edge') == len(graph.edges)
        same = before is not None and before == state
        assert not same or "changed" not in svg


@pytest.mark.parametrize("model", ["failover", "credit_connection"])
def test_every_leaf_is_drawn_once(model: str) -> None:
    """On two bundled models."""
    every_leaf_is_drawn_once(system_of(model), 8)


@pytest.mark.long
@pytest.mark.parametrize("model", [name for name in bundled() if "any" not in name])
def test_every_leaf_of_every_model_is_drawn_once(model: str) -> None:
    """On all bundled models."""
    every_leaf_is_drawn_once(system_of(model), 40)


def test_names_of_variables_have_no_meaning_and_values_are_escaped(tmp_path: Path) -> None:
    """Other names give the same graph; an index that is markup is text."""
    found = []
    for depth, wire in nonempty([("depth", "wire"), ("channel", "token")]):
        path = tmp_path / f"{depth}.py"
        path.write_text(COUNTERS.replace("DEPTH", depth).replace("WIRE", wire))
        system = system_of(str(path))
        graph = ProcessGraph(system)
        svg = next(TokenGraph(system).svg(state, before) for before, state in walk(system, 1))
        assert svg is not None
        assert "<i>" not in svg
        assert "b><i>c</i>" in unescape(svg)
        found.append((graph.sites, graph.edges, graph.channels))
    assert found[0] == found[1]
    assert named_edges(graph) == {
        ("a", "a>b"),
        ("a>b", "b"),
        ("b", "b><i>c</i>"),
        ("b><i>c</i>", "<i>c</i>"),
    }


def test_the_edges_that_lead_back_break_every_cycle() -> None:
    """Of 300 random graphs: the others have an order."""
    chance = random.Random(5)
    for _ in range(300):
        count = chance.randint(1, 8)
        pairs = {(chance.randrange(count), chance.randrange(count)) for _ in range(chance.randint(0, 16))}
        edges = [SiteEdge(a, b) for a, b in sorted(pairs) if a != b]
        kept = {(e.source, e.target) for e in edges if e not in _back(count, edges)}
        while kept:
            ends = {b for _, b in kept}
            rest = {(a, b) for a, b in kept if a in ends}
            assert rest != kept
            kept = rest
