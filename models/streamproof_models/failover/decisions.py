"""The failover machine for proofs about any number of failures and losses, on a given job graph.

Only the form of its state differs from `failover`: a decision to restart has a truth value for each task instead of a set of
tasks, so that the number of decisions may be a number without a value. The variants have the rules of those of `failover`.
"""

from __future__ import annotations

from functools import cached_property

from streamproof import Array, Bool, Enum, Option, Range, State
from streamproof_models.failover import variants
from streamproof_models.failover.machine import Failover


class FailoverDecisions(Failover):
    """Backtracking failover of one job, with decisions as arrays of truth values."""

    name = "failover_decisions"

    sizes = {"small": {}, "medium": {"failures": 2, "losses": 2}}

    @cached_property
    def places(self):
        """One more than the number of decisions: also an array of none has an element."""
        return self.decisions + 1

    def state(self):
        """All tasks CREATED, nothing produced."""
        number, decisions, tasks = Range(0, self.decisions), range(self.places), Array(self.tasks, Bool())
        partition = Enum("NONE", "PRODUCING", "STORED", "GONE", "RELEASED")
        return State(
            job=Enum("RUNNING", "FINISHED", "FAILED"),
            status=Array(self.tasks, Enum("CREATED", *self.active, "FINISHED", "FAILED", "CANCELING", "CANCELED")),
            attempt=Array(self.tasks, number),
            **({"partition": Array(list(self.partitions), partition)} if self.partitions else {}),
            read=Array(list(self.channels), Option(number)),
            decided=number,
            restarting=Array(decisions, tasks),
            awaiting=Array(decisions, tasks),
            version=Array(self.tasks, number),
            **self.budgets(),
        )

    def include(self, s, k, t):
        """Task `t` is one of decision `k`."""
        s.restarting[k][t] = True

    def includes(self, s, k, t):
        """Whether task `t` is one of decision `k`, which is pending."""
        return s.restarting[k][t]

    def will_restart(self, s, t):
        """Whether a pending decision restarts task `t`: if one does, its number is the version of the task."""
        return s.restarting[s.version[t]][t]

    def is_carried_out(self, s, k):
        """Whether decision `k` has been carried out, or not been taken."""
        return not any(s.restarting[k][t] for t in self.tasks)

    def is_settled(self, s):
        """Whether no decision is pending; so none restarts a task, which proofs look up by its version."""
        return super().is_settled(s) and not any(self.will_restart(s, t) for t in self.tasks)

    def carry_out(self, s, k):
        """Decision `k` is pending no longer."""
        for t in self.tasks:
            s.restarting[k][t] = False

    def await_task(self, s, k, t):
        """Decision `k` awaits task `t`."""
        s.awaiting[k][t] = True

    def awaits(self, s, k, t):
        """Whether decision `k` awaits task `t`."""
        return s.awaiting[k][t]

    def is_awaiting(self, s, k):
        """Whether decision `k` awaits a task."""
        return any(s.awaiting[k][t] for t in self.tasks)

    def stop_awaiting(self, s, t):
        """No decision awaits task `t`."""
        s.awaiting = [{u: s.awaiting[k][u] and u != t for u in self.tasks} for k in range(self.places)]


class RestartAllDecisions(variants.RestartAll, FailoverDecisions, variant="restart-all"):
    """Every task restarts, related to the failed one or not."""


class IndividualDecisions(variants.Individual, FailoverDecisions, variant="individual"):
    """Only the failed task restarts, on a pipelined exchange."""


class RegionOnlyDecisions(variants.RegionWithoutBacktracking, FailoverDecisions, variant="region-without-backtracking"):
    """Only the failed region restarts (Flink 1.3 to 1.8), though its input may be lost."""


class NoDownstreamRestartDecisions(variants.NoDownstreamRestart, FailoverDecisions, variant="no-downstream-restart"):
    """Lost inputs are recomputed, but their other consumers go on with what they have read."""


class ReadersKeepDecisions(variants.ReadersKeep, FailoverDecisions, variant="no-downstream-restart-kept"):
    """As `no-downstream-restart`, with what the proposal asks of it."""


class NoVersioningDecisions(variants.NoVersioning, FailoverDecisions, variant="no-versioning"):
    """Every decision resets all its tasks, also those that a newer one has taken over and restarted."""

    def will_restart(self, s, t):
        """Whether a pending decision restarts task `t`, whatever its version."""
        return any(self.restarts_task(s, k, t) for k in range(self.places))


class NoFenceDecisions(variants.NoFence, FailoverDecisions, variant="no-fence"):
    """Tasks may be scheduled onto output that a decision already taken is about to discard."""


class EarlyReleaseDecisions(variants.EarlyRelease, FailoverDecisions, variant="early-release"):
    """A partition is released when its consumers have finished, though one of them is about to be restarted."""


class NoMergingDecisions(variants.NoMerging, FailoverDecisions, variant="no-merging"):
    """Regions that wait for each other are not merged."""


class MergeLittleDecisions(
    variants.MergeWithinLogicalRegionOnly, FailoverDecisions, variant="merge-within-logical-region-only"
):
    """Cycles are merged only inside one logical region, as in Flink 2.3."""


class StopAtCreatedDecisions(variants.StopAtCreated, FailoverDecisions, variant="stop-at-created"):
    """The search does not pass through regions none of whose tasks was scheduled (`hasRegionBeenScheduled`)."""


class AttemptReuseDecisions(variants.AttemptReuse, FailoverDecisions, variant="attempt-reuse"):
    """A restarted task keeps its attempt number, so old and new output are indistinguishable."""


class NoTopologicalOrderDecisions(variants.NoTopologicalOrder, FailoverDecisions, variant="no-topological-order"):
    """Restarted tasks are scheduled at once instead of when their inputs have been produced again."""


class UnnoticedLossDecisions(variants.UnnoticedLoss, FailoverDecisions, variant="unnoticed-loss"):
    """A task does not notice that an input is missing and finishes with what there is of it."""


class EagerSchedulingDecisions(variants.EagerScheduling, FailoverDecisions, variant="eager-scheduling"):
    """Whatever can be scheduled is scheduled in the step that makes it possible, as by Flink's scheduler."""


class NoFenceEagerDecisions(variants.NoFenceEager, FailoverDecisions, variant="no-fence-eager"):
    """With eager scheduling, the missing fence shows on a task that waits for a second input."""


class EagerDeploymentDecisions(variants.EagerDeployment, FailoverDecisions, variant="eager-deployment"):
    """A region is scheduled with the producers of its inputs, and awaits them."""


class KeptResultsDecisions(variants.KeptResults, FailoverDecisions, variant="kept-results"):
    """Results are kept until the job is over, whoever has read them."""
