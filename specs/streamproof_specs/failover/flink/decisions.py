"""Restart decisions: the possible meanings of a failure line, constraints on its cause, and the resulting recovery."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamproof.conformance import Constraint, Event, Move, Recovery, StateReader, Tracked
from streamproof.conformance.flink import Attempt
from streamproof_specs.failover.flink.explain import listed
from streamproof_specs.failover.flink.recorded_machine import RecordedFailover, RecordedGraph

Way = tuple[Move, ...]

_TASKS = 40
"""Maximum number of tasks of a restart set in a message."""

_NAMING = ("tm.transition", "failover.archive")


@dataclass(frozen=True, slots=True)
class Causes:
    """The lost partitions in failure lines. `elsewhere`: partitions that other lines name for the same attempt;
    `judging` is off if the edges of the job graph are unknown."""

    recorded: RecordedGraph
    model: RecordedFailover
    elsewhere: Mapping[str, Mapping[str, Event]]
    judging: bool = True

    @classmethod
    def of(cls, recorded: RecordedGraph, model: RecordedFailover, events: Sequence[Event]) -> Causes:
        """`events` are all of the job, of every process."""
        named: dict[str, dict[str, Event]] = {}
        for event in events:
            failed = event.event == "failover.archive" or event.args.get("new") == "FAILED"
            if event.event in _NAMING and failed and "partition" in event.args:
                named.setdefault(event.args["attempt"], {}).setdefault(event.args["partition"], event)
        return cls(recorded, model, named)

    def contradiction(self, failed: Event, task: str) -> str | None:
        """Why a failure cannot be due to the named partition, by the job graph and other lines about it."""
        text = failed.args.get("partition")
        if text is None or not self.judging:
            return None
        producer = Attempt.parse(failed.args["producer"])
        source = self.recorded.task(producer.vertex, producer.subtask)
        if producer.subtask != failed.args["pnum"]:
            return (
                f"the failure names partition {failed.args['pnum']} of {source or producer}, which writes another one"
            )
        if source is None or (source, task) not in self.model.ends:
            return f"the failure names a partition of {source or producer}, which {task} does not read"
        written = self.recorded.dataset.get(failed.args["dataset"])
        if written is not None and self.recorded.source[written] != producer.vertex:
            return f"the failure names a dataset that {source} does not write"
        others = self.elsewhere.get(failed.args["attempt"], {})
        if others and text not in others:
            other = next(iter(others.values()))
            there = f"line {other.line} of {other.process} names {next(iter(others))}"
            return f"the failure names a partition of {source}, but {there}"
        return None

    def constraints(self, failed: Event, task: str) -> tuple[Constraint, ...]:
        """The attempt of the missing partition must be the current one."""
        if "partition" not in failed.args:
            return ()
        producer = Attempt.parse(failed.args["producer"])
        source = self.recorded.task(producer.vertex, producer.subtask)
        number = producer.number
        return (
            Constraint(
                lambda look: (
                    f"{task} misses what attempt {number} of {source} wrote, but the present one is "
                    f"{look('attempt', source)}"
                ),
                lambda look: look("attempt", source) == number,
            ),
        )

    def alternatives(self, failed: Event, task: str) -> tuple[Way, ...]:
        """A failure of the task itself, or due to the partition in its exception; either if none was logged."""
        of_itself = (Move("fail", {"t": task}),)
        missing = {
            p: (Move("lose", {"p": p}, optional=True), Move("miss", {"t": task, "p": p}))
            for p in self.model.reads[task]
        }
        if "partition" in failed.args:
            return tuple(missing[p] for p in self._named(failed) if p in missing) or (of_itself,)
        if failed.args.get("causes"):
            return (of_itself,)
        return (of_itself, *missing.values())

    def needed(self, master: Sequence[Event]) -> tuple[set[str], set[tuple[str, str]]]:
        """The tasks that may fail by themselves, and those that may miss a partition with the partition, from all failures
        of a log."""
        failing: set[str] = set()
        missable: set[tuple[str, str]] = set()
        last: str | None = None
        for event in master:
            task = self.recorded.task_of(event) if event.event == "exec.transition" else None
            if task is not None and event.args["new"] == "FAILED":
                moves = [move for way in self.alternatives(event, task) for move in way]
                failing |= {m.args["t"] for m in moves if m.action == "fail"}
                missable |= {(m.args["t"], m.args["p"]) for m in moves if m.action == "miss"}
                last = task
        # A failure that ends the job leads to no restart, whatever its cause.
        if last is not None:
            failing.add(last)
        return failing, missable

    def _named(self, failed: Event) -> list[str]:
        """The machine's partitions that a failure may name: one, unless the dataset of an edge is unknown."""
        known = self.recorded.partition(failed.args["dataset"], failed.args["pnum"])
        if known is not None:
            return [known]
        producer = Attempt.parse(failed.args["producer"])
        source = self.recorded.task(producer.vertex, producer.subtask)
        return [p for p, maker in self.model.partitions.items() if maker == source]


