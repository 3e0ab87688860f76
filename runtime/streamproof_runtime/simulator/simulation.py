"""A simulated run of a job: the machines of the runtime on the simulated network, with faults, in virtual time.

The machines are those of every run; here all hosts are in one thread, and every choice comes from the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamproof_runtime import event_log
from streamproof_runtime import messages as m
from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.garbage import rare_collections
from streamproof_runtime.jobmaster.failure_budgets import FailureBudget
from streamproof_runtime.jobmaster.jobmaster import NAME as JOBMASTER
from streamproof_runtime.jobmaster.jobmaster import JobMaster
from streamproof_runtime.jobmaster.master_host import OFFLOAD, Timing
from streamproof_runtime.jobmaster.region_scheduler import DONE
from streamproof_runtime.jobmaster.regions import regions_of_session
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.operators import cluster_dataset
from streamproof_runtime.jobs.sessions import expect_session, last_readers
from streamproof_runtime.messages import Message
from streamproof_runtime.simulator import faults
from streamproof_runtime.simulator.faults import Fault
from streamproof_runtime.simulator.fence import fence
from streamproof_runtime.simulator.loop import EventLoop
from streamproof_runtime.simulator.network import Network
from streamproof_runtime.simulator.simulated_hosts import SimulatedExecutor, SimulatedJobMaster, SimulatedManager
from streamproof_runtime.simulator.tape import DISKS, FAULTS, MEMORY, NETWORK, SCHEDULE, SLOTS, USER, Script, Tape
from streamproof_runtime.slots.resource_manager import ManagerTiming
from streamproof_runtime.slots.resources import Resources
from streamproof_runtime.slots.slot_events import RM, slot_trace
from streamproof_runtime.slots.slot_rules import SlotRules
from streamproof_runtime.subtasks.buffers import BYTES, RECORDS
from streamproof_runtime.subtasks.flow import BUFFERS, FLOATING, FlowRules
from streamproof_runtime.subtasks.items import Clock
from streamproof_runtime.subtasks.loop_heads import LoopRules
from streamproof_runtime.subtasks.subtask import Subtask, TaskPlan
from streamproof_runtime.subtasks.termination import BatonSubtask
from streamproof_runtime.taskexecutor.blob_cache import CACHED, BlobCache
from streamproof_runtime.taskexecutor.executor_host import ExecutorSettings
from streamproof_runtime.taskexecutor.ledger import Ledger, copy_names
from streamproof_runtime.taskexecutor.partitions import ROOM

LIMIT = 2_000_000
"""Largest number of steps and timers of a run."""
STUCK = 10 * faults.QUIET
"""Virtual time in nanoseconds with nothing but heartbeats after which a run is stuck: no restart takes as long."""

WATCHED = 50
"""Steps and timers between two looks of a live view."""

PATIENCE = 2 * MILLISECOND
"""How long the ResourceManager waits for all TaskExecutors, if it does."""
PROVISION = MILLISECOND
"""Virtual time in nanoseconds until a TaskExecutor that was released has started again."""
LEAK = 10 * faults.QUIET
"""Virtual time in nanoseconds, after the end of a job, at which a slot that is allocated is never freed."""

WINDOWS = (BUFFERS, 1, 2, 5)
"""Numbers of exclusive buffers; with few, small jobs wait for credit as well."""
FLOATINGS = (FLOATING, 0, 1, 2)
"""Numbers of floating buffers of a gate."""
SIZES = (1, RECORDS, 2, 3)
"""Largest numbers of records in a buffer; with few, small jobs have many steps."""


@dataclass
class Outcome:
    """The result of a simulated run."""

    finished: bool
    reason: str
    """Why it has not finished."""
    results: dict[str, Any]
    attempts: int
    steps: int
    time: int
    """Virtual time in nanoseconds."""
    lost: int
    """Records that arrived at terminated subtasks of the last attempt."""
    faults: list[Fault]
    entries: list[event_log.Entry]
    choices: dict[str, list[int]]
    errors: list[str] = field(default_factory=list)
    unfinished: bool = False
    """Whether the limit of steps has ended it."""

    @property
    def digest(self) -> str:
        """The digest of its events."""
        return event_log.digest(self.entries)


class Simulation:
    """One run. `subtask_type` has the protocol of termination; `script` and `faults` replace what the seed would draw."""

    def __init__(
        self,
        job: Job,
        *,
        seed: int = 0,
        level: str = "none",
        executors: int = 3,
        slots: int = 2,
        subtask_type: type[BatonSubtask] = BatonSubtask,
        master_type: type[JobMaster] = JobMaster,
        eager: bool = False,
        checkpoint_interval: int = 0,
        unaligned: bool = False,
        script: Script | None = None,
        faults_given: Sequence[Fault] | None = None,
        buffers: int | None = None,
        buffer_size: int = BYTES,
        sender_buffers: int | None = None,
        flow: FlowRules | None = None,
        timeout: float | None = None,
        loops: LoopRules | None = None,
        ledger: type[Ledger] = Ledger,
        blobs: type[BlobCache] = BlobCache,
        cached_blobs: int = CACHED,
        offload: int = OFFLOAD,
        slot_rules: SlotRules | None = None,
        room: int = ROOM,
        idle: int = 0,
        asks: bool = True,
        stop_after: int | None = None,
        resources: Mapping[str, Resources] | None = None,
        slot_beats: int = 0,
        later: Sequence[Job] = (),
    ) -> None:
        """`later`: the jobs of the session after the first. `eager`: regions are scheduled with their producers.
        `room`: records of memory-only partitions for which a TaskExecutor has memory. `checkpoint_interval`:
        nanoseconds, 0 for none; `unaligned`: barriers overtake buffers. `buffers`: exclusive buffers of a channel;
        the tape chooses among `WINDOWS` if it is None. `buffer_size`: bytes of a buffer; `sender_buffers`: those of a
        subtask for what it sends, None: as many as it needs. `timeout`: the buffer timeout in milliseconds of virtual time.
        `idle`: nanoseconds after which an idle TaskExecutor is released, 0: never; `asks`: unless it stores
        something. `stop_after`: nanoseconds after which unbounded sources are stopped. `resources`: what the slots of
        TaskExecutors have, by name; `slot_beats` and `offload`: as in `Timing`; `cached_blobs` of a TaskExecutor."""
        profiles = resources or {}
        self._stop_after, self.is_stopped = stop_after, False
        self.jobs = [job, *later]
        expect_session(self.jobs)
        self.regions_of = regions_of_session(self.jobs)
        self.regions = tuple(region for of in self.regions_of for region in of)
        self._at, self._results, self._cluster = 0, dict[str, Any](), dict[str, int]()
        self.slots, self.subtask_type, self.job = slots, subtask_type, job
        self.tape = Tape(seed, script)
        self.choose, self._user = self.tape.stream(SCHEDULE), self.tape.stream(USER)
        self.loop = EventLoop(self.choose)
        network = self.tape.stream(NETWORK)
        self.buffers = WINDOWS[network(len(WINDOWS))] if buffers is None else buffers
        self.records = SIZES[network(len(SIZES))]
        self.floating = FLOATINGS[self.tape.stream(MEMORY)(len(FLOATINGS))]
        self.slot_rules, self.room, self.timeout = slot_rules or SlotRules(), room, timeout
        self.executor_settings = ExecutorSettings(
            self.buffers,
            self.floating,
            flow or FlowRules(),
            loops or LoopRules(),
            ledger,
            slot_rules=self.slot_rules,
            unaligned=unaligned,
            buffer_size=buffer_size,
            sender_buffers=sender_buffers,
            blobs=blobs,
            cached_blobs=cached_blobs,
        )
        self.network = Network(self.loop, network)
        self.entries: list[event_log.Entry] = []
        self.created: dict[str, list[Subtask]] = {}
        names = [f"tm-{i}" for i in range(1, executors + 1)]
        self.hosts = {name: SimulatedExecutor(name, self) for name in names}
        timing = Timing(
            budget=FailureBudget(job.max_failures_per_task, job.max_failures),
            eager=eager,
            checkpoint_interval=checkpoint_interval,
            unaligned=unaligned,
            slot_rules=self.slot_rules,
            resources=profiles,
            job=job.name if later else "",
            slot_beats=slot_beats,
            offload=offload,
        )
        self.master = SimulatedJobMaster(self, master_type, timing)
        self.master.begin(job, self.regions_of[0])
        draw_slots = self.tape.stream(SLOTS)
        awaited = 0 if draw_slots(2) else executors
        beats = timing.heartbeat_interval, timing.heartbeat_timeout
        self.manager = SimulatedManager(
            self, ManagerTiming(*beats, awaited, PATIENCE, idle, tuple(names), profiles, asks)
        )
        self.network.nodes = {JOBMASTER: self.master, **self.hosts, RM: self.manager}
        draw = self.tape.stream(FAULTS)
        stores = len(self.regions) > 1
        drawn = faults_given is None
        self.faults = list(faults_given or ())
        if drawn:
            self.faults = faults.drawn(draw, level, names, JOBMASTER, stores=stores)
            self.faults += faults.of_slots(draw_slots, level, names, JOBMASTER, RM)
            if stores or any(edge.feedback for edge in job.edges):
                self.faults += faults.of_disks(self.tape.stream(DISKS), level, names)
        self._dropping: list[tuple[str, str]] = []
        self._has_ended = False

    def run(self, limit: int = LIMIT, watch: Callable[[], None] | None = None) -> Outcome:
        """Runs until the job has finished, has failed, or cannot go on; `watch` is called every `WATCHED` steps."""
        with fence(), rare_collections():
            self.master.machine.start()
            self.manager.machine.start()
            for host in self.hosts.values():
                host.executor.start()
            if self._stop_after is not None:
                self.loop.call_at(self._stop_after, self.stop)
            for fault in self.faults:
                self.loop.call_at(fault.at, self._apply, fault)
            over = self._looped(limit, watch)
            while over and self._ends_job():
                over = self._looped(limit, watch)
            steps, now, self._has_ended = self.loop.steps, self.loop.now, True
            master = self.master.machine
            if master.is_over:
                self.loop.run(lambda: not self._kept() or self.loop.now > now + LEAK, steps + limit)
        kept = self._kept() if master.is_over else []
        finished = master.status == DONE and not kept
        reason = "" if finished else self._why(over)
        if kept:
            reason = f"not freed: {', '.join(kept)}"
        lost = sum(s.lost for s in self._current())
        return Outcome(
            finished,
            reason,
            self._results if len(self.jobs) > 1 else master.results,
            self.master.earlier + master.decided + 1,
            steps,
            now,
            lost,
            self.faults,
            self.entries,
            self.tape.recorded,
            master.errors,
            unfinished=not over and not master.errors and steps >= limit,
        )

    def _looped(self, limit: int, watch: Callable[[], None] | None) -> bool:
        """Whether the loop has ended before the limit."""
        over, end, loop = False, self.loop.steps, self.loop
        while not over and loop.steps == end < limit:
            end = limit if watch is None else min(limit, end + WATCHED)
            over = loop.run(lambda: self.master.machine.is_over or self._is_stuck(), end)
            if watch is not None:
                watch()
        return over

    def _ends_job(self) -> bool:
        """Whether a job of the session has finished, and another one begins. What no later job reads is released."""
        master = self.master.machine
        if master.status != DONE:
            return False
        self._results[self.jobs[self._at].name] = master.results
        self._cluster |= master.promoted
        if self.manager.is_alive:
            for name in last_readers(self.jobs)[self._at]:
                self.manager.machine.release(cluster_dataset(name))
        self._at += 1
        if self._at == len(self.jobs):
            return False
        self.network.restarted(JOBMASTER)
        self.master.next(self.jobs[self._at], self.regions_of[self._at], self._cluster)
        return True

    def _kept(self) -> list[str]:
        """Slots that are allocated, and cluster partitions, which are all released when a session has finished."""
        stored = [] if self._at < len(self.jobs) else [*self.hosts.items()]
        found = [f"{name} has {copy}" for name, host in stored for copy in copy_names(host.executor.ledger.cluster)]
        return self._allocated() + found

    def _apply(self, fault: Fault) -> None:
        """Makes a fault happen, unless the job is over."""
        if not self._has_ended:
            faults.apply(fault, self)

    def _allocated(self) -> list[str]:
        """Slots that are allocated at a TaskExecutor or at the ResourceManager."""
        found = [f"{name} has {a}" for name, host in self.hosts.items() for a in host.executor.table.allocated]
        return found + [f"{RM} has {a}" for a in self.manager.machine.allocations]

    def _is_stuck(self) -> bool:
        """Whether only heartbeats have happened for long, and no record waits for a buffer timeout."""
        if self.loop.ready or self.loop.now - self.loop.last_step <= STUCK:
            return False
        return not any(host.is_alive and host.executor.waits_for_timeout for host in self.hosts.values())

    def _current(self) -> list[Subtask]:
        """The subtasks of the last attempt of each region."""
        name = self.master.job.name
        return [s for run in self.master.machine.runs for s in self.created.get(name + run.trace, ())]

    def _why(self, over: bool) -> str:
        master = self.master.machine
        if master.errors:
            return master.errors[-1]
        if not over:
            return f"no end after {self.loop.steps:,} steps"
        waiting = [s for s in self._current() if s.phase != "TERMINATED"]
        return f"stuck: {', '.join(f'{s.name} is {s.phase}' for s in waiting) or master.status}"

    def stop(self) -> None:
        """The user stops unbounded sources, or has the next JobMaster do so."""
        self.is_stopped = True
        if self.master.is_alive:
            self.master.machine.stop()

    # --- for the hosts

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
        self.entries.append((trace, process, event, args, state, clock))

    def log_slots(self, process: str, event: str, args: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Records an event of the slot protocol."""
        self.entries.append((slot_trace(self.job.name), process, event, args, state, {}))

    def create(self, plan: TaskPlan, trace: str) -> Subtask:
        """A subtask that records its events in this trace."""
        append = self.entries.append

        def log(process: str, event: str, args: Mapping[str, Any], state: Mapping[str, Any], clock: Clock) -> None:
            append((trace, process, event, args, state, clock))

        subtask = self.subtask_type(
            plan, log, self._user, self.records, self.timeout, self.executor_settings.buffer_size
        )
        self.created.setdefault(trace, []).append(subtask)
        return subtask

    # --- faults

    def crash(self, node: str, duration: int) -> None:
        """A process dies and starts again after a while."""
        host = self.master if node == JOBMASTER else self.manager if node == RM else self.hosts[node]
        host.crash()
        self.network.restarted(node)
        self.loop.call_later(duration, self._restart, node, host)

    def _restart(self, node: str, host: SimulatedExecutor | SimulatedJobMaster | SimulatedManager) -> None:
        if host.is_alive:  # a crash while it was down
            return
        if node in (JOBMASTER, RM):  # what was sent to it meanwhile found no process
            self.network.restarted(node)
        host.restart()

    def provide(self, name: str) -> None:
        """A TaskExecutor that was released starts again after a while."""
        host = self.hosts[name]
        if host.is_dismissed:
            host.is_dismissed = False
            self.loop.call_later(PROVISION, self._restart, name, host)

    def fill(self, node: str, duration: int) -> None:
        """A disk has no space for a while."""
        disk = self.hosts[node].partitions
        disk.full += 1
        self.loop.call_later(duration, disk.cleaned)

    def drop(self, source: str, target: str) -> None:
        """The next message that returns a slot is lost."""
        self._dropping.append((source, target))

    def send(self, source: str, target: str, message: Message) -> None:
        """By the network, unless a fault drops the message."""
        if self._dropping and message[0] in (m.FREE, m.AVAILABLE) and (source, target) in self._dropping:
            self._dropping.remove((source, target))
        else:
            self.network.send(source, target, message)

    def disconnect(self, one: str, other: str) -> None:
        """A connection is lost."""
        self.network.disconnect(one, other)

    def partition(self, one: str, other: str, duration: int) -> None:
        """A connection holds its messages back."""
        self.network.held_until[frozenset((one, other))] = self.loop.now + duration

    def pause(self, node: str, duration: int) -> None:
        """A process stands still."""
        self.hosts[node].pause()
        self.loop.call_later(duration, self.hosts[node].resume)

    def slow(self, one: str, other: str, factor: int, duration: int) -> None:
        """A connection is slow for a while."""
        pair = frozenset((one, other))
        self.network.slow[pair] = factor
        self.loop.call_later(duration, self._healed, pair)

    def lose(self, node: str) -> None:
        """All partitions of a TaskExecutor are gone."""
        lost = self.hosts[node].executor.ledger.store.clear()
        if lost:
            self.hosts[node].event("partitions_lost", {"lost": copy_names(lost)})

    def _healed(self, pair: frozenset[str]) -> None:
        self.network.slow.pop(pair, None)
