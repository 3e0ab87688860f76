"""``streamproof validate``: check recorded runs of an implementation against a model."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamproof.base.errors import Exit, InputError, UsageError
from streamproof.base.files import DOT, expect_writable, write
from streamproof.base.optional import expect_pyarrow
from streamproof.base.text import BLANK, Line, Style, StyledText, line, visible
from streamproof.cli.outputs import Status, ci_options, expect_json_writable, people, write_ci_files, write_json
from streamproof.cli.selection import choice_option, json_option, number_option, path_option
from streamproof.cli.verbs import Verb
from streamproof.selection import expect_once

if TYPE_CHECKING:
    from streamproof.api.validate import Validation
    from streamproof.conformance.coverage import JudgedEvents
    from streamproof.conformance.found_runs import FoundRun, ValidationRequest
    from streamproof.conformance.run_verdict import Answer, Recovery, Rejection, RunVerdict

SCHEMA = "streamproof.validate/1"

_STYLES: dict[Answer, Style] = {"accepted": "good", "rejected": "failed", "inconclusive": "new", "error": "failed"}


class _Runs(click.Path):
    """A path that exists, or a pattern, which the reader of runs expands."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or the unexpanded pattern."""
        return Path(value) if any(c in str(value) for c in "*?[") else super().convert(value, param, ctx)


class _Model(click.Option):
    """An option whose help names the models that have a binding."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The option and its help."""
        from streamproof.entries import BINDINGS, BINDINGS_ON_REQUEST, every

        names = sorted([*every(BINDINGS), *every(BINDINGS_ON_REQUEST)])
        models = dict.fromkeys(name.partition(":")[0] for name in names)
        self.help = (self.help or "").format(", ".join(models) or "none is installed")
        return super().get_help_record(ctx)


TASKS_SHOWN = 8
"""Largest number of tasks printed of a region."""
LONGEST = 240
"""Largest number of characters printed of a variable's value."""


