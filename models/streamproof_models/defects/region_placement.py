"""Placement of pipelined regions beside their inputs: which locations a slot request waits for.

Source: the description of FLINK-19552 (apache/flink#13730). A slot is requested for an `ExecutionSlotSharingGroup`, which may
contain executions of regions that are not scheduled yet. The request prefers the locations of the inputs of all executions
of the group. Before the fix it waits until all of them are known; since the fix it takes those that are known.

Abstraction: a chain of regions of one task each, with blocking exchanges; tasks share slots in turn.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Enum, Model, State, action, require, terminal


class RegionPlacement(Model):
    """A chain of regions, their slot sharing groups, and the preferred locations of their slots."""

    name = "region_placement"

    regions: int = 4
    """Number of regions; each reads the blocking partition of the one before it."""
    groups: int = 2
    """Number of slot sharing groups, to which the tasks belong in turn."""

    limits = {"regions": (1, None), "groups": (1, None)}
    waits_for_all = False
    """A slot request waits for the locations of all inputs of its group; FLINK-19552 ended this."""

    def state(self):
        """A task has a location from RUNNING on."""
        return State(task=Array(self.regions, Enum("CREATED", "REQUESTED", "RUNNING", "FINISHED")))

    def is_located(self, s, t):
        """Whether the location of a task is known."""
        return s.task[t] in ("RUNNING", "FINISHED")

    @action(t="regions", fairness=WEAK)
    def schedule(self, s, t):
        """A region whose input is finished requests a slot for the group of its task."""
        require(s.task[t] == "CREATED" and (t == 0 or s.task[t - 1] == "FINISHED"))
        s.task[t] = "REQUESTED"

    @action(t="regions", fairness=WEAK)
    def place(self, s, t):
        """The preferred locations are complete, and the task gets its slot."""
        inputs = [u - 1 for u in range(1, self.regions) if u % self.groups == t % self.groups]
        require(s.task[t] == "REQUESTED")
        require(not self.waits_for_all or all(self.is_located(s, u) for u in inputs))
        s.task[t] = "RUNNING"

    @action(t="regions", fairness=WEAK)
    def finish(self, s, t):
        """A task finishes."""
        require(s.task[t] == "RUNNING")
        s.task[t] = "FINISHED"

    @terminal
    def done(self, s):
        """The job has finished."""
        return all(at == "FINISHED" for at in s.task)


class WaitsForAll(RegionPlacement, variant="waits-for-all"):
    """Before FLINK-19552: a slot request waits for the locations of all inputs of its group."""

    waits_for_all = True


class UnfinishedInput(RegionPlacement, variant="unfinished-input"):
    """A region is scheduled as soon as its input runs, although the exchange is blocking."""

    def schedule(self, s, t):
        """The input has a location."""
        require(s.task[t] == "CREATED" and (t == 0 or self.is_located(s, t - 1)))
        s.task[t] = "REQUESTED"
