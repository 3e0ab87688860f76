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
class LostWork:
    """The work that a restart repeats: of each attempt that it ends, the time in RUNNING after the restored checkpoint was
    triggered, or after the attempt began to run, if that is later or nothing is restored."""

    attempts: int
    """Those that had run."""
    finished: int
    """Those of them that had finished."""
    seconds: float
    """Of all together."""
    longest: float
    """Of one attempt, the most, in seconds."""
    checkpoint: int | None
    """The restored one; 0: none, None: the log does not show it."""
    bound: str = "exact"
    """`least`: the log lacks the beginnings of attempts; `most`: it does not show what is restored."""

    def record(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "attempts": self.attempts,
            "finished": self.finished,
            "seconds": round(self.seconds, 3),
            "longest": round(self.longest, 3),
            "checkpoint": self.checkpoint,
            "bound": self.bound,
        }


@dataclass(frozen=True, slots=True)
class IncidentEntry:
    """Something that happened, the recovery that it decides, and what the verdicts say of it; None: nothing."""

    happening: Happening
    recovery: Recovery | None = None
    phases: tuple[tuple[str, float], ...] = ()
    """The phases of the recovery, each with its end in seconds after the decision."""
    discarded: LostWork | None = None
    judgement: str | None = None
    right: bool | None = None
    """Whether the protocol requires it; None: not judged."""

    def record(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            **self.happening.record(),
            "recovery": None if self.recovery is None else self.recovery.record(),
            "phases": [{"phase": name, "seconds": round(end, 3)} for name, end in self.phases],
            "discarded": None if self.discarded is None else self.discarded.record(),
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
        none = "the log shows no failure of the job"
        parts += [f"it began with: {cause}"] if cause is not None else [] if parts else [none]
        restarts = max(kinds["decision"], self.restarted)
        parts += [f"{restarts} restart{'' if restarts == 1 else 's'}"] if restarts else []
        parts += ["no restart"] if cause and not restarts and self.state is not None else []
        known = "finally the job is" if self.state in _ENDED else "the last known state of the job is"
        parts += [f"{known} {self.state}"] if self.state is not None else []
        later = [e.happening.text for e in self.entries if e.happening.kind == "after"]
        more = f" and {len(later) - 1} more" if len(later) > 1 else ""
        parts += [f"after its end: {later[0]}{more}"] if later else []
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
    recoveries = list(main.recoveries)
    work = _Work(history, _timed(history)) if recoveries else None
    if not any(happening.kind == "decision" for happening in history.happenings):
        for recovery in recoveries:  # of a scheduler without lines about decisions
            text = f"the job restarts, because {recovery.failed or 'the whole job'} failed"
            yield _decided(Happening("decision", recovery.decided, text), recovery, main, work, places)
        recoveries = []
    number = 0
    for happening in history.happenings:
        if happening.kind == "decision":
            following = recoveries[number] if number < len(recoveries) else None
            decided = following if following is not None and following.decided == happening.at else None
            number += decided is not None
            yield _decided(happening, decided, main, work, places)
        elif happening.kind == "restored":
            yield IncidentEntry(happening, None, (), None, *_judged(happening, restoring, places))
        else:
            wrong = places.get((happening.file, happening.line))
            yield IncidentEntry(happening, None, (), None, wrong, None if wrong is None else False)


def _decided(
    happening: Happening,
    recovery: Recovery | None,
    main: RunVerdict,
    work: _Work | None,
    places: Mapping[tuple[str | None, int | None], str],
) -> IncidentEntry:
    followed = main if recovery is not None else None
    judgement, right = _judged(happening, followed, places, main.reason)
    if recovery is None or work is None:
        return IncidentEntry(happening, None, (), None, judgement, right)
    if right and recovery.tasks is None:
        judgement = "the protocol allows several sets of tasks here, this number among them"
    return IncidentEntry(happening, recovery, work.phases(recovery), work.lost(recovery), judgement, right)


def _judged(
    happening: Happening,
    verdict: RunVerdict | None,
    places: Mapping[tuple[str | None, int | None], str],
    reason: str | None = None,
) -> tuple[str, bool | None]:
    """What the verdicts say of a happening, and whether it is right."""
    place = (happening.file, happening.line)
    wrong = places.get(place) if happening.line is not None else None
    if wrong is not None:
        return wrong, False
    left = None if verdict is None else next((w for e, w in verdict.opened if (e.file, e.line) == place), None)
    if left is not None:
        return f"not judged: {left}", None
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


@dataclass(frozen=True, slots=True)
class _Work:
    """The attempts of a job over time: what a recovery takes, and what it repeats."""

    history: JobHistory
    attempts: Mapping[str, list[TimedAttempt]]

    def ended(self, recovery: Recovery, decided: float) -> Iterator[Mapping[str, float]]:
        """Of each restarted task the attempt that the recovery ends, if it has one."""
        for task in recovery.tasks or ():
            own = self.attempts.get(task, [])
            at = bisect_right(own, decided, key=lambda attempt: attempt[0])
            if at > 0:
                yield own[at - 1][1]

    def phases(self, recovery: Recovery) -> tuple[tuple[str, float], ...]:
        """The phases, each with its end in seconds after the decision."""
        decided = seconds_of(recovery.decided)
        if decided is None:
            return ()
        ends = (next((times[s] for s in _ENDED if s in times), decided) for times in self.ended(recovery, decided))
        ended = [end for end in ends if end >= decided]
        scheduled: list[float] = []
        deployed: list[float] = []
        for own in (self.attempts[task] for task in recovery.tasks or () if task in self.attempts):
            at = bisect_right(own, decided, key=lambda attempt: attempt[0])
            if at < len(own):
                _, times = own[at]
                scheduled += [times["SCHEDULED"]] if "SCHEDULED" in times else []
                deployed += [times["DEPLOYING"]] if "DEPLOYING" in times else []
        phases = [("all cancelled", max(ended))] if ended else []
        phases += [("scheduled again", min(scheduled))] if scheduled else []
        phases += [("all deployed", max(deployed))] if deployed else []
        recovered = seconds_of(recovery.recovered)
        phases += [("all running again", recovered)] if recovered is not None else []
        return tuple((name, at - decided) for name, at in phases if at >= decided)

    def lost(self, recovery: Recovery) -> LostWork | None:
        """The work that is done again; None if the log does not bound it."""
        decided = seconds_of(recovery.decided)
        if decided is None or recovery.tasks is None:
            return None
        restored = self.restored(decided)
        begun = next((c.begun for c in self.history.checkpoints if c.number == restored), None)
        # A checkpoint without a line about its beginning was triggered before the log, and what begins in the log, begins.
        triggered = seconds_of(begun)
        found: list[float] = []
        finished = cut = 0
        for times in self.ended(recovery, decided):
            left = min((times[s] for s in ("CANCELING", *_ENDED) if s in times), default=None)
            start = times.get("RUNNING")
            if start is None and times.keys() <= {"CANCELING", *_ENDED}:
                start = triggered  # it began before the log
            elif start is None:
                continue  # it never ran
            if start is None or left is None:
                cut += 1
                continue
            found.append(max(left - max(start, triggered or start), 0.0))
            finished += "FINISHED" in times
        if restored is None and cut:
            return None
        bound = "least" if cut else "most" if restored is None else "exact"
        return LostWork(len(found), finished, sum(found), max(found, default=0.0), restored, bound)

    def restored(self, decided: float) -> int | None:
        """The checkpoint that is restored next, 0 for none; None: the job has checkpoints, and no line says which."""
        if not self.history.checkpoints:
            return 0
        found = (h.checkpoint for h in self.history.happenings if h.kind == "restored" and h.checkpoint is not None
                 if (at := seconds_of(h.at)) is not None and at >= decided)  # fmt: skip
        return next(found, None)


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
        groups = grouped(incident.entries)
        for group in groups[:MOST_LINES]:
            yield from entry_lines(group)
        if len(groups) > MOST_LINES:
            yield line(f"and {len(groups) - MOST_LINES} more; --json has all", indent=2)
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
        for group in grouped(incident.entries)[:MOST_LINES]:
            yield from entry_lines(group, reasons=False)
        for text in incident.waits:
            yield line(StyledText("at the end: ", "failed"), text, indent=2, hang=4)


def grouped(entries: Sequence[IncidentEntry]) -> list[list[IncidentEntry]]:
    """The entries, those of one burst of failures that differ in their tasks only together: a lost TaskManager fails many
    regions alike, one after the other."""
    found: list[list[IncidentEntry]] = []
    burst: dict[tuple[Any, ...], list[IncidentEntry]] = {}
    for entry in entries:
        happening, recovery = entry.happening, entry.recovery
        key: tuple[Any, ...] = (happening.kind, entry.judgement, happening.designed)
        match happening.kind:
            case "failure":
                key += (happening.text.partition(" fails")[2], happening.facts)
            case "decision" if recovery is not None:
                shape = tuple((r.reason, len(r.tasks), r.because) for r in recovery.why)
                key += (recovery.announced, shape, recovery.designed, recovery.recovered is None)
            case "restored":
                key += (happening.text, happening.facts)
            case "job" if happening.text == "the job is RUNNING":
                burst = {k: group for k, group in burst.items() if k[0] == "restored"}
            case "lost" | "returned" | "after" | "discarded" | "rejected":
                burst = {}
        if happening.kind not in ("failure", "decision", "restored"):
            found.append([entry])
            continue
        if happening.kind != "restored":
            burst = {k: group for k, group in burst.items() if k[0] != "restored"}
        if key in burst:
            burst[key].append(entry)
        else:
            burst[key] = [entry]
            found.append(burst[key])
    return found


def entry_lines(group: Sequence[IncidentEntry], *, reasons: bool = True) -> Iterator[Line]:
    """Something that happened, with its place, the reasons for what restarts, phases and judgement. Of a group the first, and
    of which tasks the others are."""
    entry, last = group[0], group[-1].happening
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
    if len(group) > 1:
        until = f", the last {last.at}" if last.at else ""
        names = [name for one in group[1:] if (name := _whose(one))]
        yield line(f"{len(group)} times{until}" + (f"; also {_listed(names)}" if names else ""), indent=6, hang=8)
    for fact in happening.facts:
        yield line(fact, indent=6, hang=8)
    if entry.recovery is not None and reasons:
        yield from reason_lines(entry.recovery, 6, ids=False)
    for text in details(group):
        yield line(text, indent=6, hang=8)
    if entry.judgement is not None:
        yield line(StyledText(entry.judgement, _RIGHT[entry.right]), indent=6, hang=8)


def _whose(entry: IncidentEntry) -> str:
    """The task of a failure or a decision."""
    if entry.recovery is not None:
        return entry.recovery.failed
    return entry.happening.text.partition(" fails")[0] if entry.happening.kind == "failure" else ""


_BOUNDS: Final[Mapping[str, str]] = {"exact": "", "least": "at least ", "most": "at most "}


def details(group: Sequence[IncidentEntry]) -> Iterator[str]:
    """Phases of the first, lost work of all, and what is by design, in sentences."""
    entry = group[0]
    if entry.phases:
        yield "after the decision: " + ", ".join(f"{name} {_long(end)}" for name, end in entry.phases)
    if entry.recovery is not None and entry.recovery.recovered is None and entry.phases:
        yield "the log does not show that all of them run again"
    lost = [one.discarded for one in group if one.discarded is not None]
    count, finished = sum(one.attempts for one in lost), sum(one.finished for one in lost)
    if count:
        ends = f", {finished} of them finished" if finished else ""
        many = f"{count} attempt{'' if count == 1 else 's'}"
        bound = _BOUNDS[max((one.bound for one in lost), key=list(_BOUNDS).index)]
        total, most = sum(one.seconds for one in lost), max(one.longest for one in lost)
        since = sorted({one.checkpoint for one in lost if one.checkpoint})
        of = f", after checkpoint {' and '.join(map(str, since))}" if since else ""
        each = f", the longest {bound}{_long(most)}" if count > 1 else ""
        yield f"done again: the work of {many}{ends}{of}: {bound}{_long(total)} of running in total{each}"
    recovery, own = entry.recovery, entry.happening.designed
    for note in (*(() if own is None else (own,)), *(recovery.designed if recovery is not None else ())):
        yield f"by design: {note.text} (docs/{note.page})"


def _long(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if abs(seconds) < 1 else f"{seconds:.1f} s"
