"""Restarts under the adaptive scheduler, which ends all attempts of one execution graph and then builds another one.

What holds whatever parallelism it chooses (`org.apache.flink.runtime.scheduler.adaptive`: `Executing`, `Restarting`):

* a graph begins when no attempt of the one before it is left, and the job has left it by CANCELLING;
* a graph whose slots are gone before they are reserved is dropped instead, without a line: its attempts are SCHEDULED and
  remain so (`CreatingExecutionGraph.handleExecutionGraphCreation`);
* in a graph each vertex has one parallelism, and each subtask one attempt: number 0, or one above that in the last graph that
  had the subtask and was not dropped, since only `AdaptiveScheduler.goToRestarting` counts attempts;
* a job that is CANCELLING starts nothing, and every attempt has ended when it is CANCELED;
* a JobMaster that was suspended, for another leader, remembers no attempts when it begins anew.

Not judged is when the scheduler restarts or rescales, and to which parallelism: that depends on the slots that TaskManagers
offer and on timers, of which the log has no lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from streamproof.conformance import Event, Recovery, Tracked
from streamproof_specs.failover.flink.every_scheduler import AT_WORK
from streamproof_specs.failover.flink.explain import listed

REASON = (
    "the job runs under the adaptive scheduler: that each restart ends all attempts and begins them anew is judged, not when"
    " it restarts and to which parallelism, since that depends on offered slots and timers, of which the log has no lines"
)
"""Why an adaptive job that breaks no rule is inconclusive."""
_LIVE = (*AT_WORK, "CANCELING")


@dataclass(slots=True)
class _Graph:
    """One execution graph: its attempts with their states, and the parallelism of its vertices."""

    name: str
    state: dict[tuple[str, int, int], str] = field(default_factory=dict)
    """By vertex, subtask and number."""
    said: dict[tuple[str, int, int], str] = field(default_factory=dict)
    """The attempts by their names."""
    parallelism: dict[str, int] = field(default_factory=dict)
    job: str = "CREATED"

    @property
    def dropped(self) -> bool:
        """Whether the graph may have been dropped, if another one follows: nothing was deployed."""
        return self.job in ("CREATED", "RUNNING") and set(self.state.values()) <= {"SCHEDULED"}

    def left(self) -> list[str]:
        """The attempts that have not ended."""
        return [f"{self.said[attempt]} is {state}" for attempt, state in self.state.items() if state in _LIVE]


def restart_breaches(events: Sequence[Event]) -> Iterator[tuple[Event, str]]:
    """The lines of a process with a complete log that break a rule, each with the reason.

    Another process may have written the beginning, in a part of the log that is not recognised as such.
    """
    graph: _Graph | None = None
    from_start = _from_start(events)
    suspended = False
    highest: dict[tuple[str, int], int] = {}
    for event in events:
        args = event.args
        suspended = suspended or args.get("new") == "SUSPENDED"
        if event.event == "job.transition" and graph is not None:
            graph.job = args["new"]
            if (args["old"], args["new"]) == ("CANCELLING", "CANCELED") and graph.left():
                yield event, f"the job is CANCELED, but {listed(graph.left())}"
        if event.event != "exec.transition":
            continue
        subtask, number, new = (args["vertex"], args["subtask"]), args["number"], args["new"]
        name = f"{args['task']} ({args['subtask'] + 1}/{args['parallelism']}) attempt {number}"
        if graph is None or args["graph"] != graph.name:
            if suspended:
                suspended, from_start, highest = False, True, {}
            elif graph is not None and not graph.dropped and graph.job == "CREATED":
                from_start, highest = False, {}  # the lines about the job are in another part of the log
            elif graph is not None and not graph.dropped:
                if graph.left():
                    yield event, f"an execution graph begins, but of the one before {listed(graph.left())}"
                elif graph.job != "CANCELED":
                    yield event, f"an execution graph begins, but in the one before the job is {graph.job}"
                for vertex, at, last in graph.state:
                    highest[vertex, at] = max(last, highest.get((vertex, at), -1))
            graph = _Graph(args["graph"])
        judged = (from_start or subtask in highest) and (*subtask, number) not in graph.state
        if judged and number != highest.get(subtask, -1) + 1:
            where = f"after attempt {highest[subtask]}" if subtask in highest else "as the first one of its task"
            yield event, f"{name} begins {where}"
        if graph.parallelism.setdefault(args["vertex"], args["parallelism"]) != args["parallelism"]:
            yield (
                event,
                f"{args['task']} has the parallelism {graph.parallelism[args['vertex']]} in this execution graph",
            )
        if graph.job == "CANCELLING" and new in (*AT_WORK, "FINISHED"):
            yield event, f"{name} is {new}, but the job is CANCELLING"
        graph.state[*subtask, number] = new
        graph.said[*subtask, number] = name


@dataclass(frozen=True, slots=True)
class AdaptiveRestarts:
    """The restarts after failures, by the JobManager's lines about a job: the next execution graph has the tasks."""

    events: Sequence[Event]

    def recoveries(self, tracked: Tracked) -> tuple[Recovery, ...]:
        """See `RecoveryReader`; one for each execution graph that follows one in which a task failed."""
        found: list[Recovery] = []
        failed: Event | None = None
        decided: str | None = None
        graph = ""
        working: dict[str, bool] = {}
        for event in self.events:
            args = event.args
            if event.event == "job.transition" and args["new"] == "CANCELLING":
                decided = event.ts
            if event.event != "exec.transition":
                continue
            task = f"{args['task']} ({args['subtask'] + 1}/{args['parallelism']})"
            if args["graph"] != graph:
                graph, working = args["graph"], {}
                if failed is not None and decided is not None:
                    cause = next(iter(failed.args.get("causes", ())), None)
                    found.append(Recovery(decided, _attempt_name(failed), cause, 0, ()))
                failed = decided = None
            if failed is None and args["new"] == "FAILED":
                failed = event
            working[task] = args["new"] in ("RUNNING", "FINISHED")
            if found and failed is None and found[-1].recovered is None:
                recovered = event.ts if all(working.values()) else None
                tasks = tuple(sorted(working))
                found[-1] = replace(found[-1], announced=len(tasks), tasks=tasks, recovered=recovered)
        return tuple(found)


def _attempt_name(event: Event) -> str:
    args = event.args
    return f"{args['task']} ({args['subtask'] + 1}/{args['parallelism']})#{args['number']}"


def _from_start(events: Sequence[Event]) -> bool:
    """Whether no graph that counts precedes the first one, which would have had the first subtask of each vertex, too; and
    of the first one no task has all its lines before these."""
    lines = [event.args for event in events if event.event == "exec.transition"]
    if not lines or lines[0]["new"] != "SCHEDULED":
        return False
    first = [args for args in lines if args["graph"] == lines[0]["graph"]]
    return any(args["number"] == 0 and args["subtask"] == 0 for args in first)
