"""``streamproof run``: run a job on a registered runtime, on processes or under its simulator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streamproof.base.errors import Exit, InputError, OutOfTime, SystemFailure, UsageError
from streamproof.base.files import PARQUET, RUN_LOG, RUN_SCRIPT, expect_writable, new_folders, remove, write
from streamproof.base.optional import expect_pyarrow
from streamproof.base.options import bytes_about, timely
from streamproof.base.reading import read_text
from streamproof.base.text import Line, StyledText, line
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.cli.run_logs import NDJSON, TABLE, in_parquet, remove_older, run_in_parquet
from streamproof.cli.selection import choice_option, json_option, number_option, path_option
from streamproof.cli.verbs import Verb
from streamproof.entries import RUNTIMES, every
from streamproof.interrupts import limited, requested

if TYPE_CHECKING:
    from streamproof.report.live_view import LiveView

SCHEMA = "streamproof.run/1"
_SHOWN = 10
"""Largest number of failing runs that are printed."""
_ONLY_SIMULATED = ("seed", "seeds", "faults", "shrink", "script")
_ONLY_REAL = ("kill", "restarts")


@click.command(
    "run",
    cls=Verb,
    short_help="Run a job on the reference runtime.",
    example="streamproof run examples/pagerank.py --taskmanagers 3 --kill tm-1@50 --trace runs/pagerank",
)
@click.argument("job", metavar="FILE", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--simulate", is_flag=True, help="Run in a deterministic simulation instead of processes.")
@click.option(
    "--kill",
    "kills",
    multiple=True,
    metavar="NAME@WHEN",
    help="Kill a process, at a time or after a number of its events: tm-1@1.5s, tm-1@50. Repeatable.",
)
@number_option("--restarts", help="Restarts of the job after which it fails.", least=0, default=10)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of a run; a simulated one has a limit of steps, too.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, metavar="N", help="Seed of the run.  [default: 0]")
@click.option("--seeds", type=click.IntRange(min=1), default=1, metavar="N", help="Number of seeds, from --seed on.")
@choice_option(
    "--faults",
    choices=("none", "light", "heavy", "severe"),
    help="Crashes, lost and slow connections, partitions, pauses; severe: crashes of the JobMaster, too.",
)
@click.option("--variant", metavar="NAME", help="Variant of a protocol; most are wrong.")
@number_option("--taskmanagers", help="Number of TaskExecutors.", most=64, default=3)
@number_option("--slots", help="Slots of each.", most=64, default=2)
@choice_option(
    "--scheduling",
    choices=("lazy", "eager"),
    help="Schedule a region when its inputs are stored, or with their producers.",
)
@click.option(
    "--buffer-timeout",
    "timeout_of_buffers",
    type=click.FloatRange(min=-1),
    metavar="MS",
    help="Milliseconds after which a buffer that is not full leaves; 0: each record leaves alone; -1: never, except before "
    "control events, such as END.  [default: what is made of a buffer leaves at once]",
)
@choice_option(
    "--input-policy",
    choices=("any", "feedback-first", "feedback-first-when-utilised", "fair", "forward-first"),
    metavar="POLICY",
    help="Input that heads of loops read first: any, feedback-first, feedback-first-when-utilised, fair, forward-first.",
)
@click.option(
    "--checkpoint-interval",
    "checkpoints",
    type=click.FloatRange(min=0, min_open=True),
    metavar="MS",
    help="Take a checkpoint every MS milliseconds, from which a job without loops goes on after a failure.  [default: none]",
)
@click.option(
    "--idle-timeout",
    "idle",
    type=click.FloatRange(min=0, min_open=True),
    metavar="MS",
    help="Release a TaskExecutor that has no slot in use for MS milliseconds and stores nothing, until slots are required.  "
    "[default: none]",
)
@click.option("--shrink", is_flag=True, help="Find a short script of faults and choices for the first failing seed.")
@path_option("--script", "FILE", "Repeat the run of a script instead of a seed.", exists=True, dir_okay=False)
@path_option(
    "--trace",
    "DIR",
    "Write the event log of each process, or of each simulated run and the script of each failing one, to DIR.",
)
@choice_option(
    "--trace-format",
    "form",
    choices=("ndjson", "parquet"),
    help="Format of the event logs of a finished run; while it runs, they are newline-delimited JSON.",
)
@click.option("--live", is_flag=True, help="Show tasks, buffers, credits and events while the job runs.")
@json_option
def command(
    job: Path,
    simulate: bool,
    kills: tuple[str, ...],
    restarts: int,
    timeout: float,
    seed: int,
    seeds: int,
    faults: str,
    variant: str | None,
    taskmanagers: int,
    slots: int,
    scheduling: str,
    timeout_of_buffers: float | None,
    input_policy: str,
    checkpoints: float | None,
    idle: float | None,
    shrink: bool,
    script: Path | None,
    trace: Path | None,
    form: str,
    live: bool,
    json_to: str | None,
) -> int:
    """Run the job in FILE, a Python file with a function job(), and compare the results with its expected().

    The JobMaster, the ResourceManager and each TaskExecutor are processes, unless the run is simulated. Ends with 0
    when all runs end with the expected results, with 11 when one gets stuck, else with 12 when one is wrong, else with
    160 when one has not ended at the limit of time, or of the steps of a simulation.
    """
    from streamproof import __version__
    from streamproof.report.console import print_lines

    _expect_options(simulate)
    if timeout_of_buffers is not None and -1 < timeout_of_buffers < 0:
        raise UsageError(f"--buffer-timeout {timeout_of_buffers:g} is no time", remedy="use -1 for none, or 0 or more")
    tables = form == "parquet"
    source = click.get_current_context().get_parameter_source("form")
    if trace is None and source is ParameterSource.COMMANDLINE:
        raise UsageError("--trace-format requires --trace", remedy="add --trace DIR")
    if tables:
        expect_pyarrow("--trace-format parquet")
    for name, value in (
        ("timeout", timeout),
        ("buffer-timeout", timeout_of_buffers),
        ("checkpoint-interval", checkpoints),
        ("idle-timeout", idle),
    ):
        if value is not None and not isfinite(value):
            raise UsageError(f"--{name} {value:g} is no time", remedy="give a number")
    runtime = next(iter(every(RUNTIMES).values()), None)
    if runtime is None:
        raise UsageError("no runtime is installed", remedy="install a package that has one")
    expect_json_writable(json_to, SCHEMA)
    if trace is not None:
        expect_writable(trace, None)
    module = runtime.load()
    shrunk = None
    options = {
        "variant": variant,
        "executors": taskmanagers,
        "slots": slots,
        "eager": scheduling == "eager",
        "timeout": timeout_of_buffers,
        "input_policy": input_policy,
        "checkpoints": checkpoints or 0,
        "idle": idle or 0,
    }
    view = _view(json_to) if live else None
    try:
        if simulate:
            with timely("reading the job"):
                simulated = module.Simulated(job, level=faults, **options)
            runs, shrunk = _runs(module, simulated, seed, seeds, shrink, script, trace, tables, view, timeout)
        else:
            with timely("reading the job"):
                processes = module.Processes(job, kills=kills, restarts=restarts, seconds=timeout, **options)
            runs = [_real_run(processes, trace, tables, view)]
    except module.Lost as error:
        raise SystemFailure(str(error)) from error
    except module.Problem as error:
        raise InputError(str(error)) from error
    wrong = [run for run in runs if run["wrong"]]
    code = Exit.HOLDS if not wrong else max(map(_code, wrong), key=_GRAVITY.index)
    document = {
        "schema": SCHEMA,
        "version": __version__,
        "exit_code": int(code),
        "runs": [{name: run[name] for name in _KEPT if name in run} for run in runs],
        "shrunk": None
        if not shrunk
        else {name: shrunk[name] for name in (*_KEPT[2:], "runs", "deviations") if name in shrunk},
    }
    write_json(document, json_to)
    print_lines(
        _lines(runs, wrong, shrunk, seeds, shrink=shrink) if simulate else _real_lines(job, runs[0]), people(json_to)
    )
    return code


_KEPT = (
    *("seed", "script", "wrong", "attempts", "steps", "events", "virtual_ns", "digest", "faults"),
    *("kills", "longest_queue", "longest_feedback_queue", "peak_bytes"),
)
LONGEST = 240
"""Largest number of characters printed of a result."""
_TOTALS = (("steps", 0), ("attempts", 1))
_GRAVITY = (Exit.INCONCLUSIVE, Exit.SAFETY, Exit.DEADLOCK)


def _code(run: Mapping[str, Any]) -> Exit:
    """The exit code of a run that is not right."""
    return Exit.INCONCLUSIVE if run.get("unfinished") else Exit.DEADLOCK if run.get("stuck") else Exit.SAFETY


def _expect_options(simulate: bool) -> None:
    """Raises `UsageError` for an option of the other kind of run."""
    context = click.get_current_context()
    for option in context.command.params:
        other = _ONLY_REAL if simulate else _ONLY_SIMULATED
        name = option.opts[0].removeprefix("--")
        if name in other and context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
            if simulate:
                raise UsageError(f"--{name} is for runs on processes", remedy="leave out --simulate, or use --faults")
            raise UsageError(f"--{name} is for simulated runs", remedy="add --simulate, or use --kill for faults")


def _view(json_to: str | None) -> LiveView:
    from streamproof.report.live_view import LiveView

    return LiveView(people(json_to))


def _real_run(processes: Any, trace: Path | None, tables: bool, view: LiveView | None) -> dict[str, Any]:
    """A run on processes. Logs of an earlier run in the folder are removed; `tables`: those of this one become Parquet."""
    with new_folders([] if trace is None else [trace]), Status(live=view is None) as status, view or nullcontext():
        if trace is not None:
            remove_older(trace)
        run: dict[str, Any] = processes.run(trace, status, view, view and view.errors)
        if trace is not None and tables:
            run_in_parquet(trace)
    return run


def _real_lines(job: Path, run: Mapping[str, Any]) -> Iterator[Line]:
    yield _verdict(run, str(job))
    tries = f"{run['attempts']} attempt{'' if run['attempts'] == 1 else 's'}"
    counts = (
        f"{tries}, up to {run['longest_queue']:,} items in a queue, {bytes_about(run['peak_bytes'])} in a TaskExecutor"
    )
    yield line(StyledText(counts, "faint"), indent=4)
    yield from _results(run)
    for kill in run["kills"]:
        yield line(f"{kill['kill']}: {'killed' if kill['happened'] else 'not killed, the job ended before'}", indent=4)


def _runs(
    module: Any,
    simulated: Any,
    seed: int,
    seeds: int,
    shrink: bool,
    script: Path | None,
    trace: Path | None,
    tables: bool,
    view: LiveView | None,
    seconds: float,
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """The runs, without their events, and the shrunk one. The first run that has no end after `seconds` is the last."""
    runs: list[dict[str, Any]] = []
    shrunk = None
    watch = None if view is None else view.slowly
    with Status(live=view is None) as status, view or nullcontext():
        for number in range(1 if script else seeds):
            status(f"seed {seed + number}")
            of_seed = partial(simulated.seed, seed + number)
            one = partial(simulated.script, script, read_text(script)) if script else of_seed
            run = _within(seconds, module, partial(one, watch))
            if run is None:
                about = {"script": str(script)} if script else {"seed": seed + number}
                runs.append({**about, "wrong": f"no end after {seconds:g} s", "unfinished": True})
                break
            _write(module, run, script.stem.partition(".")[0] if script else f"seed-{seed + number}", trace, tables)
            if run["wrong"] and shrink and shrunk is None:
                end = time.monotonic() + seconds
                more = partial(simulated.shrunk, run, lambda end=end: time.monotonic() >= end)
                shrunk = _within(seconds, module, more) or {}
                if shrunk:
                    _write(module, shrunk, f"seed-{seed + number}-shrunk", trace, tables)
            runs.append({name: value for name, value in run.items() if name not in ("lines", "choices")})
    return runs, shrunk


def _within(seconds: float, module: Any, work: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """The result of a simulation; None if it has none after `seconds`, also if the job took the interrupt for an error."""
    end = time.monotonic() + seconds
    found = None
    try:
        with limited(seconds), timely("simulating the job", silent=True):
            found = work()
    except OutOfTime:
        return None
    except KeyboardInterrupt:
        if requested():
            raise
        raise InputError("a function of the job raised KeyboardInterrupt", remedy="raise an Exception") from None
    except module.Problem:
        if time.monotonic() < end:
            raise
    return found if time.monotonic() < end else None


def _write(module: Any, run: Mapping[str, Any], name: str, trace: Path | None, tables: bool) -> None:
    """The log and the script of a run; a log of the same name in the other form is removed."""
    if trace is not None:
        log = trace / f"{name}{NDJSON}"
        write(log, "".join(run["lines"]()), RUN_LOG)
        remove(log.with_suffix(TABLE), PARQUET)
        if tables:
            in_parquet(log)
        if run["wrong"]:
            write(trace / f"{name}.script.json", module.script_text(run), RUN_SCRIPT)


def _lines(
    runs: list[dict[str, Any]],
    wrong: list[dict[str, Any]],
    shrunk: Mapping[str, Any] | None,
    seeds: int,
    *,
    shrink: bool,
) -> Iterator[Line]:
    for run in runs if len(runs) == 1 else wrong[:_SHOWN]:
        yield from _run_lines(run, run.get("script") or f"seed {run['seed']}", facts=len(runs) == 1)
    if len(wrong) > _SHOWN:
        yield line(f"and {len(wrong) - _SHOWN} more")
    if shrink and not wrong:
        yield line("no run has failed: there is nothing to shrink")
    elif shrink and not shrunk:
        yield line("not shrunk: no end after the time limit; raise --timeout")
    if shrunk:
        yield from _run_lines(shrunk, f"shrunk in {shrunk['runs']} runs", facts=True)
        count = shrunk["deviations"]
        yield line(f"{count} choice{'' if count == 1 else 's'} other than the plain ones", indent=4)
    if len(runs) > 1:
        steps, restarts = (sum(run.get(name, least) - least for run in runs) for name, least in _TOTALS)
        totals = f"{len(runs)} runs: {len(runs) - len(wrong)} right, {len(wrong)} wrong"
        yield line(totals, StyledText(f"; {steps:,} steps, {restarts:,} restarts", "faint"))
    if len(runs) < seeds and "script" not in runs[-1]:
        yield line(f"seeds after {runs[-1]['seed']} were not run; raise --timeout")


def _run_lines(run: Mapping[str, Any], name: str, *, facts: bool) -> Iterator[Line]:
    yield _verdict(run, name)
    if not facts or "steps" not in run:
        return
    tries = f"{run['attempts']} attempt{'' if run['attempts'] == 1 else 's'}"
    counts = (
        f"{tries}, {run['steps']:,} steps, {run['events']:,} events, {run['virtual_ns'] / 1e6:.1f} ms of virtual time"
    )
    yield line(StyledText(counts, "faint"), indent=4)
    yield from _results(run)
    for text in run["fault_texts"]:
        yield line(text, indent=4)
    yield line(StyledText(f"digest {run['digest'][:16]}", "faint"), indent=4)


def _results(run: Mapping[str, Any]) -> Iterator[Line]:
    """What nothing is compared with, in short."""
    if not (run["wrong"] or run["checked"]):
        for name, value in run["results"].items():
            text = repr(value)
            yield line(f"{name}: {text if len(text) <= LONGEST else text[:LONGEST] + ' ...'}", indent=4, hang=8)


def _verdict(run: Mapping[str, Any], name: str) -> Line:
    good = "the result is as expected" if run.get("checked") else "finished; the file does not state what is expected"
    return line(f"{name}: ", StyledText(run["wrong"] or good, "failed" if run["wrong"] else "good"), hang=4)
