"""The runtime for a command line: plain values in, plain values out. Errors that a user can correct are `Problem`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.errors import ProcessLost, RuntimeFailure
from streamproof_runtime.event_log import lines
from streamproof_runtime.jobmaster.checkpoints import expect_streaming
from streamproof_runtime.jobmaster.master_host import OFFLOAD
from streamproof_runtime.jobmaster.regions import regions
from streamproof_runtime.jobs.input_policies import ANY
from streamproof_runtime.jobs.job_file import JobFile
from streamproof_runtime.jobs.sessions import last_readers
from streamproof_runtime.live import Watch
from streamproof_runtime.processes import kills as kill_options
from streamproof_runtime.simulator.board import SimulationBoard
from streamproof_runtime.simulator.faults import Fault
from streamproof_runtime.simulator.fence import replaced
from streamproof_runtime.simulator.shrink import shrink
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.simulator.tape import STREAMS
from streamproof_runtime.slots.placement import expect_slots
from streamproof_runtime.slots.resources import Resources, parse
from streamproof_runtime.slots.slot_events import RM
from streamproof_runtime.subtasks.buffers import BYTES, RECORDS
from streamproof_runtime.subtasks.flow import BUFFERS
from streamproof_runtime.subtasks.sender_pools import expect_enough
from streamproof_runtime.variants import all_variants
from streamproof_runtime.variants.flush_variants import FLUSHES
from streamproof_runtime.variants.span_variants import POOLS

Problem = RuntimeFailure
Lost = ProcessLost
SCRIPT = "streamproof.run-script/1"
"""The schema of a script: the faults and choices of a run."""
LIMIT = 500_000
"""Largest number of steps of a run."""


def _job_file(
    path: Path,
    variant: str | None,
    executors: int,
    slots: int,
    timeout: float | None,
    profiles: Mapping[str, Resources],
    sender_buffers: int | None,
) -> JobFile:
    if variant is not None and variant not in all_variants.NAMES:
        raise Problem(f"no variant {variant!r}; there are {', '.join(all_variants.NAMES)}")
    if variant in FLUSHES and not timeout:
        raise Problem(f"{variant} changes nothing if no record waits in a buffer; add --buffer-timeout 1")
    if variant in POOLS and sender_buffers is None:
        raise Problem(f"{variant} changes nothing if senders have no pool; add --sender-buffers 10")
    file = JobFile(path)
    places = [(f"{name} {slot}", name, "") for slot in range(slots) for name in _names(executors)]
    for job in file.jobs():
        parts = regions(job)
        expect_slots(parts, executors * slots, places, profiles)
        expect_enough((part.graph for part in parts), sender_buffers)
    return file


def _names(executors: int) -> list[str]:
    return [f"tm-{i}" for i in range(1, executors + 1)]


def _interval(file: JobFile, milliseconds: float, unaligned: bool) -> int:
    """The time between two checkpoints in nanoseconds. Raises `RuntimeFailure` for a job that cannot have them."""
    if unaligned and not milliseconds:
        raise Problem("--unaligned changes nothing without checkpoints; add --checkpoint-interval 100")
    if milliseconds and len(file.jobs()) > 1:
        raise Problem("a session of several jobs has no checkpoints; leave out --checkpoint-interval")
    if milliseconds:
        expect_streaming(regions(file.job()), unaligned=unaligned)
    return round(milliseconds * MILLISECOND)


def _stop_after(file: JobFile, milliseconds: float | None, *, simulated: bool) -> float | None:
    """The time after which unbounded sources are stopped. Raises `RuntimeFailure` for a job without them, and for a simulated
    run that nobody would stop."""
    sources = file.job().unbounded
    if milliseconds is not None and not sources:
        raise Problem("the job has no unbounded source; leave out --stop-after")
    if sources and milliseconds is None and simulated:
        raise Problem(f"source {sources[0]} has no end, and nobody stops a simulated run; add --stop-after 1")
    return milliseconds


def _session(file: JobFile) -> list[tuple[str, list[str]]]:
    """The name of each job of a session, and what is released with its end; empty: there is one job."""
    jobs = file.jobs()
    return [(job.name, names) for job, names in zip(jobs, last_readers(jobs), strict=True)] if len(jobs) > 1 else []


def _idle(variant: str | None, milliseconds: float) -> int:
    """The time in nanoseconds after which an idle TaskExecutor is released."""
    if not (milliseconds or all_variants.asks(variant)):
        raise Problem(f"{variant} changes nothing if no TaskExecutor is released; add --idle-timeout 10")
    return round(milliseconds * MILLISECOND)


class Ended(Protocol):
    """The outcome of a run of any kind."""

    finished: bool
    reason: str
    lost: int
    results: dict[str, Any]


def _wrong(file: JobFile, outcome: Ended) -> str:
    if not outcome.finished:
        return outcome.reason
    if outcome.lost:
        some = "1 record" if outcome.lost == 1 else f"{outcome.lost} records"
        return f"{some} arrived at subtasks that had terminated"
    return file.wrong(outcome.results)


class Simulated:
    """Simulated runs of one job file."""

    def __init__(
        self,
        path: Path,
        *,
        level: str,
        variant: str | None,
        executors: int,
        slots: int,
        checkpoints: float = 0,
        idle: float = 0,
        stop_after: float | None = None,
        resources: Sequence[str] = (),
        **more: Any,
    ) -> None:
        """`checkpoints`: milliseconds between two, 0 for none; `idle`: milliseconds until an idle TaskExecutor is released, 0
        for never; `stop_after`: milliseconds until unbounded sources are stopped; `more`: `eager`,
        `unaligned`, `timeout`, `buffer_size`, `sender_buffers` and `offload` of
        `Simulation`. Raises `RuntimeFailure` for an unknown variant, too few slots, a job that
        cannot have checkpoints, and as `JobFile`."""
        with replaced():
            profiles = parse(resources, _names(executors))
            sizes = more.get("timeout"), profiles, more.get("sender_buffers")
            self.file = _job_file(path, variant, executors, slots, *sizes)
            self._level = level
            stop = _stop_after(self.file, stop_after, simulated=True)
        input_policy = more.pop("input_policy", ANY)
        self._more: dict[str, Any] = {
            "executors": executors,
            "slots": slots,
            **more,
            **all_variants.simulated(variant, input_policy),
            "checkpoint_interval": _interval(self.file, checkpoints, bool(more.get("unaligned"))),
            "idle": _idle(variant, idle),
            "stop_after": None if stop is None else round(stop * MILLISECOND),
            "resources": profiles,
        }

    def seed(self, seed: int, watch: Watch | None = None) -> dict[str, Any]:
        """The run of a seed; `watch` is called with snapshots for a live view."""
        return {"seed": seed, **self._run(watch, f"seed {seed}", seed=seed, level=self._level)}

    def script(self, path: Path, text: str, watch: Watch | None = None) -> dict[str, Any]:
        """The run of a script, the text of the file `path`; raises `RuntimeFailure` for a text that is none."""
        try:
            record = json.loads(text)
            if record["schema"] != SCRIPT:
                raise ValueError(f"its schema is {record['schema']!r}")
            faults = [Fault.of(fault) for fault in record["faults"]]
            choices = {s: [int(c) for c in record["choices"].get(s, ())] for s in STREAMS}
            if any(c < 0 for given in choices.values() for c in given):
                raise ValueError("a choice is below 0")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Problem(f"{path} is not a script of a run: {error}") from error
        known = {f"tm-{i}" for i in range(1, self._more["executors"] + 1)} | {"jobmaster", RM}
        for node in (node for fault in faults for node in fault.nodes):
            if node not in known:
                raise Problem(f"{path}: there is no process {node!r}")
        return {"script": str(path), **self._run(watch, path.name, script=choices, faults_given=faults)}

    def shrunk(self, run: Mapping[str, Any], is_over: Callable[[], bool] = lambda: False) -> dict[str, Any]:
        """The smallest failing script found for a failing run, as a run.

        Raises `RuntimeFailure` if `is_over()` after one of the runs that this takes.
        """
        faults = [Fault.of(fault) for fault in run["faults"]]

        def fails(choices: dict[str, list[int]], script: Sequence[Fault]) -> bool:
            wrong = bool(self._run(script=choices, faults_given=script)["wrong"])
            if is_over():  # a user function, or what calls it, may have taken the interrupt for a failure
                raise RuntimeFailure("shrinking has no more time")
            return wrong

        found = shrink(run["choices"], faults, fails)
        again = self._run(script=found.choices, faults_given=found.faults)
        return {
            "seed": run.get("seed"),
            "runs": found.runs,
            "deviations": found.deviations,
            **again,
            "choices": found.choices,
        }

    def _run(self, watch: Watch | None = None, title: str = "", **more: Any) -> dict[str, Any]:
        with replaced():
            job, *later = self.file.jobs()
        simulation = Simulation(job, later=later, **self._more, **more)
        board = None if watch is None else SimulationBoard(simulation, title, watch)
        outcome = simulation.run(LIMIT, None if board is None else board.look)
        return {
            "wrong": _wrong(self.file, outcome),
            "results": outcome.results,
            "stuck": not (outcome.finished or outcome.errors or outcome.unfinished),
            "unfinished": outcome.unfinished,
            "checked": self.file.is_checked,
            "attempts": outcome.attempts,
            "steps": outcome.steps,
            "events": len(outcome.entries),
            "virtual_ns": outcome.time,
            "digest": outcome.digest,
            "faults": [fault.record() for fault in outcome.faults],
            "fault_texts": [str(fault) for fault in outcome.faults if fault.at <= outcome.time],
            "choices": outcome.choices,
            "lines": lambda: lines(outcome.entries),
        }


class Processes:
    """A run of a job file on processes of their own."""

    def __init__(
        self,
        path: Path,
        *,
        variant: str | None,
        executors: int,
        slots: int,
        kills: Sequence[str],
        restarts: int,
        seconds: float,
        buffers: int = BUFFERS,
        records: int = RECORDS,
        eager: bool = False,
        timeout: float | None = None,
        buffer_size: int = BYTES,
        sender_buffers: int | None = None,
        input_policy: str = ANY,
        checkpoints: float = 0,
        unaligned: bool = False,
        idle: float = 0,
        stop_after: float | None = None,
        resources: Sequence[str] = (),
        offload: int = OFFLOAD,
    ) -> None:
        """`offload`: bytes; `timeout`: the buffer timeout; `buffer_size` in bytes; `sender_buffers` of a subtask;
        `stop_after`: milliseconds. Raises `RuntimeFailure` as `Simulated`, for a kill of
        another form, and without msgpack."""
        from streamproof_runtime.processes.cluster import Settings  # only here is msgpack needed

        profiles = parse(resources, _names(executors))
        self.file = _job_file(path, variant, executors, slots, timeout, profiles, sender_buffers)
        sizes = buffers, records, timeout, buffer_size, sender_buffers
        interval = _interval(self.file, checkpoints, unaligned)
        stop = _stop_after(self.file, stop_after, simulated=False)
        self._settings = Settings(
            path,
            executors,
            slots,
            variant,
            restarts,
            *sizes,
            eager,
            input_policy,
            interval,
            unaligned,
            _idle(variant, idle),
            resources=profiles,
            session=_session(self.file),
            stop_after=None if stop is None else stop / 1000,
            seconds=seconds,
            offload=offload,
        )
        self._cluster: Any = None
        self._is_stopping = False
        self._kills = kill_options.parse(kills, (*self._settings.names, "jobmaster", RM))

    @property
    def has_end(self) -> bool:
        """Whether the job ends by itself."""
        return not self.file.job().unbounded

    def stop(self) -> None:
        """Stops the unbounded sources of a run; a signal handler may call it."""
        self._is_stopping = True
        if self._cluster is not None:
            self._cluster.is_stopping = True

    def run(
        self,
        logs: Path | None,
        tell: Callable[[str], None],
        watch: Watch | None = None,
        errors: int | None = None,
    ) -> dict[str, Any]:
        """Runs the job; `logs` is the folder of the event logs. Raises `RuntimeFailure`, `ProcessLost` among them.

        `watch` is called with snapshots for a live view; `errors` is the standard error of the processes.
        """
        from streamproof_runtime.processes.cluster import Cluster

        settings = replace(self._settings, log_folder=logs, live=watch is not None, errors=errors)
        self._cluster = Cluster(settings, self._kills, tell, watch)
        self._cluster.is_stopping |= self._is_stopping
        outcome = self._cluster.run()
        return {
            "wrong": _wrong(self.file, outcome),
            "results": outcome.results,
            "unfinished": outcome.unfinished,
            "checked": self.file.is_checked,
            "attempts": outcome.attempts,
            "kills": [{"kill": str(kill), "happened": kill.is_done} for kill in self._kills],
            "longest_queue": outcome.longest,
            "longest_feedback_queue": outcome.longest_feedback,
            "peak_bytes": outcome.memory,
        }


def script_text(run: Mapping[str, Any]) -> str:
    """The file of a script that repeats a run."""
    record = {"schema": SCRIPT, "faults": run["faults"], "choices": run["choices"]}
    return json.dumps(record) + "\n"
