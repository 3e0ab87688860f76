"""Recorded runs under paths: what bindings find there, and the verdicts on one run, in this process or another."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Final, cast

from streamproof.base.errors import InputError, did_you_mean
from streamproof.base.files import plain_name
from streamproof.base.reading import why_no_file
from streamproof.base.text import visible
from streamproof.conformance.binding import Binding, Plan
from streamproof.conformance.coverage import JudgedEvents
from streamproof.conformance.event import Event
from streamproof.conformance.event_forms import NOTHING, LogForm
from streamproof.conformance.event_log import EventLog, is_event_log
from streamproof.conformance.event_table import write_parquet
from streamproof.conformance.events import logs_read_once, write_ndjson
from streamproof.conformance.flink.archives import archive_of, format_inside, format_of, unsupported
from streamproof.conformance.flink.layouts import with_pattern
from streamproof.conformance.flink.reader import read_once
from streamproof.conformance.judging import judge
from streamproof.conformance.run_verdict import RunVerdict
from streamproof.entries import BINDINGS, BINDINGS_ON_REQUEST, Entry, every
from streamproof.language.declare.spec import Spec
from streamproof.model_registry import find_binding, is_registered
from streamproof.system import UsageError

_UNPACKED: Final = {"bz2": "compressed by bzip2", "zstd": "compressed by zstd", "xz": "compressed by xz"}
"""The compressions besides gzip that a reader of archives unpacks itself."""


def packed_as(file: Path) -> str:
    """The compression or archive format of a file, as the end of a sentence; empty for plain and gzipped text."""
    found = format_of(file)
    found = format_inside(file) if found == "gzip" else found or unsupported(file)
    return _UNPACKED.get(found, "" if found == "gzip" else found) or archive_of(file)


def expect_recorded(path: Path, *, archives: bool = False) -> None:
    """Raises `InputError` for a path that is neither a folder nor a readable file, and for a pattern without a match.
    `archives`: the reader unpacks compressed files and archives itself."""
    text = os.fspath(path)
    if glob.has_magic(text) and not path.exists():
        found = [Path(match) for match in sorted(glob.glob(text, recursive=True))]
        if not found:
            raise InputError(f"nothing matches the pattern {text}", remedy="name logs, folders of logs, or a pattern")
    else:
        found = [path]
    for file in found:
        if file.is_dir():
            continue
        why = why_no_file(file)
        if why:
            raise InputError(f"{file} {why}", remedy="name logs, folders of logs, or a pattern")
        packed = packed_as(file)
        if packed and not (archives and packed in (*_UNPACKED.values(), archive_of(file))):
            raise InputError(f"{file} is {packed}", remedy="unpack it, and give the files in it")


ALL = "all"
"""In place of a model's name: all models."""
DAMAGE_SHOWN = 20
"""Maximum number of unreadable lines shown for one run."""


