"""The subtasks of one region on a TaskExecutor: their attempt, their channels, and their steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from streamproof_runtime import messages as m
from streamproof_runtime.errors import CannotStore, OutsideSimulation, Unsendable
from streamproof_runtime.jobmaster.blob_server import digest
from streamproof_runtime.jobmaster.jobmaster import NAME as JOBMASTER
from streamproof_runtime.jobmaster.regions import Region
from streamproof_runtime.jobs.functions import place_of
from streamproof_runtime.slots.slot_events import RM, Stamp
from streamproof_runtime.subtasks.barriers import Snapshot
from streamproof_runtime.subtasks.channels import Channels
from streamproof_runtime.subtasks.items import BARRIER, END, Item
from streamproof_runtime.subtasks.loop_heads import head_of
from streamproof_runtime.subtasks.output_buffers import NEVER, TIMEOUT
from streamproof_runtime.subtasks.subtask import FINISH, HELD, TAKE, TERMINATED, Action, Subtask, plans
from streamproof_runtime.taskexecutor.attempt_partitions import AttemptPartitions
from streamproof_runtime.taskexecutor.executor_host import SharedParts
from streamproof_runtime.taskexecutor.partitions import Key, Missing


@dataclass(slots=True)
class Deployment:
    """An attempt that waits for its descriptor."""

    key: str
    tasks: Collection[str]
    """Subtasks that are in their slots already."""
    left: Sequence[Key]
    """What the attempt before had stored, and is deleted."""
    snapshots: Mapping[str, Snapshot]
    stops: Mapping[str, int]
    kept: list[tuple[str, int, tuple[Any, ...]]] = field(default_factory=list)
    """Messages about the attempt that have arrived meanwhile."""


class RegionExecutor:
    """The subtasks of one region on a TaskExecutor."""

    def __init__(self, shared: SharedParts, region: Region) -> None:
        self.shared, self.region = shared, region
        self.name, self.host = shared.name, shared.host
        if not region.plans:
            region.plans.update(plans(region.graph))
        self.graph, self.plans = region.graph, region.plans
        self.attempt = -1
        self.is_running = False
        self.subtasks: dict[str, Subtask] = {}
        self.placement: Mapping[str, str] = {}
        self.peers: frozenset[str] = frozenset()
        self.channels = self._channels()
        self._reported: set[str] = set()
        self._partitions = AttemptPartitions(shared.ledger, self.attempt)
        self._deploying: Deployment | None = None
        self.timed: set[str] = set()
        """Subtasks whose unfinished buffers leave after a timeout."""

    def on_message(self, kind: str, attempt: int, rest: tuple[Any, ...]) -> None:
        """A message about an attempt of the region."""
        is_current = attempt == self.attempt and bool(self.subtasks)
        if self._deploying is not None and attempt == self.attempt and kind != m.CANCEL:
            if kind == m.BLOB:
                self._fetched(*rest)
            else:
                self._deploying.kept.append((kind, attempt, rest))
        elif kind in (m.DATA, m.CREDIT, m.BACKLOG):
            if is_current or (not self.shared.settings.flow.fenced and self._has_ends(rest[0])):
                self._on_channel(kind, *rest)
        elif kind == m.DEPLOY and attempt > self.attempt:
            self.deploy(attempt, *rest)
        elif kind == m.TRIGGER and is_current:
            self.trigger(*rest)
        elif kind == m.END_SOURCES and is_current:
            self.stop()
        elif kind == m.UPDATE and is_current:
            self.update(*rest)
        elif kind == m.START and is_current:
            self.is_running = True
            for subtask in self.subtasks.values():
                self.channels.sent(subtask)  # what a restart begins with
                self.wake(subtask.name)
        elif kind == m.PROMOTE and is_current:
            self.promote()
        elif kind == m.CANCEL and attempt >= self.attempt:
            self.shared.ledger.canceled(self.region.writes, attempt, self.cancel(attempt), ordered=True)
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
        descriptor: Mapping[str, Any] | str,
        slots: Mapping[str, str],
        stamp: Stamp,
        snapshots: Mapping[str, Snapshot] = MappingProxyType({}),
        stops: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Creates the subtasks of an attempt in their slots, when its descriptor is there; they go on from their snapshots,
        if there are any, and sources that have been stopped end at their position."""
        left = self.cancel(attempt)
        lacking = self.shared.table.deploy(slots, stamp)
        if lacking:
            self.shared.ledger.created(self.region.writes, attempt, [], left)
            self.tell(m.FAILED, f"{self.name} does not have slot {lacking}", False, "", "")
        elif not isinstance(descriptor, str):
            self._create(descriptor, left, snapshots, stops)
        else:
            self._deploying = Deployment(descriptor, slots.keys(), left, snapshots, stops)
            if descriptor in self.shared.blobs:
                self._load()
            else:
                self.tell(m.FETCH, descriptor)

    def _fetched(self, key: str, data: bytes | None) -> None:
        """The answer of the JobMaster to a request for the descriptor."""
        if data is None:
            self._record("descriptor_missing", key)
            self.fail(f"the JobMaster does not have descriptor {key}", fatal=False)
        else:
            self._load(None if key in self.shared.blobs else data)

    def _load(self, fetched: bytes | None = None) -> None:
        """The descriptor for which an attempt waits is in the cache, or has just been fetched."""
        found = self._deploying
        if found is not None:
            blobs = self.shared.blobs
            data = blobs.use(found.key, fetched)
            about = {"content": digest(data), "fetched": fetched is not None, "cached": blobs.keys, "room": blobs.most}
            self._record("descriptor_loaded", found.key, **about)
            self._deploying = None
            self._create(json.loads(data), found.left, found.snapshots, found.stops)
            for message in found.kept:
                self.on_message(*message)

    def _record(self, event: str, key: str, **more: Any) -> None:
        """An event about the descriptor of the attempt."""
        about = {"region": self.region.number, "attempt": self.attempt, "connection": self.shared.connection()}
        self.host.event(event, {**about, "key": key, **more})

    def _create(
        self,
        descriptor: Mapping[str, Any],
        left: Sequence[Key],
        snapshots: Mapping[str, Snapshot],
        stops: Mapping[str, int],
    ) -> None:
        """Creates the subtasks of an attempt."""
        attempt, placement, reads = self.attempt, descriptor["placement"], descriptor["reads"]
        self.placement = placement
        own = [task for task, executor in placement.items() if executor == self.name]
        trace = f"/{self.region.number}#{attempt}" if self.region.several else f"#{attempt}"
        trace = self.graph.job.name + trace
        self.subtasks = {task: self.host.create(self.plans[task], trace) for task in own}
        self.channels = self._channels()
        ends = [(c.source, c.target) for c in self.graph.channels.values() if {c.source, c.target} & {*own}]
        self.peers = frozenset(placement[t] for pair in ends for t in pair) - {self.name}
        missing: str | None = None
        try:
            for subtask in self.subtasks.values():
                self._partitions.attach(subtask, reads)
                self._attach_feedback(subtask)
                subtask.is_unaligned = self.shared.settings.unaligned
                if subtask.name in snapshots:
                    subtask.restore(snapshots[subtask.name])
                if subtask.name in stops:
                    subtask.stop(stops[subtask.name])
        except Missing as error:
            reason, missing = str(error), error.dataset
        except OSError as error:
            reason, missing = f"{self.name} cannot store partitions: {error}", ""
        self.shared.ledger.created(self.region.writes, attempt, self._partitions.written(), left)
        if missing is None:
            self.tell(m.DEPLOYED)
        else:
            self.fail(reason, fatal=False, missing=missing)

    def _attach_feedback(self, subtask: Subtask) -> None:
        """A head gets its input policy, and queues that spill unless feedback is bounded."""
        rules, plan = self.shared.settings.loops, subtask.plan
        if not plan.feedback_inputs:
            return
        if not rules.is_bounded:
            queue = self.shared.ledger.store.queue
            subtask.queues.update((channel, queue(rules.queue)) for channel in plan.feedback_inputs)
        queues, buffers = subtask.queues, self.shared.settings.buffers
        subtask.head = head_of(rules, plan.operator.input_policy, queues, plan.feedback_inputs, buffers, subtask.note)
        subtask.head.opened(plan.inputs, 0 if subtask.unfinished.stay else HELD)

    def update(self, reads: Mapping[str, int]) -> None:
        """Readers can begin: their datasets are stored."""
        ready = [self.subtasks[task] for task, dataset in self._partitions.waiting.items() if dataset in reads]
        try:
            for subtask in ready:
                self._partitions.attach(subtask, reads)
        except Missing as error:
            self.fail(str(error), fatal=False, missing=error.dataset)
            return
        for subtask in ready:
            self.wake(subtask.name)

    def trigger(self, checkpoint: int) -> None:
        """A checkpoint: sources begin, and subtasks that no barrier will reach."""
        for subtask in self.subtasks.values():
            subtask.alignment.ask(checkpoint)
            self.wake(subtask.name)

    def stop(self) -> None:
        """Unbounded sources end where they are."""
        for subtask in self.subtasks.values():
            if subtask.plan.operator.is_unbounded and not subtask.is_stopped:
                self.tell(m.SOURCE_ENDS, subtask.name, subtask.stop())
                self.wake(subtask.name)

    def promote(self) -> None:
        """What has been stored for the cluster is the cluster's, if it is there."""
        keys = [key for key in self._partitions.written() if key[0] in self.region.promotes]
        try:
            self.shared.ledger.promote(keys)
        except Missing as error:
            self.fail(f"{error}, and cannot be promoted", fatal=False)
            return
        widths = {name: len(self.graph.writers(name)) for name in self.region.promotes}
        self.host.send(RM, (m.CLUSTER, [[*key, widths[key[0]]] for key in keys]))
        self.tell(m.PROMOTED)

    def cancel(self, attempt: int, *, delete: bool = True, is_over: bool = False) -> list[Key]:
        """Drops all subtasks, and what they have stored if wanted, but, if the job is over, cluster partitions; messages up
        to this attempt are ignored from here on."""
        if (unbegun := self._deploying) is not None:
            self._deploying = None
            self.shared.table.ended(unbegun.tasks)
            self.shared.ledger.created(self.region.writes, self.attempt, [], unbegun.left)
        gone = [*self.subtasks.values()]
        self.shared.table.ended(self.subtasks)
        deleted = self._partitions.release(keeps_promoted=is_over) if delete else []
        self.attempt, self.is_running, self.subtasks, self._reported = attempt, False, {}, set()
        self.peers, self.timed = frozenset(), set()
        self._partitions = AttemptPartitions(self.shared.ledger, attempt)
        self.host.stopped(gone)
        return deleted

    def fail(self, reason: str, *, fatal: bool, missing: str = "", task: str = "", full: Subtask | None = None) -> None:
        """Reports that this attempt cannot go on, and drops its subtasks. `full`: which of them could not write."""
        key = self._partitions.written_by(full) if full is not None else None
        gone = self.cancel(self.attempt)
        self.shared.ledger.canceled(self.region.writes, self.attempt, gone, ordered=False, full=key)
        self.tell(m.FAILED, reason, fatal, missing, task)

    # --- channels

    def _channels(self) -> Channels:
        has = self.shared.settings
        return Channels(
            self,
            self.graph.channels,
            has.flow,
            has.buffers,
            has.floating,
            bounds_feedback=has.loops.is_bounded,
            size=has.buffer_size,
            sender_buffers=has.sender_buffers,
        )

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
            self.fail(f"{channel}: {error}", fatal=False, task=self.graph.channels[channel].target)

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
        """A subtask may have something to do: anything but its own steps that changes it comes here."""
        if task in self.subtasks:
            self.subtasks[task].known_actions = None
            if self.is_running:
                self.host.woken(self.subtasks[task])

    def deliver(self, channel: str, item: Item, backlog: int) -> None:
        """An item has arrived for a subtask. Raises `CannotStore`."""
        to = self.graph.channels[channel]
        subtask = self.subtasks[to.target]
        try:
            subtask.deliver(channel, item)
        except OSError as error:
            raise CannotStore(f"{subtask.name} cannot store its feedback: {error}") from error
        longest = self.shared.longest
        if len(subtask.queues[channel]) > longest[to.edge.feedback]:
            longest[to.edge.feedback] = len(subtask.queues[channel])
        if subtask.is_unaligned and item[0] in (BARRIER, END):
            self._report(subtask)
        if not (subtask.is_unaligned and item[0] == BARRIER):
            self.channels.received(subtask, channel, backlog)
        self.wake(to.target)

    def can_step(self, subtask: Subtask) -> bool:
        """Whether a subtask has something to do, and waits neither for a dataset nor for credit."""
        return bool(self.enabled(subtask))

    def enabled(self, subtask: Subtask) -> Sequence[Action]:
        """What a subtask can do now; kept until it does something, or is woken."""
        found = subtask.known_actions
        if found is None:
            if subtask.name in self._partitions.waiting:
                found = ()
            elif self.channels.is_blocked(subtask):
                found = subtask.enabled_without_credit()
            else:
                found = subtask.enabled()
            if not self.channels.depend_on_connections:
                subtask.known_actions = found
        return found

    def step(self, subtask: Subtask, choose: Callable[[int], int]) -> bool:
        """A subtask does one of its enabled actions, if any; what it sends is delivered or leaves. Whether it did one."""
        enabled = self.enabled(subtask) if subtask.known_actions is None else subtask.known_actions
        if not enabled:
            return False
        kind, taken = action = enabled[choose(len(enabled)) if len(enabled) > 1 else 0]
        subtask.known_actions = None
        try:
            if kind is FINISH:
                self._partitions.finish(subtask)
            subtask.do(action)
        except BaseException as error:
            self.host.returned()
            self._failed(subtask, error)
            return True
        self.host.returned()
        try:
            self._carry_on(subtask, taken if kind is TAKE else "")
        except CannotStore as error:
            self.fail(f"{subtask.name}: {error}", fatal=False, task=subtask.name)
        subtask.known_actions = None
        return True

    def _failed(self, subtask: Subtask, failure: BaseException) -> None:
        """A step has raised an error: the attempt has failed, unless the error is none of the job's, and raised again."""
        if isinstance(failure, CannotStore):
            self.fail(f"{subtask.name}: {failure}", fatal=False, task=subtask.name, full=subtask)
            return
        if isinstance(failure, OutsideSimulation) or not self.host.is_of_job(failure):
            raise failure
        place = place_of(failure) or subtask.line()
        kind = "" if isinstance(failure, Unsendable) else f"{type(failure).__name__}: "
        about = f"{subtask.name}: {kind}{failure}".removesuffix(": ")
        self.fail(f"{about} ({place})" if place else about, fatal=True, task=subtask.name)

    def _carry_on(self, subtask: Subtask, taken: str) -> None:
        """After a step: returns the credit of an item that was taken, sends, and reports the end of a subtask."""
        if taken:
            self.channels.taken(subtask, taken)
        if subtask.sent:
            self.channels.sent(subtask)
        if subtask.unfinished.stay and subtask.name not in self.timed:
            self._time(subtask)
        if subtask.is_unaligned or subtask.alignment.taken:
            self._report(subtask)
        if subtask.phase == TERMINATED and subtask.name not in self._reported:
            self._reported.add(subtask.name)
            self._partitions.consumed(subtask)
            self.shared.table.ended([subtask.name])
            self.tell(m.FINISHED, subtask.name, subtask.result())

    def _report(self, subtask: Subtask) -> None:
        """Sends complete snapshots to the JobMaster."""
        subtask.report()
        while subtask.alignment.taken:
            self.tell(m.SNAPSHOT, subtask.name, *subtask.alignment.taken.pop(0))

    def _time(self, subtask: Subtask) -> None:
        """Sets a timer if a record waits in a buffer that is not full."""
        timeout = subtask.unfinished.timeout
        if subtask.unfinished and timeout is not None and timeout != NEVER:
            self.timed.add(subtask.name)
            self.host.flush_later(subtask, timeout)

    def flush(self, subtask: Subtask) -> None:
        """The buffer timeout of a subtask has passed: what it has in unfinished buffers leaves, or waits for credit."""
        self.timed.discard(subtask.name)
        subtask.known_actions = None
        subtask.flush(TIMEOUT)
        try:
            self._carry_on(subtask, "")
        except CannotStore as error:
            self.fail(f"{subtask.name}: {error}", fatal=False, task=subtask.name)
