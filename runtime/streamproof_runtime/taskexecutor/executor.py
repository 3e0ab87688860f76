"""The TaskExecutor as a state machine without input and output: for each region the subtasks of one attempt, their items,
their failures, and the partitions that it stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

from streamproof_runtime import messages as m
from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.errors import CannotStore, OutsideSimulation, Unsendable
from streamproof_runtime.jobmaster.jobmaster import NAME as JOBMASTER
from streamproof_runtime.jobmaster.regions import Region
from streamproof_runtime.jobs.functions import Context, Operation, place_of
from streamproof_runtime.slots.slot_events import RM, SlotEvents, Stamp
from streamproof_runtime.slots.slot_rules import SlotRules
from streamproof_runtime.slots.slot_table import SlotTable
from streamproof_runtime.subtasks.barriers import Snapshot
from streamproof_runtime.subtasks.channels import Channels
from streamproof_runtime.subtasks.flow import BUFFERS, FLOATING, FlowRules
from streamproof_runtime.subtasks.loop_heads import LoopRules, head_of
from streamproof_runtime.subtasks.output_buffers import NEVER, TIMEOUT
from streamproof_runtime.subtasks.subtask import FINISH, HELD, TAKE, TERMINATED, Action, Item, Subtask, TaskPlan, plans
from streamproof_runtime.taskexecutor.ledger import Ledger
from streamproof_runtime.taskexecutor.memory_cache import CachedPartitions
from streamproof_runtime.taskexecutor.partitions import Key, Missing, Partitions

SLOT_TIMEOUT = 5 * MILLISECOND
"""Nanoseconds that a slot waits for a JobMaster in a simulation."""


class ExecutorHost(Protocol):
    """What a TaskExecutor may do to the world."""

    slot_events: SlotEvents

    def call_later(self, delay: int, timer: str, number: int) -> None:
        """Calls `SlotTable.on_timer` after a delay in nanoseconds."""

    def send(self, target: str, message: m.Message) -> None:
        """Sends a message."""

    def is_congested(self, target: str) -> bool:
        """Whether the connection to a TaskExecutor takes no more."""

    def woken(self, subtask: Subtask) -> None:
        """A subtask may have something to do."""

    def stopped(self, subtasks: Iterable[Subtask]) -> None:
        """These subtasks are gone."""

    def create(self, plan: TaskPlan, trace: str) -> Subtask:
        """A new subtask, with the ending of its trace."""

    def flush_later(self, subtask: Subtask, delay: float) -> None:
        """Calls `flush` after a delay in milliseconds."""

    def returned(self) -> None:
        """A user function has returned or raised an error."""

    def is_of_job(self, error: BaseException) -> bool:
        """Whether a user function has raised an error, and not an interrupt of the program."""

    def event(self, event: str, args: Mapping[str, Any]) -> None:
        """Records an event of the TaskExecutor itself."""

    def dismissed(self) -> None:
        """The TaskExecutor is released: the process ends."""


class TaskExecutor:
    """Runs the subtasks that the JobMaster deploys to it, region by region, and stores partitions."""

    def __init__(
        self,
        name: str,
        slots: int,
        regions: Sequence[Region],
        host: ExecutorHost,
        partitions: Partitions,
        incarnation: int = 0,
        buffers: int = BUFFERS,
        floating: int = FLOATING,
        flow: FlowRules | None = None,
        loops: LoopRules | None = None,
        ledger: type[Ledger] = Ledger,
        slot_timeout: int = SLOT_TIMEOUT,
        slot_rules: SlotRules | None = None,
    ) -> None:
        """`buffers`: exclusive buffers of a channel; `floating`: floating buffers of a gate; `slot_timeout`: nanoseconds that
        a slot waits for a JobMaster."""
        self.loops = loops or LoopRules()
        self.name, self.slots, self.incarnation = name, slots, incarnation
        self.buffers, self.floating, self.flow = buffers, floating, flow or FlowRules()
        self.host, self.ledger = host, ledger(stored_in(partitions, regions), host.event)
        self.connection = -1
        """Number of the connection to the JobMaster."""
        self.table = SlotTable(slots, host, self, slot_timeout, slot_rules or SlotRules())
        self.parts = [RegionExecutor(self, region, len(regions) > 1) for region in regions]
        self._part_of = {task: part for part in self.parts for task in part.graph.tasks}
        self.longest = {False: 0, True: 0}
        """Largest number of items in an input queue, without and with feedback."""

    @property
    def subtasks(self) -> Iterator[Subtask]:
        """All subtasks."""
        return (subtask for part in self.parts for subtask in part.subtasks.values())

    def start(self) -> None:
        """Registers at the JobMaster and at the ResourceManager."""
        self._register()
        self.table.join()

    def _register(self) -> None:
        self.connection += 1
        self.ledger.registering(self.connection)
        self.host.send(JOBMASTER, (m.REGISTER, self.incarnation, self.slots, self.connection))
        self.table.offer_all()

    def on_message(self, peer: str, message: m.Message) -> None:
        """A message of the JobMaster or the ResourceManager, or an item of another TaskExecutor."""
        kind = message[0]
        if kind in m.OF_TABLE:
            self.table.on_message(message)
        elif kind == m.VACANT:
            self.host.send(RM, (m.VACANT, not self.ledger.store.keys()))
        elif kind == m.DISMISS:
            self.ledger.dismissed()
            self.host.dismissed()
        elif kind == m.HEARTBEAT:
            self.host.send(JOBMASTER, (m.ALIVE,))
        elif kind == m.RELEASE:
            self.ledger.release(message[1], message[2])
        else:
            self.parts[message[1]].on_message(kind, message[2], message[3:])

    def on_lost(self, peer: str) -> None:
        """A lost connection ends the attempts that use it; without the JobMaster there is none, and nothing is stored. To the
        ResourceManager there will be another one."""
        if peer == RM:
            self.table.join()
            return
        if peer == JOBMASTER:
            deleted = [key for part in self.parts for key in part.cancel(part.attempt, delete=self.ledger.cleans_up)]
            self.ledger.master_lost(self.connection, deleted)
            self.table.on_jobmaster_lost()
            self._register()
            return
        for part in self.parts:
            if peer in part.peers and part.is_at_work:
                part.fail(f"connection from {self.name} to {peer} lost", fatal=False)

    def evict(self, tasks: Iterable[str]) -> None:
        """The slots of these subtasks are freed: their attempts cannot go on."""
        for part in {id(found): found for task in tasks for found in (self._part_of[task],)}.values():
            part.fail(f"a slot of {self.name} was freed", fatal=False)

    def has(self, subtask: Subtask) -> bool:
        """Whether a subtask is one of the current attempts."""
        return self._part_of[subtask.name].subtasks.get(subtask.name) is subtask

    def is_running(self, subtask: Subtask) -> bool:
        """Whether the attempt of a subtask has started."""
        return self._part_of[subtask.name].is_running

    def can_step(self, subtask: Subtask) -> bool:
        """Whether a subtask has something to do, and none of its outputs waits for credit."""
        return self._part_of[subtask.name].can_step(subtask)

    def step(self, subtask: Subtask, choose: Callable[[int], int]) -> bool:
        """A subtask does one of its enabled actions, if any; what it sends is delivered or leaves. Whether it did one."""
        return self._part_of[subtask.name].step(subtask, choose)

    def flush(self, subtask: Subtask) -> None:
        """The buffer timeout of a subtask has passed."""
        if self.has(subtask):
            self._part_of[subtask.name].flush(subtask)

    def is_full(self, peer: str) -> bool:
        """Whether a channel from another TaskExecutor has more items than buffers."""
        running = (part for part in self.parts if part.subtasks)
        return any(part.placement.get(task) == peer for part in running for task in part.channels.full())

    @property
    def waits_for_timeout(self) -> bool:
        """Whether a record waits for a buffer timeout."""
        return any(part.timed for part in self.parts)


class _Storing(Operation):
    """The operation of a writer."""

    def __init__(self, context: Context, append: Callable[[list[Any]], None]) -> None:
        super().__init__((), context)
        self._append = append

    def outputs(self, side: int, records: list[Any]) -> Iterator[Any]:
        """None: records are stored together. Raises `CannotStore`."""
        try:
            self._append(records)
        except OSError as error:
            raise CannotStore(f"cannot store partitions: {error}") from error
        return iter(())


def stored_in(partitions: Partitions, regions: Sequence[Region]) -> CachedPartitions:
    """The store of a TaskExecutor: partitions of memory-only exchanges stay in memory."""
    return CachedPartitions(partitions, frozenset().union(*(region.in_memory for region in regions)))


class RegionExecutor:
    """The subtasks of one region on a TaskExecutor."""

    def __init__(self, executor: TaskExecutor, region: Region, several: bool) -> None:
        self.executor, self.region, self.several = executor, region, several
        self.name, self.host = executor.name, executor.host
        self.graph, self.plans = region.graph, plans(region.graph)
        self.attempt = -1
        self.is_running = False
        self.subtasks: dict[str, Subtask] = {}
        self.placement: Mapping[str, str] = {}
        self.peers: frozenset[str] = frozenset()
        self.channels = self._channels()
        self._reported: set[str] = set()
        self._stored: dict[str, Key] = {}
        """The partition of each reader and writer."""
        self._waiting: dict[str, str] = {}
        """Readers whose dataset is not stored yet."""
        self.timed: set[str] = set()
        """Subtasks whose unfinished buffers leave after a timeout."""

    def on_message(self, kind: str, attempt: int, rest: tuple[Any, ...]) -> None:
        """A message about an attempt of the region."""
        is_current = attempt == self.attempt and bool(self.subtasks)
        if kind in (m.DATA, m.CREDIT, m.BACKLOG):
            if is_current or (not self.executor.flow.fenced and self._has_ends(rest[0])):
                self._on_channel(kind, *rest)
        elif kind == m.DEPLOY and attempt > self.attempt:
            self.deploy(attempt, *rest)
        elif kind == m.TRIGGER and is_current:
            self.trigger(*rest)
        elif kind == m.UPDATE and is_current:
            self.update(*rest)
        elif kind == m.START and is_current:
            self.is_running = True
            for subtask in self.subtasks.values():
                self.host.woken(subtask)
        elif kind == m.CANCEL and attempt >= self.attempt:
            self.executor.ledger.canceled(self.region.writes, attempt, self.cancel(attempt), ordered=True)
            self.tell(m.CANCELED)

    @property
    def is_at_work(self) -> bool:
        """Whether a subtask has not terminated. After that the region needs no connection, and what it stores stays."""
        return len(self._reported) < len(self.subtasks)

    def tell(self, kind: str, *more: Any) -> None:
        """Reports the current attempt to the JobMaster."""
        self.host.send(JOBMASTER, (kind, self.region.number, self.attempt, *more))

    def deploy(
        self,
        attempt: int,
        placement: Mapping[str, str],
        reads: Mapping[str, int],
        slots: Mapping[str, str],
        stamp: Stamp,
        snapshots: Mapping[str, Snapshot] = MappingProxyType({}),
    ) -> None:
        """Creates the subtasks of an attempt in their slots; they go on from their snapshots, if there are any."""
        left = self.cancel(attempt)
        self.placement = placement
        own = [task for task, executor in placement.items() if executor == self.name]
        lacking = self.executor.table.deploy({task: slots[task] for task in own if task in slots}, stamp)
        if lacking:
            self.executor.ledger.created(self.region.writes, attempt, [], left)
            self.tell(m.FAILED, f"{self.name} does not have slot {lacking}", False, "")
            return
        trace = f"/{self.region.number}#{attempt}" if self.several else f"#{attempt}"
        self.subtasks = {task: self.host.create(self.plans[task], trace) for task in own}
        self.channels = self._channels()
        ends = [(c.source, c.target) for c in self.graph.channels.values() if {c.source, c.target} & {*own}]
        self.peers = frozenset(placement[t] for pair in ends for t in pair) - {self.name}
        missing: str | None = None
        try:
            for subtask in self.subtasks.values():
                self._attach(subtask, reads)
                if subtask.name in snapshots:
                    subtask.restore(snapshots[subtask.name])
        except Missing as error:
            reason, missing = str(error), error.dataset
        except OSError as error:
            reason, missing = f"{self.name} cannot store partitions: {error}", ""
        self.executor.ledger.created(self.region.writes, attempt, self._written(), left)
        if missing is None:
            self.tell(m.DEPLOYED)
        else:
            self.fail(reason, fatal=False, missing=missing)

    def _attach(self, subtask: Subtask, reads: Mapping[str, int]) -> None:
        """Feedback channels get queues that spill, a reader its partition, a writer a new one."""
        ledger, operator, number = self.executor.ledger, subtask.plan.operator, subtask.plan.number
        store = ledger.store
        self._attach_feedback(subtask)
        if operator.reads and operator.reads not in reads:
            self._waiting[subtask.name] = operator.reads
        elif operator.reads:
            key = self._stored[subtask.name] = operator.reads, reads[operator.reads], number
            subtask.items, subtask.left = ledger.open(key, self.attempt)
        elif operator.writes:
            key = operator.writes, self.attempt, number
            store.create(key)
            self._stored[subtask.name] = key

            subtask.operation = _Storing(subtask.operation.context, partial(ledger.append, key))

    def _attach_feedback(self, subtask: Subtask) -> None:
        """A head gets its input policy, and queues that spill unless feedback is bounded."""
        rules, plan = self.executor.loops, subtask.plan
        if not plan.feedback_inputs:
            return
        if not rules.is_bounded:
            queue = self.executor.ledger.store.queue
            subtask.queues.update((channel, queue(rules.queue)) for channel in plan.feedback_inputs)
        queues, buffers = subtask.queues, self.executor.buffers
        subtask.head = head_of(rules, plan.operator.input_policy, queues, plan.feedback_inputs, buffers, subtask.note)
        subtask.head.opened(plan.inputs, 0 if subtask.unfinished.stay else HELD)

    def update(self, reads: Mapping[str, int]) -> None:
        """Readers can begin: their datasets are stored."""
        ready = [self.subtasks[task] for task, dataset in self._waiting.items() if dataset in reads]
        try:
            for subtask in ready:
                del self._waiting[subtask.name]
                self._attach(subtask, reads)
        except Missing as error:
            self.fail(str(error), fatal=False, missing=error.dataset)
            return
        for subtask in ready if self.is_running else ():
            self.host.woken(subtask)

    def trigger(self, checkpoint: int) -> None:
        """A checkpoint: sources begin, and subtasks that no barrier will reach."""
        for subtask in self.subtasks.values():
            subtask.alignment.ask(checkpoint)
            self.wake(subtask.name)

    def _written(self) -> list[Key]:
        """The partitions of the writers of this attempt."""
        return [key for task, key in self._stored.items() if self.plans[task].operator.writes]

    def cancel(self, attempt: int, *, delete: bool = True) -> list[Key]:
        """Drops all subtasks, and what they have stored if wanted; messages up to this attempt are ignored from here on."""
        gone, store = [*self.subtasks.values()], self.executor.ledger.store
        self.executor.table.ended(self.subtasks)
        written = {key[:2] for key in self._written()} if delete else ()
        deleted = [key for dataset, of in written for key in store.release(dataset, of)]
        self.attempt, self.is_running, self.subtasks, self._reported, self._stored = attempt, False, {}, set(), {}
        self.peers, self._waiting, self.timed = frozenset(), {}, set()
        self.host.stopped(gone)
        return deleted

    def fail(self, reason: str, *, fatal: bool, missing: str = "") -> None:
        """Reports that this attempt cannot go on, and drops its subtasks."""
        self.executor.ledger.canceled(self.region.writes, self.attempt, self.cancel(self.attempt), ordered=False)
        self.tell(m.FAILED, reason, fatal, missing)

    # --- channels

    def _channels(self) -> Channels:
        executor = self.executor
        bounded = executor.loops.is_bounded
        channels, buffers = self.graph.channels, (executor.buffers, executor.floating)
        return Channels(self, channels, executor.flow, *buffers, bounds_feedback=bounded)

    def _has_ends(self, channel: str) -> bool:
        found = self.graph.channels[channel]
        return not self.subtasks.keys().isdisjoint((found.source, found.target))

    def _on_channel(self, kind: str, channel: str, *rest: Any) -> None:
        """A message about a channel."""
        try:
            if kind == m.DATA:
                self.deliver(channel, *rest)
            elif kind == m.CREDIT:
                self.channels.granted(channel, *rest)
            else:
                self.channels.backlogged(channel, *rest)
        except CannotStore as error:
            self.fail(f"{channel}: {error}", fatal=False)

    def send_about(self, channel: str, to: str, kind: str, *more: Any) -> bool:
        """Sends a message about a channel to the TaskExecutor of a subtask; False if it is this one."""
        target = self.placement[to]
        if target == self.name:
            return False
        self.host.send(target, (kind, self.region.number, self.attempt, channel, *more))
        return True

    def is_congested(self, to: str) -> bool:
        """Whether the connection to the TaskExecutor of a subtask takes no more."""
        target = self.placement[to]
        return target != self.name and self.host.is_congested(target)

    def wake(self, task: str) -> None:
        """A subtask may have something to do."""
        if self.is_running and task in self.subtasks:
            self.host.woken(self.subtasks[task])

    def deliver(self, channel: str, item: Item, backlog: int) -> None:
        """An item has arrived for a subtask. Raises `CannotStore`."""
        to = self.graph.channels[channel]
        subtask = self.subtasks[to.target]
        try:
            subtask.deliver(channel, item)
        except OSError as error:
            raise CannotStore(f"{subtask.name} cannot store its feedback: {error}") from error
        longest = self.executor.longest
        if len(subtask.queues[channel]) > longest[to.edge.feedback]:
            longest[to.edge.feedback] = len(subtask.queues[channel])
        self.channels.received(subtask, channel, backlog)
        self.wake(to.target)

    def can_step(self, subtask: Subtask) -> bool:
        """Whether a subtask has something to do, and waits neither for a dataset nor for credit."""
        return bool(self._enabled(subtask))

    def _enabled(self, subtask: Subtask) -> Sequence[Action]:
        is_held = subtask.name in self._waiting or self.channels.is_blocked(subtask)
        return () if is_held else subtask.enabled()

    def step(self, subtask: Subtask, choose: Callable[[int], int]) -> bool:
        """A subtask does one of its enabled actions, if any; what it sends is delivered or leaves. Whether it did one."""
        enabled = self._enabled(subtask)
        if not enabled:
            return False
        kind, taken = action = enabled[choose(len(enabled)) if len(enabled) > 1 else 0]
        failure: BaseException | None = None
        try:
            if kind is FINISH:
                self._finish_partition(subtask)
            subtask.do(action)
        except BaseException as error:
            failure = error
        self.host.returned()
        if isinstance(failure, CannotStore):
            self.fail(f"{subtask.name}: {failure}", fatal=False)
            return True
        if isinstance(failure, OutsideSimulation) or (failure is not None and not self.host.is_of_job(failure)):
            raise failure
        if failure is not None:
            place = place_of(failure) or subtask.line()
            kind = "" if isinstance(failure, Unsendable) else f"{type(failure).__name__}: "
            about = f"{subtask.name}: {kind}{failure}".removesuffix(": ")
            self.fail(f"{about} ({place})" if place else about, fatal=True)
            return True
        try:
            self._carry_on(subtask, taken if kind is TAKE else "")
        except CannotStore as error:
            self.fail(f"{subtask.name}: {error}", fatal=False)
        return True

    def _carry_on(self, subtask: Subtask, taken: str) -> None:
        """After a step: returns the credit of an item that was taken, sends, and reports the end of a subtask."""
        if taken:
            self.channels.taken(subtask, taken)
        if subtask.sent:
            self.channels.sent(subtask)
        if subtask.unfinished.stay and subtask.name not in self.timed:
            self._time(subtask)
        while subtask.alignment.taken:
            self.tell(m.SNAPSHOT, subtask.name, *subtask.alignment.taken.pop(0))
        if subtask.phase == TERMINATED and subtask.name not in self._reported:
            self._reported.add(subtask.name)
            self._terminated(subtask)
            self.executor.table.ended([subtask.name])
            self.tell(m.FINISHED, subtask.name, subtask.result())

    def _time(self, subtask: Subtask) -> None:
        """Sets a timer if a record waits in a buffer that is not full."""
        timeout = subtask.unfinished.timeout
        if subtask.unfinished and timeout is not None and timeout != NEVER:
            self.timed.add(subtask.name)
            self.host.flush_later(subtask, timeout)

    def flush(self, subtask: Subtask) -> None:
        """The buffer timeout of a subtask has passed: what it has in unfinished buffers leaves, or waits for credit."""
        self.timed.discard(subtask.name)
        subtask.flush(TIMEOUT)
        try:
            self._carry_on(subtask, "")
        except CannotStore as error:
            self.fail(f"{subtask.name}: {error}", fatal=False)

    def _finish_partition(self, subtask: Subtask) -> None:
        """The partition of a writer is complete before the writer terminates. Raises `CannotStore`."""
        if subtask.plan.operator.writes:
            try:
                self.executor.ledger.finished(self._stored[subtask.name])
            except OSError as error:
                raise CannotStore(f"cannot store partitions: {error}") from error

    def _terminated(self, subtask: Subtask) -> None:
        """The partition of a reader is consumed."""
        if subtask.plan.operator.reads:
            self.executor.ledger.consumed(self._stored[subtask.name], self.attempt)
