"""The simulated processes: hosts of the runtime's machines on the simulated network, which can crash and stand still."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.jobmaster.checkpoint_store import CheckpointStore, MemoryCheckpoints
from streamproof_runtime.jobmaster.failure_budgets import FailureBudget
from streamproof_runtime.jobmaster.jobmaster import NAME as JOBMASTER
from streamproof_runtime.jobmaster.jobmaster import JobMaster, job_trace
from streamproof_runtime.jobmaster.master_host import Timing
from streamproof_runtime.jobmaster.regions import Region
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.functions import is_of_job
from streamproof_runtime.messages import Message
from streamproof_runtime.simulator.loop import EventLoop
from streamproof_runtime.simulator.network import Network
from streamproof_runtime.slots.resource_manager import ManagerTiming, ResourceManager
from streamproof_runtime.slots.slot_events import POOL, RM, SlotEvents
from streamproof_runtime.slots.slot_rules import SlotRules
from streamproof_runtime.subtasks.items import Clock
from streamproof_runtime.subtasks.subtask import Subtask, TaskPlan
from streamproof_runtime.taskexecutor.executor import TaskExecutor
from streamproof_runtime.taskexecutor.executor_host import ExecutorSettings
from streamproof_runtime.taskexecutor.partitions import MemoryPartitions
from streamproof_runtime.taskexecutor.region_executor import RegionExecutor


class SimulatedWorld(Protocol):
    """What simulated processes share: the parameters of the run, its loop and network, and its log."""

    job: Job
    regions: tuple[Region, ...]
    slots: int
    room: int
    executor_settings: ExecutorSettings
    slot_rules: SlotRules
    loop: EventLoop
    network: Network
    choose: Callable[[int], int]
    is_stopped: bool

    def send(self, source: str, target: str, message: Message) -> None:
        """By the network."""

    def create(self, plan: TaskPlan, trace: str) -> Subtask:
        """A subtask that records its events in this trace."""

    def provide(self, name: str) -> None:
        """Starts a TaskExecutor that was released."""

    def log(
        self,
        trace: str,
        process: str,
        event: str,
        args: Mapping[str, Any],
        state: Mapping[str, Any],
        clock: Clock,
    ) -> None:
        """Records an event."""

    def log_slots(self, process: str, event: str, args: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Records an event of the slot protocol."""


class Runner:
    """A subtask that the loop schedules."""

    __slots__ = ("at", "loop", "part", "subtask")

    def __init__(self, loop: EventLoop, subtask: Subtask, part: RegionExecutor) -> None:
        self.loop, self.subtask, self.part, self.at = loop, subtask, part, -1

    def step(self) -> None:
        """One action, or none if there is none any more."""
        subtask, part, loop = self.subtask, self.part, self.loop
        part.step(subtask, loop.choose)
        if self.at >= 0 and not part.enabled(subtask):
            loop.sleep(self)