@click.command(
    "validate",
    cls=Verb,
    short_help="Check recorded runs against a model.",
    example="streamproof validate runs/*/ --json verdicts.json --events events",
)
@click.argument("paths", nargs=-1, required=True, type=_Runs(path_type=Path, exists=True))
@click.option(
    "--model",
    cls=_Model,
    metavar="NAME",
    help="Model to check the runs against: {}; for event logs any model, file.py too; or all. Default: by the files.",
)
@click.option(
    "-p",
    "parameters",
    metavar="NAME=VALUE",
    multiple=True,
    help="A parameter of the model for event logs: a size of the implementation. May be repeated.",
)
@path_option("--job-graph", "FILE", "Job graph of the runs, if they do not contain it.", exists=True)
@click.option(
    "--pattern",
    metavar="TEXT",
    help="Pattern of the logs' lines in log4j or logback. Default: by the lines, or by a log4j or logback file beside them.",
)
@path_option("--events", "DIR", "Also write the events of each run to DIR.")
@choice_option("--format", "form", choices=("ndjson", "parquet"), help="Format of the event files.")
@number_option("--workers", help="Number of processes. Default: one, or one for each processor if the logs are large.")
@click.option("--master", metavar="URL", help="Validate on Spark, one task for each run: local[*], spark://...")
@path_option("--dot", "FILE", "Draw the states before each rejected event, and how far the event gets from each.")
@click.option("--explain", is_flag=True, help="Also print for each restart which tasks it restarted, and why.")
@click.option(
    "--coverage",
    is_flag=True,
    help="Also print the share of each family of events that some model judged, and the actions that no run took.",
)
@click.option(
    "--min-judged",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="End with 160 if some model judged a smaller share of the events.",
)
@click.option("--fail-on-finding", is_flag=True, help="End with 13 if an accepted run has a finding, such as a hang.")
@json_option
@ci_options
def command(
    paths: Sequence[Path],
    model: str | None,
    parameters: Sequence[str],
    job_graph: Path | None,
    pattern: str | None,
    events: Path | None,
    form: str,
    workers: int | None,
    master: str | None,
    dot: Path | None,
    explain: bool,
    coverage: bool,
    min_judged: float | None,
    fail_on_finding: bool,
    json_to: str | None,
) -> int:
    """Follow the runs recorded under PATHS through a model, and report for each job or channel whether the model allows it.

    Ends with 0 when all are accepted. Otherwise ends with 161 when one is rejected, else with 153 when the validation of
    one failed (with 75 or 150 if the model has a mistake), else with 160. An accepted run can have findings, such as a hang.
    """
    from streamproof import __version__
    from streamproof.api.validate import Validation
    from streamproof.conformance.coverage import JudgedEvents
    from streamproof.conformance.validation import validate_paths
    from streamproof.report.console import print_lines

    source = click.get_current_context().get_parameter_source("form")
    if events is None and source is ParameterSource.COMMANDLINE:
        raise UsageError("--format requires --events", remedy="add --events DIR")
    if form == "parquet":
        expect_pyarrow("--format parquet")
    if master and (coverage or min_judged is not None):
        raise UsageError("--coverage and --min-judged are not supported with --master", remedy="leave out --master")
    if master and workers is not None:
        raise UsageError("--workers is not supported with --master", remedy="leave out --workers")
    if parameters and model in (None, "all"):
        raise UsageError("-p requires --model", remedy="name the model of the event logs")
    expect_json_writable(json_to, SCHEMA)
    if events is not None:
        expect_writable(events, None)
    if dot is not None:
        expect_writable(dot, DOT)
    counted = JudgedEvents() if coverage or min_judged is not None else None
    options: dict[str, Any] = {
        "model": model,
        "job_graph": job_graph,
        "pattern": pattern,
        "events_dir": events,
        "events_format": form,
        "parameters": tuple(expect_once(parameters)),
    }
    with Status() as status:
        if master:
            verdicts = _on_spark(paths, options, master, status)
        else:
            verdicts = validate_paths(list(paths), coverage=counted, workers=workers, on_progress=status, **options)
    if not verdicts:
        raise InputError("no run was found", remedy="name folders with the logs of runs")
    validation = Validation(tuple(verdicts))
    code = validation.exit_code
    if code == Exit.HOLDS and fail_on_finding and any(verdict.findings for verdict in verdicts):
        code = Exit.LIVENESS
    if code == Exit.HOLDS and counted is not None and min_judged is not None and counted.percent < min_judged:
        code = Exit.INCONCLUSIVE
    records = [verdict.record() for verdict in verdicts]
    document = {"schema": SCHEMA, "version": __version__, "exit_code": int(code), "verdicts": records}
    if counted is not None:
        document["coverage"] = counted.record()
    write_json(document, json_to)
    write_ci_files(document, json_to)
    if dot is not None:
        from streamproof.conformance.frontier import NONE, frontier_dot

        write(dot, frontier_dot(verdicts), DOT)
        if not any(verdict.rejection for verdict in verdicts):
            sys.stderr.write(f"streamproof: warning: {visible(str(dot))} has no states: {NONE}\n")
    print_lines(_lines(validation, explain=explain), people(json_to))
    if counted is not None:
        print_lines(_coverage(counted, verdicts, min_judged, whole=coverage), people(json_to))
    return code


def _on_spark(paths: Sequence[Path], options: Mapping[str, Any], master: str, status: Status) -> list[RunVerdict]:
    from uuid import uuid4

    from streamproof.conformance.flink.layouts import with_pattern
    from streamproof.conformance.found_runs import ValidationRequest, found_runs
    from streamproof.pipeline.session import LOCAL, expect_master
    from streamproof.pipeline.spark_validation import validate_many

    expect_master(master or LOCAL)  # before the runs are read, which may take long
    request = ValidationRequest(**options)
    with with_pattern(request.pattern):
        runs = [run for run, _ in found_runs(paths, request, str(uuid4()))]
    return validate_many(runs, partial(_from, Path.cwd(), request), master or LOCAL, status)