@dataclass(frozen=True, slots=True)
class ValidationRequest:
    """What is asked about runs; see `validate_paths`."""

    model: str | None = None
    job_graph: Path | None = None
    events_dir: Path | None = None
    events_format: str = "ndjson"
    pattern: str | None = None
    covered: bool = False
    """Whether events are counted by family."""
    parameters: tuple[str, ...] = ()
    """Parameters of the model for event logs, as ``name=value``."""
    variant: str | None = None
    """The variant of the model for event logs."""


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run under a path, for another process to find again: the path, and its place among the runs there."""

    path: Path
    place: int
    name: str
    size: int
    """The size of its files, in bytes."""
    command: str = ""
    """Names the command: what was found for it is kept until another one comes."""
    again: int = 1
    """Its number if there are several runs of its name, which is then part of the name from 2 on."""
    alone: bool = True
    """Whether it is the only run under its path: then one that cannot be read ends the command."""


@dataclass(frozen=True, slots=True)
class RunReading:
    """A run as one binding reads it."""

    model: str
    binding: Binding
    run: Any
    kind: str
    """What tells its file of events from those of other models; empty if there are none."""


@dataclass(slots=True)
class JudgedRun:
    """The verdicts on one run, of all models; problems in its files; the events that were judged, if `covered`."""

    verdicts: list[RunVerdict] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    coverage: JudgedEvents = field(default_factory=JudgedEvents)


def registered(*, requested: bool = True) -> dict[str, tuple[Entry, ...]]:
    """The registered bindings by model, in alphabetical order; several of one model read different kinds of logs.
    `requested`: those too that judge runs only if their model is named, or all models are."""
    groups = (BINDINGS, BINDINGS_ON_REQUEST) if requested else (BINDINGS,)
    entries = sorted((entry for group in groups for entry in every(group).values()), key=lambda entry: entry.name)
    found: dict[str, tuple[Entry, ...]] = {}
    for entry in entries:
        model = entry.name.partition(":")[0]
        found[model] = (*found.get(model, ()), entry)
    return found


def binding_for(
    model: str, parameters: Sequence[str] = (), path: Path | None = None, variant: str | None = None
) -> Binding:
    """The binding registered for a model, or the one in a file, ``file.py:NAME`` or ``package.module:NAME``; for other
    models, that of event logs. `parameters`, as ``name=value``, and `variant` are those of the model of an event log; `path`:
    of several bindings the first one that recognises the files there. Raises `UsageError` for an unknown name, and as
    `model_registry.find_binding`."""
    return _bindings_of(model, parameters, path, variant)[0]


def _bindings_of(model: str, parameters: Sequence[str], path: Path | None, variant: str | None = None) -> list[Binding]:
    """The bindings of a model that recognise a path. Else that of event logs with the model's own actions, if there is one;
    else the first."""
    entries = registered().get(model)
    known: list[Binding] = [entry.load() for entry in entries] if entries else [_other_binding(model)]
    found = known[:1]
    if entries and path is not None and (len(known) > 1 or is_event_log(path)):
        fitting = [b for b in known if getattr(b, "reads", b.recognises)(path)]
        found = fitting or ([_other_binding(model)] if is_event_log(path) else found)
    if not parameters and variant is None:
        return found
    if any(getattr(binding, "chosen", None) is None for binding in found):
        if variant is not None:
            why = f"--variant is not supported with {model}: its binding chooses the machine that follows the logs"
            raise UsageError(why, remedy="leave out --variant, or give an event log with the actions of the model")
        raise UsageError(f"-p is not supported with {model}: the logs have the sizes", remedy="leave out -p")
    return [cast(Any, binding).chosen(variant, parameters) for binding in found]


def log_forms(model: str) -> list[LogForm]:
    """The declared forms of the logs that the bindings of a model read; none for a name that is not registered."""
    forms = (getattr(entry.load(), "form", NOTHING) for entry in registered().get(model, ()))
    return [form for form in forms if form is not NOTHING]


def _other_binding(model: str) -> Binding:
    if not is_registered(model) and not model.partition(":")[0].endswith(".py") and ":" not in model:
        found = registered()
        hints = (
            did_you_mean(model, found),
            f"models with a binding: {', '.join(found) or 'none'}",
            "for event logs, any bundled model, or a file.py with a model or a BINDING",
        )
        raise UsageError(f"no model or binding {model!r}", remedy="\n  ".join(filter(None, hints)))
    own = find_binding(model)
    if isinstance(own, Spec):
        return EventLog.bundled(own) if is_registered(model) else EventLog(own)
    if not callable(getattr(own, "plan", None)):
        raise UsageError(f"{model} is a {type(own).__name__}, not a binding", remedy="BINDING = EventLog(MyModel)")
    return cast(Binding, own)


def bindings_for(path: Path, *, with_graph: bool = False, requested: bool = False) -> list[tuple[str, Binding]]:
    """The bindings that recognise the files under a path, each with its model, defaults first; the defaults alone if none
    does. With a job graph, only those of models with a default. `requested`: all that recognise them. Raises `UsageError` if
    there is none."""
    entries = registered(requested=requested)
    known: list[tuple[str, Binding]] = [(model, entry.load()) for model, found in entries.items() for entry in found]
    defaults = {model for model, binding in known if binding.default}
    asked = [(model, binding) for model, binding in known if requested or not with_graph or model in defaults]
    found = [(model, binding) for model, binding in asked if binding.recognises(path)]
    if not found and not defaults:
        models = registered()
        remedy = (
            f"name a model with validate --model: {', '.join(models)}" if models else "install a package that has one"
        )
        raise UsageError(f"no binding recognises {path}", remedy=remedy)
    found = found or [(model, binding) for model, binding in known if binding.default]
    return sorted(found, key=lambda pair: pair[0] not in defaults)


def readings_under(path: Path, request: ValidationRequest) -> list[list[RunReading]]:
    """The runs under a path, each as all bindings read it. Raises `InputError` if there is none."""
    expect_recorded(path, archives=True)
    if request.model is None or request.model == ALL:
        with_graph = request.job_graph is not None
        bindings = bindings_for(path, with_graph=with_graph, requested=request.model == ALL)
    else:
        bindings = [(request.model, b) for b in _bindings_of(request.model, request.parameters, path, request.variant)]
    if not any(getattr(binding, "default", False) for _, binding in bindings):
        expect_recorded(path)
    found = [(name, binding, run) for name, binding in bindings for run in binding.runs(path)]
    several = len({name for name, *_ in found}) > 1
    automatic = registered(requested=False).items() if several else ()
    defaults = {model for model, entries in automatic if any(entry.load().default for entry in entries)}
    places: dict[tuple[str, str], list[RunReading]] = {}
    for name, binding, run in found:
        kind = f".{name}" if several and name not in defaults else ""
        places.setdefault(_place_of(run), []).append(RunReading(name, binding, run, kind))
    return list(places.values())


def found_runs(
    paths: Iterable[Path], request: ValidationRequest, command: str = ""
) -> list[tuple[FoundRun, list[RunReading]]]:
    """The runs under paths. Raises `InputError` for a path without any."""
    paths = list(paths)
    runs = [readings_under(path, request) for path in paths]
    under = [(path, place, rs) for path, own in zip(paths, runs, strict=True) for place, rs in enumerate(own)]
    several = {path for path, own in zip(paths, runs, strict=True) if len(own) > 1}
    titles = [_title_of(readings[0].run) for *_, readings in under]
    taken: set[str] = set()
    found = []
    for (path, place, readings), title in zip(under, titles, strict=True):
        again = next(n for n in count(1) if (f"{title}-{n}" not in {*taken, *titles} if n > 1 else title not in taken))
        taken.add(title if again == 1 else f"{title}-{again}")
        name = Path(_name_of(readings[0].run)).name
        run = FoundRun(path, place, name, _size_of(readings), command, again, alone=path not in several)
        found.append((run, readings))
    return found


_KEPT: dict[tuple[str, Path, ValidationRequest], list[list[RunReading]]] = {}
"""What was found under the paths of the last command, in a process that judges runs for another one."""


def judge_found(run: FoundRun, request: ValidationRequest) -> JudgedRun:
    """As `judge_readings`, of a run that another process has found. The runs under its path are looked for once."""
    known = (run.command, run.path, request)
    with with_pattern(request.pattern):
        if run.alone:
            return judge_readings(readings_under(run.path, request)[0], request, again=run.again)
        if known not in _KEPT:
            for other in [kept for kept in _KEPT if kept[0] != run.command]:
                del _KEPT[other]
            _KEPT[known] = readings_under(run.path, request)
        return judge_readings(_KEPT[known][run.place], request, again=run.again, alone=run.alone)


def judge_readings(
    readings: Sequence[RunReading],
    request: ValidationRequest,
    on_progress: Callable[[str], None] | None = None,
    *,
    again: int = 1,
    alone: bool = True,
    processes: int = 1,
) -> JudgedRun:
    """The verdicts on one run, and its events written if requested. `again` and `alone`: as in `FoundRun`; `processes`: as in
    `judge`.

    Raises `InputError` for a job graph that is not the run's and, if it is alone, for a log that cannot be read, and
    `SystemFailure` if the events cannot be written.
    """
    found = JudgedRun()
    with with_pattern(request.pattern), read_once(), logs_read_once():
        for reading in readings:
            # With all models, the job graph is for those that read one.
            without = request.model == ALL and not getattr(reading.binding, "reads_job_graph", reading.binding.default)
            try:
                plan = reading.binding.plan(reading.run, None if without else request.job_graph)
            except InputError as error:
                if alone or request.job_graph is not None:
                    raise
                if not any(verdict.reason == error.one_line for verdict in found.verdicts):
                    code = error.exit_code
                    unread = RunVerdict(
                        _title_of(reading.run), "", reading.model, "error", error.one_line, exit_code=code
                    )
                    found.verdicts.append(unread)
                continue
            if again > 1:
                plan = replace(plan, name=f"{plan.name}-{again}")
            if on_progress is not None:
                on_progress(plan.name)
            shown = [visible(str(problem)) for problem in plan.problems[:DAMAGE_SHOWN]]
            found.problems += [problem for problem in shown if problem not in found.problems]
            judged: list[Event] | None = [] if request.covered else None
            found.verdicts += judge(plan, reading.model, judged, processes=processes)
            if request.covered:
                found.coverage.reasons.update(getattr(reading.binding, "unjudged", {}))
                found.coverage.add("", plan.events, judged or ())
            if request.events_dir is not None:
                _write_events(plan, request.events_dir, request.events_format, reading.kind)
    found.coverage.finish()
    spoken = any(verdict.trace and not verdict.unrecorded for verdict in found.verdicts)
    found.verdicts = [replace(v, unrecorded=spoken and (v.unrecorded or not v.trace)) for v in found.verdicts]
    return found


def _place_of(run: Any) -> tuple[str, str]:
    """What several bindings agree on about a run, and no other run has: its name, and its folder."""
    return _name_of(run), str(run if isinstance(run, Path) else getattr(run, "folder", ""))


def _name_of(run: Any) -> str:
    """What several bindings call a run."""
    return str(getattr(run, "name", run))


def _title_of(run: Any) -> str:
    """What its verdicts and its file of events are called."""
    name = Path(_name_of(run)).name
    return name.partition(".")[0] if isinstance(run, Path) else name


def _size_of(readings: Sequence[RunReading]) -> int:
    """The size of the files of a run; those that cannot be read count nothing."""
    files = {Path(f) for r in readings for f in getattr(r.run, "files", (r.run,)) if isinstance(f, str | os.PathLike)}
    size = 0
    for file in files:
        with suppress(OSError):
            size += file.stat().st_size
    return size


def _write_events(plan: Plan, folder: Path, form: str, kind: str) -> None:
    # The file has the name of the run, which readers treat as equivalent; a second file about a run states it.
    stem = plain_name(re.sub(r"[/\\]|^\.", "_", visible(plan.name)) + kind)
    events = [replace(event, run=plan.name) for event in plan.events] if kind else plan.events
    if form == "parquet":
        write_parquet(events, folder / f"{stem}.parquet")
    else:
        write_ndjson(events, folder / f"{stem}.ndjson")
