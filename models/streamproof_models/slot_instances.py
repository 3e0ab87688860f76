"""Instances (TaskManagers), their slots, and the subtasks that hold them: `slots` without the calls of the scheduler."""

from __future__ import annotations

from dataclasses import dataclass

from streamproof import WEAK, Array, Enum, Model, Option, Queue, Range, Set, State, action, first, require, terminal

AT = ("CREATED", "FIND", "ALLOCATE", "DECIDE", "QUEUED", "RUNNING", "RETURN", "FINISHED", "FAILED")
"""What a subtask's thread does next: FIND, ALLOCATE, DECIDE within `scheduleTask`; RETURN within `releaseSlot`."""


@dataclass(frozen=True)
class Subtask:
    """A word of the parameter `tasks`."""

    vertex: str
    """A letter; Q is a subtask without a sharing group."""
    constraint: int | None
    """Number of its co-location constraint."""

    @property
    def is_shared(self) -> bool:
        """Whether it belongs to the slot sharing group."""
        return self.vertex != "Q"

    @property
    def group(self) -> str:
        """Subtasks with the same group never share a slot: those of a vertex, or of the co-location group."""
        return self.vertex if self.constraint is None else "co-located"


def parse_subtask(word: str) -> Subtask:
    """A letter, for a vertex of the group an optional digit."""
    if not word[:1].isupper() or not (word[1:].isdecimal() or len(word) == 1) or (word[0] == "Q" and len(word) > 1):
        raise ValueError(f"{word!r} is not a subtask: write Q, or another letter with an optional number, like A or H0")
    return Subtask(word[0], int(word[1:]) if word[1:] else None)


