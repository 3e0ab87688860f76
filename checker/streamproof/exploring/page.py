"""The page of a behaviour: its steps, the viewed state, what is enabled and what is not."""

from __future__ import annotations

from urllib.parse import parse_qs, urlencode, urlsplit

from streamproof.base.errors import UsageError
from streamproof.base.records import replace
from streamproof.exploring.beside import CheckBeside, CheckProgress
from streamproof.exploring.explorer import Explorer, Visit
from streamproof.report.behaviour import drawing
from streamproof.report.pages import environment
from streamproof.traces.places import changes
from streamproof.traces.render import MAX_LABELS, source

MANY = 50
"""Largest number of initial states that the page lists."""


def query_of(explorer: Explorer, visit: Visit) -> str:
    """The part of an address that holds a behaviour and the viewed state."""
    trace = visit.trace
    pairs = [("i", str(explorer.number(trace.states[0])))] if trace.states[0] != explorer.initial[0] else []
    pairs += [("s", label) for label in explorer.labels(visit)]
    pairs += [("loop", str(trace.loop))] if trace.loop is not None else []
    pairs += [("at", str(visit.at))] if visit.at != len(trace) - 1 else []
    pairs += [(name, text) for name, text in (("p", visit.prop), ("note", visit.note)) if text]
    return urlencode(pairs)


def visit_of(explorer: Explorer, address: str) -> Visit:
    """The behaviour that an address holds. Raises `UsageError` for an address of another form."""
    try:
        given = parse_qs(urlsplit(address).query, keep_blank_values=True)
        number, loop, at = (int(given[n][0]) if n in given else None for n in ("i", "loop", "at"))
    except ValueError:
        raise UsageError("not the address of a behaviour", remedy="copy the address of a page of explore") from None
    visit = explorer.walk(number or 0, given.get("s", ()), loop, at)
    return replace(visit, note=visit.note or given.get("note", [""])[0], prop=given.get("p", [""])[0])


def check_part(progress: CheckProgress) -> str:
    """The part of the page about the check beside."""
    return environment().get_template("check_beside.html.j2").render(progress=progress)


def explorer_page(
    explorer: Explorer, visit: Visit, *, check: CheckBeside | None = None, message: str = "", text: str = ""
) -> str:
    """The page of a viewed state; `message` is shown above it, `text` is the condition that was searched."""
    trace, system = visit.trace, explorer.system
    moves = explorer.moves(visit)
    ends = [*trace.states[1:], *(() if trace.loop is None or trace.stutters else (trace.states[trace.loop],))]
    steps = [
        (step.label, [str(c) for c in changes(system, before, after)])
        for step, before, after in zip(trace.steps, trace.states, ends, strict=False)
    ]

    def to(at: int) -> str:
        return "?" + query_of(explorer, visit.move(at))

    def take(label: str) -> str:
        return "?" + query_of(explorer, explorer.take(visit, label))

    template = environment().get_template("explorer.html.j2")
    return template.render(
        explorer=explorer,
        system=system,
        visit=visit,
        here="?" + query_of(explorer, replace(visit, note="")),
        message=message or visit.note,
        text=text,
        moves=moves,
        check=check,
        progress=None if check is None else check.progress,
        rows=list(explorer.rows(visit)),
        broken=list(explorer.false(visit)),
        forever=explorer.forever(visit),
        steps=steps,
        to=to,
        take=take,
        initial=explorer.initial[:MANY] if not trace.steps else (),
        drawing=drawing(system, trace),
        graph=explorer.tokens.svg(visit.state, trace.states[visit.at - 1] if visit.at else None),
        source=source,
        most=MAX_LABELS,
    )
