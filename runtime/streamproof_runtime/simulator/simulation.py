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
from streamproof_runtime.jobmaster.jobmaster import NAME as JOBMASTER
from streamproof_runtime.jobmaster.jobmaster import JobMaster
from streamproof_runtime.jobmaster.master_host import Timing
from streamproof_runtime.jobmaster.region_scheduler import DONE
from streamproof_runtime.jobmaster.regions import regions
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.messages import Message
from streamproof_runtime.simulator import faults
from streamproof_runtime.simulator.faults import Fault
from streamproof_runtime.simulator.fence import fence
from streamproof_runtime.simulator.loop import EventLoop
from streamproof_runtime.simulator.network import Network
from streamproof_runtime.simulator.simulated_hosts import SimulatedExecutor, SimulatedJobMaster, SimulatedManager
from streamproof_runtime.simulator.tape import DISKS, FAULTS, MEMORY, NETWORK, SCHEDULE, SLOTS, USER, Script, Tape
from streamproof_runtime.slots.resource_manager import ManagerTiming
from streamproof_runtime.slots.slot_events import RM, slot_trace
from streamproof_runtime.slots.slot_rules import SlotRules
from streamproof_runtime.subtasks.buffers import RECORDS
from streamproof_runtime.subtasks.flow import BUFFERS, FLOATING, FlowRules
from streamproof_runtime.subtasks.loop_heads import LoopRules
from streamproof_runtime.subtasks.subtask import Clock, Subtask, TaskPlan
from streamproof_runtime.subtasks.termination import BatonSubtask
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
        script: Script | None = None,
        faults_given: Sequence[Fault] | None = None,
        buffers: int | None = None,
        flow: FlowRules | None = None,
        timeout: float | None = None,
        loops: LoopRules | None = None,
        ledger: type[Ledger] = Ledger,
        slot_rules: SlotRules | None = None,
        room: int = ROOM,
        idle: int = 0,
        asks: bool = True,
    ) -> None:
        """`eager`: regions are scheduled with their producers. `room`: records of memory-only partitions for which a
        TaskExecutor has memory. `checkpoint_interval`: nanoseconds, 0 for none. `buffers`:
        exclusive buffers of a channel; the tape chooses among `WINDOWS` if it is None. `timeout`: the buffer timeout in
        milliseconds of virtual time. `idle`: nanoseconds after which an idle TaskExecutor is released, 0 for never;
        `asks`: unless it stores something."""
        self.regions = regions(job)
        self.slots, self.subtask_type, self.job = slots, subtask_type, job
        self.tape = Tape(seed, script)
        self.choose, self._user = self.tape.stream(SCHEDULE), self.tape.stream(USER)
        self.loop = EventLoop(self.choose)
        network = self.tape.stream(NETWORK)
        self.buffers = WINDOWS[network(len(WINDOWS))] if buffers is None else buffers
        self.records = SIZES[network(len(SIZES))]
        self.floating = FLOATINGS[self.tape.stream(MEMORY)(len(FLOATINGS))]
        self.flow, self.timeout, self.loops, self.ledger = flow, timeout, loops, ledger
        self.slot_rules, self.room = slot_rules or SlotRules(), room
        self.network = Network(self.loop, network)
        self.entries: list[event_log.Entry] = []
        self.created: dict[str, list[Subtask]] = {}
        names = [f"tm-{i}" for i in range(1, executors + 1)]
        self.hosts = {name: SimulatedExecutor(name, self) for name in names}
        timing = Timing(eager=eager, checkpoint_interval=checkpoint_interval, slot_rules=self.slot_rules)
        self.master = SimulatedJobMaster(self, master_type, timing)
        draw_slots = self.tape.stream(SLOTS)
        awaited = 0 if draw_slots(2) else executors
        beats = timing.heartbeat_interval, timing.heartbeat_timeout
        self.manager = SimulatedManager(self, ManagerTiming(*beats, awaited, PATIENCE, idle, tuple(names), asks))
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
            for fault in self.faults:
                self.loop.call_at(fault.at, self._apply, fault)
            over = self._looped(limit, watch)
            steps, now, self._has_ended = self.loop.steps, self.loop.now, True
            master = self.master.machine
            if master.is_over:
                self.loop.run(lambda: not self._allocated() or self.loop.now > now + LEAK, steps + limit)
        kept = self._allocated() if master.is_over else []
        finished = master.status == DONE and not kept
        reason = "" if finished else self._why(over)
        if kept:
            reason = f"slots were not freed: {', '.join(kept)}"
        lost = sum(s.lost for s in self._current())
        return Outcome(
            finished,
            reason,
            master.results,
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
        over, end, loop = False, 0, self.loop
        while not over and loop.steps == end < limit:
            end = limit if watch is None else min(limit, end + WATCHED)
            over = loop.run(lambda: self.master.machine.is_over or self._is_stuck(), end)
            if watch is not None:
                watch()
        return over

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
        return [s for run in self.master.machine.runs for s in self.created.get(run.trace, ())]

    def _why(self, over: bool) -> str:
        master = self.master.machine
        if master.errors:
            return master.errors[-1]
        if not over:
            return f"no end after {self.loop.steps:,} steps"
        waiting = [s for s in self._current() if s.phase != "TERMINATED"]
        return f"stuck: {', '.join(f'{s.name} is {s.phase}' for s in waiting) or master.status}"

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

    def create(self, plan: TaskPlan, ending: str) -> Subtask:
        """A subtask that records its events in the trace with this ending."""
        trace, append = self.job.name + ending, self.entries.append

        def log(process: str, event: str, args: Mapping[str, Any], state: Mapping[str, Any], clock: Clock) -> None:
            append((trace, process, event, args, state, clock))

        subtask = self.subtask_type(plan, log, self._user, self.records, self.timeout)
        self.created.setdefault(ending, []).append(subtask)
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
