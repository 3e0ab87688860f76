"""Sequence diagrams: a trace as SVG, with a lifeline for each process and an arrow for each message of a queue.

Nothing has to be declared: see `traces.processes`. An index of an array that names two others, as ``a>b`` does, is a link
between these; then they are the processes, and arcs above the lifelines show all links. What a step appends to a queue is
an arrow from that step to the one that removes it, or to the end of the diagram. Other changes are listed at the step.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from html import escape

from streamproof.base.files import GENERATOR
from streamproof.base.records import dataclass
from streamproof.base.text import visible
from streamproof.system.model import Instance, Kind, Property, System
from streamproof.system.sorts import (
    ArraySort,
    EnumSort,
    QueueSort,
    RecordSort,
    Sort,
    TupleSort,
    Value,
    default,
    show,
    values,
)
from streamproof.system.verdict import Trace
from streamproof.traces.places import Change, changes, look
from streamproof.traces.processes import Processes

MAX_LINES = 5
"""Maximum number of changes listed at a step."""
MAX_TEXT = 46
"""Maximum number of characters of a line; the whole text is the tooltip."""

_LETTER, _LINE, _GAP, _MARGIN = 6.7, 15, 24, 24
_BETWEEN = 24
"""Space between two steps, for the texts of messages."""
_LINK = re.compile(r"\(?(\w+?)(?:, |[^\w\s]+)(\w+)\)?")
_STYLE = (
    "text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#1c2733}"
    ".name{font-weight:bold;text-anchor:middle}.step{font-weight:bold}.title{font:bold 13px sans-serif}"
    ".life{stroke:#9aa7b4;stroke-dasharray:3 3}.arc{fill:none;stroke:#6b7a89}.send{fill:none;stroke:#1f5fa8;stroke-width:1.4}"
    ".open{stroke-dasharray:5 3}.word{fill:#1f5fa8;text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:4px}"
    ".box{fill:#fff;stroke:#6b7a89}"
    ".bad{fill:#f8d0d0;stroke:#a33}.good{fill:#d0ecd0;stroke:#383}.loop{fill:#fdf0d0}"
)


@dataclass(slots=True)
class DrawnStep:
    """One step: where it happens, what its box says, and its top edge."""

    lane: str
    lines: list[str]
    top: float = 0.0

    @property
    def height(self) -> float:
        """Of the box."""
        return _LINE * len(self.lines) + 8

    @property
    def middle(self) -> float:
        """Where arrows begin and end."""
        return self.top + self.height / 2

    @property
    def width(self) -> float:
        """Of the box."""
        return max(_wide(line) for line in self.lines)


@dataclass(slots=True)
class DrawnMessage:
    """One element of a queue: its text, the numbers of the steps that append and remove it, and the ends of its link."""

    text: str
    sent: int
    link: tuple[str, str] | None
    received: int | None = None


@dataclass(slots=True)
class SequenceDiagram:
    """The parts of a diagram before they have places."""

    lanes: list[str]
    links: list[tuple[str, str]]
    steps: list[DrawnStep] = field(default_factory=list)
    messages: list[DrawnMessage] = field(default_factory=list)


def sequence_svg(system: System, trace: Trace, prop: Property | None = None) -> str:
    """The trace as SVG. The box of the last step is red if `prop` is violated there, green for a witness."""
    diagram = sequence_of(system, trace)
    title = system.name if system.variant is None else f"{system.name}, variant {system.variant}"
    title = title if prop is None else f"{title}: {prop.name}"
    last = "bad"
    if prop is None or trace.loop is not None:
        last = "box"
    elif prop.kind is Kind.REACHABLE:
        last = "good"
    return _drawn(diagram, title, last, trace.loop)


# --- reading the trace


def sequence_of(system: System, trace: Trace) -> SequenceDiagram:
    """The lifelines, steps and messages of a trace."""
    names = _indices(system)
    links = {name: pair for name in names if (pair := _ends(name, names))}
    ends = list(dict.fromkeys(end for both in links.values() for end in both))
    own = Processes(system)
    used = {process for step in trace.steps for process in own.of(step)[:1]}
    processes = dict.fromkeys(process for i in system.instances for process in own.of(i)[:1] if process in used)
    lanes = sorted(ends, key=names.index) if ends else list(processes)
    diagram = SequenceDiagram(lanes, list(dict.fromkeys(links.values())))
    outside = system.name
    for number, instance in enumerate(trace.steps):
        after = trace.states[number + 1] if number + 1 < len(trace.states) else trace.states[trace.loop or 0]
        shown: list[str] = []
        received: list[tuple[str, str | None]] = []
        for change in changes(system, trace.states[number], after):
            if not isinstance(look(system, change.place, after).sort, QueueSort):
                shown.append(str(change))
                continue
            received += _messages(system, trace, number, after, change, links, diagram.messages)
        taken_by = (
            _lane(instance, ends, links, {end for _, end in received}) if ends else next(iter(own.of(instance)), None)
        )
        lane = taken_by or outside
        lines = [f"{number + 1}. {instance.label}", *shown]
        if len(lines) > MAX_LINES + 1:
            lines = [*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES} more"]
        diagram.steps.append(DrawnStep(lane, [visible(line) for line in lines]))
    if any(step.lane == outside for step in diagram.steps):
        diagram.lanes.insert(0, outside)
    return diagram


def _indices(system: System) -> list[str]:
    """The indices of all arrays of `system`, in order, as texts."""
    found: dict[str, None] = {}
    for variable in system.variables:
        sort = variable.sort
        while isinstance(sort, ArraySort):
            found.update(dict.fromkeys(str(value) for value in values(sort.index)))
            sort = sort.element
    return list(found)


def _ends(name: str, names: list[str]) -> tuple[str, str] | None:
    """The two indices that the index `name` joins."""
    match = _LINK.fullmatch(name)
    return (match[1], match[2]) if match and match[1] in names and match[2] in names else None


def _messages(
    system: System,
    trace: Trace,
    number: int,
    after: tuple[Value, ...],
    change: Change,
    links: dict[str, tuple[str, str]],
    messages: list[DrawnMessage],
) -> Iterator[tuple[str, str | None]]:
    """Enter what a step appends to a queue into `messages`; yields what it removes, with the process that receives it."""
    old, new = (look(system, change.place, state) for state in (trace.states[number], after))
    sort = new.sort
    assert isinstance(sort, QueueSort)
    before, now = ([short_text(sort.element, value) for value in seen.value] for seen in (old, new))
    link = next((links[str(key)] for key in change.place.keys if str(key) in links), None)
    place = str(change.place)
    for text in (Counter(before) - Counter(now)).elements():
        sent = next((m for m in messages if m.text == text and m.received is None and m.link == link), None)
        if sent is not None:
            sent.received = number
        yield place, link[1] if link else None
    for text in (Counter(now) - Counter(before)).elements():
        messages.append(DrawnMessage(text, number, link))


def short_text(sort: Sort, value: Value) -> str:
    """A message in few words: names without their fields, and only the other fields that have no default value."""
    if not isinstance(sort, RecordSort):
        return show(sort, value)
    words = []
    for (name, inner), own in zip(sort.fields, value, strict=True):
        if isinstance(inner, EnumSort):
            words.append(own)
        elif own != default(inner):
            words.append(show(inner, own) if isinstance(sort, TupleSort) else f"{name}={show(inner, own)}")
    return " ".join(words) or show(sort, value)


def _lane(
    instance: Instance, processes: list[str], links: dict[str, tuple[str, str]], receivers: set[str | None]
) -> str | None:
    """The process that takes a step: an argument, or the end of a link that receives something, or its start."""
    arguments = [str(value) for _, value in instance.args]
    for value in arguments:
        if value in processes:
            return value
    for value in arguments:
        if value in links:
            start, end = links[value]
            return end if end in receivers else start
    return None


# --- drawing


def _drawn(diagram: SequenceDiagram, title: str, last: str, loop: int | None) -> str:
    width = {lane: _wide(lane) for lane in diagram.lanes}
    for step in diagram.steps:
        width[step.lane] = max(width[step.lane], *(_wide(line) for line in step.lines))
    at: dict[str, float] = {}
    x = float(_MARGIN)
    for lane in diagram.lanes:
        at[lane] = x + width[lane] / 2
        x += width[lane] + _GAP
    right = max(x, _wide(title) + 2 * _MARGIN) + _MARGIN
    arcs = [(a, b) for a, b in diagram.links if a in at and b in at]
    highest = max((abs(at[a] - at[b]) for a, b in arcs), default=0.0)
    head = 40 + min(highest / 4 + 12, 90) if arcs else 40.0
    y = head + 40
    for step in diagram.steps:
        step.top = y
        y += step.height + _BETWEEN
    bottom = y
    parts = [*_arcs(arcs, at, head), *(_life(lane, at[lane], head, bottom) for lane in diagram.lanes)]
    if loop is not None and diagram.steps[loop:]:
        top = diagram.steps[loop].top - 6
        parts.insert(0, f'<rect class="loop" x="4" y="{top:.0f}" width="{right - 8:.0f}" height="{y - top:.0f}"/>')
        parts.append(_svg_text("", 8, top + 11, "loop"))
    arrows = [_arrow(m, diagram.steps, at, bottom) for m in diagram.messages]
    parts += (line for line, _ in arrows)
    for number, step in enumerate(diagram.steps, 1):
        parts += _box(step, at[step.lane], last if number == len(diagram.steps) else "box")
    parts += (word for _, word in arrows)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right:.0f} {bottom + 10:.0f}" width="{right:.0f}"'
            ' role="img">',
            f"<!-- {GENERATOR} -->",
            f"<title>{escape(visible(title))}</title>",
            f"<style>{_STYLE}</style>",
            f"<defs>{_head('arc', '#6b7a89')}{_head('send', '#1f5fa8')}</defs>",
            '<rect width="100%" height="100%" fill="#fff"/>',
            _svg_text("title", _MARGIN, 22, title),
            *parts,
            "</svg>",
            "",
        )
    )


def _head(of: str, colour: str) -> str:
    return (
        f'<marker id="head-{of}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
    )


def _wide(text: str) -> float:
    return min(len(text), MAX_TEXT) * _LETTER + 16


def _svg_text(kind: str, x: float, y: float, text: str) -> str:
    safe = escape(visible(text))
    if len(text) <= MAX_TEXT or kind == "title":
        return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}">{safe}</text>'
    short = escape(visible(text[: MAX_TEXT - 3]))
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}"><title>{safe}</title>{short}...</text>'


def _arcs(arcs: list[tuple[str, str]], at: dict[str, float], head: float) -> Iterator[str]:
    """The links between processes, as arcs above their names."""
    for a, b in arcs:
        start, end = at[a], at[b]
        if a == b:
            yield (
                f'<path class="arc" marker-end="url(#head-arc)" d="M{start - 8:.0f} {head:.0f}'
                f'C{start - 26:.0f} {head - 34:.0f} {start + 26:.0f} {head - 34:.0f} {start + 8:.0f} {head:.0f}"/>'
            )
            continue
        back = 10 if end < start else 0  # the arc of a link and that of its reverse do not cover each other
        lift = min(abs(end - start) / 3 + 14 + back, 110)
        yield (
            f'<path class="arc" marker-end="url(#head-arc)" d="M{start + 4:.0f} {head:.0f}'
            f'C{start:.0f} {head - lift:.0f} {end:.0f} {head - lift:.0f} {end - 4:.0f} {head:.0f}"/>'
        )


def _life(lane: str, x: float, head: float, bottom: float) -> str:
    wide = _wide(lane)
    return (
        f'<line class="life" x1="{x:.0f}" y1="{head + 22:.0f}" x2="{x:.0f}" y2="{bottom:.0f}"/>'
        f'<rect class="box" x="{x - wide / 2:.0f}" y="{head:.0f}" width="{wide:.0f}" height="22" rx="4"/>'
        + _svg_text("name", x, head + 15, lane)
    )


def _arrow(message: DrawnMessage, steps: list[DrawnStep], at: dict[str, float], bottom: float) -> tuple[str, str]:
    """The line of a message, to the step that removes it, or open, to the end of the diagram; and its text."""
    sent = steps[message.sent]
    here = at[message.link[0] if message.link else sent.lane]
    there = at[message.link[1] if message.link else sent.lane]
    kind, half, end = "send open", 0.0, bottom
    if message.received is not None:
        step = steps[message.received]
        there = at[message.link[1] if message.link else step.lane]
        kind, half, end = "send", step.width / 2, step.middle
    y = sent.middle
    if abs(there - here) > 1:
        side = 1 if there > here else -1
        x, to = here + side * sent.width / 2, there - side * half
        path, middle = f"M{x:.0f} {y:.0f}L{to:.0f} {end:.0f}", x + (to - x) * 0.25
    else:  # to itself: around the steps between
        x, to = here + sent.width / 2, there + half
        out = max(x, to) + 36
        path, middle = f"M{x:.0f} {y:.0f}C{out:.0f} {y:.0f} {out:.0f} {end:.0f} {to:.0f} {end:.0f}", out - 8
    height = y + (end - y) * 0.25 if abs(there - here) > 1 else (y + end) / 2
    return f'<path class="{kind}" marker-end="url(#head-send)" d="{path}"/>', _svg_text(
        "word", middle, height + 4, message.text
    )


def _box(step: DrawnStep, x: float, kind: str) -> Iterator[str]:
    left = x - step.width / 2
    size = f'width="{step.width:.0f}" height="{step.height:.0f}"'
    yield f'<rect class="{kind}" x="{left:.0f}" y="{step.top:.0f}" {size} rx="3"/>'
    for number, line in enumerate(step.lines):
        yield _svg_text("step" if number == 0 else "", left + 8, step.top + _LINE * (number + 1) - 1, line)
