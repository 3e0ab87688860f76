"""A judge of region scheduling without a machine: it looks at positions in a JobManager's log, not at states.

A task is reset at the latest when the log schedules it again, and tasks that one decision certainly restarts are reset
together. All rules are then about what lies between two positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from streamproof.conformance import Event
from streamproof_models.failover.graph import Exchange, JobGraph
from streamproof_models.failover.regions import Merging, pipelined_regions
from streamproof_models.failover.topology import Topology

Key = tuple[int, int]
ENDS = ("FINISHED", "CANCELED", "FAILED")


@dataclass
class RegionJudge:
    """The job graph, and the lines of one job; vertices are numbered by their ids."""

    graph: JobGraph
    events: Sequence[Event]
    prompt: bool = True

    def __post_init__(self) -> None:
        topology = Topology(self.graph)
        members = pipelined_regions(topology, Merging.LOGICAL_REGION).members
        names = [v.name for v in self.graph.vertices]
        self.tasks: list[Key] = [(names.index(v), s) for v, s in topology.tasks]
        self.region = {self.tasks[t]: number for number, region in enumerate(members) for t in region}
        self.members = [[self.tasks[t] for t in region] for region in members]
        self.inputs: dict[int, set[tuple[Key, bool]]] = {r: set() for r in range(len(members))}
        for edge, consumers in zip(self.graph.edges, topology.consumes(), strict=True):
            for consumer, producers in enumerate(consumers):
                reader = self.region[names.index(edge.target), consumer]
                for p in producers:
                    producer = (names.index(edge.source), p)
                    if self.region[producer] != reader:
                        self.inputs[reader].add((producer, edge.exchange is Exchange.HYBRID_FULL))
        self.decisions = [at for at, e in enumerate(self.events) if e.event == "failover.restart"]
        self.begins: dict[Key, list[int]] = {t: [] for t in self.tasks}
        for at, e in enumerate(self.events):
            if e.args.get("new") == "SCHEDULED":
                self.begins[self.key(e)].append(at)
        self.resets = self._resets()

    def key(self, e: Event) -> Key:
        """The task of a line."""
        return int(e.args["vertex"], 16) - 1, e.args["subtask"]

    def _resets(self) -> dict[Key, list[int]]:
        """When each task was reset, at the latest."""
        joint: dict[int, list[tuple[Key, int]]] = {}
        resets: dict[Key, list[int]] = {t: [] for t in self.tasks}
        for task, begins in self.begins.items():
            for before, at in pairwise(begins):
                if self.events[at].args["number"] <= self.events[before].args["number"]:
                    continue
                between = [d for d in self.decisions if before < d < at]
                if len(between) == 1:
                    joint.setdefault(between[0], []).append((task, at))
                else:
                    since = between[0] if between else at - 1
                    peers = [b for t in self.members[self.region[task]] for b in self.begins[t] if since < b <= at]
                    resets[task].append(min(peers))
        for certain in joint.values():
            first = min(at for _, at in certain)
            for task, _ in certain:
                resets[task].append(first)
        return {task: sorted(times) for task, times in resets.items()}

    def first_wrong(self) -> int | None:
        """The position of the first line that breaks a rule."""
        return next((at for at in range(len(self.events)) if not self._is_right(at)), None)

    def _last(self, task: Key, at: int) -> tuple[int, str] | None:
        """The last line about the state of a task before a position."""
        for p in range(at - 1, -1, -1):
            e = self.events[p]
            if e.event == "exec.transition" and self.key(e) == task and e.args["new"] != "CANCELING":
                return p, e.args["new"]
        return None

    def _state(self, task: Key, at: int) -> str | None:
        """The state of a task before a line; None if it was reset, or never scheduled."""
        last = self._last(task, at)
        if last is None or any(last[0] < r <= at for r in self.resets[task]):
            return None
        return last[1] if any(b < at for b in self.begins[task]) else None

    def _has(self, task: Key, early: bool, at: int) -> bool:
        """Whether the output of a task is there: it has finished, or begun, and was not reset since."""
        wanted = "SCHEDULED" if early else "FINISHED"
        done = [p for p in range(at) if self.events[p].args.get("new") == wanted and self.key(self.events[p]) == task]
        return bool(done) and not any(done[-1] < r <= at for r in self.resets[task])

    def _is_free(self, task: Key, at: int) -> bool:
        """Whether a task can be scheduled: it never was, or has ended and was reset."""
        last = self._last(task, at)
        if last is None or (last[1] in ENDS and not any(b < at for b in self.begins[task])):
            return True
        return last[1] in ENDS and any(max(b for b in self.begins[task] if b < at) < r <= at for r in self.resets[task])

    def _half_scheduled(self, at: int) -> tuple[int, set[Key]] | None:
        """The region that is being scheduled before a line, and its tasks without a line yet."""
        shown: set[Key] = set()
        region = None
        for p in range(at):
            e = self.events[p]
            if e.args.get("new") == "SCHEDULED":
                here = self.region[self.key(e)]
                shown = {*shown, self.key(e)} if here == region else {self.key(e)}
                region = here
                if len(shown) == len(self.members[here]):
                    region, shown = None, set()
        return None if region is None else (region, set(self.members[region]) - shown)

    def _half_deployed(self, at: int) -> tuple[int, set[Key]] | None:
        """The region that is being deployed before a line, and its tasks that are next."""
        left: set[Key] = set()
        region = -1
        for p in range(at):
            e = self.events[p]
            if e.args.get("new") == "DEPLOYING":
                if not left:
                    region = self.region[self.key(e)]
                    lasts = {t: self._last(t, p) for t in self.members[region]}
                    left = {t for t, last in lasts.items() if last is not None and last[1] == "SCHEDULED"}
                left.discard(self.key(e))
            elif e.args.get("new") in ("CANCELING", "CANCELED", "FAILED"):
                left = set()
        return (region, left) if left else None

    def _is_right(self, at: int) -> bool:
        e = self.events[at]
        if e.event not in ("exec.transition", "exec.deploy", "job.transition", "failover.restart"):
            return True
        if e.event == "exec.deploy":
            return self._state(self.key(e), at) in ("DEPLOYING", "INITIALIZING")
        new, scheduling = e.args.get("new"), self._half_scheduled(at)
        if e.event == "exec.transition" and new == "SCHEDULED":
            return self._may_schedule(e, at, scheduling)
        if e.event == "failover.restart":
            return scheduling is None
        if e.event == "job.transition":
            done = all(self._state(t, at) == "FINISHED" for t in self.tasks)
            return (new != "FINISHED" or done) and (new == "RUNNING" or self._is_prompt(at))
        if scheduling is not None:
            return False
        task = self.key(e)
        state = self._state(task, at)
        begun = [b for b in self.begins[task] if b < at]
        anew = any(r <= at for r in self.resets[task][len(begun) - 1 :]) if begun else False
        present = self.events[self.begins[task][len(begun) - (not anew)]].args["number"] if begun else 0
        calm = self._half_deployed(at) is None
        match new:
            case "DEPLOYING":
                left = self._half_deployed(at)
                return state == "SCHEDULED" and (left is None or task in left[1]) and e.args["number"] == present
            case "INITIALIZING":
                started = calm and state in ("DEPLOYING", "INITIALIZING")
                return started and self._is_prompt(at) and e.args["number"] == present
            case "RUNNING":
                return (
                    calm
                    and state in ("DEPLOYING", "INITIALIZING")
                    and self._is_prompt(at)
                    and e.args["number"] == present
                )
            case "FINISHED":
                working = state in ("DEPLOYING", "INITIALIZING", "RUNNING")
                return calm and working and self._is_prompt(at) and e.args["number"] == present
            case _:
                return state not in ENDS

    def _may_schedule(self, e: Event, at: int, scheduling: tuple[int, set[Key]] | None) -> bool:
        task = self.key(e)
        region = self.region[task]
        earlier = [self.events[b].args["number"] for b in self.begins[task] if b < at]
        if earlier and e.args["number"] <= earlier[-1]:
            return False
        announced = sum(self.events[d].args["count"] for d in self.decisions if d < at)
        again = sum(self.events[b].args["number"] > 0 for begins in self.begins.values() for b in begins if b < at)
        first = scheduling is None and e.args["number"] > 0
        if again + (len(self.members[region]) if first else 0) > announced:
            return False
        if not earlier and e.args["number"] > 0:
            return False  # a task that was never scheduled is not announced without a global failure
        if scheduling is not None:
            return scheduling[0] == region and task == min(scheduling[1], key=self.members[region].index)
        before = self._scheduled_before(at)
        if task != self.members[region][0] or (before is not None and before >= region):
            return False
        if self._half_deployed(at) is not None or not all(self._is_free(t, at) for t in self.members[region]):
            return False
        return all(self._has(p, early, at) for p, early in self.inputs[region])

    def _scheduled_before(self, at: int) -> int | None:
        """The region that was scheduled last in the same step, up to the first decision."""
        if any(d < at for d in self.decisions):
            return None
        for p in range(at - 1, -1, -1):
            e = self.events[p]
            if e.event == "exec.transition" and e.args["new"] not in ("SCHEDULED", "DEPLOYING"):
                return None
            if e.args.get("new") == "SCHEDULED":
                return self.region[self.key(e)]
        return None

    def _is_prompt(self, at: int) -> bool:
        """Whether all regions with inputs are scheduled; up to the first failure."""
        failed = any(d < at for d in self.decisions) or any(
            self.events[p].args.get("new") == "FAILED" for p in range(at)
        )
        if failed or not self.prompt or not any(b < at for begins in self.begins.values() for b in begins):
            return True
        return not any(
            self._last(tasks[0], at) is None and all(self._has(p, early, at) for p, early in self.inputs[r])
            for r, tasks in enumerate(self.members)
        )
