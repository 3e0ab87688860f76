"""The TaskExecutor as a process: its subtasks take steps in one thread, its messages go by TCP, its events to a file."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.event_log import EventWriter
from streamproof_runtime.jobmaster.jobmaster import NAME as JOBMASTER
from streamproof_runtime.jobmaster.regions import regions_of_session
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.graph import graphs
from streamproof_runtime.live import executor_sample
from streamproof_runtime.messages import Message
from streamproof_runtime.processes.file_partitions import FilePartitions
from streamproof_runtime.processes.links import Link, connect, listening, send_pulses, serve
from streamproof_runtime.processes.process import BEATS, DISMISSED, FORKED, Parent
from streamproof_runtime.processes.wire import frame, message_frame
from streamproof_runtime.slots.slot_events import RM, SlotEvents, slot_trace
from streamproof_runtime.subtasks.items import Clock
from streamproof_runtime.subtasks.subtask import Subtask, TaskPlan
from streamproof_runtime.taskexecutor.executor import TaskExecutor
from streamproof_runtime.taskexecutor.executor_host import ExecutorSettings
from streamproof_runtime.variants.all_variants import blob_cache, flow_rules, ledger_type, slot_rules, subtask_type
from streamproof_runtime.variants.loop_variants import loop_rules

PEERS, STOP, STOPPED = "peers", "stop", "stopped"
"""Values between JobMaster and TaskExecutors that the machines do not see: ``[PEERS, {name: [port, incarnation]}]`` before
each deployment, ``[STOP]`` when the job is over, and ``[STOPPED, counts]`` in answer."""
SLOT_TIMEOUT = 10_000 * MILLISECOND
"""Nanoseconds that a slot waits for a JobMaster."""
SLICE = 0.005
"""Seconds of steps before messages are looked at."""
CONGESTED = 1 << 16
"""Bytes that wait for a connection, after which it takes no more if senders wait for it."""
LOOK = 0.001
"""Seconds between two looks at such a connection."""
RETRY = 0.05
"""Seconds before another attempt to connect to the JobMaster."""


def _peak() -> int:
    """Peak memory of this process, in bytes. `ru_maxrss` is inherited from the process that started it; `VmHWM` is not."""
    try:
        return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Outgoing:
    """A connection that this process opens; what is sent before it is open waits for it."""

    def __init__(
        self,
        port: int,
        secret: bytes,
        hello: Any,
        handle: Callable[[Any], None],
        lost: Callable[[], None],
        before: Callable[[], None],
    ) -> None:
        """`before` is called before anything leaves."""
        self._link: Link | None = None
        self._before = before
        self._waiting: list[bytes] = []
        self._handle, self._lost = handle, lost
        self._silent = 0
        """Heartbeats since the peer has sent something."""
        self._task = asyncio.create_task(self._run(port, secret, hello))
        self._task.add_done_callback(lambda task: task.cancelled() or task.result())

    def send(self, data: bytes) -> None:
        """Sends frames."""
        if self._link is None:
            self._waiting.append(data)
        else:
            self._link.send(data)

    async def _run(self, port: int, secret: bytes, hello: Any) -> None:
        try:
            self._link = await connect(port, secret, hello)
        except OSError:
            await asyncio.sleep(RETRY)
        else:
            self._link.before = self._before
            for data in self._waiting:
                self._link.send(data)
            await self._link.each(self._received)
            self._link.close()
        self._lost()

    def _received(self, value: Any) -> None:
        self._silent = 0
        self._handle(value)

    def beat(self) -> None:
        """A heartbeat of the peer is due: one that has sent nothing for too long is lost."""
        self._silent += 1
        if self._silent > BEATS:
            self.close()
            self._lost()

    @property
    def is_congested(self) -> bool:
        """Whether it is not open yet, or much has not been taken."""
        return self._link is None or self._link.unsent > CONGESTED

    def close(self) -> None:
        """Closes the connection; its loss is not reported."""
        self._task.cancel()
        if self._link is not None:
            self._link.close()


class RealExecutor:
    """The host of a `TaskExecutor`."""

    def __init__(self, jobs: Sequence[Job], parent: Parent) -> None:
        settings = parent.configuration
        self.parent, self.job, self._process = parent, jobs[0], os.getpid()
        self.name, self.incarnation = settings["name"], settings["incarnation"]
        self._secret, self._port = settings["secret"], settings["port"]
        self._type = subtask_type(settings["variant"])
        self._log = EventWriter(Path(settings["log"])) if settings["log"] else None
        self._events, self._kill_after = 0, settings["kill_after"]
        self._records, self._timeout = settings["records"], settings["buffer_timeout"]
        self._graph = graphs(jobs)
        self._manager_port = settings["manager_port"]
        self._slot_trace = slot_trace(self.job.name)
        self.slot_events = SlotEvents(self.name, self.incarnation, self._record)
        variant = settings["variant"]
        own = ExecutorSettings(
            settings["buffers"],
            flow=flow_rules(variant),
            loops=loop_rules(variant, settings["input_policy"]),
            ledger=ledger_type(variant),
            slot_timeout=SLOT_TIMEOUT,
            slot_rules=slot_rules(variant),
            unaligned=settings["unaligned"],
            buffer_size=settings["buffer_size"],
            sender_buffers=settings["sender_buffers"],
            blobs=blob_cache(variant),
        )
        parts = [region for of in regions_of_session(jobs) for region in of]
        self.machine = TaskExecutor(self.name, settings["slots"], parts, self, FilePartitions(), self.incarnation, own)
        self._ready: deque[Subtask] = deque()
        self._queued: set[str] = set()
        self._wake = asyncio.Event()
        self._over = asyncio.Event()
        self._addresses: dict[str, tuple[int, int]] = {}
        self._links: dict[str, Outgoing] = {}
        self._lost = 0
        self._looks = False
        """Whether a look at congested connections is due."""

    async def run(self) -> None:
        """Registers, and works until the job is over."""
        listener = listening()
        self._own_port = listener.getsockname()[1]
        await serve(listener, self._secret, self._accepted)
        self._open_control()
        self._open_manager()
        self.machine.start()
        self._beat()
        for port in (self._port, self._manager_port):
            send_pulses(port, self._secret, self.name, self.incarnation, self.parent.configuration["beat"])
        self.parent.sampled(lambda: executor_sample(self.machine))
        steps = asyncio.create_task(self._steps())
        steps.add_done_callback(lambda task: task.cancelled() or task.result())
        await self._over.wait()
        self._flush()

    def _beat(self) -> None:
        """Neither the JobMaster nor the ResourceManager may be silent for long."""
        asyncio.get_running_loop().call_later(self.parent.configuration["beat"], self._beat)
        if not self._over_soon:
            self._control.beat()
            self._manager.beat()

    # --- steps

    async def _steps(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._ready:
                end = loop.time() + SLICE
                while self._ready and loop.time() < end:
                    subtask = self._ready.popleft()
                    if self.machine.step(subtask, _chosen):
                        if self.machine.has(subtask):
                            self._ready.append(subtask)
                    else:
                        self._queued.discard(subtask.name)
                self._flush()
                await asyncio.sleep(0)

    def woken(self, subtask: Subtask) -> None:
        """Schedules the subtask."""
        if subtask.name not in self._queued:
            self._queued.add(subtask.name)
            self._ready.append(subtask)
            self._wake.set()

    def flush_later(self, subtask: Subtask, delay: float) -> None:
        """By the event loop."""
        asyncio.get_running_loop().call_later(delay / 1000, self.machine.flush, subtask)

    def returned(self) -> None:
        """A user function that forks returns twice: the second process is none of the job's, and ends."""
        if os.getpid() != self._process:
            os._exit(FORKED)

    def is_of_job(self, error: BaseException) -> bool:
        """Always: nothing else interrupts this process."""
        return True

    def stopped(self, subtasks: Iterable[Subtask]) -> None:
        """Takes subtasks from the schedule."""
        gone = {subtask.name for subtask in subtasks}
        self._ready = deque(subtask for subtask in self._ready if subtask.name not in gone)
        self._queued -= gone

    def create(self, plan: TaskPlan, trace: str) -> Subtask:
        """A subtask that records its events in the trace of an attempt."""

        def log(process: str, event: str, args: Mapping[str, Any], state: Mapping[str, Any], clock: Clock) -> None:
            if self._log is not None:
                self._log.keep((trace, process, event, args, state, clock))
            self._events += bool(clock)  # without one it is of a channel
            if clock and self._events == self._kill_after:
                self._flush()
                os.kill(os.getpid(), signal.SIGKILL)

        made = self._type(plan, log, _chosen, self._records, self._timeout, self.machine.settings.buffer_size)
        made.is_recorded = self._log is not None
        return made

    def event(self, event: str, args: Mapping[str, Any]) -> None:
        """An event of the TaskExecutor itself."""
        if self._log is not None:
            self._log.keep((self.job.name, f"{self.name}.{self.incarnation}", event, args, {}, {}))

    def dismissed(self) -> None:
        """The process ends."""
        self._flush()
        os._exit(DISMISSED)

    def _flush(self) -> None:
        """Writes events: before anything leaves, and after each slice of steps."""
        if self._log is not None:
            try:
                self._log.flush()
            except OSError as error:
                self.parent.broken(f"the event log of {self.name} cannot be written: {error.strerror}", by_system=True)

    # --- messages

    def send(self, target: str, message: Message) -> None:
        """By the connection to the target, which the first message opens."""
        data = message_frame(message)
        if target in (JOBMASTER, RM):
            (self._control if target == JOBMASTER else self._manager).send(data)
            return
        link = self._links.get(target)
        if link is None:
            port, _ = self._addresses[target]
            hello = [self.name, self.incarnation]
            lost = partial(self._link_lost, target)
            link = Outgoing(port, self._secret, hello, lambda _: None, lost, self._flush)
            self._links[target] = link
        link.send(data)

    def _open_manager(self) -> None:
        handlers = self._of_manager, self._manager_lost, self._flush
        self._manager = Outgoing(self._manager_port, self._secret, [self.name], *handlers)

    def _of_manager(self, value: Any) -> None:
        self.machine.on_message(RM, tuple(value))

    def _manager_lost(self) -> None:
        if not self._over_soon:
            self._open_manager()
            self.machine.on_lost(RM)

    def call_later(self, delay: int, timer: str, number: int) -> None:
        """By the event loop."""
        asyncio.get_running_loop().call_later(delay / 1e9, self.machine.table.on_timer, timer, number)

    def _record(self, process: str, event: str, args: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """An event of the slot protocol."""
        if self._log is not None:
            self._log.keep((self._slot_trace, process, event, args, state, {}))

    def _open_control(self) -> None:
        hello = [self.name, self.incarnation, self._own_port, self._graph]
        handlers = self._of_jobmaster, self._control_lost, self._flush
        self._control = Outgoing(self._port, self._secret, hello, *handlers)

    def _of_jobmaster(self, value: Any) -> None:
        if value[0] == STOP:
            lost = sum(subtask.lost for subtask in self.machine.subtasks)
            longest = self.machine.longest
            self.parent.sampled(lambda: executor_sample(self.machine))
            self.stopped([*self.machine.subtasks])
            self._over_soon = True
            self._control.send(frame([STOPPED, lost, longest[False], longest[True], _peak()]))
        elif value[0] == PEERS:
            for name, (port, incarnation) in value[1].items():
                self._moved(name, (port, incarnation))
        else:
            self.machine.on_message(JOBMASTER, tuple(value))

    def _moved(self, name: str, address: tuple[int, int]) -> None:
        """Another process has the name of a peer: the connection to the old one counts no more."""
        if self._addresses.get(name, address) != address:
            if name in self._links:
                self._links.pop(name).close()
            self.machine.on_lost(name)
        self._addresses[name] = address

    def _control_lost(self) -> None:
        if self._over_soon:
            self._over.set()
            return
        self._open_control()
        self.machine.on_lost(JOBMASTER)

    _over_soon = False

    def _link_lost(self, name: str) -> None:
        self._links.pop(name, None)
        self.machine.on_lost(name)

    def is_congested(self, target: str) -> bool:
        """Whether a sender must wait; it is woken after a while."""
        found = target in self._links and self._links[target].is_congested
        if found and not self._looks:
            self._looks = True
            asyncio.get_running_loop().call_later(LOOK, self._wake_all)
        return found

    def _wake_all(self) -> None:
        self._looks = False
        for subtask in self.machine.subtasks:
            if self.machine.is_running(subtask):
                self.woken(subtask)

    async def _has_buffers(self, peer: str) -> None:
        while self.machine.is_full(peer):
            await asyncio.sleep(LOOK)

    async def _accepted(self, link: Link, hello: Any) -> None:
        """A TaskExecutor has connected, to send."""
        name, incarnation = hello
        ready = partial(self._has_buffers, name) if self.machine.settings.flow.stops_reading else None
        await link.each(lambda value: self.machine.on_message(name, tuple(value)), ready)
        if self._addresses.get(name, (0, incarnation))[1] == incarnation:
            self.machine.on_lost(name)


def _chosen(bound: int) -> int:
    return int(random.random() * bound)
