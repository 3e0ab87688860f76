"""The JobMaster as a process: TaskExecutors connect to it by TCP; it reports to its parent what happens, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from streamproof_runtime import messages as m
from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.event_log import Entry, EventWriter
from streamproof_runtime.jobmaster.checkpoint_store import CheckpointStore, MemoryCheckpoints
from streamproof_runtime.jobmaster.failure_budgets import FailureBudget
from streamproof_runtime.jobmaster.jobmaster import NAME as JOBMASTER
from streamproof_runtime.jobmaster.jobmaster import job_trace
from streamproof_runtime.jobmaster.master_host import Timing
from streamproof_runtime.jobmaster.region_scheduler import DONE
from streamproof_runtime.jobmaster.regions import regions_of_session
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.graph import graphs
from streamproof_runtime.live import master_sample
from streamproof_runtime.processes.checkpoint_files import FileCheckpoints
from streamproof_runtime.processes.links import PULSE, Link, serve
from streamproof_runtime.processes.process import BEATS, SILENT, Parent
from streamproof_runtime.processes.real_executor import PEERS, STOP, STOPPED, Outgoing
from streamproof_runtime.processes.wire import frame, message_frame
from streamproof_runtime.slots.slot_events import POOL, RM, SlotEvents, slot_trace
from streamproof_runtime.variants.all_variants import master_type, slot_rules

SLOT_BEATS = 50
"""Heartbeats after which an attempt that has no slots fails."""
RESTART_DELAY = 200 * MILLISECOND
CHECKPOINT_TIMEOUT = 600_000 * MILLISECOND
PATIENCE_FOR_EXECUTORS = 30_000 * MILLISECOND
_LONGEST = 200
"""Characters of a reason that the parent gets."""
PATIENCE = 10.0
"""Seconds for the TaskExecutors to stop when the job is over."""


def heartbeats(beat: float) -> tuple[int, int]:
    """The time between two heartbeats, and that without an answer after which a peer is lost, in nanoseconds."""
    interval = round(beat * 1_000 * MILLISECOND)
    return interval, BEATS * interval


class RealJobMaster:
    """The host of a `JobMaster`."""

    def __init__(self, jobs: Sequence[Job], parent: Parent) -> None:
        settings = parent.configuration
        number, is_session = settings["job_number"], len(jobs) > 1
        self.parent, self.job, self._is_last = parent, jobs[number], number == len(jobs) - 1
        job = self.job
        self._secret, self._names = settings["secret"], settings["names"]
        self._listener = socket.socket(fileno=settings["listener"])
        self._log = EventWriter(Path(settings["log"])) if settings["log"] else None
        self._events, self._kill_after = 0, settings["kill_after"]
        self._graph = graphs(jobs)
        timing = Timing(
            *(*heartbeats(settings["beat"]), RESTART_DELAY),
            restarts=settings["restarts"],
            budget=FailureBudget(job.max_failures_per_task, job.max_failures),
            slots=len(self._names) * settings["slots"],
            patience=PATIENCE_FOR_EXECUTORS,
            slot_rules=slot_rules(settings["variant"]),
            eager=settings["eager"],
            checkpoint_interval=settings["checkpoint_interval"],
            unaligned=settings["unaligned"],
            checkpoint_timeout=CHECKPOINT_TIMEOUT,
            resources=settings["resources"],
            job=job.name if is_session else "",
            cluster=settings["cluster"],
            slot_beats=SLOT_BEATS,
            offload=settings["offload"],
        )
        files = [os.fdopen(file, "r+b", buffering=0) for file in settings["checkpoint_files"]]
        self.checkpoint_store: CheckpointStore = FileCheckpoints(files) if files else MemoryCheckpoints()
        self._slot_trace = slot_trace(jobs[0].name)
        self.slot_events = SlotEvents(POOL, settings["incarnation"], self._record)
        self.machine = master_type(settings["variant"])(
            regions_of_session(jobs)[number], self, timing, settings["first_attempt"]
        )
        self._trace = job_trace(job.name, settings["incarnation"])
        self._links: dict[str, Link] = {}
        self._addresses: dict[str, tuple[int, int]] = {}
        self._over = asyncio.Event()
        self._stopped: dict[str, list[int]] = {}
        self._all_stopped = asyncio.Event()

    async def run(self) -> None:
        """Runs the job, and reports its end."""
        await serve(self._listener, self._secret, self._accepted)
        self._open_manager()
        self.machine.start()
        loop = asyncio.get_running_loop()
        self.parent.commanded(lambda _: loop.call_soon_threadsafe(self._stop))
        self.parent.sampled(lambda: master_sample(self.machine))
        await self._over.wait()
        machine = self.machine
        if self._is_last or machine.status != DONE:
            await self._stop_all()
        self.parent.sampled(lambda: master_sample(machine))
        self.parent.report(
            "over",
            machine.status == DONE,
            machine.errors,
            machine.results,
            machine.decided + 1,
            self._stopped,
            dict(machine.promoted),
        )

    async def _stop_all(self) -> None:
        """TaskExecutors and ResourceManager end: there is no other job."""
        for link in self._links.values():
            link.send(frame([STOP]))
        self._check_stopped()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._all_stopped.wait(), PATIENCE)
        self._manager.send(frame([STOP]))
        await asyncio.sleep(0.001)

    def _stop(self) -> None:
        """The only command: unbounded sources end."""
        self.machine.stop()
        self._check()

    # --- for the machine

    def send(self, target: str, message: m.Message) -> None:
        """By the connection that the TaskExecutor has opened; before a deployment with the addresses of all."""
        if target == RM:
            self._manager.send(message_frame(message))
            return
        link = self._links.get(target)
        if link is None:
            return
        if message[0] == m.DEPLOY:
            link.send(frame([PEERS, {name: [*address] for name, address in self._addresses.items()}]))
        link.send(message_frame(message))

    def close(self, target: str) -> None:
        """Closes a connection; the TaskExecutor learns of it, if it is there."""
        link = self._links.pop(target, None)
        if link is not None:
            link.close()

    def give_up(self, target: str) -> None:
        """The launching process ends it, too: a user function that does not return keeps it, and it has slots."""
        self.close(target)
        self.parent.report(SILENT, target, self._addresses[target][1])

    def call_later(self, delay: int, timer: str, number: int) -> None:
        """By the event loop."""
        asyncio.get_running_loop().call_later(delay / 1e9, self._on_timer, timer, number)

    def _open_manager(self) -> None:
        port, hello = self.parent.configuration["manager_port"], [JOBMASTER]
        self._manager = Outgoing(port, self._secret, hello, self._of_manager, self._manager_lost, lambda: None)

    def _of_manager(self, value: Any) -> None:
        self.machine.on_message(RM, tuple(value))
        self._check()

    def _manager_lost(self) -> None:
        self._open_manager()
        self.machine.on_lost(RM)

    def _record(self, process: str, event: str, args: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """An event of the slot protocol."""
        self._write((self._slot_trace, process, event, args, state, {}))

    def _write(self, entry: Entry) -> None:
        if self._log is not None:
            try:
                self._log.write(entry)
            except OSError as error:
                problem = f"the event log of the JobMaster cannot be written: {error.strerror}"
                self.parent.broken(problem, by_system=True)

    def event(self, event: str, args: Mapping[str, Any], trace: str = "") -> None:
        """Into the log, and to the parent."""
        self._events += 1
        self._write((self.job.name + trace if trace else self._trace, JOBMASTER, event, args, {}, {}))
        if self._events == self._kill_after:
            os.kill(os.getpid(), signal.SIGKILL)
        about = next((str(args[name]) for name in ("reason", "executor", "task") if name in args), "")
        self.parent.report("event", event, self.machine.decided, about[:_LONGEST])

    # --- for the connections

    def _on_timer(self, timer: str, number: int) -> None:
        self.machine.on_timer(timer, number)
        self._check()

    async def _accepted(self, link: Link, hello: Any) -> None:
        if hello[0] == PULSE:
            await link.each(lambda _: self._pulsed(*hello[1:]))
            return
        name, incarnation, port, graph = hello
        if name not in self._names:
            return
        if graph != self._graph:
            file = self.parent.configuration["job"]
            self.parent.broken(f"{name} has read another job from {file}; leave the file as it is during a run")
        if name in self._links:
            self.close(name)
            self.machine.on_lost(name)
        self._links[name], self._addresses[name] = link, (port, incarnation)
        await link.each(lambda value: self._on_value(name, value))
        if self._links.get(name) is link:
            del self._links[name]
            self.machine.on_lost(name)
            self._check()

    def _pulsed(self, name: str, incarnation: int) -> None:
        """A TaskExecutor is there, though a user function may keep its answers waiting."""
        if name in self._links and self._addresses[name][1] == incarnation:
            self.machine.on_pulse(name)

    def _on_value(self, name: str, value: Any) -> None:
        if value[0] == STOPPED:
            self._stopped[name] = value[1:]
        else:
            self.machine.on_message(name, tuple(value))
        self._check()

    def _check(self) -> None:
        if self.machine.is_over:
            self._over.set()
            self._check_stopped()

    def _check_stopped(self) -> None:
        if self._links.keys() <= self._stopped.keys():
            self._all_stopped.set()
