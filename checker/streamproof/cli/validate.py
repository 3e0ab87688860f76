"""``streamproof validate``: check recorded runs of an implementation against a model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

from streamproof import __version__
from streamproof.api.validate import Validation, ValidationOptions
from streamproof.base.errors import Exit, InputError, UsageError
from streamproof.base.files import DOT, PAGE, expect_writable, write
from streamproof.base.optional import expect_pyarrow
from streamproof.base.options import flag
from streamproof.base.records import dataclass
from streamproof.base.text import visible
from streamproof.cli.arguments import argument, is_given, json_flag, part, verb
from streamproof.cli.outputs import STANDARD, CiFiles, Status, expect_json_writable, people, write_json
from streamproof.cli.selection import complete_variants
from streamproof.cli.verbs import Option
from streamproof.conformance.coverage import JudgedEvents
from streamproof.conformance.flink.layouts import with_pattern
from streamproof.conformance.found_runs import FoundRun, ValidationRequest, found_runs, judge_found
from streamproof.conformance.incident import explanation_lines, incidents
from streamproof.conformance.piped import STANDARD_INPUT, follow_piped, piped_log
from streamproof.conformance.run_verdict import RunVerdict
from streamproof.conformance.validation import validate_paths
from streamproof.conformance.verdict_lines import case_lines, coverage_lines, verdict_lines
from streamproof.entries import BINDINGS, BINDINGS_ON_REQUEST, every
from streamproof.interrupts import stopped_first
from streamproof.report.console import print_lines
from streamproof.selection import expect_once
from streamproof.system.verdict import number_of

SCHEMA = "streamproof.validate/1"


class _Runs(click.Path):
    """A path that exists, or a pattern, which the reader of runs expands."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, the pattern without expansion, or the path of standard input."""
        is_kept = str(value) == STANDARD or any(c in str(value) for c in "*?[")
        return Path(value) if is_kept else super().convert(value, param, ctx)


class _Model(Option):
    """An option whose help names the models that have a binding."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The option and its help."""
        names = sorted([*every(BINDINGS), *every(BINDINGS_ON_REQUEST)])
        models = dict.fromkeys(name.partition(":")[0] for name in names)
        self.help = (self.help or "").format(", ".join(models) or "none is installed")
        return super().get_help_record(ctx)


USUAL = ValidationOptions(workers=None)
"""The options that are not given."""


@dataclass(frozen=True, slots=True)
class ValidateArguments:
    """The arguments of the verb."""

    paths: tuple[Path, ...] = argument(nargs=-1, required=True, type=_Runs(path_type=Path, exists=True))
    model: str | None = flag(
        "Model to check the runs against: {}; for event logs any model, file.py too; or all. Default: by the files.",
        unit="NAME",
        cls=_Model,
    )
    variant: str | None = flag(
        "A variant of the model for event logs, instead of the model itself.",
        unit="NAME",
        shell_complete=complete_variants,
    )
    parameters: tuple[str, ...] = flag(
        "A parameter of the model for event logs: a size of the implementation. May be repeated.",
        "-p",
        unit="NAME=VALUE",
    )
    options: ValidationOptions = part(ValidationOptions, usual=USUAL)
    master: str | None = flag("Validate on Spark, one task for each run: local[*], spark://...", unit="URL")
    verdicts: Path | None = flag(
        "With --master: the workers write the verdicts to DIR, for `report`; only their numbers come back.", unit="DIR"
    )
    dot: Path | None = flag(
        "Draw the states before each rejected event, and how far the event gets from each.", unit="FILE"
    )
    html: Path | None = flag(
        "Also write a page: for a rejection the events before it, the possible states, and why none explains the event.",
        unit="FILE",
    )
    explain: bool = flag(
        "Also print what happened to each job, and for each restart which tasks it restarted, and why."
    )
    min_judged: float | None = flag(
        "End with 160 if some model judged a smaller share of the events.",
        unit="PERCENT",
        type=click.FloatRange(0, 100),
    )
    fail_on_finding: bool = flag("End with 13 if an accepted run has a finding, such as a hang.")
    json_to: str | None = json_flag()
    ci: CiFiles = part(CiFiles)


