"""`partition_lifecycle` with what Flink's logs say beside it: one copy of a partition, an output, a connection, input gates.

Each machine is the model or a variant, for one attempt. A line takes the steps of the model that must have happened by
then, and an action that notes the line: it changes history variables only, and its guard asks for the state to which the
steps of the model must have led. A rule that is overridden is stronger here.

What Flink does under the lock of the `ResultPartitionManager` is one order; the line "Registered" is written after the lock
is released, and after the requests that waited for the partition are served.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from streamproof import Array, Bool, Enum, Range, State, System, action, require
from streamproof.conformance import compile_model
from streamproof_models.partitions.machine import PartitionLifecycle
from streamproof_models.partitions.types import Caching, Pipelined
from streamproof_models.partitions.variants import Discarding

MOST_SUBPARTITIONS = 64
"""Largest number of subpartitions that are followed one by one."""


class RecordedPartition(PartitionLifecycle):
    """A partition of one execution attempt, with the lines of its TaskManager."""

    name = "partition_lifecycle"
    attempts: int = 1
    crashes: int = 0
    subpartitions: int = 0
    """Subpartitions that are followed one by one."""
    reads: int = 1
    """Largest number of requests."""
    limits: ClassVar = {**PartitionLifecycle.limits, "subpartitions": (0, MOST_SUBPARTITIONS), "reads": (1, None)}

    def state(self):
        """Also: the lines so far. The task was not set up."""
        return State(
            **dict(super().state().items()),
            stage=Enum("NONE", "SET_UP", "REGISTERED", "RELEASING", "RELEASED"),
            shown=Bool(),  # the line "Registered" was written
            producer=Enum("WORKING", "FINISHED", "ENDED"),
            listed=Bool(),  # for release, by the JobMaster or because the JobMaster is gone
            consumed=Bool(),
            stored=Bool(),  # its file is complete
            wanted=Range(0, self.reads),  # requests of readers that are under way
            views=Range(0, self.most_views),  # read views to come
            filled=Array(max(1, self.subpartitions), Bool()),  # the subpartition is finished
            freed=Array(max(1, self.subpartitions), Bool()),  # it is released
        )

    def setup(self):
        """Also: domains of the lines."""
        super().setup()
        self.places = range(self.subpartitions)
        self.counts = range(self.subpartitions + 1)
        self.most_views = self.reads * max(1, self.subpartitions)

    def can_be_read(self, s):
        """Whether a reader may have asked, as far as the model knows."""
        return s.consumer[0, 0] != "CREATED" or s.copy[0, 0] == "DELETED"

    # --- the producer

    @action
    def set_up(self, s):
        """Its file is created; the task's thread may not know yet that the task has failed."""
        require(s.stage == "NONE" and s.producer != "FINISHED")
        s.stage = "SET_UP"

    @action
    def enter(self, s):
        """It can be read."""
        require(s.stage in ("NONE", "SET_UP"))
        s.stage = "REGISTERED"

    @action
    def show(self, s):
        """The line "Registered"."""
        require(s.stage not in ("NONE", "SET_UP") and not s.shown)
        s.shown = True

    @action(i="places")
    def fill(self, s, i):
        """A subpartition is finished."""
        require(s.stage != "NONE" and not s.filled[i])
        s.filled[i] = True

    @action
    def store(self, s):
        """Its file is complete."""
        require(s.stage in ("REGISTERED", "RELEASING", "RELEASED") and s.producer != "FINISHED" and not s.stored)
        s.stored = True

    @action
    def show_finished(self, s):
        """The producer has finished: all is stored, or deleted again."""
        require(s.producer == "WORKING" and s.copy[0, 0] != "PRODUCING")
        s.producer = "FINISHED"

    @action
    def show_ended(self, s):
        """The producer has failed or was cancelled."""
        require(s.producer == "WORKING")
        s.producer = "ENDED"

    # --- readers

    @action
    def ask(self, s):
        """A reader asks for subpartitions; the partition may not be there."""
        require(s.wanted < self.reads)
        s.wanted += 1

    @action(n="counts")
    def request(self, s, n):
        """The request is served, by so many views."""
        require(s.stage == "REGISTERED" and s.wanted > 0 and self.can_be_read(s))
        require(s.views + n <= self.most_views)
        s.wanted -= 1
        s.views += n

    @action(n="counts")
    def grant(self, s, n):
        """A request that came before the partition is served as soon as it can be read, before the line "Registered"."""
        require(s.stage == "REGISTERED" and not s.shown and s.wanted > 0 and s.views + n <= self.most_views)
        s.wanted -= 1
        s.views += n

    @action
    def view(self, s):
        """A reader gets its view of a subpartition, in the step of its request."""
        require(s.stage == "REGISTERED" and s.views > 0)
        s.views -= 1

    # --- release

    @action
    def list_for_release(self, s):
        """An order to release it is sent to the TaskManager."""
        s.listed = True

    @action
    def begin_release(self, s):
        """Its resources are released."""
        require(s.stage == "REGISTERED")
        s.stage = "RELEASING"

    @action(i="places")
    def free(self, s, i):
        """A subpartition is released."""
        require(s.stage != "NONE" and not s.freed[i])
        s.freed[i] = True

    @action
    def show_released(self, s):
        """It is released, for one of the model's reasons."""
        require(s.stage == "RELEASING" and s.copy[0, 0] == "DELETED")
        s.stage = "RELEASED"


