"""The binding of Flink's logs to the failover machine, and of every execution attempt to its own machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamproof.conformance import (
    Event,
    Observation,
    Plan,
    RunFinding,
    Stream,
    Task,
    Unit,
)
from streamproof.conformance.flink import (
    FlinkRun,
    JobGraph,
    RestJob,
    problem_lines,
    read_run,
)
from streamproof_specs.attempts.flink.attempts import Attempts, Session, in_sessions
from streamproof_specs.failover.flink.adaptive import AdaptiveRestarts, restart_breaches
from streamproof_specs.failover.flink.decisions import Causes
from streamproof_specs.failover.flink.every_scheduler import breaches, deployed_to_lost, hang, lost_without_line
from streamproof_specs.failover.flink.explain import FailoverExplainer, Shown
from streamproof_specs.failover.flink.happenings import happenings
from streamproof_specs.failover.flink.job_history import job_history
from streamproof_specs.failover.flink.jobmanager_log import (
    DECISIONS,
    HIDDEN,
    decisions_at_once,
    decisions_taken,
    translate,
)
from streamproof_specs.failover.flink.recorded_machine import (
    RecordedFailover,
    RecordedGraph,
    recorded_graph,
    recorded_system,
    without_edges,
)
from streamproof_specs.failover.flink.restart_reasons import CYCLE, Explained
from streamproof_specs.failover.flink.speculation import Groups
from streamproof_specs.flink.given_graph import given_graph, graph_for, with_remedy
from streamproof_specs.flink.process_facts import ProcessFacts
from streamproof_specs.flink.scope import (
    FlinkLogs,
    Outside,
    contradicted,
    damage,
    doubted,
    outside,
    stated,
    unscheduled,
)

MASTER_EVENTS = frozenset(
    {"exec.transition", "exec.deploy", "job.transition", "jm.disconnect", "failover.global", *DECISIONS}
)
"""Events of a JobManager that the failover machine follows, and those at the beginning of a job."""
_BEGINNINGS = frozenset({"job.graph", "failover.strategy", "sched.strategy", "sched.adaptive"})


class FlinkFailover(FlinkLogs):
    """Follows every job of a recorded Flink run through the failover machine, and every attempt through its own machine."""

    default = True
    reads_job_graph = True

    def plan(self, run: Any, job_graph: Path | None) -> Plan:
        """One case per job. Raises `InputError` for unreadable logs and for another job's graph."""
        logged = read_run(run)
        given = given_graph(logged, job_graph)
        facts = ProcessFacts.of(logged)
        cases = tuple(doubted(self._case(logged, facts, job, given), logged, "exec.", "tm.") for job in logged.jobs)
        problems, unknown = problem_lines(logged.problems), sum(logged.unknown.values())
        return Plan(logged.name, cases, logged.merged(), unknown, problems, nothing=logged.content)

    def _case(self, run: FlinkRun, facts: ProcessFacts, job: str, given: RestJob | None) -> Unit:
        never = unscheduled(run, job)
        if never is not None:
            return never
        graph, origin = graph_for(run, job, given)
        recorded: RecordedGraph | str
        try:
            recorded = recorded_graph(graph)
        except ValueError as gap:
            recorded = with_remedy(str(gap), given)
        case = self._judged(run, facts, job, graph, recorded, origin)
        known = None if isinstance(recorded, str) else recorded
        own = run.of_job(job)
        masters = {e.process for e in own if e.event in ("exec.transition", "job.transition")}
        ends = max((e.ts for e in run.events if e.process in masters and e.ts), default=None)
        return replace(case, history=job_history(graph, known, own, happenings(run, facts, job), ends))

    def _judged(
        self, run: FlinkRun, facts: ProcessFacts, job: str, graph: JobGraph, recorded: RecordedGraph | str, origin: str
    ) -> Unit:
        """The case; `recorded` is the job graph for the machine, or why there is none."""
        events = run.of_job(job)
        master = [e for e in events if e.event in MASTER_EVENTS | _BEGINNINGS]
        reasons = outside(run, job, master)
        outputs = Counter(edge.source for edge in graph.edges) if graph.complete else {}
        followed = Attempts(run, facts, job, reasons.complete, outputs)
        attempts, sampled = tuple(followed.tasks()), followed.sampled
        attempts = (*_broken_rules(run, job, reasons), *attempts)
        title = run.jobs[job]
        groups = Groups.of(master, reasons.announced) if reasons.announced and reasons.complete else None
        if groups is not None:
            master = groups.events
            attempts = (*_impossible(job, groups.breaches), *attempts)
        if isinstance(recorded, str):
            alone = _lines(job, graph, master, groups) if not reasons.texts else ()
            case = Unit(job, title, (*alone, *attempts), False, (*reasons.texts, recorded), damage(run), sampled)
            return _with_restarts(case, reasons, master)
        if reasons.texts:
            return _with_restarts(
                Unit(job, title, attempts, False, reasons.texts, damage(run), sampled), reasons, master
            )
        if groups is not None and groups.left is not None:
            why = f"{groups.left}: the machine does not follow that"
            return Unit(job, title, attempts, False, (why,), damage(run), sampled)
        model = RecordedFailover(recorded.graph, decisions_at_once(master), restarts=decisions_taken(master))
        causes = Causes.of(recorded, model, events)
        model.narrow(*causes.needed(master), any(e.event == "failover.global.restart" for e in master))
        shown = Shown()
        lines = translate(recorded, model, causes, shown, master)
        wording = FailoverExplainer(recorded, model, shown)
        observations = lines.observations if groups is None else groups.restored(lines.observations)
        main = Task(job, recorded_system(recorded, model), (Stream(observations),), HIDDEN, explainer=wording)
        return Unit(
            job,
            f"{title} ({origin})",
            (main, *attempts),
            damage=damage(run),
            partial=sampled,
            notes=lines.notes,
            recoveries=Explained(lines.decisions, model),
            findings=_hang(recorded, model, master),
        )


