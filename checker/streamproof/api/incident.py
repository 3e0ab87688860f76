"""`incident`: what happened to each job in the logs of a cluster, why, and whether it was right."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from streamproof.api.validate import Validation
from streamproof.base.errors import Exit, InputError
from streamproof.base.records import dataclass
from streamproof.conformance.found_runs import ALL
from streamproof.conformance.incident import SCHEMA, Incident, incidents
from streamproof.conformance.run_verdict import RunVerdict
from streamproof.conformance.validation import validate_paths
from streamproof.version import VERSION


@dataclass(frozen=True, slots=True)
class Incidents:
    """What happened to the jobs of a folder, with all verdicts on it."""

    incidents: tuple[Incident, ...]
    verdicts: tuple[RunVerdict, ...]

    @property
    def exit_code(self) -> Exit:
        """That of a validation with all models, and 13 if a job hangs."""
        code: Exit = Validation(self.verdicts).exit_code
        hangs = code in (Exit.HOLDS, Exit.INCONCLUSIVE) and any(incident.hangs for incident in self.incidents)
        return Exit.LIVENESS if hangs else code

    def record(self) -> dict[str, Any]:
        """The JSON that ``streamproof incident --json`` writes."""
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "exit_code": int(self.exit_code),
            "incidents": [incident.record() for incident in self.incidents],
        }


def incident(folder: str | PathLike[str], *, on_progress: Callable[[str], None] = lambda _: None) -> Incidents:
    """What happened to each job in the logs under a folder, in order: causes, decisions, restored state, lost work.

    Raises `InputError` if there is no job in them.
    """
    verdicts = tuple(validate_paths([Path(folder)], model=ALL, on_progress=on_progress, workers=None))
    found = incidents(verdicts)
    if not found:
        raise InputError(f"no job was found in {folder}", remedy="name a folder with the logs of a JobManager")
    return Incidents(found, verdicts)
