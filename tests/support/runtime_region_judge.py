"""A second judge of the scheduling in the runtime's logs: plain sets and networkx, without a machine.

Kept beside the sabotage of rules: the binding makes several actions of one event, and changed logs that are still right must
be accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import networkx as nx

NEW, SCHEDULED, DEPLOYED, RUNNING, DONE = "NEW", "SCHEDULED", "DEPLOYED", "RUNNING", "DONE"


class Refused(Exception):
    """An event that no run has."""


def refuse(condition: Any, why: str) -> None:
    """Raises `Refused` if the condition holds."""
    if condition:
        raise Refused(why)


class RegionJudge:
    """Reads the events of a job one by one."""

    def __init__(self, started: Mapping[str, Any]) -> None:
        self.eager = started["scheduling"] == "EAGER"
        together = nx.Graph()
        together.add_nodes_from(started["operators"])
        together.add_edges_from((a, b) for a, b, kind in started["exchanges"] if kind == "PIPELINED")
        self.region = {op: frozenset(part) for part in nx.connected_components(together) for op in part}
        self.order = list(started["operators"])
        self.ends = {f"{a}>{b}": (a, b) for a, b, kind in started["exchanges"] if kind != "PIPELINED"}
        self.kept = {f"{a}>{b}" for a, b, kind in started["exchanges"] if kind == "HYBRID_FULL"}
        regions = set(self.region.values())
        self.status = dict.fromkeys(regions, NEW)
        self.attempt = dict.fromkeys(regions, started["first_attempt"])
        self.pending: dict[frozenset[str], int] = {}
        """Regions that stop, with the decision that starts them again."""
        self.released: set[str] = set()
        self.known: dict[frozenset[str], dict[str, int]] = {r: {} for r in regions}
        """The descriptors that a region has."""
        self.decisions = 0
        self.over = False

    def inputs(self, region: frozenset[str]) -> set[str]:
        """The datasets that a region reads."""
        return {name for name, (_, reader) in self.ends.items() if reader in region}

    def is_stored(self, name: str) -> bool:
        """Whether the producer of a dataset has finished for good."""
        maker = self.region[self.ends[name][0]]
        return self.status[maker] == DONE and maker not in self.pending

    def whole(self, tasks: Iterable[str]) -> frozenset[str]:
        """The region with these operators."""
        tasks = list(tasks)
        refuse(not tasks or any(t not in self.region for t in tasks), "no operators")
        found = self.region[tasks[0]]
        refuse(sorted(tasks) != sorted(found), "not a region")
        return found

    def at_work(self, region: frozenset[str], *statuses: str) -> None:
        """Refuses a region that is in no such state, or stops."""
        refuse(region in self.pending or self.status[region] not in statuses, "not in this state")

    def read(self, event: str, args: Mapping[str, Any]) -> None:
        """Raises `Refused`."""
        found: dict[str, Callable[..., None]] = {
            "region_scheduled": self.scheduled,
            "region_deployed": self.deployed,
            "region_updated": self.updated,
            "region_running": self.running,
            "region_finished": self.finished,
            "partition_lost": self.lost,
            "region_failed": self.failed,
            "region_canceled": self.canceled,
            "restarted": self.restarted,
            "job_finished": self.ended,
            "job_failed": self.given_up,
        }
        if event in found:
            refuse(self.over, "the job is over")
            found[event](**args)

    def scheduled(self, tasks: list[str], attempt: int) -> None:
        """Only as a whole, and with all inputs."""
        region = self.whole(tasks)
        self.at_work(region, NEW)
        refuse(attempt != self.attempt[region], "another attempt")
        refuse(not self.eager and not all(map(self.is_stored, self.inputs(region))), "without its inputs")
        self.status[region], self.known[region] = SCHEDULED, {}

    def send(self, region: frozenset[str], descriptors: Mapping[str, int], to: Iterable[str]) -> None:
        """Only of stored datasets, their present attempt, once."""
        for name, attempt in descriptors.items():
            refuse(name not in self.ends or self.ends[name][1] not in to, "no input")
            refuse(name in self.known[region], "sent twice")
            refuse(not self.is_stored(name), "not stored")
            refuse(attempt != self.attempt[self.region[self.ends[name][0]]], "another attempt")
            self.known[region][name] = attempt

    def deployed(self, tasks: list[str], descriptors: dict[str, int]) -> None:
        """Lazily with all inputs."""
        region = self.whole(tasks)
        self.at_work(region, SCHEDULED)
        self.send(region, descriptors, region)
        refuse(not self.eager and descriptors.keys() != self.inputs(region), "an input is missing")
        self.status[region] = DEPLOYED

    def updated(self, tasks: list[str], descriptors: dict[str, int]) -> None:
        """Eagerly only."""
        refuse(descriptors and not self.eager, "not eager")
        refuse(any(name not in self.ends for name in descriptors), "no dataset")
        refuse(sorted(tasks) != sorted({self.ends[name][1] for name in descriptors}), "other readers")
        for name, attempt in descriptors.items():
            reader = self.region[self.ends[name][1]]
            self.at_work(reader, DEPLOYED, RUNNING)
            self.send(reader, {name: attempt}, tasks)

    def running(self, tasks: list[str], reads: dict[str, int]) -> None:
        """It reads what it knows."""
        region = self.whole(tasks)
        self.at_work(region, DEPLOYED)
        refuse(any(self.known[region].get(name) != attempt for name, attempt in reads.items()), "reads something else")
        self.status[region] = RUNNING

    def finished(self, tasks: list[str], released: list[str]) -> None:
        """It has read all inputs."""
        region = self.whole(tasks)
        self.at_work(region, RUNNING)
        inputs = self.inputs(region)
        refuse(self.known[region].keys() != inputs or not all(map(self.is_stored, inputs)), "an input was not read")
        refuse(sorted(released) != sorted(inputs - self.kept), "something else is released")
        self.status[region] = DONE
        self.released |= inputs - self.kept

    def lost(self, partition: str) -> None:
        """Only what is stored."""
        refuse(partition not in self.ends or partition in self.released, "nothing to lose")
        maker = self.region[self.ends[partition][0]]
        refuse(self.status[maker] != DONE, "not stored")

    def failed(self, task: str, restarts: list[str], missing: str | None = None) -> None:
        """It restarts with what is missing, and all that read what is made again."""
        refuse(task not in self.region or any(t not in self.region for t in restarts), "no operator")
        failed = self.region[task]
        self.at_work(failed, SCHEDULED, DEPLOYED, RUNNING)
        gone = {*self.released}
        if missing is not None:
            refuse(missing not in self.inputs(failed) or not self.is_stored(missing), "it misses nothing")
            gone.add(missing)
        causes = nx.DiGraph()
        causes.add_node(failed)
        for name, (maker, reader) in self.ends.items():
            causes.add_edge(self.region[maker], self.region[reader])
            if name in gone:
                causes.add_edge(self.region[reader], self.region[maker])
        again = {failed} | nx.descendants(causes, failed)
        due = {r for r in again if r in self.pending or self.status[r] != NEW}
        named = [r for r in self.status if r & {*restarts}]
        refuse(sorted(restarts) != sorted(t for r in named for t in r), "not whole regions")
        refuse(not due <= {*named} or any(r not in due and r not in self.pending for r in named), "other operators")
        for region in named:
            self.pending[region] = self.decisions
        self.released -= {name for name, (maker, _) in self.ends.items() if self.region[maker] in named}
        self.decisions += 1

    def canceled(self, tasks: list[str]) -> None:
        """Only what restarts."""
        refuse(any(self.region.get(t) not in self.pending for t in tasks), "does not restart")

    def restarted(self, decision: int, tasks: list[str]) -> None:
        """All that no newer decision has taken over."""
        own = {r for r, number in self.pending.items() if number == decision}
        refuse(sorted(tasks) != sorted(t for r in own for t in r), "other operators")
        for region in own:
            del self.pending[region]
            self.status[region] = NEW
            self.attempt[region] += 1

    def ended(self) -> None:
        """All have finished for good."""
        self.over = True
        refuse(self.pending or any(status != DONE for status in self.status.values()), "not finished")

    def given_up(self, task: str, missing: str | None = None, **_budget: object) -> None:
        """A region fails for good."""
        self.over = True
        refuse(task not in self.region, "no operator")
        self.at_work(self.region[task], SCHEDULED, DEPLOYED, RUNNING)


def accepts(records: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the JobMasters' events of one job are a run."""
    judges: dict[str, RegionJudge] = {}
    used = [-1]
    try:
        for record in records:
            trace = record["trace"]
            refuse((trace in judges) is (record["event"] == "job_started"), "not the beginning")
            if trace not in judges:
                refuse(record["args"]["first_attempt"] <= max(used), "attempts of an earlier JobMaster")
                judges[trace] = RegionJudge(record["args"])
            else:
                judges[trace].read(record["event"], record.get("args", {}))
                used += [record["args"]["attempt"]] if record["event"] == "region_scheduled" else []
    except (Refused, TypeError):  # an argument too many or too few
        return False
    return True
