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

from streamproof import __version__
from streamproof.base.errors import Exit, InputError, OutOfTime, SystemFailure, UsageError
from streamproof.base.files import PARQUET, RUN_LOG, RUN_SCRIPT, expect_writable, new_folders, remove, write
from streamproof.base.optional import expect_pyarrow
from streamproof.base.options import bytes_about, flag, timely
from streamproof.base.reading import read_text
from streamproof.base.records import dataclass
from streamproof.base.text import Line, StyledText, line
from streamproof.cli.arguments import argument, given_options, is_given, json_flag, verb
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.conformance.run_logs import NDJSON, TABLE, in_parquet, remove_older, run_in_parquet
from streamproof.entries import RUNTIMES, every
from streamproof.interrupts import limited, requested, stopped_first
from streamproof.report.console import print_lines

if TYPE_CHECKING:
    from streamproof.report.live_view import LiveView

SCHEMA = "streamproof.run/1"
_SHOWN = 10
"""Largest number of failing runs that are printed."""
POSITIVE = click.FloatRange(min=0, min_open=True)
_ONLY_SIMULATED = ("seed", "seeds", "faults", "shrink", "script")
_ONLY_REAL = ("kill", "restarts")


@dataclass(frozen=True, slots=True)
class RunArguments:
    """The arguments of the verb."""

    job: Path = argument(metavar="FILE", type=click.Path(path_type=Path, exists=True, dir_okay=False))
    simulate: bool = flag("Run in a deterministic simulation instead of processes.")
    kills: tuple[str, ...] = flag(
        "Kill a process, at a time or after a number of its events: tm-1@1.5s, tm-1@50. Repeatable.",
        "--kill",
        unit="NAME@WHEN",
    )
    restarts: int = flag("Restarts of the job after which it fails.", least=0, default=10)
    timeout: float = flag("Time limit of a run; a simulated one has a limit of steps, too.", default=600, type=POSITIVE)
    seed: int = flag("Seed of the run.  [default: 0]", least=0, default=0, show_default=False)
    seeds: int = flag("Number of seeds, from --seed on.", default=1, show_default=False)
    faults: str = flag(
        "Crashes, lost and slow connections, partitions, pauses; severe: crashes of the JobMaster, too.",
        choices=("none", "light", "heavy", "severe"),
    )
    variant: str | None = flag("Variant of a protocol; most are wrong.", unit="NAME")
    taskmanagers: int = flag("Number of TaskExecutors.", most=64, default=3)
    slots: int = flag("Slots of each.", most=64, default=2)
    resources: tuple[str, ...] = flag(
        "What the slots of a TaskExecutor have, for slot sharing groups that need it: tm-1:gpu=1,memory=512. Repeatable.",
        unit="NAME:KEY=NUMBER",
    )
    scheduling: str = flag(
        "Schedule a region when its inputs are stored, or with their producers.", choices=("lazy", "eager")
    )
    buffer_timeout: float | None = flag(
        "Milliseconds after which a buffer that is not full leaves; 0: each record leaves alone; -1: never, except before "
        "control events, such as END.  [default: what is made of a buffer leaves at once]",
        unit="MS",
        type=click.FloatRange(min=-1),
    )
    buffer_size: int = flag(
        "Bytes of a network buffer; a larger record spans several.", least=16, most=1 << 26, default=32_768
    )
    sender_buffers: int | None = flag(
        "Network buffers of a subtask for what it sends; each channel has its share.  [default: as many as it needs]",
        least=1,
    )
    offload: int = flag(
        "Bytes from which the descriptor of a deployment is a blob, which TaskExecutors fetch from the JobMaster.",
        unit="BYTES",
        least=0,
        default=1_048_576,
    )
    input_policy: str = flag(
        "Input that heads of loops read first: any, feedback-first, feedback-first-when-utilised, fair, forward-first.",
        unit="POLICY",
        choices=("any", "feedback-first", "feedback-first-when-utilised", "fair", "forward-first"),
    )
    checkpoint_interval: float | None = flag(
        "Take a checkpoint every MS milliseconds, from which the job goes on after a failure.  [default: none]",
        unit="MS",
        type=POSITIVE,
    )
    unaligned: bool = flag("Barriers of checkpoints overtake buffers, which are part of the checkpoint; without loops.")
    idle_timeout: float | None = flag(
        "Release a TaskExecutor that has no slot in use for MS milliseconds and stores nothing, until slots are required.  "
        "[default: none]",
        unit="MS",
        type=POSITIVE,
    )
    stop_after: float | None = flag(
        "Stop unbounded sources MS milliseconds after the start of the job; on processes Ctrl-C does so, too.  "
        "[default: never]",
        unit="MS",
        type=POSITIVE,
    )
    shrink: bool = flag("Find a short script of faults and choices for the first failing seed.")
    script: Path | None = flag(
        "Repeat the run of a script instead of a seed.", unit="FILE", path={"exists": True, "dir_okay": False}
    )
    trace: Path | None = flag(
        "Write the event log of each process, or of each simulated run and the script of each failing one, to DIR.",
        unit="DIR",
    )
    trace_format: str = flag(
        "Format of the event logs of a finished run; while it runs, they are newline-delimited JSON.",
        choices=("ndjson", "parquet"),
    )
    live: bool = flag("Show tasks, buffers, credits and events while the job runs.")
    json_to: str | None = json_flag()

    @property
    def tables(self) -> bool:
        """Whether the logs become Parquet."""
        return self.trace_format == "parquet"

    def expect_fitting(self) -> None:
        """Raises `UsageError` for a number that is no time, and for a format of no logs."""
        if self.buffer_timeout is not None and -1 < self.buffer_timeout < 0:
            raise UsageError(
                f"--buffer-timeout {self.buffer_timeout:g} is no time", remedy="use -1 for none, or 0 or more"
            )

        if self.trace is None and is_given("trace_format"):
            raise UsageError("--trace-format requires --trace", remedy="add --trace DIR")
        if self.tables:
            expect_pyarrow("--trace-format parquet")
        for name in ("timeout", "buffer_timeout", "checkpoint_interval", "idle_timeout", "stop_after"):
            value = getattr(self, name)
            if value is not None and not isfinite(value):
                raise UsageError(f"--{name.replace('_', '-')} {value:g} is no time", remedy="give a number")