class SimulatedExecutor:
    """The simulated process of a TaskExecutor."""

    def __init__(self, name: str, world: SimulatedWorld) -> None:
        self.name, self.world = name, world
        self.is_alive, self.is_paused, self.is_dismissed = True, False, False
        self.runners: dict[str, Runner] = {}
        self.kept: list[partial[None]] = []
        """What arrives while it is paused, and timers."""
        self.due: list[Subtask] = []
        """Buffer timeouts that pass while it is paused."""
        self.partitions = MemoryPartitions(world.room)
        self.incarnation = 0
        self.executor = self._new()

    def _new(self) -> TaskExecutor:
        world = self.world
        self.slot_events = SlotEvents(self.name, self.incarnation, world.log_slots)
        return TaskExecutor(
            self.name, world.slots, world.regions, self, self.partitions, self.incarnation, world.executor_settings
        )

    def receive(self, peer: str, message: Message | None) -> None:
        """A message, or None for a lost connection, unless the process is down."""
        if self.is_paused:
            if (
                message is None
            ):  # it learns once that the connection is not the one it knew, whatever happened meanwhile
                self.kept = [kept for kept in self.kept if kept.args != (peer, None)]
            self.kept.append(partial(self.receive, peer, message))
        elif self.is_alive:
            if message is None:
                self.executor.on_lost(peer)
            else:
                self.executor.on_message(peer, message)

    def connection_lost(self, peer: str) -> None:
        """The executor learns that a connection is lost."""
        self.receive(peer, None)

    def send(self, target: str, message: Message) -> None:
        """By the network."""
        self.world.send(self.name, target, message)

    def call_later(self, delay: int, timer: str, number: int) -> None:
        """By the loop."""
        self.world.loop.call_later(delay, self._on_timer, self.executor.incarnation, timer, number)

    def _on_timer(self, incarnation: int, timer: str, number: int) -> None:
        if self.is_paused:
            self.kept.append(partial(self._on_timer, incarnation, timer, number))
        elif self.is_alive and incarnation == self.executor.incarnation:
            self.executor.table.on_timer(timer, number)

    def create(self, plan: TaskPlan, trace: str) -> Subtask:
        """A subtask that records its events under the name of the attempt."""
        subtask = self.world.create(plan, trace)
        self.runners[plan.name] = Runner(self.world.loop, subtask, self.executor.part_of(plan.name))
        return subtask

    def flush_later(self, subtask: Subtask, delay: float) -> None:
        """By the loop; a process that stands still does it later."""
        self.world.loop.call_later(int(delay * MILLISECOND), self._flush, subtask)

    def _flush(self, subtask: Subtask) -> None:
        if self.is_paused:
            self.due.append(subtask)
        elif self.is_alive:
            self.executor.flush(subtask)

    def returned(self) -> None:
        """As everywhere: a simulated run has one process."""

    def is_of_job(self, error: BaseException) -> bool:
        """Ctrl-C and the end of a time limit are raised in user functions, too."""
        return is_of_job(error)

    def is_congested(self, target: str) -> bool:
        """Never: the simulated network takes everything."""
        return False

    def event(self, event: str, args: Mapping[str, Any]) -> None:
        """Into the log, as this process of the TaskExecutor."""
        self.world.log(self.world.job.name, f"{self.name}.{self.incarnation}", event, args, {}, {})

    def woken(self, subtask: Subtask) -> None:
        """Schedules the subtask if it can do something."""
        runner = self.runners[subtask.name]
        if runner.at < 0 and self.is_alive and not self.is_paused and runner.part.enabled(subtask):
            self.world.loop.wake(runner)

    def stopped(self, subtasks: Iterable[Subtask]) -> None:
        """Takes subtasks from the schedule."""
        for subtask in subtasks:
            self.world.loop.sleep(self.runners.pop(subtask.name))

    def crash(self) -> None:
        """The process is gone, with all that it had."""
        self.is_alive, self.is_paused, self.kept, self.due = False, False, [], []
        self.stopped([runner.subtask for runner in self.runners.values()])
        self.executor.ledger.store.clear()

    def dismissed(self) -> None:
        """The process ends."""
        self.crash()
        self.is_dismissed = True
        self.world.network.restarted(self.name)

    def restart(self) -> None:
        """The process starts anew."""
        if not self.is_alive:
            self.is_alive, self.is_dismissed = True, False
            self.incarnation += 1
            self.executor = self._new()
            self.executor.start()

    def pause(self) -> None:
        """The process stands still."""
        if self.is_alive:
            self.is_paused = True
            for runner in self.runners.values():
                self.world.loop.sleep(runner)

    def resume(self) -> None:
        """The process goes on, with what has arrived meanwhile."""
        if self.is_paused:
            self.is_paused, kept, self.kept = False, self.kept, []
            for arrive in kept:
                arrive()
            due, self.due = self.due, []
            for subtask in due:
                self.executor.flush(subtask)
            for runner in list(self.runners.values()):
                if self.executor.is_running(runner.subtask):
                    self.woken(runner.subtask)


