"""One result partition on its TaskManager as the log shows it: what `partition_lifecycle` says of one copy, line by line.

`partition_lifecycle` has messages, JobMasters and consumers; a TaskManager's log shows what happens to each partition there:
it is set up, registered, read, listed for release, and released. What Flink does under the lock of the
`ResultPartitionManager` is one order; the line "Registered" is written after the lock is released, and after the requests
that waited for the partition are served.
"""

from __future__ import annotations

from functools import lru_cache

from streamproof import Array, Bool, Enum, Model, Range, State, System, action, require
from streamproof.conformance import compile_model

MOST_SUBPARTITIONS = 64
"""Largest number of subpartitions that are followed one by one."""


class RecordedPartition(Model):
    """A partition of one execution attempt."""

    name = "partition_lifecycle"
    check_deadlock = False
    blocking: bool = True
    """Whether it stays until the JobMaster releases it."""
    subpartitions: int = 1
    """Subpartitions that are followed one by one."""
    reads: int = 1
    """Largest number of requests."""

    def state(self):
        """The task was not set up."""
        return State(
            stage=Enum("NONE", "SET_UP", "REGISTERED", "RELEASING", "RELEASED"),
            shown=Bool(),  # the line "Registered" was written
            producer=Enum("WORKING", "FINISHED", "ENDED"),
            listed=Bool(),  # for release, by the JobMaster or because the JobMaster is gone
            consumed=Bool(),
            stored=Bool(),  # its file is complete
            wanted=Range(0, self.reads),  # requests of readers that are under way
            views=Range(0, self.reads * max(1, self.subpartitions)),  # read views to come
            filled=Array(max(1, self.subpartitions), Bool()),  # the subpartition is finished
            freed=Array(max(1, self.subpartitions), Bool()),  # it is released
        )

    def setup(self):
        """Domains of actions."""
        self.places = range(self.subpartitions)
        self.counts = range(self.subpartitions + 1)

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
    def finish(self, s):
        """The producer has finished; of a blocking partition all is stored."""
        require(s.producer == "WORKING")
        s.producer = "FINISHED"

    @action
    def end(self, s):
        """The producer has failed or was cancelled."""
        require(s.producer == "WORKING")
        s.producer = "ENDED"

    # --- readers

    @action
    def ask(self, s):
        """A reader asks for subpartitions; the partition may not be there."""
        s.wanted += 1

    @action(n="counts")
    def request(self, s, n):
        """The request is served, by so many views."""
        require(s.stage == "REGISTERED" and s.wanted > 0)
        require(not self.blocking or s.producer == "FINISHED")
        s.wanted -= 1
        s.views += n

    @action(n="counts")
    def grant(self, s, n):
        """A request that came before the partition is served as soon as it can be read, before the line "Registered"."""
        require(s.stage == "REGISTERED" and not s.shown and s.wanted > 0)
        s.wanted -= 1
        s.views += n

    @action
    def view(self, s):
        """A reader gets its view of a subpartition, in the step of its request."""
        require(s.stage == "REGISTERED" and s.views > 0)
        s.views -= 1

    @action
    def consume(self, s):
        """All subpartitions of a pipelined partition are consumed, and its producer is done."""
        require(not self.blocking and s.stage != "NONE" and not s.consumed)
        s.consumed = True

    # --- release

    @action
    def list_for_release(self, s):
        """The TaskManager is told to release it, once."""
        require(not self.blocking or not s.listed)
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
    def release(self, s):
        """It is released: because it was consumed, its producer has not finished, or it was listed."""
        require(s.stage == "RELEASING")
        require(not self.blocking or s.listed or s.producer != "FINISHED")
        s.stage = "RELEASED"


class RecordedOutput(Model):
    """The output of one execution attempt at the JobMaster."""

    name = "partition_lifecycle"
    check_deadlock = False

    def state(self):
        """The attempt was not deployed."""
        return State(execution=Enum("NEW", "DEPLOYED", "OVER"))

    @action
    def deploy(self, s):
        """The attempt is deployed."""
        require(s.execution == "NEW")
        s.execution = "DEPLOYED"

    @action
    def end(self, s):
        """The attempt has ended."""
        require(s.execution != "OVER")
        s.execution = "OVER"

    @action
    def discard(self, s):
        """Its results are discarded, when it has ended or its task restarts."""
        require(s.execution == "OVER")


class RecordedConnection(Model):
    """A TaskManager as one process with a ResourceManager, and JobMasters, knows it: registered, silent, disconnected."""

    name = "partition_lifecycle"
    check_deadlock = False
    losses: int = 1
    """Largest number of lines of one kind about a lost heartbeat."""

    def state(self):
        """It has not registered."""
        lost = Range(0, self.losses)
        return State(
            manager=Enum("UNKNOWN", "OPEN", "CLOSED"),
            slots=Bool(),  # the slot manager has its slots
            lost_by_manager=lost,  # heartbeats lost by the ResourceManager, before it closes the connection
            lost_by_master=lost,  # by JobMasters
            told=Bool(),  # the ResourceManager has told JobMasters that it lost the heartbeat
        )

    @action
    def register(self, s):
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
    def lose(self, s, master):
        """The ResourceManager, or a JobMaster, gives it up."""
        require(s.manager != "UNKNOWN")
        if master:
            s.lost_by_master += 1
        else:
            s.lost_by_manager += 1
            s.told = True

    @action(silent=(False, True))
    def close(self, s, silent):
        """The ResourceManager closes the connection; `silent`: for want of heartbeats."""
        require(s.manager == "OPEN")
        if silent:
            require(s.lost_by_manager > 0)
            s.lost_by_manager -= 1
        s.manager = "CLOSED"

    @action(silent=(False, True))
    def disconnect(self, s, silent):
        """A JobMaster disconnects it, on its own account or because the ResourceManager says so."""
        if silent:
            require(s.lost_by_master > 0 or s.told)
            if s.lost_by_master > 0:
                s.lost_by_master -= 1


class RecordedGates(Model):
    """The input gates of one task."""

    name = "partition_lifecycle"
    check_deadlock = False
    gates: int = 1
    """Number of gates."""

    def setup(self):
        """Domains of actions."""
        self.places = range(self.gates)

    def state(self):
        """No gate was created."""
        return State(created=Range(0, self.gates), closed=Array(self.gates, Bool()))

    @action
    def create(self, s):
        """A gate is created."""
        require(all(not closed for closed in s.closed))
        s.created += 1

    @action(i="places")
    def close(self, s, i):
        """A gate is released, with all its channels."""
        require(i < s.created and not s.closed[i])
        s.closed[i] = True


@lru_cache(maxsize=16)
def gates_system(gates: int) -> System:
    """The machine of the input gates of a task."""
    return compile_model(RecordedGates(gates=gates))


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
    return compile_model(RecordedPartition(blocking=blocking, subpartitions=subpartitions, reads=max(1, reads)))
