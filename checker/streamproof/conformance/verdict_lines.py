"""The verdicts on recorded runs as lines of text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from streamproof.base.text import BLANK, Line, Style, StyledText, line
from streamproof.conformance.coverage import JudgedEvents, untaken_actions
from streamproof.conformance.run_verdict import Answer, Recovery, Rejection, RestartReason, RunVerdict

ANSWER_STYLES: dict[Answer, Style] = {
    "accepted": "good",
    "rejected": "failed",
    "inconclusive": "new",
    "error": "failed",
}
TASKS_SHOWN = 8
"""Largest number of tasks printed of a region."""
LONGEST = 240
"""Largest number of characters printed of a variable's value."""


def verdict_lines(verdicts: Sequence[RunVerdict], shown: Sequence[RunVerdict], *, explain: bool) -> Iterator[Line]:
    """One line per job or channel of `shown`, the explanation of each rejection under it, the totals."""
    several = {key for key, count in Counter((v.run, v.model) for v in shown).items() if count > 1}
    models: dict[str, set[str]] = {}
    for verdict in shown:
        models.setdefault(verdict.run, set()).add(verdict.model)
    for verdict in shown:
        named = (verdict.run, verdict.model) in several
        yield from case_lines(verdict, named=named, with_model=len(models[verdict.run]) > 1)
        for number, recovery in enumerate(verdict.recoveries if explain else (), 1):
            yield from _restart(number, recovery)
    yield BLANK
    for machine in dict.fromkeys(machine for verdict in shown for machine in verdict.machines):
        related = machine.kind != "not related"
        yield line(
            StyledText("followed by ", "faint"), StyledText(machine.text, "faint" if related else "failed"), hang=4
        )
    if len({(v.run, v.trace, v.unit) for v in shown}) < len(shown):
        yield from _by_model(verdicts, shown)
    else:
        yield line(f"{_counted(shown)}: ", _answers(shown))


def _by_model(verdicts: Sequence[RunVerdict], shown: Sequence[RunVerdict]) -> Iterator[Line]:
    """The totals of each model, where a job is judged by several."""
    for model in dict.fromkeys(v.model for v in verdicts):
        own = [v for v in shown if v.model == model]
        without = sum(v.model == model for v in verdicts) - len(own)
        runs = f"{without} run{'' if without == 1 else 's'} without records of it" if without else ""
        counts = f"{_counted(own)}, {_answers(own)}" if own else ""
        yield line(f"{model}: ", "; ".join(filter(None, (counts, runs))))


def coverage_lines(
    counted: JudgedEvents, verdicts: Sequence[RunVerdict], least: float | None, *, whole: bool
) -> Iterator[Line]:
    """The share of the events that some model judged; `whole`: of each family, and the actions that no run took."""
    yield BLANK
    wanted = "" if least is None or counted.percent >= least else f", less than the {least:g} % of --min-judged"
    share = f"{counted.judged.total():,} of {counted.read.total():,} events, {counted.percent:.0f} %{wanted}"
    yield line("judged by some model: ", StyledText(share, "failed" if wanted else "plain"))
    if not whole:
        return
    for family, read in sorted(counted.read.items()):
        judged = counted.judged[family]
        share = f"{judged:>9,} of {read:>9,}  {100 * judged // read:>3} %  "
        why = counted.why_not(family)
        yield line(share, family if why is None else f"{family:<24} ", StyledText(why or "", "faint"), hang=30)
    for model, actions in untaken_actions(verdicts).items():
        yield line(f"actions of {model} that no run took: ", ", ".join(actions) or "none", hang=4)


def _counted(verdicts: Sequence[RunVerdict]) -> str:
    units = Counter(verdict.unit for verdict in verdicts)
    return " and ".join(f"{n} {unit}{'' if n == 1 else 's'}" for unit, n in units.items())


def _answers(verdicts: Sequence[RunVerdict]) -> str:
    totals = [(answer, sum(v.answer == answer for v in verdicts)) for answer in ANSWER_STYLES]
    kinds = Counter(finding.kind for verdict in verdicts for finding in verdict.findings)
    return ", ".join((*(f"{n} {answer}" for answer, n in totals if n), *(f"{n} {kind}" for kind, n in kinds.items())))


def case_lines(verdict: RunVerdict, *, named: bool = True, with_model: bool = False) -> Iterator[Line]:
    """The line of a verdict, and why. `named`: print the name of the job or channel; `with_model`: that of the model."""
    model = verdict.model if with_model else ""
    name = ", ".join(filter(None, (verdict.run, model, verdict.trace if named else "", verdict.title)))
    restarts = len(verdict.recoveries)
    facts = f"{verdict.matched} of {verdict.read} events matched"
    if restarts:
        facts += f", {restarts} restart{'' if restarts == 1 else 's'}"
    style = ANSWER_STYLES[verdict.answer]
    yield line(StyledText(f"{verdict.answer:<12}", style), f"  {name}: ", StyledText(facts, "faint"), hang=14)
    if verdict.rejection is not None:
        yield from _rejection(verdict.rejection)
    elif verdict.reason:
        kinds = ", ".join(finding.kind for finding in verdict.findings)
        yield line(*((StyledText(f"{kinds}: ", "failed"),) if kinds else ()), verdict.reason, indent=14, hang=14)