@verb(
    "validate",
    ValidateArguments,
    example="streamproof validate runs/*/ --json verdicts.json --events events",
)
def command(given: ValidateArguments) -> int:
    """Follow the runs recorded under PATHS through a model, and report for each job or channel whether the model allows it.

    The path - is standard input, a log that is still written: rejections are printed as they happen, and the whole verdict at
    the end of the input, or after Ctrl-C.

    Ends with 0 when all are accepted. Otherwise ends with 161 when one is rejected, else with 153 when the validation of
    one failed (with 75 or 150 if the model has a mistake, with 2 if a log of several in a folder cannot be read), else with
    160. An accepted run can have findings, such as a hang.
    """
    options, master, json_to, dot = given.options, given.master, given.json_to, given.dot
    counting = options.coverage or given.min_judged is not None
    if options.events is None and is_given("events_format"):
        raise UsageError("--format requires --events", remedy="add --events DIR")
    if options.events_format == "parquet":
        expect_pyarrow("--format parquet")
    if master and counting:
        raise UsageError("--coverage and --min-judged are not supported with --master", remedy="leave out --master")
    if master and options.workers is not None:
        raise UsageError("--workers is not supported with --master", remedy="leave out --workers")
    if given.model in (None, "all") and (given.parameters or given.variant is not None):
        option = "-p" if given.variant is None else "--variant"
        raise UsageError(f"{option} requires --model", remedy="name the model of the event logs")
    expect_json_writable(json_to, SCHEMA)
    if options.events is not None:
        expect_writable(options.events, None)
    if given.verdicts is not None:
        return _to_folder(given, given.verdicts)
    if dot is not None:
        expect_writable(dot, DOT)
    if given.html is not None:
        expect_writable(given.html, PAGE)
    counted = JudgedEvents() if counting else None
    request = _request(given)
    if Path(STANDARD) in given.paths:
        return _piped(given, counted, request)
    with Status() as status:
        if master:
            verdicts = _on_spark(given.paths, ValidationRequest(**request), master, status)
        else:
            verdicts = validate_paths(
                list(given.paths), coverage=counted, workers=options.workers, on_progress=status, **request
            )
    return _answered(given, verdicts, counted)


def _piped(given: ValidateArguments, counted: JudgedEvents | None, request: dict[str, Any]) -> int:
    """Validation of standard input."""
    if len(given.paths) > 1:
        raise UsageError("- is standard input, and there are other paths", remedy="give - alone")
    if given.master:
        raise UsageError("- is not supported with --master", remedy="leave out --master")
    stream = people(given.json_to)

    def report(verdict: RunVerdict, lines: int) -> None:
        stream.write(f"after {number_of(lines, 'line')}:\n")
        print_lines(case_lines(verdict), stream)
        stream.flush()

    with piped_log() as log:
        # A signal ends the input; one that comes after its end does not take the verdicts that are known then.
        with stopped_first(log.stop, by_term=True):
            verdicts = follow_piped(log, ValidationRequest(**request, covered=counted is not None), report)
            if log.torn:
                sys.stderr.write("streamproof: warning: the input ends within a line, which is left out\n")
            if verdicts:
                return _answered(given, verdicts, counted)
        with Status() as status:
            verdicts = validate_paths(
                [STANDARD_INPUT], coverage=counted, workers=given.options.workers, on_progress=status, **request
            )
        return _answered(given, verdicts, counted)


def _answered(given: ValidateArguments, verdicts: list[RunVerdict], counted: JudgedEvents | None) -> int:
    """Writes and prints the verdicts; returns the exit code."""
    options, json_to, dot = given.options, given.json_to, given.dot
    if not verdicts:
        raise InputError("no run was found", remedy="name folders with the logs of runs")
    validation = Validation(tuple(verdicts))
    code = validation.exit_code
    if code == Exit.HOLDS and given.fail_on_finding and any(verdict.findings for verdict in verdicts):
        code = Exit.LIVENESS
    least = given.min_judged
    if code == Exit.HOLDS and counted is not None and least is not None and counted.percent < least:
        code = Exit.INCONCLUSIVE
    records = [verdict.record() for verdict in verdicts]
    document = {"schema": SCHEMA, "version": __version__, "exit_code": int(code), "verdicts": records}
    if counted is not None:
        document["coverage"] = counted.record()
    write_json(document, json_to)
    given.ci.write(document, json_to)
    if dot is not None:
        from streamproof.conformance.frontier import NONE, frontier_dot  # which checks the runs again

        write(dot, frontier_dot(verdicts), DOT)
        if not any(verdict.rejection for verdict in verdicts):
            sys.stderr.write(f"streamproof: warning: {visible(str(dot))} has no states: {NONE}\n")
    if given.html is not None:
        from streamproof.report.validation_page import validation_page  # templates are not needed otherwise

        write(given.html, validation_page(validation.recorded), PAGE)
    print_lines(verdict_lines(verdicts, validation.recorded, explain=given.explain), people(json_to))
    if given.explain:
        print_lines(explanation_lines(incidents(validation.recorded)), people(json_to))
    if counted is not None:
        print_lines(coverage_lines(counted, verdicts, least, whole=options.coverage), people(json_to))
    return code


