"""Graphviz: golden text of a trace and of a graph, the limit, and what happens without the program."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest

from streamproof.exchange.drawings.dot import graph_dot, render_svg, trace_dot
from streamproof.system import Exit, Instance, Interpreter, State, System, SystemFailure, TooLarge
from streamproof.traces.replay import replay_labels


def _edges(system: System) -> Iterator[tuple[State, Instance, State]]:
    """Every reachable step, breadth first."""
    interpreter = Interpreter(system)
    queue = list(interpreter.initial_states())
    seen = set(queue)
    for state in queue:
        for step in interpreter.steps(state):
            yield state, step.instance, step.state
            if step.state not in seen:
                seen.add(step.state)
                queue.append(step.state)


def test_trace(relay: System) -> None:
    """The first state in full, then changes; the last one in red."""
    trace = replay_labels(relay, ["send(1)", "receive[lost=True]"])
    assert trace_dot(relay, trace, relay.property("one_buffer")) == (
        """\
digraph "relay: one_buffer" {
  graph [rankdir=TB, fontname=Helvetica, labelloc=t];
  node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica, fontsize=10];
  edge [fontname=Helvetica, fontsize=10];
  label="relay: one_buffer";
  s0 [label="state 0\\lpool = 1\\lbacklog[0] = 1\\lbacklog[1] = 1\\lwire = <>\\l", peripheries=2];
  s1 [label="state 1\\lpool: 1 -> 0\\lbacklog[1]: 1 -> 0\\lwire: <> -> <DATA>\\l"];
  s2 [label="state 2\\lwire: <DATA> -> <>\\l", fillcolor="#f8d0d0"];
  s0 -> s1 [label="1. send(c=1)\\l"];
  s1 -> s2 [label="2. receive()[lost=True]\\l"];
}
"""
    )


def test_witness_is_green(relay: System) -> None:
    """The state that a reachability property asks for is no violation."""
    text = trace_dot(relay, replay_labels(relay, ["send(1)", "receive[lost=False]", "send(0)"]), relay.properties[3])
    assert (
        '  s3 [label="state 3\\lpool: 1 -> 0\\lbacklog[0]: 1 -> 0\\lwire: <> -> <DATA>\\l", fillcolor="#d0ecd0"];'
        in text
    )


def test_lasso(toggle: System) -> None:
    """The states of the loop are coloured and its closing step goes back."""
    text = trace_dot(toggle, replay_labels(toggle, ["flip", "flip", "flip"], loop=1), toggle.property("ends"))
    assert '  s0 [label="state 0\\lon = False\\l", peripheries=2];' in text
    assert '  s1 [label="state 1\\lon: False -> True\\l", fillcolor="#fdf0d0"];' in text
    assert '  s2 -> s1 [label="3. flip()[to=True]\\l", style=bold, constraint=false];' in text


def test_graph(toggle: System) -> None:
    """Every state once, numbered as met, steps between the same two states on one arrow."""
    assert graph_dot(toggle, _edges(toggle), initial=[(False,)], violating={(True,)}) == (
        """\
digraph "toggle" {
  graph [rankdir=LR, fontname=Helvetica, labelloc=t];
  node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica, fontsize=10];
  edge [fontname=Helvetica, fontsize=10];
  s0 [label="on = False\\l", peripheries=2];
  s1 [label="on = True\\l", fillcolor="#f8d0d0"];
  s0 -> s1 [label="flip()[to=True]\\l"];
  s0 -> s0 [label="stay()\\l"];
  s1 -> s0 [label="flip()[to=False]\\l"];
  s1 -> s1 [label="stay()\\l"];
}
"""
    )


def test_graph_shows_what_varies_and_marks_ends(relay: System) -> None:
    """Leaves that are the same in every state are left out; terminal states are grey."""
    fixed = replace(relay.variables[1], initial=((1, 0),))
    system = replace(relay, variables=(relay.variables[0], fixed, relay.variables[2]))
    text = graph_dot(system, _edges(system), initial=Interpreter(system).initial_states())
    assert '  s0 [label="pool = 1\\lbacklog[0] = 1\\lwire = <>\\l", peripheries=2];' in text
    assert '  s2 [label="pool = 1\\lbacklog[0] = 0\\lwire = <>\\l", fillcolor="#e8e8e8"];' in text
    assert "backlog[1]" not in text


def test_graph_that_is_too_large(relay: System) -> None:
    """Above the limit there is a clear refusal instead of an unreadable picture."""
    states = len({s for a, _, c in _edges(relay) for s in (a, c)})
    assert graph_dot(relay, _edges(relay), initial=(), limit=states).count(" -> s") > 0
    with pytest.raises(TooLarge) as caught:
        graph_dot(relay, _edges(relay), initial=(), limit=states - 1)
    assert str(caught.value) == (
        f"the graph of relay has more than {states - 1} states, too many to draw\n"
        "  use smaller parameters, draw a trace instead, or raise the limit"
    )


def test_names_are_escaped(toggle: System) -> None:
    """Quotes and backslashes in names do not end the label."""
    named = replace(toggle, name='a "b" \\c')
    assert trace_dot(named, replay_labels(named, ["flip"])).startswith('digraph "a \\"b\\" \\\\c" {\n')


def test_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Graphviz the message says what to install."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemFailure) as caught:
        render_svg("digraph {}")
    assert caught.value.exit_code is Exit.SYSTEM
    assert str(caught.value) == (
        "drawing needs Graphviz: program 'dot' not found\n"
        "  install the package graphviz, or keep the DOT text and draw it elsewhere"
    )


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_svg(relay: System) -> None:
    """Graphviz accepts the text; what it refuses is an error with its first line."""
    svg = render_svg(trace_dot(relay, replay_labels(relay, ["send(1)"]), relay.properties[0]))
    assert svg.count('class="node"') == 2
    assert "backlog[1]: 1 &#45;&gt; 0" in svg
    with pytest.raises(SystemFailure, match="Graphviz refused the graph: "):
        render_svg("digraph {")