class RecordedBlocking(RecordedPartition, Discarding):
    """A blocking partition: it stays until the JobMaster releases it, or discards what its producer has not finished."""

    failures: int = 0

    def can_be_read(self, s):
        """A reader has begun; one that comes after the list finds what is still there."""
        return s.consumer[0, 0] != "CREATED" or (s.listed and s.copy[0, 0] == "STORED")

    def discard(self, s, p, a):
        """What is stored stays until its consumers have finished."""
        require(s.copy[p, a] != "STORED")
        super().discard(s, p, a)

    def list_for_release(self, s):
        """Once: an order is on its way, if there is something to release."""
        require(not s.listed and (len(s.to_executor[0, 0]) > 0 or s.copy[0, 0] == "DELETED"))
        super().list_for_release(s)


class RecordedPipelined(RecordedPartition, Pipelined):
    """A pipelined partition: it is deleted when it is consumed, or its region restarts."""

    failures: int = 1

    def fail(self, s, p, c):
        """The region restarts while the partition is there."""
        require(s.copy[p, 0] != "DELETED")
        super().fail(s, p, c)

    @action
    def show_consumed(self, s):
        """All subpartitions are consumed, and the producer is done."""
        require(s.stage != "NONE" and not s.consumed and s.copy[0, 0] == "DELETED")
        s.consumed = True


class RecordedOutput(Discarding):
    """The output of one execution attempt at the JobMaster."""

    name = "partition_lifecycle"
    attempts: int = 1
    failures: int = 0
    crashes: int = 0

    def state(self):
        """Also: the state of the attempt. It was not deployed."""
        return State(**dict(super().state().items()), execution=Enum("NEW", "DEPLOYED", "OVER"))

    @action
    def show_deployed(self, s):
        """The attempt is deployed."""
        require(s.execution == "NEW")
        s.execution = "DEPLOYED"

    @action
    def show_ended(self, s):
        """The attempt has ended."""
        require(s.execution != "OVER")
        s.execution = "OVER"

    @action
    def show_discarded(self, s):
        """Its results are discarded, when it has ended or its task restarts."""
        require(s.execution == "OVER" and not self.is_tracked(s, 0, 0))