def _request(given: ValidateArguments) -> dict[str, Any]:
    options = given.options
    return {
        "model": given.model,
        "job_graph": options.job_graph,
        "pattern": options.pattern,
        "events_dir": options.events,
        "events_format": options.events_format,
        "parameters": tuple(expect_once(given.parameters)),
        "variant": given.variant,
    }


COLLECTED = 10_000
"""Maximum number of runs whose verdicts are collected from the workers of a cluster."""


def _on_spark(paths: Sequence[Path], request: ValidationRequest, master: str, status: Status) -> list[RunVerdict]:
    from streamproof.pipeline import spark_validation

    runs = _runs_for_spark(paths, request, master)
    if len(runs) > COLLECTED:
        raise UsageError(
            f"{len(runs):,} runs have too many verdicts for one process (at most {COLLECTED:,})",
            remedy="let the workers write them with --verdicts DIR, and report on that folder",
        )
    return spark_validation.validate_many(runs, partial(_from, Path.cwd(), request), master, status)


def _runs_for_spark(paths: Sequence[Path], request: ValidationRequest, master: str) -> list[FoundRun]:
    from streamproof.pipeline import session

    session.expect_master(master)  # before the runs are read, which may take long
    with with_pattern(request.pattern):
        return [run for run, _ in found_runs(paths, request, str(uuid4()))]


def _to_folder(given: ValidateArguments, folder: Path) -> int:
    """Validation by workers that write the verdicts."""
    if given.master is None:
        raise UsageError("--verdicts requires --master", remedy="give --json FILE, or --master URL")
    if given.dot or given.html or given.explain or given.ci.junit or given.ci.sarif or given.ci.annotations:
        raise UsageError(
            "--verdicts collects no verdicts for --dot, --html, --explain, --junit, --sarif and --annotations",
            remedy="leave them out, and make a page of the folder: streamproof report DIR --out OUT",
        )
    expect_writable(folder, None)
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(
            f"{folder} is not empty", remedy="name a new folder: verdicts of other runs would be among these"
        )
    request = ValidationRequest(**_request(given))
    from streamproof.pipeline import spark_validation

    with Status() as status:
        runs = _runs_for_spark(given.paths, request, given.master)
        if not runs:
            raise InputError("no run was found", remedy="name folders with the logs of runs")
        judge = partial(_from, Path.cwd(), request)
        counts = spark_validation.validate_into(folder, runs, judge, given.master, status)
    code = counts.exit_code
    if not counts.total:
        raise InputError("no run was found", remedy="name folders with the logs of runs")
    if code == Exit.HOLDS and given.fail_on_finding and counts.findings:
        code = Exit.LIVENESS
    document = {
        "schema": SCHEMA,
        "version": __version__,
        "exit_code": int(code),
        "runs": len(runs),
        "counts": counts.record(),
        "verdicts_in": str(folder),
    }
    write_json(document, given.json_to)
    numbers = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in counts.record().items() if number)
    people(given.json_to).write(f"{number_of(len(runs), 'run')}: {numbers}\n{visible(str(folder))}\n")
    return code


def _from(folder: Path, request: ValidationRequest, run: FoundRun) -> list[RunVerdict]:
    """On a worker: the verdicts of a run, whose path is relative to the working folder of the program."""
    with chdir(folder):
        judged = judge_found(run, request)
    for problem in judged.problems:
        print(f"streamproof: warning: {problem}", file=sys.stderr)
    return judged.verdicts