def _with_restarts(case: Unit, reasons: Outside, master: Sequence[Event]) -> Unit:
    """A case with the restarts of the adaptive scheduler."""
    return replace(case, recoveries=AdaptiveRestarts(master)) if reasons.adaptive and case.tasks else case


def _hang(recorded: RecordedGraph, model: RecordedFailover, master: Sequence[Event]) -> tuple[RunFinding, ...]:
    begun = {recorded.task_of(e) for e in master if e.args.get("new") == "SCHEDULED"}
    waiting = {
        r: [
            made
            for made in dict.fromkeys(model.producing_region[p] for t in tasks for p in model.reads[t])
            if made != r
        ]
        for r, tasks in model.regions.items()
        if begun.isdisjoint(tasks)
    }
    why = hang(waiting, model.regions)
    return () if why is None else (RunFinding("hang", why, CYCLE),)


def _broken_rules(run: FlinkRun, job: str, reasons: Outside) -> tuple[Task, ...]:
    """The lines that break a rule of every scheduler, as behaviours that are rejected; none if all rules hold."""
    sessions: dict[Session, list[Event]] = {}
    for event, session in in_sessions(run.of_job(job)):
        sessions.setdefault(session, []).append(event)
    whole = reasons.gap is None and not damage(run)
    found = [
        breach
        for events in sessions.values()
        for breach in breaches(events, complete=whole, speculative=bool(reasons.announced), adaptive=reasons.adaptive)
    ]
    for process in {process for process, _ in sessions} if reasons.adaptive and whole else ():
        found += restart_breaches([e for e in run.of_job(job) if e.process == process])
    for process in {process for process, _ in sessions} if whole else ():
        own = [e for e in run.events if e.process == process]
        found += (*deployed_to_lost(own, job), *lost_without_line(own, job))
    return _impossible(job, found)


def _impossible(job: str, found: Iterable[tuple[Event, str]]) -> tuple[Task, ...]:
    """Lines that are impossible, with the reason, as behaviours that are rejected."""
    return tuple(contradicted(job, event, why) for event, why in found)


def _lines(job: str, graph: JobGraph, master: Sequence[Event], groups: Groups | None) -> tuple[Task, ...]:
    """Checks the JobManager's lines for consistency, without a machine, if the job graph is insufficient for one."""
    if groups is not None and groups.left is not None:
        return ()
    try:
        recorded = without_edges(graph)
    except ValueError:  # it is too large
        return ()
    if recorded is None:
        return ()
    model = RecordedFailover(recorded.graph, restarts=decisions_taken(master))
    lines = translate(recorded, model, Causes(recorded, model, {}, judging=False), Shown(), master)
    found = lines.observations if groups is None else groups.restored(lines.observations)
    observations = tuple(Observation(o.event, impossible=o.impossible) for o in found)
    return (stated(job, observations),)


BINDING = FlinkFailover()