def _from(folder: Path, request: ValidationRequest, run: FoundRun) -> list[RunVerdict]:
    """On a worker: the verdicts of a run, whose path is relative to the working folder of the program."""
    from streamproof.conformance.found_runs import judge_found

    with chdir(folder):
        judged = judge_found(run, request)
    for problem in judged.problems:
        print(f"streamproof: warning: {problem}", file=sys.stderr)
    return judged.verdicts


def _lines(validation: Validation, *, explain: bool) -> Iterator[Line]:
    """One line per job or channel, the explanation of each rejection under it, the totals."""
    shown = validation.recorded
    several = {key for key, count in Counter((v.run, v.model) for v in shown).items() if count > 1}
    models: dict[str, set[str]] = {}
    for verdict in shown:
        models.setdefault(verdict.run, set()).add(verdict.model)
    for verdict in shown:
        named = (verdict.run, verdict.model) in several
        yield from _case(verdict, named=named, with_model=len(models[verdict.run]) > 1)
        for number, recovery in enumerate(verdict.recoveries if explain else (), 1):
            yield from _restart(number, recovery)
    yield BLANK
    if len({(v.run, v.trace, v.unit) for v in shown}) < len(shown):
        yield from _by_model(validation.verdicts, shown)
    else:
        yield line(f"{_counted(shown)}: ", _answers(shown))
    for machine in dict.fromkeys(machine for verdict in shown for machine in verdict.machines):
        related = machine.kind != "not related"
        yield line(
            StyledText("followed by ", "faint"), StyledText(machine.text, "faint" if related else "failed"), hang=4
        )


def _by_model(verdicts: Sequence[RunVerdict], shown: Sequence[RunVerdict]) -> Iterator[Line]:
    """The totals of each model, where a job is judged by several."""
    for model in dict.fromkeys(v.model for v in verdicts):
        own = [v for v in shown if v.model == model]
        without = sum(v.model == model for v in verdicts) - len(own)
        runs = f"{without} run{'' if without == 1 else 's'} without records of it" if without else ""
        counts = f"{_counted(own)}, {_answers(own)}" if own else ""
        yield line(f"{model}: ", "; ".join(filter(None, (counts, runs))))


def _coverage(
    counted: JudgedEvents, verdicts: Sequence[RunVerdict], least: float | None, *, whole: bool
) -> Iterator[Line]:
    """The share of the events that some model judged; `whole`: of each family, and the actions that no run took."""
    from streamproof.conformance.coverage import untaken_actions

    yield BLANK
    wanted = "" if least is None or counted.percent >= least else f", less than the {least:g} % of --min-judged"
    share = f"{counted.judged.total():,} of {counted.read.total():,} events, {counted.percent:.0f} %{wanted}"
    yield line("judged by some model: ", StyledText(share, "failed" if wanted else "plain"))
    if not whole:
        return
    for family, read in sorted(counted.read.items()):
        judged = counted.judged[family]
        share = f"{judged:>9,} of {read:>9,}  {100 * judged // read:>3} %  "
        why = counted.why_not(family)
        yield line(share, family if why is None else f"{family:<24} ", StyledText(why or "", "faint"), hang=30)
    for model, actions in untaken_actions(verdicts).items():
        yield line(f"actions of {model} that no run took: ", ", ".join(actions) or "none", hang=4)


def _counted(verdicts: Sequence[RunVerdict]) -> str:
    units = Counter(verdict.unit for verdict in verdicts)
    return " and ".join(f"{n} {unit}{'' if n == 1 else 's'}" for unit, n in units.items())


def _answers(verdicts: Sequence[RunVerdict]) -> str:
    totals = [(answer, sum(v.answer == answer for v in verdicts)) for answer in _STYLES]
    kinds = Counter(finding.kind for verdict in verdicts for finding in verdict.findings)
    return ", ".join((*(f"{n} {answer}" for answer, n in totals if n), *(f"{n} {kind}" for kind, n in kinds.items())))


