"""Judging: the behaviours of a run are tracked, and every case gets one verdict."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from streamproof.base.errors import Loc, SystemFailure
from streamproof.base.processes import Ended, can_fork, in_processes
from streamproof.conformance.binding import Plan, Task, Unit
from streamproof.conformance.event import Event
from streamproof.conformance.moves import SystemMoves
from streamproof.conformance.overlapping import OverlapTracker
from streamproof.conformance.relating import relation_of
from streamproof.conformance.relation import Relation, named
from streamproof.conformance.run_verdict import Followed, Rejection, RunVerdict, Tracked
from streamproof.conformance.tracker import Tracker
from streamproof.system import StreamproofError

NOTHING = "no event of the run says anything about the model"


SHARES = 4
"""Number of parts of a case's tasks for each process, so that an uneven one delays the others less."""


def judge(plan: Plan, model: str, judged: list[Event] | None = None, *, processes: int = 1) -> list[RunVerdict]:
    """The verdicts of one run. The events that a model accepted are added to `judged`. `processes`: their number for the
    tasks of a case, which are independent of each other."""
    order = {e.key: at for at, e in enumerate(plan.events)}
    read = Counter(e.trace for e in plan.events)
    if not plan.cases:
        nothing = RunVerdict(plan.name, "", model, "inconclusive", plan.nothing, plan.unit, unknown=plan.unknown)
        return [nothing]

    shared: dict[tuple[int, int], SystemMoves] = {}

    def verdict(case: Unit) -> RunVerdict:
        not_yet = undecided(plan.name, case, model, plan.unit, read[case.trace], plan.unknown)
        return _CaseJudge(case, order, not_yet, judged, shared, processes).verdict()

    found = [verdict(case) for case in plan.cases]
    if plan.larger is None:
        return found
    return [_with_room(v, plan, model, judged, processes) if v.answer == "inconclusive" else v for v in found]


def undecided(run: str, case: Unit, model: str, unit: str, read: int, unknown: int = 0) -> RunVerdict:
    """The verdict on a case before it is followed."""
    machines = _machines(case, model)
    return RunVerdict(
        run,
        case.trace,
        named(model, machines),
        "inconclusive",
        machines=machines,
        unit=unit,
        title=case.title,
        opened=case.opened,
        history=case.history,
        read=read,
        unknown=unknown,
    )


def _with_room(verdict: RunVerdict, plan: Plan, model: str, judged: list[Event] | None, processes: int) -> RunVerdict:
    """The verdict with the first larger bounds by which an undecided case is accepted; without any, the verdict by which
    most events are explained."""
    best = verdict
    for other in plan.larger() if plan.larger is not None else ():
        cases = tuple(case for case in other.cases if case.trace == verdict.trace)
        for found in judge(replace(other, cases=cases), model, judged, processes=processes):
            if found.answer == "accepted":
                return found
            if found.answer == "inconclusive" and found.matched > best.matched:
                best = found
    return best


def _machines(case: Unit, model: str) -> tuple[Relation, ...]:
    """The machines that follow the case, each once, with their relations to the model."""
    followed = [task.system for task in case.tasks if task.system.actions or task.grounding is not None]
    return tuple(dict.fromkeys(relation_of(system, model) for system in followed))


def _shares(tasks: Sequence[Task], number: int) -> list[list[int]]:
    """The positions of the tasks in at most `number` shares of about equal size, the largest first."""
    sizes = [sum(len(s.observations) for s in task.streams) + sum(map(len, task.spans)) for task in tasks]
    shares: list[tuple[int, list[int]]] = [(0, []) for _ in range(min(number, len(tasks)))]
    for at in sorted(range(len(tasks)), key=lambda at: -sizes[at]):
        size, share = heapq.heappop(shares)
        heapq.heappush(shares, (size + sizes[at], [*share, at]))
    return [share for _, share in sorted(shares, reverse=True)]


