"""``streamproof incident``: what happened in a recorded run, why, and whether it was right."""

from __future__ import annotations

from pathlib import Path

import click

from streamproof.api.incident import incident
from streamproof.base.files import PAGE, expect_writable, write
from streamproof.base.options import flag
from streamproof.base.records import dataclass
from streamproof.cli.arguments import argument, json_flag, verb
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.conformance.incident import SCHEMA, incident_lines
from streamproof.report.console import print_lines


@dataclass(frozen=True, slots=True)
class IncidentArguments:
    """The arguments of the verb."""

    folder: Path = argument(type=click.Path(path_type=Path, exists=True))
    html: Path | None = flag("Also write the explanation as a page, with job graph and time line.", unit="FILE")
    json_to: str | None = json_flag()


@verb("incident", IncidentArguments, example="streamproof incident logs/ --html incident.html")
def command(given: IncidentArguments) -> int:
    """Explain what happened to each job in the logs under FOLDER: causes, decisions, restored state, lost work, in order.

    For each decision it says which tasks restarted and why, how long it took, and whether the protocol requires it. The
    exit codes are those of validate with all models, and 13 if a job hangs: 0 if every model accepts what it judges, 161
    after a rejection, 160 where something could not be judged.
    """
    expect_json_writable(given.json_to, SCHEMA)
    if given.html is not None:
        expect_writable(given.html, PAGE)
    with Status() as status:
        found = incident(given.folder, on_progress=status)
    write_json(found.record(), given.json_to)
    if given.html is not None:
        from streamproof.report.incident_page import incident_page  # templates are not needed otherwise

        write(given.html, incident_page(found.incidents), PAGE)
    print_lines(incident_lines(found.incidents), people(given.json_to))
    return found.exit_code