class RecordedConnection(PartitionLifecycle):
    """A TaskManager as one process with a ResourceManager, and JobMasters, knows it: registered, silent, disconnected."""

    name = "partition_lifecycle"
    attempts: int = 1
    failures: int = 0
    crashes: int = 0
    losses: int = 1
    """Largest number of lines of one kind about a lost heartbeat."""
    limits: ClassVar = {**PartitionLifecycle.limits, "losses": (1, None)}

    def state(self):
        """Also: the lines so far. It has not registered."""
        lost = Range(0, self.losses)
        return State(
            **dict(super().state().items()),
            manager=Enum("UNKNOWN", "OPEN", "CLOSED"),
            slots=Bool(),  # the slot manager has its slots
            lost_by_manager=lost,  # heartbeats lost by the ResourceManager, before it closes the connection
            lost_by_master=lost,  # by JobMasters
            told=Bool(),  # the ResourceManager has told JobMasters that it lost the heartbeat
        )

    @action
    def show_registered(self, s):
        """It registers at the ResourceManager, perhaps once more: another slot report is to come."""
        s.manager = "OPEN"
        s.slots = False

    @action
    def add_slots(self, s):
        """It reports its slots."""
        require(s.manager != "UNKNOWN" and not s.slots)
        s.slots = True

    @action
    def drop_slots(self, s):
        """The slot manager forgets it, which needs no line if the connection is closed."""
        require(s.slots)
        s.slots = False

    @action
    def answer(self, s):
        """It answers a heartbeat; an answer may be late."""
        require(s.manager != "UNKNOWN")

    @action
    def mark(self, s):
        """Its monitor has counted the failed requests."""
        require(s.manager != "UNKNOWN")

    @action(master=(False, True))
    def show_lost(self, s, master):
        """The ResourceManager, or a JobMaster, gives it up."""
        require(s.manager != "UNKNOWN")
        if master:
            require(s.lost_by_master < self.losses)
            s.lost_by_master += 1
        else:
            require(s.lost_by_manager < self.losses)
            s.lost_by_manager += 1
            s.told = True

    @action(silent=(False, True))
    def show_closed(self, s, silent):
        """The ResourceManager closes the connection; `silent`: for want of heartbeats."""
        require(s.manager == "OPEN")
        if silent:
            require(s.lost_by_manager > 0)
            s.lost_by_manager -= 1
        s.manager = "CLOSED"

    @action(silent=(False, True))
    def show_disconnected(self, s, silent):
        """A JobMaster has disconnected it, on its own account or because the ResourceManager says so."""
        require(s.connected[0, 0] and not s.registered[0, 0])
        if silent:
            require(s.lost_by_master > 0 or s.told)
            if s.lost_by_master > 0:
                s.lost_by_master -= 1


class RecordedGates(Caching):
    """The input gates of one task, each a consumer of a partition of its own, finished or not."""

    name = "partition_lifecycle"
    attempts: int = 1
    crashes: int = 0

    def setup(self):
        """Also: domains of the lines."""
        super().setup()
        self.gates = range(self.partitions)

    def state(self):
        """Also: the gates. None was created."""
        return State(
            **dict(super().state().items()),
            created=Range(0, self.partitions),
            closed=Array(self.partitions, Bool()),
        )

    @action(i="gates")
    def create(self, s, i):
        """A gate is created: its task begins to read."""
        require(all(not closed for closed in s.closed) and s.consumer[i, 0] == "READING")
        require(s.created < self.partitions)
        s.created += 1

    @action(i="gates")
    def show_gate_closed(self, s, i):
        """A gate is released, with all its channels: its task does not read any longer."""
        require(i < s.created and not s.closed[i] and s.consumer[i, 0] != "READING")
        s.closed[i] = True


@lru_cache(maxsize=16)
def gates_system(gates: int) -> System:
    """The machine of the input gates of a task."""
    return compile_model(RecordedGates(partitions=gates, failures=gates))


@lru_cache(maxsize=1)
def output_system() -> System:
    """The machine of the output of an attempt at the JobMaster."""
    return compile_model(RecordedOutput())


@lru_cache(maxsize=16)
def connection_system(losses: int) -> System:
    """The machine of the connection to one TaskManager."""
    return compile_model(RecordedConnection(losses=max(1, losses)))


@lru_cache(maxsize=64)
def partition_system(blocking: bool, subpartitions: int, reads: int) -> System:
    """The machine of one partition."""
    machine = RecordedBlocking if blocking else RecordedPipelined
    return compile_model(machine(subpartitions=subpartitions, reads=max(1, reads)))