@dataclass(frozen=True, slots=True)
class Decision:
    """A restart decision: its observation's position, its line, the failed attempt, and the cause."""

    at: int
    event: Event
    failed: str
    cause: str | None


@dataclass(frozen=True, slots=True)
class Arrival:
    """A line with the state RUNNING or FINISHED of an attempt: its observation's position, the line, and the attempt."""

    at: int
    event: Event
    task: str
    number: int


@dataclass(frozen=True, slots=True)
class Decisions:
    """The restart decisions of one job and the active attempts, in the order of the log."""

    decisions: tuple[Decision, ...]
    arrivals: tuple[Arrival, ...]

    def recoveries(self, tracked: Tracked) -> tuple[Recovery, ...]:
        """One recovery per decision, complete when the last task of the set is RUNNING or FINISHED in a later attempt."""
        found: list[Recovery] = []
        for decision in self.decisions:
            if decision.at > tracked.matched:
                break
            tasks, recovered = None, None
            sets = tracked.readings.get(decision.at, ())
            if len({chosen for chosen, _ in sets}) == 1:
                chosen, numbers = sets[0]
                tasks = tuple(sorted(chosen))
                recovered = self._recovered(decision, dict(numbers), tracked.matched)
            count = decision.event.args["count"]
            found.append(Recovery(decision.event.ts, decision.failed, decision.cause, count, tasks, recovered))
        return tuple(found)

    def _recovered(self, decision: Decision, waiting: dict[str, int], matched: int) -> str | None:
        """When the last of the restarted tasks was active again, in an attempt after the cancelled one."""
        for arrival in self.arrivals[bisect_right(self.arrivals, decision.at, key=lambda a: a.at) :]:
            if arrival.at >= matched:
                return None
            if arrival.number > waiting.get(arrival.task, arrival.number):
                del waiting[arrival.task]
                if not waiting:
                    return arrival.event.ts
        return None


def last_decision(look: StateReader) -> frozenset[str]:
    """The tasks of the last decision, right after it. Places are used in turn."""
    places: tuple[frozenset[str], ...] = look("restarting")
    latest: int = look("decided") - 1
    return places[latest % len(places)]


def restart_set(look: StateReader) -> tuple[frozenset[str], tuple[tuple[str, int], ...]]:
    """The tasks of the last decision, with the attempts that it cancels."""
    chosen = last_decision(look)
    return chosen, tuple((task, look("attempt", task)) for task in sorted(chosen))


def counted(event: Event, failed: str | None, later: frozenset[str]) -> Constraint:
    """The logged number of tasks of a decision must equal the size of the machine's restart set.

    `later` are the tasks that the log restarts after this decision and before the next one.
    """
    count = event.args["count"]
    whose = "a global failure" if failed is None else f"the failed task {event.args['attempt']}"

    def text(look: StateReader) -> str:
        ours = last_decision(look)
        said = f"the log restarts {count} tasks, the protocol {len(ours)}: {listed(sorted(ours), _TASKS)}"
        more, fewer = sorted(later - ours), sorted(ours - later)
        if more:
            said += f"; the log then also restarts {listed(more)}"
        if fewer and later:
            said += f"; the log does not restart {listed(fewer)}"
        return said

    return Constraint(
        text,
        lambda look: len(last_decision(look)) == count,
        lambda look: f"{len(last_decision(look))} tasks will be restarted to recover {whose}",
    )
