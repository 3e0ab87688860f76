"""Cached results with one rule changed, by name."""

from __future__ import annotations

from streamproof import WEAK, action, require
from streamproof_models.failover.cached_results import CachedResults


class NoDownstreamRestart(CachedResults, variant="no-downstream-restart"):
    """The consumers of a restarting task go on with what they have read."""

    def tasks_to_restart(self, s, failed):
        """The failed task, and the producers whose caches lack what a restarting task reads again."""
        chosen = {t: t == failed for t in self.tasks}
        for t in reversed(self.tasks):
            if t in self.producer:
                p = self.producer[t]
                chosen[p] = chosen[p] or (chosen[t] and self.is_incomplete(s, p))
        return chosen


class NoBacktracking(CachedResults, variant="no-backtracking"):
    """A producer does not restart, though its cache lacks what a restarting task reads again."""

    def is_incomplete(self, s, p):
        """Never."""
        return False


class AlwaysBacktracks(CachedResults, variant="always-backtracks"):
    """Backtracking does not stop at a cache: the whole job restarts, as with pipelined exchanges."""

    def is_incomplete(self, s, p):
        """Always."""
        return True


class FromTheStart(CachedResults, variant="from-the-start"):
    """Tasks restart from their first record, as a batch job's do, though sinks have published what checkpoints cover."""

    def tasks_to_restart(self, s, failed):
        """All tasks: no cache has all records."""
        return dict.fromkeys(self.tasks, True)

    def reset(self, s, t, position):
        """A new attempt begins at the first record."""
        super().reset(s, t, 0)


class DroppedAtTrigger(CachedResults, variant="dropped-at-trigger"):
    """Caches drop what is before a checkpoint when it is triggered, not when it is complete."""

    def take_snapshot(self, s, t):
        """As in the machine; the cache from which the task has read so far drops its records."""
        super().take_snapshot(s, t)
        if t in self.producer and all(s.snapshot[c] is not None for c in self.consumers[self.producer[t]]):
            self.drop(s, self.producer[t], s.position[t])


class NeverDropped(CachedResults, variant="never-dropped"):
    """Caches keep every record until the job is over, as a batch job must, which takes no checkpoints."""

    def drop(self, s, p, position):
        """Nothing."""


class MemoryOnly(CachedResults, variant="memory-only"):
    """A cache has room for a number of records; the oldest that all consumers have read is discarded for a new one."""

    capacity: int = 1
    """Number of records that a cache has room for."""

    limits = {"capacity": (1, None)}

    def make_room(self, s, t):
        """If the cache is full, its oldest record goes, which every consumer must have read."""
        if s.position[t] - s.cached_after[t] >= self.capacity:
            oldest = s.cached_after[t] + 1
            require(all(s.position[c] >= oldest for c in self.consumers[t]))
            self.drop(s, t, oldest)


class CheckpointGoesOn(CachedResults, variant="checkpoint-goes-on"):
    """A pending checkpoint survives a restart: the tasks that restart take their snapshots again, when the barrier comes from
    the cache."""

    def after_restart(self, s, chosen):
        """The snapshots of restarting tasks are void."""
        for t in self.tasks:
            if chosen[t]:
                s.snapshot[t] = None


class StaleSnapshots(CachedResults, variant="stale-snapshots"):
    """A pending checkpoint survives a restart, and so do the snapshots of the attempts that have ended."""

    def after_restart(self, s, chosen):
        """Nothing is void."""


class BarrierNotCached(CheckpointGoesOn, variant="barrier-not-cached"):
    """A pending checkpoint survives a restart, but the cache has records only: the barrier does not come again."""

    @action(t="tasks", fairness=WEAK)
    def take_snapshot(self, s, t):
        """As in the machine, by a first attempt, or after a restart of the producer, which sends the barrier again."""
        super().take_snapshot(s, t)
        require(t not in self.producer or s.attempt[t] <= s.attempt[self.producer[t]])


class NoBacktrackingUnlimited(NoBacktracking, variant="no-backtracking-unlimited"):
    """As `no-backtracking`, with a restart strategy that always allows another restart."""

    def fail_over(self, s, t):
        """As in the machine; the restart is not counted."""
        decided = s.decided
        super().fail_over(s, t)
        s.decided = decided

    def next_attempt(self, s, t):
        """As in the machine; the highest number stands for all from there on."""
        return min(s.attempt[t] + 1, self.decisions)
