"""The TaskExecutor as a state machine without input and output: its slots, its connections, and a part for each region."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from streamproof_runtime import messages as m
from streamproof_runtime.jobmaster.jobmaster import NAME as JOBMASTER
from streamproof_runtime.jobmaster.regions import Region
from streamproof_runtime.slots.slot_events import RM
from streamproof_runtime.slots.slot_table import SlotTable
from streamproof_runtime.subtasks.subtask import Subtask
from streamproof_runtime.taskexecutor.executor_host import ExecutorHost, ExecutorSettings, SharedParts
from streamproof_runtime.taskexecutor.memory_cache import CachedPartitions
from streamproof_runtime.taskexecutor.partitions import Partitions
from streamproof_runtime.taskexecutor.region_executor import RegionExecutor


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
        settings: ExecutorSettings | None = None,
    ) -> None:
        self.name, self.slots, self.incarnation, self.host = name, slots, incarnation, host
        self.settings = settings or ExecutorSettings()
        in_memory = frozenset().union(*(region.in_memory for region in regions))
        self.ledger = self.settings.ledger(CachedPartitions(partitions, in_memory), host.event)
        self.connection = -1
        """Number of the connection to the JobMaster."""
        self.table = SlotTable(slots, host, self, self.settings.slot_timeout, self.settings.slot_rules)
        self.blobs = self.settings.blobs(host.event, self.settings.cached_blobs)
        shared = SharedParts(name, host, self.settings, self.ledger, self.table, self.blobs, lambda: self.connection)
        self.longest = shared.longest
        self.parts = [RegionExecutor(shared, region) for region in regions]
        self._part_of = {task: part for part in self.parts for task in part.graph.tasks}

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
        elif kind == m.DISCARD:
            self.ledger.discarded(message[1], message[2])
        elif kind == m.RELEASE:
            self.ledger.release(message[1], message[2])
        else:
            part = self.parts[message[1]]
            if kind == m.DEPLOY:  # another job of the session may have had a subtask of this name
                self._part_of.update(dict.fromkeys(part.graph.tasks, part))
            part.on_message(kind, message[2], message[3:])

    def on_lost(self, peer: str) -> None:
        """A lost connection ends the attempts that use it; without the JobMaster there is none, and nothing is stored. To the
        ResourceManager there will be another one."""
        if peer == RM:
            self.ledger.manager_lost()
            self.table.join()
            return
        if peer == JOBMASTER:
            deleted = [
                key
                for part in self.parts
                for key in part.cancel(part.attempt, delete=self.ledger.cleans_up, is_over=True)
            ]
            self.ledger.master_lost(self.connection, deleted)
            self.blobs.master_lost(self.connection)
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

    def part_of(self, task: str) -> RegionExecutor:
        """The region of a subtask."""
        return self._part_of[task]

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