class SlotInstances(Model):
    """Instances that register and die, and subtasks that run in their slots and return them."""

    name = "slot_instances"

    instances: int = 2
    """Number of instances."""
    slots: int = 1
    """Number of slots per instance."""
    tasks: str = "H0 T0 Q"
    """The subtasks: Q may be queued; another letter is a vertex of the sharing group, a number its co-location constraint."""
    gang: int = 1
    """Number of consecutive queued subtasks that finish only together."""
    deaths: int = 1
    """Maximum number of instances that die."""

    limits = {"instances": (1, None), "slots": (1, None), "gang": (1, None), "deaths": (0, None)}

    announces_in_lock = False
    """The thread that returns a slot waits for the scheduler's lock, and holds those of the group and of the instance."""

    def setup(self):
        """The subtasks, and the gang of each."""
        self.work = [parse_subtask(word) for word in self.tasks.split()]
        self.threads = range(len(self.work))
        if not self.work:
            raise ValueError("give at least one subtask, like 'A B Q'")
        self.constraints = max((1 + t.constraint for t in self.work if t.constraint is not None), default=0)
        queued = [t for t in self.threads if not self.work[t].is_shared]
        self.gangs = {t: queued[k - k % self.gang :][: self.gang] for k, t in enumerate(queued)}
        self.all_slots = range(self.instances * self.slots)

    def state(self):
        """No instance is registered, no subtask is scheduled."""
        thread, instance = Range(0, len(self.work) - 1), Range(0, self.instances - 1)
        slot = Range(0, len(self.all_slots) - 1)
        return State(
            at=Array(self.threads, Enum(*AT)),
            slot=Array(self.threads, Option(slot)),  # the subtask's slot; during a call, its place from the group
            instance=Array(self.instances, Enum("ABSENT", "ALIVE", "DEAD", "REMOVED")),
            allocated=Array(self.all_slots, Enum("FREE", "SIMPLE", "SHARED")),  # Instance.allocatedSlots
            available=Set(instance),  # Scheduler.instancesWithAvailableResources
            announced=Queue(instance, capacity=len(self.all_slots) + len(self.work)),  # newlyAvailableInstances
            queue=Queue(thread, capacity=max(len(self.gangs), 1)),  # Scheduler.taskQueue
            locked=Array(self.constraints, Option(instance)),  # CoLocationConstraint.lockedLocation
            global_lock=Enum("FREE", "CALL", "HANDLER"),  # Scheduler.globalLock, and the kind of its holder
            group_lock=Option(thread),  # SlotSharingGroupAssignment.lock, held by a thread that returns its slot
            instance_lock=Array(self.instances, Option(thread)),  # Instance.instanceLock
            preferred=Option(instance),  # the preferred location of the call
            found=Option(instance),  # the instance that the holder of the global lock tries
            new_slot=Option(slot),  # the new slot of the call
        )

    # --- slots

    def instance_of(self, slot):
        """The instance of a slot."""
        return slot // self.slots

    def slots_of(self, i):
        """The slots of an instance."""
        return range(i * self.slots, (i + 1) * self.slots)

    def holders(self, s, slot):
        """Number of subtasks with a place in a slot."""
        return sum(s.slot[t] == slot for t in self.threads)

    def is_free(self, s, slot):
        """Whether an instance can allocate a slot."""
        return s.instance[self.instance_of(slot)] == "ALIVE" and s.allocated[slot] == "FREE"

    def has_resources(self, s, i):
        """`Instance.hasResourcesAvailable`."""
        return any(self.is_free(s, slot) for slot in self.slots_of(i))

    def allocate_slot(self, s, i, kind):
        """`Instance.allocateSimpleSlot`, `allocateSharedSlot`: the first free slot."""
        slot = first(x for x in self.slots_of(i) if s.allocated[x] == "FREE")
        s.allocated[slot] = kind
        return slot

    def return_slot(self, s, slot):
        """`Instance.returnAllocatedSlot`: the slot is free, and announced. A dead instance announces nothing."""
        s.allocated[slot] = "FREE"
        if s.instance[self.instance_of(slot)] == "ALIVE":
            s.announced.push(self.instance_of(slot))

    # --- instances

    @action(i="instances")
    def register(self, s, i):
        """`newInstanceAvailable`: the instance is available, and each of its slots is announced."""
        require(s.instance[i] == "ABSENT" and s.global_lock == "FREE")
        s.instance[i] = "ALIVE"
        s.available.add(i)
        for _ in range(self.slots):
            s.announced.push(i)

    @action(i="instances")
    def die(self, s, i):
        """`Instance.markDead`: the instance allocates nothing more. The scheduler does not know yet."""
        require(s.instance[i] == "ALIVE" and s.instance_lock[i] is None)
        require(sum(at in ("DEAD", "REMOVED") for at in s.instance) < self.deaths)
        s.instance[i] = "DEAD"

    @action(i="instances", fairness=WEAK)
    def remove(self, s, i):
        """`removeInstance`: the scheduler forgets a dead instance."""
        require(s.instance[i] == "DEAD" and s.global_lock == "FREE")
        s.instance[i] = "REMOVED"
        s.available.discard(i)

    # --- subtasks that hold a slot

    @action(t="threads", fairness=WEAK)
    def lose_slot(self, s, t):
        """`markDead` releases the slots of the instance one after the other; a subtask that runs in one fails."""
        require(s.at[t] in ("FIND", "ALLOCATE", "DECIDE", "RUNNING") and s.slot[t] is not None)
        require(s.instance[self.instance_of(s.slot[t])] in ("DEAD", "REMOVED") and s.group_lock is None)
        slot = s.slot[t]
        s.slot[t] = None
        if self.holders(s, slot) == 0:
            self.return_slot(s, slot)
        if s.at[t] == "RUNNING":
            s.at[t] = "FAILED"

    def may_finish(self, s, t):
        """Whether the subtasks of its gang run, or have run."""
        return all(s.at[u] in ("RUNNING", "RETURN", "FINISHED", "FAILED") for u in self.gangs.get(t, ()))

    def is_finite(self, s, t):
        """A subtask of the sharing group may never end, as in a streaming job; a queued one ends."""
        return not self.work[t].is_shared

    @action(t="threads", fairness=WEAK.where("is_finite"))
    def finish(self, s, t):
        """A subtask ends and releases its place; for the last one in a slot, its thread locks group and instance."""
        require(s.at[t] == "RUNNING" and self.may_finish(s, t))
        require(not self.work[t].is_shared or s.group_lock is None)
        i = self.instance_of(s.slot[t])
        require(s.instance[i] == "ALIVE")
        if self.holders(s, s.slot[t]) > 1:
            s.slot[t] = None
            s.at[t] = "FINISHED"
        else:
            require(s.instance_lock[i] is None)
            s.instance_lock[i] = t
            if self.work[t].is_shared:
                s.group_lock = t
            s.at[t] = "RETURN"

    @action(t="threads", fairness=WEAK)
    def announce(self, s, t):
        """With both locks, the thread returns the slot and announces it."""
        require(s.at[t] == "RETURN" and not (self.announces_in_lock and s.global_lock != "FREE"))
        self.return_slot(s, s.slot[t])
        s.instance_lock[self.instance_of(s.slot[t])] = None
        s.slot[t] = None
        s.at[t] = "FINISHED"
        if self.work[t].is_shared:
            s.group_lock = None

    @terminal
    def over(self, s):
        """Every subtask has ended, or is queued while no slot is free."""
        waits = any(at == "QUEUED" for at in s.at) and any(self.is_free(s, slot) for slot in self.all_slots)
        return all(at in ("FINISHED", "FAILED", "QUEUED") for at in s.at) and not waits
