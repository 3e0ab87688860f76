"""`explain`: a trace file as an explanation, in the form in which it is read, sent or kept."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from streamproof.api.as_test import test_text
from streamproof.api.origin import origin_of
from streamproof.api.replay import claim_of, confirmed, model_of, with_recorded
from streamproof.api.subject import NO_PARAMETERS
from streamproof.base.errors import UsageError
from streamproof.base.options import SearchOptions, Tuning
from streamproof.base.text import text as plain
from streamproof.engines.registry import CHECKS
from streamproof.exchange.drawings.mermaid import mermaid_text
from streamproof.exchange.drawings.sequence import sequence_svg
from streamproof.exchange.itf.reading import load, read_meta
from streamproof.exchange.itf.writing import itf_text
from streamproof.report.behaviour import behaviour_page
from streamproof.selection import Selection, selected
from streamproof.system.model import Kind, Property, System
from streamproof.system.verdict import Trace
from streamproof.traces.explain import needs
from streamproof.traces.render import About, counterexample
from streamproof.traces.replay import confirm_finding
from streamproof.traces.tidy import fewer_switches, sentences

FORMS = ("text", "markdown", "mermaid", "svg", "html", "pytest", "itf")
"""The forms of an explanation."""
WIDTH = 100
"""Width of the text in columns."""
STATES, SECONDS, WORK = 200_000, 20.0, 2_000_000
"""Limits of the search for a shortest lasso: states, time, and edges that are followed."""


def explain(
    trace: str | PathLike[str],
    form: str = "text",
    model: str | None = None,
    property: str | None = None,
    *,
    variant: str | None = None,
    parameters: Mapping[str, Any] = NO_PARAMETERS,
) -> str:
    """The explanation of a trace file in ITF, as `streamproof explain` prints it.

    `form` is `text`, `markdown`, `mermaid`, `svg`, `html`, `pytest` or `itf`. The other arguments, and what it raises, are
    those of `replay`; `UsageError` for another form.
    """
    if form not in FORMS:
        raise UsageError(f"no form {form!r}", remedy=f"the forms: {', '.join(FORMS)}")
    document = load(Path(trace))
    meta = read_meta(document)
    name = model_of(document) if model is None else model
    selection = selected(name, variant if variant is not None else meta.variant, None, parameters)
    selection = with_recorded(document, selection)
    replayed = confirmed(document, selection.system(), claim_of(document, selection, property))
    return explanation(selection, replayed.system, replayed.property, replayed.trace, form)


def explanation(selection: Selection, system: System, prop: Property | None, trace: Trace, form: str) -> str:
    """A replayed trace in a form: a lasso of few steps, and steps in an order with few changes of the process."""
    lasso, shortest = shorter_lasso(system, prop, trace)
    shown = fewer_switches(system, prop, lasso)
    match form:
        case "markdown":
            title = f"### {prop.name}: {system.name}\n\n" if prop else f"### {system.name}\n\n"
            diagram = f"```mermaid\n{mermaid_text(system, shown)}```\n\n"
            return f"{_heading(title)}{diagram}~~~~text\n{_told(system, prop, shown, shortest)}~~~~\n"
        case "mermaid":
            return mermaid_text(system, shown)
        case "svg":
            return sequence_svg(system, shown, prop)
        case "html":
            return behaviour_page(system, shown, prop)
        case "pytest":
            return test_text(selection, system, shown)
        case "itf":
            return itf_text(system, shown, prop, origin_of(selection.target.text))
        case _:
            return _told(system, prop, shown, shortest)


def shorter_lasso(system: System, prop: Property | None, trace: Trace) -> tuple[Trace, bool]:
    """A lasso that violates a temporal property with no more steps of stem and cycle than that of the trace, and the fewest
    that a search within limits finds; and whether none has fewer."""
    if prop is None or prop.kind is not Kind.TEMPORAL or trace.loop is None:
        return trace, False
    options = SearchOptions((prop.name,), max_states=STATES, time_limit=SECONDS, tuning=Tuning(cycle_work=WORK))
    found = CHECKS["explicit"].run(system, options).finding(prop.name)
    if found.trace is None or found.trace.loop is None:
        return trace, False
    confirm_finding(system, found, "explicit")
    return min(found.trace, trace, key=lambda one: len(one.steps)), found.shortest


def _heading(text: str) -> str:
    """A heading of Markdown without markup of its own."""
    return "".join(c if c.isalnum() or c in " _-.#:\n" else " " for c in text)


def _told(system: System, prop: Property | None, trace: Trace, shortest: bool) -> str:
    why = {} if prop is None else sentences(trace, needs(system, prop, trace), prop.kind)
    return plain(
        counterexample(system, prop, trace, about=About(shortest=shortest, replayed=True), why=why), WIDTH
    ).replace("~~~", "~ ~ ~")
