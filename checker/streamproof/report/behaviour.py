"""One behaviour as one HTML file, without scripts and requests: explanation, drawings, and every state."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable

from markupsafe import Markup, escape

from streamproof.base.text import Line, visible
from streamproof.exchange.drawings.sequence import sequence_svg
from streamproof.report.pages import environment
from streamproof.report.token_graph import TokenGraph
from streamproof.system.interpreter import with_derived
from streamproof.system.model import Property, System
from streamproof.system.sorts import show
from streamproof.system.verdict import Trace
from streamproof.traces.render import About, counterexample

DRAWN = 60
"""Largest number of steps of a behaviour that is drawn."""


def styled_html(lines: Iterable[Line]) -> Markup:
    """Styled lines as HTML: a division for each line, and a span with the name of its style for each piece of text."""
    parts = []
    for one in lines:
        spans = "".join(f'<span class="{s.style}">{escape(visible(s.text))}</span>' for s in one.spans)
        parts.append(
            f'<div style="padding-left:{one.hang}ch;text-indent:{one.indent - one.hang}ch">{spans or " "}</div>'
        )
    return Markup("\n".join(parts))


def drawing(system: System, trace: Trace, prop: Property | None = None) -> Markup | None:
    """The sequence diagram of a behaviour as an image, apart from styles of the page; None without or with too many steps."""
    if not 0 < len(trace.steps) <= DRAWN:
        return None
    svg = b64encode(sequence_svg(system, trace, prop).encode()).decode()
    return Markup(f'<img alt="sequence diagram of the steps that are listed" src="data:image/svg+xml;base64,{svg}">')


def graphs(system: System, trace: Trace) -> list[Markup]:
    """The drawing of each state on the graph of processes and channels; none without such a graph, or with too many steps."""
    drawn = TokenGraph(system)
    if not drawn.drawn or len(trace.steps) > DRAWN:
        return []
    pairs = zip(trace.states, (None, *trace.states), strict=False)
    return [svg for state, before in pairs if (svg := drawn.svg(state, before)) is not None]


def behaviour_page(system: System, trace: Trace, prop: Property | None = None) -> str:
    """The page of a behaviour that `traces.replay` has passed; `prop` is the property that it violates or reaches."""
    shown, seen = with_derived(system, trace)
    states = [[(v.name, show(v.sort, value)) for v, value in shown.named(state)] for state in seen.states]
    lines = counterexample(system, prop, trace, about=About(replayed=True))
    labels = ["initial state", *(step.label for step in trace.steps)]
    facts = {"system": system, "prop": prop, "lines": styled_html(lines), "drawing": drawing(system, trace, prop)}
    template = environment().get_template("behaviour.html.j2")
    return template.render(facts, graphs=graphs(system, trace), states=list(zip(labels, states, strict=False)))
