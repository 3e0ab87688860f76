"""The explanation of incidents as one HTML file, without scripts and requests: what happened, job graphs, time lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import metadata

from streamproof.conformance.incident import Incident, incident_lines
from streamproof.pipeline.fields import BadRecord
from streamproof.pipeline.run_history import history_row
from streamproof.report.behaviour import styled_html
from streamproof.report.pages import environment
from streamproof.report.run_details import PHASES, detail_of
from streamproof.version import VERSION


def incident_page(found: Sequence[Incident]) -> str:
    """The page: a section for each job. All text from logs is escaped by the template."""
    sections = []
    for number, incident in enumerate(found, 1):
        main = next((v for v in incident.verdicts if v.history is not None), None)
        try:
            drawn = None if main is None else history_row(main.record())
        except BadRecord:  # for example times without a date: the text says them as they are
            drawn = None
        parts = {} if drawn is None else json.loads(drawn)
        parts["hangs"] = any(f.kind == "hang" for v in incident.verdicts for f in v.findings)
        detail = None if drawn is None else detail_of(f"job-{number}", {}, parts)
        lines = styled_html(incident_lines([incident]))
        sections.append({"incident": incident, "lines": lines, "detail": detail, "designed": incident.designed})
    template = environment().get_template("incident.html.j2")
    return template.render(sections=sections, phases=PHASES, version=VERSION, documentation=_documentation())


def _documentation() -> str:
    """The address of the documentation, from the package; a folder without it."""
    urls = [url.split(", ", 1) for url in metadata("streamproof").get_all("Project-URL") or ()]
    return next((url for name, url in urls if name == "Documentation"), "docs")
