"""Graphviz: the frontier of rejections, what the model allows before a rejected event and how far the event gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from streamproof.conformance.run_verdict import RunVerdict
from streamproof.exchange.drawings.dot import HEAD, box, quoted

NONE = "no event was rejected"
LONGEST = 100
"""Largest number of characters shown of a variable's value, or of a reason."""


def frontier_dot(verdicts: Sequence[RunVerdict]) -> str:
    """One cluster for each rejection with a frontier: the accepted prefix, the states consistent with it, the actions of
    the event that they allow, and in red the conditions that are false. One node says so if nothing was rejected."""
    lines = ['digraph "frontier" {', *(text.format(rankdir="LR") for text in HEAD), '  label="rejected events";']
    if not any(verdict.rejection for verdict in verdicts):
        answers = Counter(verdict.answer for verdict in verdicts)
        lines.append(box("none", [NONE, ", ".join(f"{count} {answer}" for answer, count in answers.items())], []))
    for number, verdict in enumerate(verdicts):
        rejection = verdict.rejection
        if rejection is None:
            continue
        name = ", ".join(filter(None, (verdict.run, verdict.trace, verdict.model)))
        lines += [f"  subgraph cluster_{number} {{", f"    label={quoted(name)};"]
        event, root = str(rejection.event) if rejection.event else "the end of the log", f"r{number}"
        place = f"{rejection.event.file}:{rejection.event.line}" if rejection.event and rejection.event.file else ""
        lines.append(
            box(
                root,
                [
                    f"accepted: {rejection.index} event{'' if rejection.index == 1 else 's'}",
                    f"then {event}",
                    place,
                    rejection.message,
                ],
                [],
            )
        )
        if rejection.frontier is not None:
            lines += _frontier(verdict, root)
        lines.append("  }")
    return "\n".join((*lines, "}", ""))


def _frontier(verdict: RunVerdict, root: str) -> list[str]:
    rejection = verdict.rejection
    assert rejection is not None
    assert rejection.frontier is not None
    found: dict[tuple[int, tuple[str, ...]], str] = {}
    lines: list[str] = []
    shown = rejection.frontier.states
    for number, state in enumerate(shown):
        found[number, ()] = f"{root}s{number}"
        title = f"state {number + 1} of {rejection.states}"
        lines.append(box(found[number, ()], [title, *(_cut(text) for text in state)], []))
        lines.append(f"  {root} -> {found[number, ()]};")
    for at, match in enumerate(rejection.frontier.matches):
        for length in range(1, len(match.taken) + 1):
            key = (match.state, match.taken[:length])
            if key not in found:
                found[key] = f"{root}p{len(found)}"
                lines.append(box(found[key], [f"after {match.taken[length - 1]}"], ['fillcolor="#d0ecd0"']))
                lines.append(f"  {found[match.state, match.taken[: length - 1]]} -> {found[key]};")
        end = f"{root}x{at}"
        lines.append(
            box(end, [*([f"not {match.then}"] if match.then else []), _cut(match.because)], ['fillcolor="#f8d0d0"'])
        )
        lines.append(f"  {found[match.state, match.taken]} -> {end} [style=dashed];")
    return lines


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
