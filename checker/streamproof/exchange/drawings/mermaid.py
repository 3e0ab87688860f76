"""Sequence diagrams as Mermaid text, which GitHub, GitLab and many editors draw; see `sequence`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamproof.base.text import visible
from streamproof.exchange.drawings.sequence import sequence_of
from streamproof.system.model import System
from streamproof.system.verdict import Trace

_SPECIAL = re.compile(r"[^\w .,:()\[\]{}=+*/'!?|@-]")


def mermaid_text(system: System, trace: Trace) -> str:
    """The trace as a Mermaid sequence diagram: a participant for each process, a note for each step with its changes, an
    arrow for each message, at the step that removes it."""
    return "\n".join(_lines(system, trace)) + "\n"


def _lines(system: System, trace: Trace) -> Iterator[str]:
    diagram = sequence_of(system, trace)
    names = {lane: f"P{number}" for number, lane in enumerate(diagram.lanes)}
    yield "sequenceDiagram"
    for lane, name in names.items():
        yield f"    participant {name} as {_safe(lane)}"
    looping = trace.loop is not None and not trace.stutters
    for number, step in enumerate(diagram.steps):
        if looping and number == trace.loop:
            yield "    loop forever"
        here = names[step.lane]
        for message in (m for m in diagram.messages if m.received == number):
            ends = message.link or (diagram.steps[message.sent].lane, step.lane)
            yield f"    {names[ends[0]]}->>{names[ends[1]]}: {_safe(message.text)}"
        yield f"    Note over {here}: {'<br/>'.join(map(_safe, step.lines))}"
        for message in (m for m in diagram.messages if m.sent == number and m.received is None):
            ends = message.link or (step.lane, step.lane)
            yield f"    {names[ends[0]]}-){names[ends[1]]}: {_safe(message.text)} (not received)"
    if looping:
        yield "    end"


def _safe(text: str) -> str:
    """Text without a meaning in Mermaid: other characters as their numbers; "end" alone would end a block."""
    shown = _SPECIAL.sub(lambda found: f"#{ord(found[0])};", visible(text))
    return re.sub(r"\bend\b", "#101;nd", shown)
