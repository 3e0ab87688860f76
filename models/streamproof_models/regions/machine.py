"""Region scheduling in Flink 1.13 and later: pipelined regions, groups, cached shuffle descriptors, and a bounded blob cache.

The scheduler schedules a pipelined region as a whole, when all partitions that it reads from other regions are finished. It
counts them by ConsumedPartitionGroup. A task is deployed with the shuffle descriptors of each group that it consumes. The
JobMaster serializes, compresses and caches them once for a group. Large ones are blobs: the deployment has the blob key, and
the TaskExecutor reads the blob through a cache that evicts the least recently used blob.

Regions, groups and restart sets are those of `streamproof_models.failover`. Abstractions: a restart cancels and resets its
tasks in one step; tasks always get slots; descriptors of a group differ by its epoch, the number of resets of its producers.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Option, Range, Record, State, action, require, terminal
from streamproof_models.regions.core import SchedulingCore


class RegionScheduling(SchedulingCore):
    """The scheduler of one batch job, its deployments, and the blob caches of the TaskExecutors."""

    name = "regions"

    executors: int = 1
    """Number of TaskExecutors."""
    cache: int = 1
    """Limit of a TaskExecutor's blob cache, in blobs."""
    failures: int = 1
    """Number of failures of regions, lost input partitions included."""
    instance_bounds = ("failures",)
    limits = {"executors": (1, None), "cache": (1, None), "failures": (0, None)}
    sizes = {
        "small": {},
        "medium": {"executors": 2, "cache": 2, "failures": 3},
        "large": {"executors": 2, "cache": 2, "failures": 4},
    }

    def state(self):
        """Nothing is scheduled."""
        epoch, gates = Range(0, self.failures), self.gates
        key = Record(group=Enum(*self.groups), epoch=epoch)  # of a blob
        core = dict(super().state().items())
        return State(
            status=core["status"],
            place=Array(self.tasks, Range(0, self.executors - 1)),  # while it reads descriptors, else 0
            failures_left=Range(0, self.failures, init=self.failures),
            # groups and partitions at the JobMaster
            unfinished=core["unfinished"],
            releasable=Array(self.groups, Bool()),
            epoch=Array(self.groups, epoch),
            cached=Array(self.groups, Option(epoch)),  # serialized descriptors, or their blob key
            server=Array(self.groups, Option(epoch)),  # the blob
            gone=Array(list(self.partitions), Bool()),  # released or lost
            # deployments
            gate=Array(gates, Enum("NONE", "SENT", "LOADED")),  # the descriptors, or their blob key
            descriptor=Array(gates, epoch),  # those that were sent, later those that were read
            blobs=Array(range(self.executors), Array(range(self.cache + 1), Option(key))),  # most recently used first
        )

    # --- deployment

    @action(t="tasks", x="executors", fairness=WEAK)
    def deploy(self, s, t, x):  # type: ignore[override]
        """A task is sent to a TaskExecutor, with the descriptors of the partitions that it consumes."""
        super().deploy(s, t)
        s.place[t] = x
        for g in self.groups_of(t):
            if (t, g) not in self.late:
                self.send_descriptors(s, t, g)

    def send_descriptors(self, s, t, g):
        """The JobMaster serializes the descriptors of a group unless it has them, and sends them, or their blob key."""
        if s.cached[g] is None:
            s.cached[g] = s.epoch[g]
            if self.is_offloaded(g):
                s.server[g] = s.epoch[g]
        s.descriptor[t, g] = s.cached[g]
        s.gate[t, g] = "SENT" if self.is_offloaded(g) else "LOADED"

    @action(gate="late", fairness=WEAK)
    def update_partitions(self, s, gate):
        """Eager scheduling: a task is sent the descriptors when the partitions are finished; it may run already."""
        t, g = gate
        require(s.status[t] in ("DEPLOYING", "RUNNING") and s.gate[t, g] == "NONE" and s.unfinished[g] == 0)
        self.send_descriptors(s, t, g)

    # --- the TaskExecutor

    @action(t="tasks", g=lambda m, t: m.groups_of(t), fairness=WEAK)
    def load(self, s, t, g):
        """A task reads a blob: from the cache, else from the blob server."""
        require(self.is_waiting(s, t, g))
        self.read_blob(s, t, g)

    def is_waiting(self, s, t, g):
        """Whether a task still has to read the blob of a group."""
        return s.status[t] in ("DEPLOYING", "RUNNING") and s.gate[t, g] == "SENT"

    def read_blob(self, s, t, g):
        """Under one lock: the blob is in the cache, or is fetched, and is read before another one can replace it."""
        self.fetch(s, t, g)
        s.gate[t, g] = "LOADED"

    def fetch(self, s, t, g):
        """The blob is in the cache afterwards, as the one used last."""
        if not self.is_cached(s, t, g):
            require(s.server[g] == s.descriptor[t, g])
            self.after_fetch(s, g)
        x, key = s.place[t], self.key(s, t, g)
        for k in reversed(range(1, self.cache + 1)):
            if all(s.blobs[x][j] != key for j in range(k)):
                s.blobs[x][k] = s.blobs[x][k - 1]
        s.blobs[x][0] = key
        self.evict(s, x)

    def key(self, s, t, g):
        """The key of the blob that a task was sent."""
        return {"group": g, "epoch": s.descriptor[t, g]}

    def is_cached(self, s, t, g):
        """Whether the TaskExecutor of a task has the blob that the task still has to read."""
        return any(s.blobs[s.place[t]][k] == self.key(s, t, g) for k in range(self.cache + 1))

    def after_fetch(self, s, g):
        """The blob stays on the server."""

    def evict(self, s, x):
        """A full cache evicts the blob that was not used for the longest time."""
        s.blobs[x][self.cache] = None

    @action(t="tasks", fairness=WEAK)
    def run(self, s, t):
        """A task that has all descriptors runs, with unknown input channels for those that are sent later."""
        super().run(s, t)
        if len(self.sent_first(t)) == len(self.groups_of(t)):
            s.place[t] = 0

    def sent_first(self, t):
        """The groups whose descriptors a task is deployed with."""
        return [g for g in self.groups_of(t) if (t, g) not in self.late]

    def before_run(self, s, t):
        """The task has read the descriptors that it was deployed with."""
        require(all(s.gate[t, g] == "LOADED" for g in self.sent_first(t)))

    @action(t="tasks", fairness=WEAK)
    def finish(self, s, t):
        """A task has read its inputs to their end, and all consumers of its pipelined outputs run."""
        super().finish(s, t)
        s.place[t] = 0

    def before_finish(self, s, t):
        """The task has all descriptors, its producers have finished, and the consumers of its pipelined outputs run."""
        require(all(s.gate[t, g] == "LOADED" for g in self.groups_of(t)))
        for g in self.groups:
            require(t not in self.consumers[g] or all(s.status[p] == "FINISHED" for p in self.producers[g]))
            if t in self.producers[g] and not self.blocking[g]:
                require(all(s.status[c] in ("RUNNING", "FINISHED") for c in self.consumers[g]))

    # --- release and restart

    @action(g="groups", fairness=WEAK)
    def release(self, s, g):
        """All regions that read a group have finished: its partitions are released unless other groups have them too."""
        require(not s.releasable[g] and self.is_consumed(s, g))
        s.releasable[g] = True
        self.invalidate(s, g)
        for p in self.partitions_of[g]:
            if all(s.releasable[other] for other in self.groups if p in self.partitions_of[other]):
                s.gone[p] = True

    def is_consumed(self, s, g):
        """Whether all regions that read a group have finished."""
        return all(s.status[t] == "FINISHED" for c in self.consumers[g] for t in self.regions[self.region_of[c]])

    def invalidate(self, s, g):
        """The JobMaster drops the cached descriptors of a group and deletes their blob."""
        s.cached[g] = None
        s.server[g] = None

    @action(r="regions", lost="losses")
    def fail(self, s, r, lost):
        """A region fails, of itself or because it misses input partitions; `lost` are the partitions that are unavailable."""
        require(s.failures_left > 0)
        require(any(s.status[t] in ("SCHEDULED", "DEPLOYING", "RUNNING") for t in self.regions[r]))
        for p, producer in self.partitions.items():
            missed = p in lost.split(", ")
            require(
                s.gone[p] == missed or (missed and r in self.consuming_regions[p] and s.status[producer] == "FINISHED")
            )
        s.failures_left -= 1
        restarting = self.tasks_to_restart(r, lost)
        for g in self.groups:
            if any(t in restarting and s.status[t] != "CREATED" for t in self.producers[g]):
                s.epoch[g] += 1
                self.invalidate_restarted(s, g)
        for t in restarting:
            self.reset(s, t)

    def invalidate_restarted(self, s, g):
        """The descriptors of the earlier partitions are void."""
        self.invalidate(s, g)

    def reset(self, s, t):
        """A new attempt of a task: what the old one produced and was sent is void."""
        super().reset(s, t)
        for g in self.groups:
            if t in self.producers[g]:
                s.releasable[g] = False
            if t in self.consumers[g]:
                self.consume_again(s, g)
                s.gate[t, g] = "NONE"
                s.descriptor[t, g] = 0
        for p in self.outputs[t]:
            s.gone[p] = False
        s.place[t] = 0

    def consume_again(self, s, g):
        """A consumer of the group has to read it again."""
        s.releasable[g] = False

    @terminal
    def over(self, s):
        """All tasks have finished and all groups are released."""
        return self.all_finished(s) and all(s.releasable[g] for g in self.groups)
