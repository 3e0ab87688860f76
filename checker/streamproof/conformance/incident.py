"""The explanation of an incident: the verdicts on a job's logs, put together in the order of what happened.

It adds no fact: the happenings are those of the job's history, restart sets and their reasons those of the recoveries, and
what is right or wrong is what the verdicts say.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from streamproof.base.records import dataclass
from streamproof.base.text import BLANK, Line, Style, StyledText, line
from streamproof.conformance.event import Event
from streamproof.conformance.history import Designed, Happening, JobHistory, seconds_of
from streamproof.conformance.run_verdict import Answer, Recovery, RunVerdict
from streamproof.conformance.verdict_lines import ANSWER_STYLES, reason_lines

SCHEMA: Final = "streamproof.incident/1"
MOST_LINES: Final = 200
"""Maximum number of happenings of a job in the text; the JSON has all of the history."""
MOST_REJECTED: Final = 50
"""Maximum number of rejected lines that are entries of their own."""
_ENDED: Final = ("FINISHED", "CANCELED", "FAILED")
_WAITS: Final[Mapping[str, str]] = {
    "CREATED": "to be scheduled",
    "SCHEDULED": "for a slot",
    "DEPLOYING": "for its TaskManager to start it",
    "INITIALIZING": "for its state and its inputs",
    "CANCELING": "for its TaskManager to end it",
}
"""For what an attempt waits in a state."""
_STYLES: Final[Mapping[str, Style]] = {
    **dict.fromkeys(("failure", "lost", "discarded", "resources", "checkpoint"), "failed"),
    **dict.fromkeys(("decision", "restored"), "action"),
}

TimedAttempt: TypeAlias = tuple[float, Mapping[str, float]]
"""The first time of an attempt, and those of its states, in seconds."""
_RIGHT: Final[Mapping[bool | None, Style]] = {True: "good", False: "failed", None: "new"}


@dataclass(frozen=True, slots=True)
class IncidentEntry:
    """Something that happened, the recovery that it decides, and what the verdicts say of it; None: nothing."""

    happening: Happening
    recovery: Recovery | None = None
    phases: tuple[tuple[str, float], ...] = ()
    """The phases of the recovery, each with its end in seconds after the decision."""
    discarded: tuple[int, int, float] | None = None
    """The number of attempts whose work is done again, of those that had finished, and their seconds of running."""
    judgement: str | None = None
    right: bool | None = None
    """Whether the protocol requires it; None: not judged."""

    def record(self) -> dict[str, Any]:
        """As JSON data."""
        lost = self.discarded
        return {
            **self.happening.record(),
            "recovery": None if self.recovery is None else self.recovery.record(),
            "phases": [{"phase": name, "seconds": round(end, 3)} for name, end in self.phases],
            "discarded": None
            if lost is None
            else {"attempts": lost[0], "finished": lost[1], "seconds": round(lost[2], 3)},
            "judgement": self.judgement,
            "right": self.right,
        }


@dataclass(frozen=True, slots=True)
class Incident:
    """What happened to one job of a run. `verdicts` are those of all models; `waits`: what it waits for at the end."""

    run: str
    trace: str
    title: str
    verdicts: tuple[RunVerdict, ...]
    entries: tuple[IncidentEntry, ...]
    state: str | None
    waits: tuple[str, ...]
    restarted: int = 0
    """How often the job became RESTARTING."""

    @property
    def headline(self) -> str:
        """The first cause, the number of restarts, and the end, in a sentence."""
        if self.state is None and not self.entries:
            notes = (verdict.reason for verdict in self.verdicts if verdict.answer == "accepted" and verdict.reason)
            return next(notes, "the logs show no state of the job and no failure")
        kinds = Counter(entry.happening.kind for entry in self.entries)
        causes = ("lost", "failure", "resources", "discarded")
        cause = next((e.happening.text for e in self.entries if e.happening.kind in causes), None)
        parts = [f"it hangs: {_cut(hang)}" for hang in self.hangs]
        parts += [f"it began with: {cause}"] if cause is not None else [] if parts else ["the log has no failure"]
        restarts = max(kinds["decision"], self.restarted)
        parts += [f"{restarts} restart{'' if restarts == 1 else 's'}"] if restarts else ["no restart"] if cause else []
        parts += [f"finally the job is {self.state}"] if self.state is not None else []
        return "; ".join(parts)

    @property
    def hangs(self) -> tuple[str, ...]:
        """Why the job can never finish."""
        return tuple(finding.message for verdict in self.verdicts for finding in verdict.findings)

    @property
    def designed(self) -> tuple[Designed, ...]:
        """What is by design although one might not expect it, each once."""
        found = [e.happening.designed for e in self.entries]
        found += [note for e in self.entries if e.recovery is not None for note in e.recovery.designed]
        found += [finding.designed for verdict in self.verdicts for finding in verdict.findings]
        return tuple(dict.fromkeys(note for note in found if note is not None))

    def record(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "run": self.run,
            "trace": self.trace,
            "title": self.title,
            "headline": self.headline,
            "state": self.state,
            "waits": list(self.waits),
            "happenings": [entry.record() for entry in self.entries],
            "verdicts": [verdict.record() for verdict in self.verdicts],
        }


def incidents(verdicts: Iterable[RunVerdict]) -> tuple[Incident, ...]:
    """One incident for each job of the runs, in the order of the verdicts; channels and other parts belong to none."""
    jobs: dict[tuple[str, str], list[RunVerdict]] = {}
    of_jobs = [verdict for verdict in verdicts if verdict.unit == "job"]
    named = {verdict.run for verdict in of_jobs if verdict.trace}
    for verdict in of_jobs:  # a model without records of the run says nothing of its jobs
        if verdict.trace or verdict.run not in named or verdict.answer == "error":
            jobs.setdefault((verdict.run, verdict.trace), []).append(verdict)
    return tuple(_incident(run, trace, tuple(of)) for (run, trace), of in jobs.items())


def _incident(run: str, trace: str, verdicts: tuple[RunVerdict, ...]) -> Incident:
    main = next((v for v in verdicts if v.history is not None), verdicts[0])
    history = main.history or JobHistory((), (), (), ())
    rejected = [(v.model, event, message) for v in verdicts for event, message in _rejections(v)]
    places = {(event.file, event.line): message for _, event, message in reversed(rejected) if event is not None}
    restoring = next((v for v in verdicts if v.model != main.model and "checkpoint" in v.model), None)
    entries = list(_entries(main, restoring, history, places))
    shown = {(entry.happening.file, entry.happening.line) for entry in entries}
    for model, event, message in rejected[:MOST_REJECTED]:
        if event is None or (event.file, event.line) not in shown:
            _insert(entries, IncidentEntry(_rejected(model, event), None, (), None, message, False))
    state = history.states[-1][0] if history.states else None
    title = next((v.title for v in verdicts if v.title), "")
    waits = tuple(_waits(history, state, whole=main.answer == "accepted"))
    restarted = sum(name == "RESTARTING" for name, _ in history.states)
    return Incident(run, trace, title, verdicts, tuple(entries), state, waits, restarted)


def _insert(entries: list[IncidentEntry], more: IncidentEntry) -> None:
    """Inserts an entry after the last one that is not later; the others keep their order, whatever their clocks say."""
    time = more.happening.at
    before = [
        n
        for n, e in enumerate(entries, 1)
        if e.happening.at is not None and time is not None and e.happening.at <= time
    ]
    entries.insert(before[-1] if before else 0 if time is not None else len(entries), more)


def _rejections(verdict: RunVerdict) -> tuple[tuple[Event | None, str], ...]:
    """The rejected events of all behaviours of a verdict, with their messages."""
    first = verdict.rejection
    return verdict.rejected or (() if first is None else ((first.event, first.message),))


def _rejected(model: str, event: Event | None) -> Happening:
    """A rejected line that is no happening by itself."""
    if event is None:
        return Happening("rejected", None, "the end of the log", (f"model {model}",))
    return Happening("rejected", event.ts, f"the line is {event}", (f"model {model}",), event.file, event.line)


def _entries(
    main: RunVerdict,
    restoring: RunVerdict | None,
    history: JobHistory,
    places: Mapping[tuple[str | None, int | None], str],
) -> Iterator[IncidentEntry]:
    """The happenings with the recoveries that they decide, and the judgements."""
    recoveries, attempts = list(main.recoveries), _timed(history) if main.recoveries else {}
    if not any(happening.kind == "decision" for happening in history.happenings):
        for recovery in recoveries:  # of a scheduler without lines about decisions
            text = f"the job restarts, because {recovery.failed or 'the whole job'} failed"
            yield _decided(Happening("decision", recovery.decided, text), recovery, main, attempts, places)
        recoveries = []
    number = 0
    for happening in history.happenings:
        if happening.kind == "decision":
            following = recoveries[number] if number < len(recoveries) else None
            decided = following if following is not None and following.decided == happening.at else None
            number += decided is not None
            yield _decided(happening, decided, main, attempts, places)
        elif happening.kind == "restored":
            yield IncidentEntry(happening, None, (), None, *_judged(happening, restoring, places))
        else:
            wrong = places.get((happening.file, happening.line))
            yield IncidentEntry(happening, None, (), None, wrong, None if wrong is None else False)


def _decided(
    happening: Happening,
    recovery: Recovery | None,
    main: RunVerdict,
    attempts: Mapping[str, list[TimedAttempt]],
    places: Mapping[tuple[str | None, int | None], str],
) -> IncidentEntry:
    followed = main if recovery is not None else None
    judgement, right = _judged(happening, followed, places, main.reason)
    if recovery is None:
        return IncidentEntry(happening, None, (), None, judgement, right)
    if right and recovery.tasks is None:
        judgement = "the protocol allows several sets of tasks here, this number among them"
    phases, lost = _phases(recovery, attempts)
    return IncidentEntry(happening, recovery, phases, lost, judgement, right)


def _judged(
    happening: Happening,
    verdict: RunVerdict | None,
    places: Mapping[tuple[str | None, int | None], str],
    reason: str | None = None,
) -> tuple[str, bool | None]:
    """What the verdicts say of a happening, and whether it is right."""
    wrong = places.get((happening.file, happening.line)) if happening.line is not None else None
    if wrong is not None:
        return wrong, False
    if verdict is not None and verdict.answer == "accepted":
        return "as the protocol requires", True
    if verdict is not None and verdict.answer == "rejected":
        return "before the line that is rejected, nothing contradicts the protocol", None
    why = reason or (None if verdict is None else verdict.reason)
    return f"not judged: {(why or 'no model followed these lines').partition('; ')[0]}", None


def _timed(history: JobHistory) -> dict[str, list[TimedAttempt]]:
    """The attempts of each task with the times of their states, in their order."""
    found: dict[str, list[TimedAttempt]] = {}
    for attempt in history.attempts:
        vertex = history.vertices[attempt.vertex]
        times = {state: at for state, text in attempt.states if (at := seconds_of(text)) is not None}
        if times:
            name = f"{vertex.name} ({attempt.subtask + 1}/{vertex.parallelism})"
            found.setdefault(name, []).append((min(times.values()), times))
    for attempts in found.values():
        attempts.sort(key=lambda attempt: attempt[0])
    return found


def _phases(
    recovery: Recovery, attempts: Mapping[str, list[TimedAttempt]]
) -> tuple[tuple[tuple[str, float], ...], tuple[int, int, float] | None]:
    """The phases of a recovery, each with its end in seconds after the decision, and the work that is done again."""
    decided = seconds_of(recovery.decided)
    if decided is None or recovery.tasks is None:
        return (), None
    ended: list[float] = []
    scheduled: list[float] = []
    deployed: list[float] = []
    count, finished, running = 0, 0, 0.0
    for own in (attempts[task] for task in recovery.tasks if task in attempts):
        at = bisect_right(own, decided, key=lambda attempt: attempt[0])
        if at > 0:
            _, times = own[at - 1]
            end = next((times[state] for state in _ENDED if state in times), None)
            count += 1
            finished += "FINISHED" in times
            if end is not None:
                running += max(end - times.get("RUNNING", end), 0.0)
                ended += [end] if end >= decided else []
        if at < len(own):
            _, times = own[at]
            scheduled += [times["SCHEDULED"]] if "SCHEDULED" in times else []
            deployed += [times["DEPLOYING"]] if "DEPLOYING" in times else []
    phases = [("all cancelled", max(ended))] if ended else []
    phases += [("scheduled again", min(scheduled))] if scheduled else []
    phases += [("all deployed", max(deployed))] if deployed else []
    recovered = seconds_of(recovery.recovered)
    phases += [("all running again", recovered)] if recovered is not None else []
    return tuple((name, at - decided) for name, at in phases if at >= decided), (count, finished, running)


def _waits(history: JobHistory, state: str | None, *, whole: bool) -> Iterator[str]:
    """What a job that has not ended waits for at the end of its log; `whole`: the log has all of the job."""
    if state is None or state in (*_ENDED, "SUSPENDED"):
        return
    waiting: dict[str, list[str]] = {}
    latest = {(a.vertex, a.subtask): a for a in history.attempts}
    for (at, subtask), attempt in latest.items():
        vertex = history.vertices[at]
        last, since = attempt.states[-1] if attempt.states else ("CREATED", None)
        if last in _WAITS:
            waiting.setdefault(last, []).append(f"{vertex.name} ({subtask + 1}/{vertex.parallelism}), since {since}")
    never = [
        f"{vertex.name} ({subtask + 1}/{vertex.parallelism})"
        for at, vertex in enumerate(history.vertices)
        for subtask in range(vertex.parallelism)
        if (at, subtask) not in latest
    ]
    for last, names in waiting.items():
        yield f"{last}, waits {_WAITS[last]}: {_listed(names)}"
    if never and whole:
        yield f"never scheduled, waits for its inputs: {_listed(never)}"


def _cut(text: str, most: int = 240) -> str:
    return text if len(text) <= most else f"{text[:most]} ..."


def _listed(names: Sequence[str], most: int = 8) -> str:
    more = len(names) - most
    return "; ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


# --- text


def incident_lines(found: Sequence[Incident]) -> Iterator[Line]:
    """The incidents as styled lines."""
    for incident in found:
        yield line(StyledText(f"{incident.run}, {incident.title or incident.trace}", "title"))
        yield line(incident.headline, indent=2, hang=2)
        yield from opinion_lines(incident)
        yield BLANK
        for entry in incident.entries[:MOST_LINES]:
            yield from entry_lines(entry)
        if len(incident.entries) > MOST_LINES:
            yield line(f"and {len(incident.entries) - MOST_LINES} more; --json has all", indent=2)
        for verdict in incident.verdicts:
            for finding in verdict.findings:
                yield line(StyledText(f"{finding.kind}: ", "failed"), finding.message, indent=2, hang=4)
                if finding.designed is not None:
                    yield line(f"by design: {finding.designed.text} (docs/{finding.designed.page})", indent=4, hang=4)
        for text in incident.waits:
            yield line(StyledText("at the end: ", "failed"), text, indent=2, hang=4)
        yield BLANK


def opinion_lines(incident: Incident) -> Iterator[Line]:
    """What each model says of the job."""
    said: dict[tuple[Answer, str], list[str]] = {}
    for verdict in incident.verdicts:
        if not verdict.unrecorded:
            why = verdict.rejection.message if verdict.rejection else verdict.reason
            said.setdefault((verdict.answer, "" if verdict.findings else why or ""), []).append(verdict.model)
    for (answer, why), models in said.items():
        text = f"  {', '.join(models)}" + (f": {why}" if why else "")
        yield line(StyledText(f"{answer:<12}", ANSWER_STYLES[answer]), text, indent=2, hang=16)


def explanation_lines(found: Sequence[Incident]) -> Iterator[Line]:
    """What happened to each job, without what a validation prints anyway: reasons for restart sets, findings, verdicts."""
    for incident in found:
        if incident.entries:
            yield BLANK
            yield line(StyledText(f"what happened in {incident.run}, {incident.title or incident.trace}", "title"))
        for entry in incident.entries[:MOST_LINES]:
            yield from entry_lines(entry, reasons=False)
        for text in incident.waits:
            yield line(StyledText("at the end: ", "failed"), text, indent=2, hang=4)


def entry_lines(entry: IncidentEntry, *, reasons: bool = True) -> Iterator[Line]:
    """Something that happened, with its place, the reasons for what restarts, phases and judgement."""
    happening = entry.happening
    style: Style = "failed" if entry.right is False else _STYLES.get(happening.kind, "plain")
    place = f"  {happening.file}:{happening.line}" if happening.file and happening.line else ""
    yield line(
        f"{happening.at or '(no time)'}  ",
        StyledText(happening.text, style),
        StyledText(place, "source"),
        indent=2,
        hang=4,
    )
    for fact in happening.facts:
        yield line(fact, indent=6, hang=8)
    if entry.recovery is not None and reasons:
        yield from reason_lines(entry.recovery, 6, ids=False)
    for text in details(entry):
        yield line(text, indent=6, hang=8)
    if entry.judgement is not None:
        yield line(StyledText(entry.judgement, _RIGHT[entry.right]), indent=6, hang=8)


def details(entry: IncidentEntry) -> Iterator[str]:
    """Phases, lost work, and what is by design, in sentences."""
    if entry.phases:
        yield "after the decision: " + ", ".join(f"{name} {_long(end)}" for name, end in entry.phases)
    if entry.recovery is not None and entry.recovery.recovered is None and entry.phases:
        yield "the log does not show that all of them run again"
    if entry.discarded is not None and entry.discarded[0]:
        count, finished, running = entry.discarded
        ends = f", {finished} of them finished" if finished else ""
        many = f"{count} attempt{'' if count == 1 else 's'}"
        yield f"done again: the work of {many}{ends}, {_long(running)} of running in total"
    recovery, own = entry.recovery, entry.happening.designed
    for note in (*(() if own is None else (own,)), *(recovery.designed if recovery is not None else ())):
        yield f"by design: {note.text} (docs/{note.page})"


def _long(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if abs(seconds) < 1 else f"{seconds:.1f} s"
