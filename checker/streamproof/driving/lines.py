"""The result of a drive as lines: coverage, and a difference with model and implementation side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from streamproof.base.text import BLANK, Line, StyledText, aligned, line
from streamproof.conformance.event import Event
from streamproof.driving.drive import Drive, names
from streamproof.driving.following import differing
from streamproof.driving.script_run import Ran
from streamproof.driving.turns import Exchange
from streamproof.system.model import State, System
from streamproof.system.verdict import number_of
from streamproof.traces.places import changes

WIDE = 100
"""Largest number of characters of a table whose columns are side by side."""


def drive_lines(found: Drive) -> Iterator[Line]:
    """The result: a difference, if there is one, then what was driven."""
    system = found.subject.system
    yield line(StyledText(system.heading, "title"), f", driven through {found.adapter}")
    yield BLANK
    if found.shortest is not None and found.difference is not None:
        yield from difference_lines(system, found.shortest)
        calls = len(found.difference.script.calls)
        more = f"; first seen in {found.difference.script.name} after {number_of(calls, 'call')}"
        if not found.again and found.stopped:
            more += f"; not repeated: {found.stopped}"
        elif not found.again:
            more += "; it did not occur again when the script was repeated"
        yield line(f"{number_of(len(found.shortest.script.calls), 'call')}, {number_of(found.shrinking, 'script')} run to "
                   f"shorten it{more}", indent=2)  # fmt: skip
        yield BLANK
    yield from coverage_lines(found)
    for doubt in found.doubts if found.difference is None else ():
        yield line(StyledText("inconclusive: ", "new"), doubt)
    if found.answer == "no difference":
        yield line(StyledText("no difference", "good"), " in what was driven")


def coverage_lines(found: Drive) -> Iterator[Line]:
    """What was driven."""
    coverage, system = found.coverage, found.subject.system
    rows: list[tuple[str, ...]] = [("action", "accepted", "refused", "unsupported")]
    for action in system.actions:
        if action.name in coverage.absent:
            rows.append((action.name, "-", "-", "-"))
        else:
            counts = (coverage.accepted, coverage.refused, coverage.unsupported)
            rows.append((action.name, *(f"{count[action.name]:,}" for count in counts)))
    for cells in aligned(rows, {1, 2, 3}):
        yield line("  ".join(cells), indent=2)
    yield BLANK
    pairs = number_of(len(coverage.pairs), "pair")
    extent = number_of(coverage.scripts, "script"), number_of(coverage.calls, "call")
    states = number_of(found.states, "state")
    if found.reachable is not None:
        states = f"{found.states:,} of {number_of(found.reachable, 'state')}"
    yield line(f"seed {found.seed}: {', '.join(extent)}, {states}, {pairs} of actions")
    yield line(f"{number_of(coverage.values, 'value')} and {number_of(coverage.refusals, 'refusal')} compared")
    unseen = [v.name for v in system.variables if v.name not in coverage.observed]
    if unseen:
        yield line(f"variables never observed: {names(unseen)}", hang=4)
    beyond = found.ends["beyond bounds"]
    if beyond:
        yield line(
            f"{number_of(beyond, 'script')} ended where the implementation left the bounds of this instance", hang=4
        )


def difference_lines(system: System, ran: Ran) -> Iterator[Line]:
    """A difference, with the calls that lead to it."""
    first = ran.message.splitlines()[0]
    yield line(StyledText(f"{_TITLES[ran.ended]}: {first.removeprefix(f'{_TITLES[ran.ended]}: ')}", "failed"))
    for more in ran.message.splitlines()[1:]:
        yield line(more.strip(), indent=2)
    rows = [("", "call", "implementation", "model")]
    before: State | None = None
    for number, (exchange, is_last) in enumerate(_told(ran)):
        last = ran.rejection is not None and is_last
        model = "no behaviour has this" if last else _changes(system, before, exchange)
        before = exchange.states[0] if exchange.states else before
        rows.append((str(number), exchange.asked, _said(exchange, last=last), model))
    yield from _table(rows)
    rejection = ran.rejection
    if rejection is None or not ran.exchanges:
        return
    yield BLANK
    values = list(_differences(system, ran))
    yield from values
    if not values:
        yield line(f"the model: {rejection.message}", indent=2, hang=4)
    for candidate in rejection.candidates:
        if candidate.because != rejection.message and not values:
            yield line(f"{candidate.action}  is not possible: {candidate.because}", indent=2, hang=6)
    if rejection.expected:
        yield line(f"possible here: {', '.join(rejection.expected)}", indent=2, hang=4)


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[Line]:
    """Columns side by side; of wide ones, the model is below the implementation."""
    found = [("  ".join(cells)).rstrip() for cells in aligned(rows, {0})]
    if max(map(len, found)) <= WIDE:
        yield from (line(text, indent=2, hang=6) for text in found)
        return
    width = max(len(row[1]) for row in rows[1:])
    for number, call, implementation, model in rows[1:]:
        yield line(f"{number:>3}  {call:<{width}}  {implementation}", indent=2, hang=9)
        if model:
            yield line(StyledText("model: ", "faint"), model, indent=9, hang=4)


_TITLES = {
    "difference": "difference",
    "error": "the implementation failed",
    "crash": "the adapter ended",
    "hang": "no answer",
    "undecided": "undecided",
    "beyond bounds": "beyond the bounds",
}


def _told(ran: Ran) -> Iterator[tuple[Exchange, bool]]:
    """The exchanges without observations that only confirm, and of each whether it is the last of all."""
    for left, exchange in enumerate(ran.exchanges, 1 - len(ran.exchanges)):
        if exchange.asked != "observe" or not left or any(e.event != "observe" for e in exchange.events):
            yield exchange, not left


def _said(exchange: Exchange, *, last: bool) -> str:
    events = [_event_text(event, last=last) for event in exchange.events if not event.refused]
    if exchange.answer == "accepted" and events and events[-1].partition(":")[0] == exchange.asked:
        events[-1] = "accepted" + events[-1].removeprefix(exchange.asked)
        return "; ".join(events)
    return "; ".join(
        filter(None, (*events, exchange.answer if exchange.answer not in ("accepted", "observed") else ""))
    )


def _event_text(event: Event, *, last: bool) -> str:
    args = ", ".join(f"{name}={value}" for name, value in event.args.items())
    if event.event == "observe":
        return "other values" if last else json.dumps(event.state)
    picks = ", ".join(f"{name}={value}" for name, value in (event.picks or {}).items())
    return f"{event.event}({args})" + (f"[{picks}]" if picks else "")


def _changes(system: System, before: State | None, exchange: Exchange) -> str:
    if not exchange.states:
        return ""
    state = exchange.states[0]
    count = f"{len(exchange.states)} states: " if len(exchange.states) > 1 else ""
    if before is None:
        return count + "initial"
    changed = [str(one) for one in changes(system, before, state)]
    return count + (", ".join(changed) or "unchanged")


def _differences(system: System, ran: Ran) -> Iterator[Line]:
    """The observed values that are not those of the model, leaf by leaf."""
    state = (ran.wrong.state if ran.wrong is not None else None) or {}
    for text, own, given in differing(system, ran.expected, state):
        model = StyledText(" or ".join(own), "good")
        yield line(StyledText(text, "place"), ": model ", model, ", implementation ", StyledText(given, "failed"),
                   indent=2, hang=4)  # fmt: skip
