"""Graphviz: a trace, or the graph of reachable states, as DOT text; as SVG if Graphviz is installed.

Nodes show leaf values (``status[A] = FAILED``). In a trace, each state shows the changes of the step before it. In a
graph, every state shows the leaves that differ between states. Initial states have a double border, terminal states are
grey, violating states red.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Collection, Iterable

from streamproof.base.errors import SystemFailure, TooLarge
from streamproof.base.files import GENERATOR
from streamproof.base.text import visible
from streamproof.system.interpreter import Interpreter, with_derived
from streamproof.system.model import Instance, Kind, Property, State, System
from streamproof.system.verdict import Finding, Trace, Verdict
from streamproof.traces.places import Place, Seen, changes, leaves

MAX_STATES = 500
"""Maximum number of states of a readable graph."""

MAX_LINES = 24
"""Maximum number of leaf values in one node."""

HEAD = (
    "  graph [rankdir={rankdir}, fontname=Helvetica, labelloc=t];",
    '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica, fontsize=10];',
    "  edge [fontname=Helvetica, fontsize=10];",
)


def trace_dot(system: System, trace: Trace, prop: Property | None = None) -> str:
    """The trace from top to bottom; its last state is red, for a witness green, and a loop is drawn as one."""
    system, trace = with_derived(system, trace)
    title = system.name if prop is None else f"{system.name}: {prop.name}"
    lines = [f"digraph {quoted(title)} {{", *(h.format(rankdir="TB") for h in HEAD), f"  label={quoted(title)};"]
    for number, state in enumerate(trace.states):
        if number == 0:
            shown = [f"{seen.text} = {seen.shown}" for _, seen in leaves(system, state)]
        else:
            shown = [str(change) for change in changes(system, trace.states[number - 1], state)]
        marks = ["peripheries=2"] if number == 0 else []
        if prop is not None and number == len(trace.states) - 1 and trace.loop is None:
            colour = "#d0ecd0" if prop.kind is Kind.REACHABLE else "#f8d0d0"
            marks.append(f'fillcolor="{colour}"')
        elif trace.loop is not None and number >= trace.loop:
            marks.append('fillcolor="#fdf0d0"')
        lines.append(box(f"s{number}", [f"state {number}", *shown], marks))
    for number, instance in enumerate(trace.steps):
        target = number + 1 if number + 1 < len(trace.states) else trace.loop or 0
        extra = ["style=bold", "constraint=false"] if target <= number else []
        lines.append(_edge(number, target, [f"{number + 1}. {instance.label}"], extra))
    return "\n".join((*lines, "}", ""))


def search_dot(system: System, states: Iterable[State], findings: Iterable[Finding], *, limit: int) -> str:
    """The graph of the states that a search visited. Raises `TooLarge` for more than `limit` states."""
    interpreter = Interpreter(system)
    edges = ((state, step.instance, step.state) for state in states for step in interpreter.steps(state))
    violating = {
        finding.trace.states[-1]
        for finding in findings
        if finding.verdict is Verdict.VIOLATED and finding.trace and finding.kind in (Kind.INVARIANT, Kind.DEADLOCK)
    }
    return graph_dot(system, edges, initial=interpreter.initial_states(), violating=violating, limit=limit)


def graph_dot(
    system: System,
    edges: Iterable[tuple[State, Instance, State]],
    *,
    initial: Iterable[State],
    violating: Collection[State] = (),
    limit: int = MAX_STATES,
) -> str:
    """The graph of `edges` and `initial` states. Raises `TooLarge` as soon as it has more than `limit` states.

    States are numbered in the order of discovery; steps between the same two states share an edge.
    """
    numbers: dict[State, int] = {}
    arrows: dict[tuple[int, int], list[str]] = {}

    def number(state: State) -> int:
        if state not in numbers:
            if len(numbers) == limit:
                raise TooLarge(
                    f"the graph of {system.name} has more than {limit} states, too many to draw",
                    remedy="use smaller parameters, draw a trace instead, or raise the limit",
                )
            numbers[state] = len(numbers)
        return numbers[state]

    starts = {number(state) for state in initial}
    for before, instance, after in edges:
        arrows.setdefault((number(before), number(after)), []).append(instance.label)

    interpreter = Interpreter(system)
    content = {state: dict(leaves(system, state)) for state in numbers}
    varying = _varying(content.values())
    lines = [f"digraph {quoted(system.name)} {{", *(h.format(rankdir="LR") for h in HEAD)]
    for state, at in numbers.items():
        shown = [f"{seen.text} = {seen.shown}" for place, seen in content[state].items() if place in varying]
        marks = ["peripheries=2"] if at in starts else []
        if state in violating:
            marks.append('fillcolor="#f8d0d0"')
        elif interpreter.terminal(state):
            marks.append('fillcolor="#e8e8e8"')
        lines.append(box(f"s{at}", shown or [f"state {at}"], marks))
    lines.extend(_edge(a, b, labels, []) for (a, b), labels in arrows.items())
    return "\n".join((*lines, "}", ""))


def render_svg(dot_text: str, *, seconds: float = 60) -> str:
    """DOT text as SVG, by Graphviz's ``dot``.

    Raises `SystemFailure` if the program is not installed, fails, or takes longer than `seconds`.
    """
    program = shutil.which("dot")
    if program is None:
        raise SystemFailure(
            "drawing needs Graphviz: program 'dot' not found",
            remedy="install the package graphviz, or keep the DOT text and draw it elsewhere",
        )
    try:
        done = subprocess.run(
            [program, "-Tsvg"], input=dot_text, capture_output=True, text=True, encoding="utf-8", timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise SystemFailure(
            f"Graphviz did not finish within {seconds:g} s", remedy="draw a smaller graph, or keep the DOT text"
        ) from None
    except OSError as error:
        raise SystemFailure(f"Graphviz cannot be started: {error.strerror or error}") from error
    if done.returncode != 0:
        first = next(iter(done.stderr.strip().splitlines()), f"exit code {done.returncode}")
        raise SystemFailure(f"Graphviz refused the graph: {first}")
    return done.stdout.replace("<svg ", f"<!-- {GENERATOR} -->\n<svg ", 1)


def _varying(contents: Iterable[dict[Place, Seen]]) -> set[Place]:
    """Leaves whose value differs between states."""
    common: dict[Place, Seen] | None = None
    every: set[Place] = set()
    for content in contents:
        every |= content.keys()
        common = dict(content) if common is None else {p: s for p, s in common.items() if content.get(p) == s}
    return every - (common or {}).keys()


def box(name: str, shown: list[str], marks: list[str]) -> str:
    """A node with lines of text, and further attributes."""
    if len(shown) > MAX_LINES:
        shown = [*shown[:MAX_LINES], f"and {len(shown) - MAX_LINES} more"]
    return f"  {name} [{', '.join((f'label={_left(shown)}', *marks))}];"


def _edge(source: int, target: int, labels: list[str], extra: list[str]) -> str:
    if len(labels) > 4:
        labels = [*labels[:4], f"and {len(labels) - 4} more"]
    return f"  s{source} -> s{target} [{', '.join((f'label={_left(labels)}', *extra))}];"


def _escaped(text: str) -> str:
    return visible(text).replace("\\", "\\\\").replace('"', '\\"')


def quoted(text: str) -> str:
    """A text as a name or label."""
    return f'"{_escaped(text)}"'


def _left(lines: list[str]) -> str:
    # ``\l`` ends a left-aligned line.
    return '"' + "".join(_escaped(text) + "\\l" for text in lines) + '"'