def _restart(number: int, recovery: Recovery) -> Iterator[Line]:
    """One restart: the failure, and the reasons for the restarted tasks as a tree."""
    failure = f"{recovery.failed} failed" if recovery.failed else "a global failure"
    when = f"{recovery.decided}: " if recovery.decided else ""
    cause = f" ({recovery.cause.rpartition('.')[2]})" if recovery.cause else ""
    count = f"{recovery.announced} task{'' if recovery.announced == 1 else 's'}"
    open_set = "" if recovery.tasks is not None else "; the model allows several sets"
    yield line(f"restart {number}, {when}{failure}{cause}; {count}{open_set}", indent=4, hang=4)
    yield from reason_lines(recovery, 6)


def reason_lines(recovery: Recovery, indent: int, *, ids: bool = True) -> Iterator[Line]:
    """The reasons for the restarted tasks, as a tree; without `ids`, partitions are named by their writers alone."""
    below: dict[int | None, list[int]] = {}
    for at, reason in enumerate(recovery.why):
        below.setdefault(reason.because, []).append(at)
    waiting = [(at, indent) for at in reversed(below.get(None, []))]
    while waiting:
        at, indent = waiting.pop()
        reason = recovery.why[at]
        writer = _writer(recovery.why, reason)
        link = f" ({writer or reason.partition})" if writer or (reason.partition and (ids or not reason.tasks)) else ""
        tasks = _named(reason.tasks) if reason.tasks else "tasks that were never scheduled"
        yield line(f"{reason.reason}{link}: ", StyledText(tasks, "place"), indent=indent, hang=indent + 4)
        waiting += [(child, min(indent + 2, 20)) for child in reversed(below.get(at, []))]


def _writer(why: Sequence[RestartReason], reason: RestartReason) -> str | None:
    """The task that writes the partition which links a reason to the one before it, if its name shows it."""
    place = (
        int((reason.partition or "").rpartition("#")[2]) + 1 if re.search(r"#\d{1,9}$", reason.partition or "") else 0
    )
    # Those in the region of the failed task follow from it without a partition.
    same = (one for one in why if one.because == reason.because and one.partition is None)
    before = [t for one in (why[reason.because], *same) for t in one.tasks] if reason.because is not None else []
    if reason.reason != "reads what restarts" or not place:
        return None
    found = [task for task in before if f" ({place}/" in task]
    return f"of {found[0]}" if len(found) == 1 else None


def _named(tasks: Sequence[str]) -> str:
    more = len(tasks) - TASKS_SHOWN
    return ", ".join(tasks[:TASKS_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _states(states: Sequence[Mapping[str, str]]) -> Iterator[Line]:
    """The first state in full, and the differences of the others; long values are cut (the JSON has the full values)."""
    for number, state in enumerate(states, 1):
        yield line(StyledText(f"state {number}" + ("" if number == 1 else ", like state 1 but for"), "faint"), indent=8)
        for name, value in state.items():
            if number == 1 or value != states[0].get(name):
                cut = value if len(value) <= LONGEST else f"{value[:LONGEST]} ..."
                yield line(StyledText(name, "place"), f" = {cut}", indent=10, hang=14)


def _rejection(rejection: Rejection) -> Iterator[Line]:
    event, index, states = rejection.event, rejection.index, rejection.states
    place = f"{event.file}:{event.line}" if event and event.file and event.line else None
    at = "end of the log" if event is None else str(event)
    yield line(*((StyledText(place, "source"), ": ") if place else ()), StyledText(at, "action"), indent=4, hang=8)
    yield line(StyledText(rejection.message, "failed"), indent=6, hang=6)
    fit = f"; {states} of the model's states fit{'s' if states == 1 else ''} them" if states else ""
    yield line(f"accepted before it: {index} event{'' if index == 1 else 's'}{fit}", indent=6, hang=6)
    yield from _states(rejection.before)
    for candidate in rejection.candidates:
        if candidate.because == rejection.message:
            continue  # printed above
        yield line(StyledText(candidate.action, "action"), f"  is not possible: {candidate.because}", indent=6, hang=10)
    if rejection.expected:
        yield line(f"possible here: {', '.join(rejection.expected)}", indent=6, hang=10)
    if rejection.nearest:
        yield line(f"nearest that would have been accepted: {rejection.nearest}", indent=6, hang=10)
