"""The ResourceManager as a process: TaskExecutors and the JobMaster connect to it by TCP."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from streamproof_runtime import messages as m
from streamproof_runtime.event_log import EventWriter
from streamproof_runtime.jobmaster.jobmaster import NAME as JOBMASTER
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.operators import cluster_dataset
from streamproof_runtime.live import manager_sample
from streamproof_runtime.processes.links import PULSE, Link, serve
from streamproof_runtime.processes.process import Parent
from streamproof_runtime.processes.real_executor import STOP
from streamproof_runtime.processes.real_jobmaster import PATIENCE_FOR_EXECUTORS, heartbeats
from streamproof_runtime.processes.wire import message_frame
from streamproof_runtime.slots.resource_manager import ManagerTiming, ResourceManager
from streamproof_runtime.slots.slot_events import RM, SlotEvents, slot_trace
from streamproof_runtime.variants.all_variants import asks, slot_rules

PATIENCE = 2.0
"""Seconds for what TaskExecutors report at the end of a job."""


class RealManager:
    """The host of a `ResourceManager`."""

    def __init__(self, jobs: Sequence[Job], parent: Parent) -> None:
        settings = parent.configuration
        self.parent = parent
        self._secret, self._names = settings["secret"], settings["names"]
        self._listener = socket.socket(fileno=settings["listener"])
        self._log = EventWriter(Path(settings["log"])) if settings["log"] else None
        self._trace, self._events, self._kill_after = slot_trace(jobs[0].name), 0, settings["kill_after"]
        incarnation = settings["incarnation"]
        self.slot_events = SlotEvents(RM, incarnation, self._record)
        interval, timeout = heartbeats(settings["beat"])
        timing = ManagerTiming(
            interval,
            timeout,
            executors=len(self._names),
            patience=PATIENCE_FOR_EXECUTORS,
            idle=settings["idle"],
            names=tuple(self._names),
            resources=settings["resources"],
            asks=asks(settings["variant"]),
        )
        rules = slot_rules(settings["variant"])
        self.machine = ResourceManager(self, timing, incarnation, rules)
        self._links: dict[str, Link] = {}
        self._over, self._left = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """Works until the JobMaster says that the job is over, and the TaskExecutors have left."""
        await serve(self._listener, self._secret, self._accepted)
        self.machine.start()
        loop = asyncio.get_running_loop()
        self.parent.commanded(lambda names: loop.call_soon_threadsafe(self._released, names))
        self.parent.sampled(lambda: manager_sample(self.machine))
        await self._over.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._left.wait(), PATIENCE)

    def _released(self, names: list[str]) -> None:
        """The only command: these cluster partitions are not needed any more."""
        for name in names:
            self.machine.release(cluster_dataset(name))

    # --- for the machine

    def send(self, target: str, message: m.Message) -> None:
        """By the connection that the peer has opened."""
        link = self._links.get(target)
        if link is not None:
            link.send(message_frame(message))

    def close(self, target: str) -> None:
        """Closes a connection; the peer learns of it, if it is there."""
        link = self._links.pop(target, None)
        if link is not None:
            link.close()

    def call_later(self, delay: int, timer: str, number: int) -> None:
        """By the event loop."""
        asyncio.get_running_loop().call_later(delay / 1e9, self.machine.on_timer, timer, number)

    def provide(self, name: str) -> None:
        """By the launching process."""
        self.parent.report("provide", name)

    def _record(self, process: str, event: str, args: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        self._events += 1
        if self._log is not None:
            try:
                self._log.write((self._trace, process, event, args, state, {}))
            except OSError as error:
                problem = f"the event log of the ResourceManager cannot be written: {error.strerror}"
                self.parent.broken(problem, by_system=True)
        if self._events == self._kill_after:
            os.kill(os.getpid(), signal.SIGKILL)

    # --- for the connections

    async def _accepted(self, link: Link, hello: Any) -> None:
        if hello[0] == PULSE:
            await link.each(lambda _: self.machine.on_pulse(*hello[1:]))
            return
        name = hello[0]
        if name not in (JOBMASTER, *self._names):
            return
        if name in self._links:
            self.close(name)
            self.machine.on_lost(name)
        self._links[name] = link
        await link.each(partial(self._on_value, link, name))
        if self._links.get(name) is link:
            del self._links[name]
            self.machine.on_lost(name)
            self._check_left()

    def _on_value(self, link: Link, name: str, value: Any) -> None:
        if self._links.get(name) is not link:
            return  # it was closed
        if value[0] == STOP:
            self._over.set()
            self._check_left()
        else:
            self.machine.on_message(name, tuple(value))

    def _check_left(self) -> None:
        if self._over.is_set() and not self._links.keys() - {JOBMASTER}:
            self._left.set()