class ReplacedProcess:
    """A simulated process that, when it has crashed, another one replaces, with a machine of its own."""

    name: str
    machine: Any
    slot_events: SlotEvents

    def __init__(self, world: SimulatedWorld) -> None:
        self.world, self.is_alive, self.incarnation = world, True, 0

    def receive(self, peer: str, message: Message) -> None:
        """A message, unless the process is down."""
        if self.is_alive:
            self.machine.on_message(peer, message)

    def connection_lost(self, peer: str) -> None:
        """A lost connection."""
        if self.is_alive:
            self.machine.on_lost(peer)

    def crash(self) -> None:
        """The process is gone, with all that it had."""
        self.is_alive = False

    def restart(self) -> None:
        """Another process begins."""
        if not self.is_alive:
            self.is_alive, self.incarnation = True, self.incarnation + 1
            self.machine = self.replacement()
            self.machine.start()

    def replacement(self) -> Any:
        """The machine of the process that replaces a lost one."""
        raise NotImplementedError

    def send(self, target: str, message: Message) -> None:
        """By the network."""
        self.world.send(self.name, target, message)

    def close(self, target: str) -> None:
        """Both ends learn of it."""
        self.world.network.disconnect(self.name, target)

    give_up = close

    def call_later(self, delay: int, timer: str, number: int) -> None:
        """By the loop."""
        self.world.loop.call_later(delay, self._on_timer, self.incarnation, timer, number)

    def _on_timer(self, incarnation: int, timer: str, number: int) -> None:
        if self.is_alive and incarnation == self.incarnation:
            self.machine.on_timer(timer, number)


class SimulatedJobMaster(ReplacedProcess):
    """The simulated process of the JobMaster."""

    name = JOBMASTER
    machine: JobMaster

    def __init__(self, world: SimulatedWorld, machine: type[JobMaster], timing: Timing) -> None:
        super().__init__(world)
        self._type, self._timing, self.earlier = machine, timing, 0

    def begin(self, job: Job, regions: Sequence[Region]) -> None:
        """The first job."""
        self.job, self._regions = job, regions
        self.checkpoint_store: CheckpointStore = MemoryCheckpoints()
        self.machine = self._new(self.earlier)

    def next(self, job: Job, regions: Sequence[Region], cluster: Mapping[str, int]) -> None:
        """The next job of the session: its JobMaster replaces that of the last one, and knows what was promoted."""
        self.incarnation += 1
        self.earlier += self.machine.decided + 1
        self._timing = replace(
            self._timing,
            job=job.name,
            cluster=dict(cluster),
            budget=FailureBudget(job.max_failures_per_task, job.max_failures),
        )
        self.begin(job, regions)
        self.machine.start()

    def _new(self, first_attempt: int) -> JobMaster:
        self.slot_events = SlotEvents(POOL, self.incarnation, self.world.log_slots)
        return self._type(self._regions, self, self._timing, first_attempt)

    def replacement(self) -> JobMaster:
        """It begins the job anew, after the attempts of the lost one, from the latest checkpoint."""
        lost = self.machine
        self.earlier += lost.decided + 1
        return self._new(lost.first_attempt + lost.decided + 1)

    def restart(self) -> None:
        """The next one stops the sources, too, if they are to stop."""
        super().restart()
        if self.world.is_stopped:
            self.machine.stop()

    def event(self, event: str, args: Mapping[str, Any], trace: str = "") -> None:
        """Into the log."""
        name = self.job.name
        own = name + trace if trace else job_trace(name, self.incarnation)
        self.world.log(own, JOBMASTER, event, args, {}, {})


class SimulatedManager(ReplacedProcess):
    """The simulated process of the ResourceManager."""

    name = RM
    machine: ResourceManager

    def __init__(self, world: SimulatedWorld, timing: ManagerTiming) -> None:
        super().__init__(world)
        self._timing = timing
        self.machine = self.replacement()

    def replacement(self) -> ResourceManager:
        """It knows nothing of the lost one."""
        self.slot_events = SlotEvents(RM, self.incarnation, self.world.log_slots)
        return ResourceManager(self, self._timing, self.incarnation, self.world.slot_rules)

    def provide(self, name: str) -> None:
        """Starts a TaskExecutor that was released."""
        self.world.provide(name)
