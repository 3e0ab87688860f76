"""The differences between two systems as styled lines, as Markdown for a review, and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from streamproof.base.text import BLANK, Line, Style, StyledText, aligned, line, visible
from streamproof.difference.behaviours import ACTIONS, ENDS, INITIAL, MISTAKE, STATES, Divergence
from streamproof.difference.comparing import ModelDifference, VerdictPair
from streamproof.system.verdict import Finding, Trace, Verdict, number_of

LAST_STEPS = 6
"""Number of steps of a behaviour that are shown."""
_STYLES: dict[str, Style] = {"violated": "failed", "error": "failed", "holds": "good"}


def summary(found: ModelDifference) -> str:
    """The outcome in one line."""
    parts = []
    changed = sum(pair.differs for pair in found.verdicts)
    if changed:
        parts.append(f"{number_of(changed, 'verdict')} {'differs' if changed == 1 else 'differ'}")
    for count, what in (
        (sum(pair.is_new for pair in found.verdicts), "new"),
        (sum(pair.restated for pair in found.verdicts), "restated"),
    ):
        if count:
            parts.append(f"{number_of(count, 'property', 'properties')} {what}")
    for what, some in (("gained", found.behaviours.gained), ("lost", found.behaviours.lost)):
        if some:
            parts.append(f"behaviours {what} by {', '.join(dict.fromkeys(_subject(one) for one in some))}")
    if found.fairness:
        parts.append("fairness differs")
    if found.stopped is not None:
        parts.append(found.stopped)
    if parts:
        differ = found.verdicts_differ or found.behaviours_differ or found.properties_differ
        return ("differ: " if differ else "inconclusive: ") + "; ".join(parts)
    return f"equal: the same properties and verdicts, fairness constraints and finite behaviours, {seen_through(found)}"


def _subject(one: Divergence) -> str:
    return {INITIAL: "an initial state", ENDS: "a terminal state"}.get(one.action, one.action)


def seen_through(found: ModelDifference) -> str:
    """What is compared of a behaviour."""
    names = found.common
    every = "all variables" if not found.variables else ", ".join(names) if names else "no variable"
    if found.view == ACTIONS:
        return "seen as labels of steps"
    return f"seen as {every}" if found.view == STATES else f"seen as labels of steps and {every}"


def _verdict(finding: Finding | None, text: str) -> str:
    """A verdict with the length of the behaviour that shows it."""
    if finding is None or finding.trace is None:
        return text
    return f"{text} after {number_of(len(finding.trace.steps), 'step')}"


def _row(pair: VerdictPair) -> tuple[str, str, str, str]:
    one, other = pair.texts
    note = "restated" if pair.restated else "new" if pair.before is None else ""
    return pair.name, _verdict(pair.before, one), _verdict(pair.after, other), note


def _path(labels: Sequence[str]) -> str:
    shown = ["...", *labels[-LAST_STEPS:]] if len(labels) > LAST_STEPS else labels
    return ", ".join(shown)


def _where(labels: Sequence[str]) -> str:
    return f"after {number_of(len(labels), 'step')}: {_path(labels)}" if labels else "in an initial state"


def _told(one: Divergence) -> tuple[str, str]:
    """The beginning that both have, and what only one does then."""
    if one.what == INITIAL:
        return "", "begins in an initial state of its own"
    if one.what == ENDS:
        return _where(one.before), "may end"
    if one.what == MISTAKE:
        return _where(one.before), f"{one.action} is an evaluation error"
    return _where(one.before), f"{one.what} changes {one.does}"


def _facts(found: ModelDifference) -> Iterator[tuple[str, str]]:
    """Further differences: what they are about, and a sentence."""
    for title, only in (
        ("variables", found.variables),
        ("actions", found.actions),
        ("actions taken", found.taken),
        ("fairness", found.fairness),
    ):
        for when, names in (("before", only.before), ("after", only.after)):
            if names:
                yield title, f"only {when}: {', '.join(names)}"
    states = found.states
    if states is not None and (states.vanished or states.appeared):
        yield "states", f"{states.both:,} in both, {states.vanished:,} only before, {states.appeared:,} only after"
        for when, trace in (("before", states.to_vanished), ("after", states.to_appeared)):
            if trace is not None:
                yield "", f"first one only {when}: {_where([step.label for step in trace.steps])}"


def _headings(found: ModelDifference, base: str | None) -> tuple[str, str]:
    at = "" if base is None else f" at {base}"
    return found.before.system.heading + at, found.after.system.heading


def difference_lines(found: ModelDifference, base: str | None = None) -> Iterator[Line]:
    """The differences for a console; `base` is the commit of the model before."""
    for when, heading in zip(("before", "after"), _headings(found, base), strict=True):
        yield line(StyledText(f"{when:<8}", "faint"), StyledText(heading, "title"), hang=8)
    if found.verdicts:
        rows = [("property", "before", "after", ""), *map(_row, found.verdicts)]
        yield BLANK
        head, *texts = aligned(rows)
        yield line(StyledText("  ".join(head).rstrip(), "faint"), indent=2)
        for pair, (name, one, other, note) in zip(found.verdicts, texts, strict=True):
            style: Style = (
                _STYLES.get(pair.texts[1].partition(" ")[0].rstrip(","), "plain") if pair.differs else "plain"
            )
            yield line(f"{name}  {one}  ", StyledText(other, style), f"  {note}".rstrip(), indent=2)
    for title, some, has, lacks in _sides(found):
        yield BLANK
        yield line(StyledText(title, "title"), StyledText(f"  {seen_through(found)}", "faint"))
        for lacking in some:
            beginning, then = _told(lacking)
            if beginning:
                yield line(beginning, indent=2, hang=4)
            yield line(f"{has}: ", StyledText(then, "new"), indent=4, hang=6)
            yield line(f"{lacks}: {lacking.why}", indent=4, hang=6)
    facts = list(_facts(found))
    if facts:
        yield BLANK
        for title, text in facts:
            yield line(StyledText(f"{title:<14}", "title"), text, indent=2, hang=16)
    yield BLANK
    yield line(summary(found))


def _sides(found: ModelDifference) -> Iterator[tuple[str, tuple[Divergence, ...], str, str]]:
    for title, some, has, lacks in (
        ("behaviours gained", found.behaviours.gained, "after", "before"),
        ("behaviours lost", found.behaviours.lost, "before", "after"),
    ):
        if some:
            yield title, some, has, lacks


# --- Markdown


def _code(text: str) -> str:
    """Text as code of a Markdown line, whatever characters it has."""
    shown = re.sub(r"\s+", " ", visible(text)).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if "`" in shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def difference_markdown(found: ModelDifference, base: str | None = None) -> str:
    """The differences as Markdown, for a comment on a change; `base` is the commit of the model before."""
    lines = [f"### {' → '.join(map(_code, _headings(found, base)))}", ""]
    lines += [f"**{_code(summary(found))}**", ""]
    if found.verdicts:
        lines += ["| property | before | after | |", "|---|---|---|---|"]
        for pair in found.verdicts:
            name, one, other, note = _row(pair)
            after = f"**{other}**" if pair.differs else other
            lines.append(f"| {_code(name)} | {one} | {after} | {note} |")
        lines.append("")
    for title, some, has, lacks in _sides(found):
        lines += [f"**{title}** ({_code(seen_through(found))})", ""]
        for lacking in some:
            beginning, then = _told(lacking)
            start = f"{_code(beginning)} " if beginning else ""
            lines.append(f"- {start}only {has}: {_code(then)}; {lacks}: {_code(lacking.why)}")
        lines.append("")
    facts = list(_facts(found))
    lines += [f"- {title + ': ' if title else ''}{_code(text)}" for title, text in facts]
    return "\n".join(lines).rstrip() + "\n"


# --- JSON


def _labels(trace: Trace | None) -> list[str] | None:
    return None if trace is None else [step.label for step in trace.steps]


def _finding(finding: Finding | None) -> dict[str, Any] | None:
    if finding is None:
        return None
    return {
        "verdict": finding.verdict.value,
        "text": finding.text(),
        "because": finding.because,
        "steps": None if finding.verdict is Verdict.HOLDS else _labels(finding.trace),
    }


def _divergence(one: Divergence) -> dict[str, Any]:
    return {
        "action": one.action,
        "behaviour": list(one.before),
        "then": one.what,
        "changes": one.does,
        "otherwise": one.why,
    }


def difference_json(found: ModelDifference) -> dict[str, Any]:
    """The differences as JSON data, without the schema."""
    states = found.states
    return {
        "summary": summary(found),
        "view": found.view,
        "common_variables": list(found.common),
        "verdicts": [
            {
                "name": pair.name,
                "before": _finding(pair.before),
                "after": _finding(pair.after),
                "differs": pair.differs,
                "restated": pair.restated,
            }
            for pair in found.verdicts
        ],
        "gained": [_divergence(one) for one in found.behaviours.gained],
        "lost": [_divergence(one) for one in found.behaviours.lost],
        "compared": found.behaviours.nodes,
        "stopped": found.stopped,
        "states": None
        if states is None
        else {
            "both": states.both,
            "only_before": states.vanished,
            "only_after": states.appeared,
            "to_one_before": _labels(states.to_vanished),
            "to_one_after": _labels(states.to_appeared),
        },
        **{
            name: {"only_before": list(only.before), "only_after": list(only.after)}
            for name, only in (
                ("variables", found.variables),
                ("actions", found.actions),
                ("actions_taken", found.taken),
                ("fairness", found.fairness),
            )
        },
    }
