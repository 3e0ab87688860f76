"""The failover machine with FLIP-1's printed pseudo-code for its restart rule: `pseudocode` runs it as a function."""

from __future__ import annotations

from streamproof import WEAK, Enum, Option, Set, State, action, first, require
from streamproof_models.failover.machine import Failover


class LiteralPseudocode(Failover, variant="literal-pseudocode"):
    """`failoverRegion` as FLIP-1 prints it: a recursion that does not remember which regions it has visited.

    The regions for which a call is outstanding are in `calls`; the JobMaster does nothing else until there is none left. A
    call on a region of which nothing was scheduled returns at once. Calls on one region at the same time are kept as one,
    which can only end the recursion sooner.
    """

    topology: str = "pair"

    def state(self):
        """The machine's, and the recursion's."""
        regions = Set(Enum(*self.regions))
        return State(
            **dict(super().state().items())
            | {"job": Enum("RUNNING", "DECIDING", "FINISHED", "FAILED")}
            | {"calls": regions, "rescheduled": regions, "missing": Option(Enum(*self.partitions or ["none"]))}
        )

    def fail_over(self, s, t, missing=None):
        """``onTaskFailure``: calls ``failoverRegion`` on the region of the task."""
        self.end(s, t, "FAILED")
        s.job = "DECIDING"
        s.calls.add(self.region_of[t])
        s.missing = missing

    def has_been_scheduled(self, s, r):
        """``hasRegionBeenScheduled``."""
        return any(s.status[t] != "CREATED" or s.attempt[t] > 0 for t in self.regions[r])

    @action(r="regions", fairness=WEAK)
    def failover_region(self, s, r):
        """One call of ``failoverRegion``."""
        require(r in s.calls and r == first(q for q in self.regions if q in s.calls))
        s.calls.discard(r)
        if self.has_been_scheduled(s, r):
            for p, producer in self.producing_region.items():
                consumers = [q for q in self.consuming_regions[p] if q != producer]
                if r in consumers and self.is_lost(s, p, s.missing):
                    s.calls.add(producer)
                if r == producer:
                    s.calls |= set(consumers)
            s.rescheduled.add(r)
        if len(s.calls) == 0:
            self.begin_restart(s, {t: self.region_of[t] in s.rescheduled for t in self.tasks})
            s.job = "RUNNING"
            s.rescheduled.clear()
            s.missing = None