def _case(verdict: RunVerdict, *, named: bool, with_model: bool) -> Iterator[Line]:
    """`named`: print the name of the job or channel; `with_model`: that of the model."""
    model = verdict.model if with_model else ""
    name = ", ".join(filter(None, (verdict.run, model, verdict.trace if named else "", verdict.title)))
    restarts = len(verdict.recoveries)
    facts = f"{verdict.matched} of {verdict.read} events matched"
    if restarts:
        facts += f", {restarts} restart{'' if restarts == 1 else 's'}"
    style = _STYLES[verdict.answer]
    yield line(StyledText(f"{verdict.answer:<12}", style), f"  {name}: ", StyledText(facts, "faint"), hang=14)
    if verdict.rejection is not None:
        yield from _rejection(verdict.rejection)
    elif verdict.reason:
        kinds = ", ".join(finding.kind for finding in verdict.findings)
        yield line(*((StyledText(f"{kinds}: ", "failed"),) if kinds else ()), verdict.reason, indent=14, hang=14)


def _restart(number: int, recovery: Recovery) -> Iterator[Line]:
    """One restart: the failure, and the reasons for the restarted tasks as a tree."""
    failure = f"{recovery.failed} failed" if recovery.failed else "a global failure"
    when = f"{recovery.decided}: " if recovery.decided else ""
    cause = f" ({recovery.cause.rpartition('.')[2]})" if recovery.cause else ""
    count = f"{recovery.announced} task{'' if recovery.announced == 1 else 's'}"
    open_set = "" if recovery.tasks is not None else "; the model allows several sets"
    yield line(f"restart {number}, {when}{failure}{cause}; {count}{open_set}", indent=4, hang=4)
    below: dict[int | None, list[int]] = {}
    for at, reason in enumerate(recovery.why):
        below.setdefault(reason.because, []).append(at)
    waiting = [(at, 6) for at in reversed(below.get(None, []))]
    while waiting:
        at, indent = waiting.pop()
        reason = recovery.why[at]
        link = f" ({reason.partition})" if reason.partition else ""
        tasks = _named(reason.tasks) if reason.tasks else "tasks that were never scheduled"
        yield line(f"{reason.reason}{link}: ", StyledText(tasks, "place"), indent=indent, hang=4)
        waiting += [(child, min(indent + 2, 20)) for child in reversed(below.get(at, []))]


def _named(tasks: Sequence[str]) -> str:
    more = len(tasks) - TASKS_SHOWN
    return ", ".join(tasks[:TASKS_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _states(states: Sequence[Mapping[str, str]]) -> Iterator[Line]:
    """The first state in full, and the differences of the others; long values are cut (the JSON has the full values)."""
    for number, state in enumerate(states, 1):
        yield line(StyledText(f"state {number}" + ("" if number == 1 else ", like state 1 but for"), "faint"), indent=8)
        for name, value in state.items():
            if number == 1 or value != states[0].get(name):
                cut = value if len(value) <= LONGEST else f"{value[:LONGEST]} ..."
                yield line(StyledText(name, "place"), f" = {cut}", indent=10, hang=14)


def _rejection(rejection: Rejection) -> Iterator[Line]:
    event, index, states = rejection.event, rejection.index, rejection.states
    place = f"{event.file}:{event.line}" if event and event.file and event.line else None
    at = "end of the log" if event is None else str(event)
    yield line(*((StyledText(place, "source"), ": ") if place else ()), StyledText(at, "action"), indent=4, hang=8)
    yield line(StyledText(rejection.message, "failed"), indent=6, hang=6)
    fit = f"; {states} of the model's states fit{'s' if states == 1 else ''} them" if states else ""
    yield line(f"accepted before it: {index} event{'' if index == 1 else 's'}{fit}", indent=6, hang=6)
    yield from _states(rejection.before)
    for candidate in rejection.candidates:
        if candidate.because == rejection.message:
            continue  # printed above
        yield line(StyledText(candidate.action, "action"), f"  is not possible: {candidate.because}", indent=6, hang=10)
    if rejection.expected:
        yield line(f"possible here: {', '.join(rejection.expected)}", indent=6, hang=10)
    if rejection.nearest:
        yield line(f"nearest that would have been accepted: {rejection.nearest}", indent=6, hang=10)