class _CaseJudge:
    """Follows the behaviours of one case and combines the outcomes into one verdict."""

    def __init__(
        self,
        case: Unit,
        order: dict[tuple[str, str, int], int],
        open_verdict: RunVerdict,
        judged: list[Event] | None,
        moves: dict[tuple[int, int], SystemMoves],
        processes: int,
    ) -> None:
        """`moves`: those of the machines of the plan, by numbers of system and grounding."""
        self.case, self.order, self.open, self.judged, self.moves = case, order, open_verdict, judged, moves
        self.processes = processes

    def place(self, event: Event) -> int:
        """The position of an event in the run."""
        return self.order.get(event.key, len(self.order))

    def verdict(self) -> RunVerdict:
        """The verdict and its reasons. Any rejection takes precedence over any inconclusive outcome."""
        case = self.case
        try:
            outcomes = self._outcomes()
        except StreamproofError as error:
            return replace(self.open, answer="error", reason=error.one_line, exit_code=error.exit_code)
        matched = {(e.key, e.file, e.line) for tracked in outcomes for e in tracked.events}
        if self.judged is not None:
            self.judged += [e for tracked in outcomes for e in tracked.events]
        verdict = replace(self._judged(outcomes), matched=len(matched), behaviours=len(outcomes))
        if verdict.answer == "accepted" and not matched:
            verdict = replace(verdict, answer="inconclusive", reason=NOTHING, findings=())
        if outcomes and case.recoveries:
            verdict = replace(verdict, recoveries=case.recoveries.recoveries(outcomes[0]))
        if outcomes and case.followed:
            verdict = replace(verdict, followed=Followed.of(case.tasks[0].system, outcomes[0]))
        return verdict

    def _outcomes(self) -> list[Tracked]:
        def outcome(task: Task) -> Tracked:
            machine = id(task.system), id(task.grounding)
            if machine not in self.moves:
                self.moves[machine] = SystemMoves(task.system, task.grounding)
            follow = OverlapTracker if task.spans else Tracker
            return follow(task, rank=self.place, steps=self.moves[machine]).run()

        tasks = self.case.tasks
        processes = min(self.processes, len(tasks))
        if processes <= 1 or not can_fork():
            return [outcome(task) for task in tasks]

        def outcomes(numbers: Sequence[int]) -> list[Tracked] | StreamproofError:
            try:
                return [outcome(tasks[number]) for number in numbers]
            except StreamproofError as error:
                return error

        found: dict[int, Tracked] = {}
        for numbers, results in in_processes(outcomes, _shares(tasks, SHARES * processes), processes, "validation"):
            if isinstance(results, Ended):
                raise SystemFailure(
                    f"a process that followed it ended ({results.code}); it may have been out of memory"
                )
            results = outcomes(numbers) if results is None else results
            if isinstance(results, StreamproofError):
                raise results
            found |= zip(numbers, results, strict=True)
        return [found[number] for number in range(len(tasks))]

    def _damage_before(self, event: Event | None) -> Loc | None:
        """An unreadable line, possibly an event, before the rejected one."""
        if event is None:
            return next(iter(self.case.damage), None)
        return next((d for d in self.case.damage if d.file == event.file and d.line < (event.line or 0)), None)

    def _judged(self, outcomes: list[Tracked]) -> RunVerdict:
        rejections = [t.rejection for t in outcomes if t.rejection is not None]
        if rejections:
            return self._rejected(outcomes, rejections)
        exhausted = [t.exhausted for t in outcomes if t.exhausted is not None]
        if exhausted:
            return replace(self.open, reason=f"{exhausted[0]}; follow a shorter log, or one with more detail")
        if self.case.unjudged:
            return replace(self.open, reason="; ".join(self.case.unjudged))
        if self.case.unrecorded is not None:
            return replace(self.open, reason=self.case.unrecorded, unrecorded=True)
        left = (f"not judged (line {e.line} of {Path(e.file or '').name}): {text}" for e, text in self.case.opened)
        reason = "; ".join((*(f.message for f in self.case.findings), *left, *self.case.notes)) or None
        return replace(self.open, answer="accepted", reason=reason, findings=self.case.findings)

    def _rejected(self, outcomes: list[Tracked], rejections: list[Rejection]) -> RunVerdict:
        # A contradiction within the log is reported in preference to one with the machine, at the same line.
        ends = len(self.order) + 1
        rejections = sorted(
            rejections, key=lambda r: (self.place(r.event) if r.event else ends, r.kind != "contradiction")
        )
        first = rejections[0]
        damaged = self._damage_before(first.event)
        missing = f"{damaged.file}:{damaged.line} could not be read" if damaged is not None else self.case.partial
        if missing is not None:
            return replace(self.open, reason=f"{missing}; otherwise rejected: {first.message}")
        until = self.place(first.event) if first.event else ends
        prefix = {at: e for t in outcomes for e in t.events if (at := self.place(e)) < until}
        rejected = {(self.place(r.event) if r.event else ends, r.message): (r.event, r.message) for r in rejections}
        return replace(
            self.open,
            answer="rejected",
            reason=first.message,
            rejection=first.after(len(prefix), [prefix[at] for at in sorted(prefix)]),
            rejected=tuple(rejected.values()),
        )
