"""`validate`: check recorded runs of an implementation against models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamproof.base.errors import Exit, UsageError
from streamproof.base.options import flag
from streamproof.base.records import dataclass
from streamproof.conformance.coverage import JudgedEvents
from streamproof.conformance.run_verdict import Answer, RunVerdict
from streamproof.conformance.validation import validate_paths, verdicts_on
from streamproof.conformance.verdict_counts import VerdictCounts

if TYPE_CHECKING:
    from streamproof.api.subject import Subject
    from streamproof.conformance.binding import Binding


@dataclass(frozen=True, slots=True)
class ValidationOptions:
    """The options of a validation."""

    job_graph: Path | None = flag(
        "Job graph of the runs, if they do not contain it.", unit="FILE", path={"exists": True}
    )
    """The job graph of the runs, if they do not contain it."""
    pattern: str | None = flag(
        "Pattern of the logs' lines in log4j or logback. Default: by the lines, or by a log4j or logback file beside them.",
        unit="TEXT",
    )
    """The pattern of the logs' lines in log4j or logback; None: by the lines, or by a configuration file beside them."""
    events: Path | None = flag("Also write the events of each run to DIR.", unit="DIR")
    """A folder for the events of each run."""
    events_format: str = flag("Format of the event files.", "--format", choices=("ndjson", "parquet"))
    """The format of these files: ``ndjson`` or ``parquet``."""
    workers: int | None = flag(
        "Number of processes. Default: one, or one for each processor if the logs are large.", default=1
    )
    """Number of processes; None: one, or one for each processor if the logs are large."""
    coverage: bool = flag(
        "Also print the share of each family of events that some model judged, and the actions that no run took.",
        default=False,
    )
    """Count the events that some model judged."""


@dataclass(frozen=True, slots=True)
class Validation:
    """The verdicts on recorded runs, one for each job or channel and model."""

    verdicts: tuple[RunVerdict, ...]
    judged: JudgedEvents | None = None
    """The events that some model judged, if they were counted."""

    @property
    def recorded(self) -> tuple[RunVerdict, ...]:
        """Without those of a model of which the run has no record, if the run has records of another one."""
        return tuple(verdict for verdict in self.verdicts if not verdict.unrecorded)

    @property
    def answer(self) -> Answer:
        """The overall answer: rejected before error before inconclusive before accepted."""
        return self.counts.answer

    @property
    def exit_code(self) -> Exit:
        """The exit code of `streamproof validate`."""
        return self.counts.exit_code

    @property
    def counts(self) -> VerdictCounts:
        """Numbers of verdicts."""
        return VerdictCounts.of(self.verdicts)


def validate(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    model: Subject | Binding | None = None,
    *,
    variant: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    options: ValidationOptions | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Validation:
    """Follows the runs recorded under `paths` through a model, as `streamproof validate` does.

    `model` is a name as for `--model`, ``all``, or None: by the files. For event logs it may also be a model class, a `Spec`,
    a `System` or a binding; options do not apply then. `variant` and `parameters` are those of the model of an event log. An
    accepted run can have findings, such as a hang.

    Raises `InputError` for a path without a run, `UsageError` for an unknown model, and `SystemFailure` if the events
    cannot be written.
    """
    places = [Path(paths)] if isinstance(paths, str | PathLike) else [Path(path) for path in paths]
    chosen = ValidationOptions() if options is None else options
    if model is not None and not isinstance(model, str):
        if options is not None or parameters:
            raise UsageError(
                "options and parameters need the name of a model", remedy="give the model with its parameters"
            )
        return Validation(tuple(verdict for place in places for verdict in verdicts_on(place, model, variant)))
    if model in (None, "all") and (parameters or variant is not None):
        what = "a variant needs" if variant is not None else "parameters need"
        raise UsageError(f"{what} a model", remedy="name the model of the event logs")
    judged = JudgedEvents() if chosen.coverage else None
    verdicts = validate_paths(
        places,
        model=model,
        job_graph=chosen.job_graph,
        events_dir=chosen.events,
        events_format=chosen.events_format,
        pattern=chosen.pattern,
        coverage=judged,
        on_progress=on_progress,
        workers=chosen.workers,
        parameters=[f"{name}={value}" for name, value in (parameters or {}).items()],
        variant=variant,
    )
    return Validation(tuple(verdicts), judged)
