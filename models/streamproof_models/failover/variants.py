"""Failover with one rule changed, by name: what FLIP-1 argues against, what its text leaves open, what Flink does."""

from __future__ import annotations

from streamproof import WEAK, Decl, Enum, Option, Set, action, require
from streamproof_models.failover.machine import Failover


class RestartAll(Failover, variant="restart-all"):
    """Every task restarts, related to the failed one or not."""

    topology: str = "disjoint"

    def restart_set(self, s, t, named):
        """Everything."""
        return dict.fromkeys(self.tasks, True)


class Individual(Failover, variant="individual"):
    """Only the failed task restarts, on a pipelined exchange."""

    topology: str = "pipelined-pair"

    def scheduling_units(self) -> tuple[tuple[str, ...], ...]:
        """Every task by itself."""
        return tuple((t,) for t in self.tasks)

    def restart_set(self, s, t, named):
        """The failed task."""
        return {u: u == t for u in self.tasks}


class RegionWithoutBacktracking(Failover, variant="region-without-backtracking"):
    """Only the failed region restarts (Flink 1.3 to 1.8), though its input may be gone."""

    topology: str = "pair"

    def drawn_in(self, s, r, marked, named):
        """No other region."""
        return False


class NoDownstreamRestart(Failover, variant="no-downstream-restart"):
    """Lost inputs are recomputed, but their other consumers go on with what they have read."""

    def drawn_in(self, s, r, marked, named):
        """Producers of missing inputs only."""
        return self.misses_output(s, r, marked, named)


class NoVersioning(Failover, variant="no-versioning"):
    """Every recovery resets all its tasks, also those that a newer one has claimed and restarted."""

    def current(self, s, t, k):
        """Always."""
        return True


class NoFence(Failover, variant="no-fence"):
    """New tasks may be scheduled onto output that a decision already taken is about to discard.

    The decision leaves tasks in state CREATED out (`skip_created`), and carrying it out waits for cancellation; in
    between, such a task can be scheduled, read the old output and finish.
    """

    fenced: bool = False


class EarlyRelease(Failover, variant="early-release"):
    """A partition is released when its readers have finished, though one of them is about to be restarted.

    The restarted reader misses it, and a failover of its own brings the producer back.
    """

    topology: str = "tee"
    keeping: bool = False


class NoMerging(Failover, variant="no-merging"):
    """Regions that wait for each other are not merged."""

    topology: str = "cyclic-region"
    parallelism: int = 2
    merging: str = "none"


class MergeWithinLogicalRegionOnly(Failover, variant="merge-within-logical-region-only"):
    """Cycles are merged only inside one logical region, as in Flink 2.3."""

    topology: str = "cyclic-detour"
    merging: str = "logical-region"


class StopAtCreated(Failover, variant="stop-at-created"):
    """The search does not pass through regions none of whose tasks was scheduled (`hasRegionBeenScheduled`)."""

    def drawn_in(self, s, r, marked, named):
        """As in the machine, but only scheduled regions."""
        return any(s.status[t] != "CREATED" for t in self.regions[r]) and super().drawn_in(s, r, marked, named)


class AttemptReuse(Failover, variant="attempt-reuse"):
    """A restarted task keeps its attempt number, so old and new output are indistinguishable."""

    def reset(self, s, t):
        """Back to CREATED under the same number."""
        s.status[t] = "CREATED"
        self.discard(s, t)
        for c in self.inputs[t]:
            s.read[c] = 0


class NoTopologicalOrder(Failover, variant="no-topological-order"):
    """Restarted tasks are deployed at once instead of when their inputs have been produced again."""

    def reset(self, s, t):
        """As in the machine, then scheduled."""
        super().reset(s, t)
        s.status[t] = "SCHEDULED"
        self.track(s, t)


class UnnoticedLoss(Failover, variant="unnoticed-loss"):
    """A task does not notice that an input is missing and finishes with what there is of it.

    What FLIP-1 fears of region restarts on batch jobs before it: a consumer that cannot reset its input processes part of
    it only.
    """

    topology: str = "pair"

    def delivered(self, s, c):
        """A missing partition passes for an empty one."""
        return c in self.partition_of or s.status[self.channel_ends[c][0]] == "FINISHED"


class LiteralPseudocode(Failover, variant="literal-pseudocode"):
    """`failoverRegion` as FLIP-1 prints it: a recursion that does not remember which regions it has visited.

    The regions for which a call is outstanding are kept in `calls`; the JobMaster does nothing else until there is none
    left. A call on a region of which nothing was scheduled returns at once. Calls on one region at the same time are kept
    as one, which can only end the recursion sooner.
    """

    topology: str = "pair"

    def variables(self) -> dict[str, Decl]:
        """The machine's, and the recursion's."""
        region = Enum(*self.region_name)
        named = Enum(*self.partitions) if self.partitions else Enum("none")
        return {**super().variables(), "calls": Set(region), "rescheduled": Set(region), "named": Option(named)}

    def free(self, s):
        """Not while the recursion runs."""
        return s.job == "RUNNING" and len(s.calls) == 0

    def decide(self, s, t, named):
        """``onTaskFailure``: calls ``failoverRegion`` on the region of the task."""
        s.calls.add(self.region_name[self.region_of[t]])
        s.named = named

    def scheduled(self, s, r):
        """``hasRegionBeenScheduled``."""
        return any(s.status[t] != "CREATED" or s.attempt[t] > 0 for t in self.regions[r])

    @action(r="region_name", fairness=WEAK)
    def failover_region(self, s, r):
        """One call of ``failoverRegion``."""
        name, at = self.region_name, self.region_name.index(r)
        require(r in s.calls)
        require(all(q not in s.calls for q in name[:at]))
        s.calls.discard(r)
        if self.scheduled(s, at):
            for c, (producer, reader) in self.channel_ends.items():
                source, target = self.region_of[producer], self.region_of[reader]
                if target == at != source:
                    part = self.partition_of[c]
                    if s.named == part or s.partition[part] in ("NONE", "RELEASED"):
                        s.calls.add(name[source])
                if source == at != target:
                    s.calls.add(name[target])
            s.rescheduled.add(r)
        if len(s.calls) == 0:
            again = {t: name[self.region_of[t]] in s.rescheduled and s.status[t] != "CREATED" for t in self.tasks}
            self.begin(s, again)
            s.rescheduled.clear()
            s.named = None
