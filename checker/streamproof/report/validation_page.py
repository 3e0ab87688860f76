"""The verdicts of a validation as one HTML file, without scripts and requests: for a rejection the events before it, the
possible states of the model, and why no action explains the event."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from streamproof.conformance.run_verdict import ANSWERS, RunVerdict
from streamproof.pipeline.fields import BadRecord
from streamproof.pipeline.run_history import history_row
from streamproof.report.pages import environment
from streamproof.report.rows import worst_first
from streamproof.report.run_details import MOST_DETAILED, PHASES, detail_of
from streamproof.version import VERSION


def validation_page(verdicts: Sequence[RunVerdict]) -> str:
    """The page: numbers of verdicts, and a section for each of the worst. All text from logs is escaped by the template."""
    rows = [{"run": v.run, "trace": v.trace, "verdict": v.answer, "of": v} for v in verdicts]
    sections = [
        {"verdict": row["of"], "detail": _detail(f"verdict-{number}", row["of"])}
        for number, row in enumerate(worst_first(rows)[:MOST_DETAILED], 1)
    ]
    answers = Counter(verdict.answer for verdict in verdicts)
    counts = [(answer, answers[answer]) for answer in reversed(ANSWERS) if answers[answer]]
    template = environment().get_template("validation.html.j2")
    return template.render(
        sections=sections, counts=counts, total=len(verdicts), findings=sum(bool(v.findings) for v in verdicts),
        phases=PHASES, version=VERSION,
    )  # fmt: skip


def _detail(anchor: str, verdict: RunVerdict) -> dict[str, Any]:
    """What is drawn of a verdict."""
    record = verdict.record()
    try:
        drawn = history_row(record)
    except BadRecord:  # for example times without a date: the rejection is shown without the time line
        drawn = history_row({**record, "history": None, "recoveries": []})
    parts = {"history": None, "restarts": [], "rejection": None} if drawn is None else json.loads(drawn)
    parts["hangs"] = any(finding.kind == "hang" for finding in verdict.findings)
    return detail_of(anchor, {}, parts)