@verb(
    "run",
    RunArguments,
    example="streamproof run examples/pagerank.py --taskmanagers 3 --kill tm-1@50 --trace runs/pagerank",
)
def command(given: RunArguments) -> int:
    """Run the job in FILE, a Python file with a function job(), and compare the results with its expected().

    The JobMaster, the ResourceManager and each TaskExecutor are processes, unless the run is simulated. Ends with 0
    when all runs end with the expected results, with 11 when one gets stuck, else with 12 when one is wrong, else with
    160 when one has not ended at the limit of time, or of the steps of a simulation.
    """
    _expect_options(given.simulate)
    given.expect_fitting()
    trace, json_to = given.trace, given.json_to
    runtime = next(iter(every(RUNTIMES).values()), None)
    if runtime is None:
        raise UsageError("no runtime is installed", remedy="install a package that has one")
    expect_json_writable(json_to, SCHEMA)
    if trace is not None:
        expect_writable(trace, None)
    module = runtime.load()
    shrunk = None
    options = {
        "variant": given.variant,
        "executors": given.taskmanagers,
        "slots": given.slots,
        "eager": given.scheduling == "eager",
        "timeout": given.buffer_timeout,
        "buffer_size": given.buffer_size,
        "sender_buffers": given.sender_buffers,
        "offload": given.offload,
        "input_policy": given.input_policy,
        "checkpoints": given.checkpoint_interval or 0,
        "unaligned": given.unaligned,
        "idle": given.idle_timeout or 0,
        "stop_after": given.stop_after,
        "resources": given.resources,
    }
    view = _view(json_to) if given.live else None
    try:
        with timely("reading the job"):
            if given.simulate:
                simulated = module.Simulated(given.job, level=given.faults, **options)
            else:
                limits = {"kills": given.kills, "restarts": given.restarts, "seconds": given.timeout}
                processes = module.Processes(given.job, **limits, **options)
        if given.simulate:
            runs, shrunk = _runs(module, simulated, given, view)
        else:
            runs = [_real_run(processes, trace, given.tables, view)]
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
        "runs": [{name: run[name] for name in _KEPT if name in run} | _literals(run) for run in runs],
        "shrunk": None
        if not shrunk
        else {name: shrunk[name] for name in (*_KEPT[2:], "runs", "deviations") if name in shrunk},
    }
    write_json(document, json_to)
    print_lines(
        _lines(runs, wrong, shrunk, given) if given.simulate else _real_lines(given.job, runs[0]), people(json_to)
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
    for option in given_options():
        name = option.opts[0].removeprefix("--")
        if name in (_ONLY_REAL if simulate else _ONLY_SIMULATED):
            if simulate:
                raise UsageError(f"--{name} is for runs on processes", remedy="leave out --simulate, or use --faults")
            raise UsageError(f"--{name} is for simulated runs", remedy="add --simulate, or use --kill for faults")


def _view(json_to: str | None) -> LiveView:
    from streamproof.report.live_view import LiveView

    return LiveView(people(json_to))


def _real_run(processes: Any, trace: Path | None, tables: bool, view: LiveView | None) -> dict[str, Any]:
    """A run on processes, in which the first Ctrl-C stops unbounded sources.

    Logs of an earlier run in the folder are removed; `tables`: those of this one become Parquet.
    """
    with new_folders([] if trace is None else [trace]), Status(live=view is None) as status, view or nullcontext():
        if trace is not None:
            remove_older(trace)
        with nullcontext() if processes.has_end else stopped_first(processes.stop):
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
    module: Any, simulated: Any, given: RunArguments, view: LiveView | None
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """The runs, without their events, and the shrunk one. The first run that has no end in time is the last."""
    seed, script, seconds = given.seed, given.script, given.timeout
    runs: list[dict[str, Any]] = []
    shrunk = None
    watch = None if view is None else view.slowly
    with Status(live=view is None) as status, view or nullcontext():
        for number in range(1 if script else given.seeds):
            status(f"seed {seed + number}")
            of_seed = partial(simulated.seed, seed + number)
            one = partial(simulated.script, script, read_text(script)) if script else of_seed
            run = _within(seconds, module, partial(one, watch))
            if run is None:
                about = {"script": str(script)} if script else {"seed": seed + number}
                runs.append({**about, "wrong": f"no end after {seconds:g} s", "unfinished": True})
                break
            _write(module, run, script.stem.partition(".")[0] if script else f"seed-{seed + number}", given)
            if run["wrong"] and given.shrink and shrunk is None:
                end = time.monotonic() + seconds
                more = partial(simulated.shrunk, run, lambda end=end: time.monotonic() >= end)
                shrunk = _within(seconds, module, more) or {}
                if shrunk:
                    _write(module, shrunk, f"seed-{seed + number}-shrunk", given)
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


def _write(module: Any, run: Mapping[str, Any], name: str, given: RunArguments) -> None:
    """The log and the script of a run; a log of the same name in the other form is removed."""
    if given.trace is not None:
        log = given.trace / f"{name}{NDJSON}"
        write(log, "".join(run["lines"]()), RUN_LOG)
        remove(log.with_suffix(TABLE), PARQUET)
        if given.tables:
            in_parquet(log)
        if run["wrong"]:
            write(given.trace / f"{name}.script.json", module.script_text(run), RUN_SCRIPT)


def _lines(
    runs: list[dict[str, Any]],
    wrong: list[dict[str, Any]],
    shrunk: Mapping[str, Any] | None,
    given: RunArguments,
) -> Iterator[Line]:
    for run in runs if len(runs) == 1 else wrong[:_SHOWN]:
        yield from _run_lines(run, run.get("script") or f"seed {run['seed']}", facts=len(runs) == 1)
    if len(wrong) > _SHOWN:
        yield line(f"and {len(wrong) - _SHOWN} more")
    if given.shrink and not wrong:
        yield line("no run has failed: there is nothing to shrink")
    elif given.shrink and not shrunk:
        yield line("not shrunk: no end after the time limit; raise --timeout")
    if shrunk:
        yield from _run_lines(shrunk, f"shrunk in {shrunk['runs']} runs", facts=True)
        count = shrunk["deviations"]
        yield line(f"{count} choice{'' if count == 1 else 's'} other than the plain ones", indent=4)
    if len(runs) > 1:
        steps, restarts = (sum(run.get(name, least) - least for run in runs) for name, least in _TOTALS)
        totals = f"{len(runs)} runs: {len(runs) - len(wrong)} right, {len(wrong)} wrong"
        yield line(totals, StyledText(f"; {steps:,} steps, {restarts:,} restarts", "faint"))
    if len(runs) < given.seeds and "script" not in runs[-1]:
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


def _literals(run: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The results of a run, as Python writes them."""
    return {"results": {name: repr(value) for name, value in run["results"].items()}} if "results" in run else {}


def _results(run: Mapping[str, Any]) -> Iterator[Line]:
    """What nothing is compared with, in short."""
    if not (run["wrong"] or run["checked"]):
        for name, value in run["results"].items():
            text = repr(value)
            yield line(f"{name}: {text if len(text) <= LONGEST else text[:LONGEST] + ' ...'}", indent=4, hang=8)


def _verdict(run: Mapping[str, Any], name: str) -> Line:
    good = "the result is as expected" if run.get("checked") else "finished; the file does not state what is expected"
    return line(f"{name}: ", StyledText(run["wrong"] or good, "failed" if run["wrong"] else "good"), hang=4)
