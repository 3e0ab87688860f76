"""Files about a drive: the model's side of a difference as ITF, an event log, a test for pytest, JUnit XML."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from streamproof.base.errors import StreamproofError
from streamproof.base.files import DRIVE_LOG, GENERATOR, JUNIT, PYTEST, write
from streamproof.base.records import dataclass, replace
from streamproof.base.text import text, visible_json
from streamproof.conformance.binding import Observation
from streamproof.conformance.event import Event
from streamproof.conformance.events import write_ndjson
from streamproof.conformance.tracker import Tracker
from streamproof.driving.drive import Drive
from streamproof.driving.following import DriveRules, Following
from streamproof.driving.lines import difference_lines
from streamproof.driving.script import sizes
from streamproof.driving.script_run import Ran
from streamproof.exchange.itf.writing import write_itf
from streamproof.report.ci_formats import TestCase, junit
from streamproof.selection import Selection
from streamproof.system.model import Instance, State, parameter_json
from streamproof.system.verdict import Trace

WIDTH = 120
"""Number of columns of a difference in JUnit."""
HIDDEN_STEPS = 10_000
"""Largest number of states that are searched for the hidden steps between two events."""


@dataclass(frozen=True, slots=True)
class DriveFiles:
    """Where a drive is written."""

    itf: Path | None = None
    log: Path | None = None
    pytest: Path | None = None
    junit: Path | None = None

    def write(self, found: Drive, model: str, selection: Selection) -> list[Path]:
        """Writes the files; those about a difference only if there is one. Returns those that exist of an earlier one."""
        ran, earlier = found.shortest, [path for path in (self.itf, self.pytest) if path is not None and path.exists()]
        if ran is not None:
            trace = model_side(found, ran)
            if self.itf is not None and trace is not None:
                write_itf(self.itf, found.subject.system, trace)
                earlier = [path for path in earlier if path != self.itf]
            if self.pytest is not None:
                write(self.pytest, pytest_text(found, ran, model, selection), PYTEST)
                earlier = [path for path in earlier if path != self.pytest]
        last = ran or found.last
        if self.log is not None and last is not None and last.events:
            write_ndjson(_stating(found, last), self.log, DRIVE_LOG)
        if self.junit is not None:
            write(self.junit, junit("streamproof drive", [*_cases(found, selection.name)]), JUNIT)
        return earlier


def _stating(found: Drive, ran: Ran) -> Iterator[Event]:
    """What happened, with the parameters that the implementation had; without the bounds of an instance that it left."""
    spec = found.subject.spec
    bounds = spec.model.instance_bounds if spec is not None and ran.ended == "beyond bounds" else ()
    first, *others = ran.events
    yield replace(first, parameters=sizes(found.subject.system, bounds))
    yield from others


def _cases(found: Drive, name: str) -> Iterator[TestCase]:
    system = found.subject.system
    for action in system.actions:
        if action.name not in found.coverage.absent:
            never = action.name in found.left
            yield TestCase(
                name,
                action.name,
                f"{name}/{action.name}",
                "skipped" if never else "passed",
                "never happened" if never else "",
            )
    why = "; ".join(found.doubts)
    if found.shortest is not None:
        why = f"{found.shortest.message}\n\n{text(difference_lines(system, found.shortest), WIDTH)}"
    ending: Any = {"difference": "failure", "inconclusive": "skipped"}.get(found.answer, "passed")
    yield TestCase(name, "drive", f"{name}/drive", ending, why)


def model_side(found: Drive, ran: Ran) -> Trace | None:
    """A behaviour of the model with the events before the difference, hidden steps included; None where events of several
    processes have no known order."""
    if len({event.process for event in ran.events}) > 1:
        return None
    try:
        following = Following(DriveRules(_log_of(found, ran)), ran.script.name)
        return _behaviour(following, ran)
    except StreamproofError:
        return None


def _log_of(found: Drive, ran: Ran) -> Any:
    from streamproof.conformance.event_log import EventLog

    return EventLog(found.subject.system, hidden=ran.following.log.hidden)


def _behaviour(following: Following, ran: Ran) -> Trace | None:
    tracker, log = following.tracker, following.log
    layers: list[tuple[Observation | None, set[State]]] = []
    belief = tracker.begin()
    layers.append((None, set(belief)))
    for event in ran.events:
        seen = log.observation(event)
        belief = tracker.follow(seen, belief)
        if not belief:
            break
        layers.append((seen, set(belief)))
    # Backwards: a state of each layer from which the next one is reached.
    goal = next(iter(layers[-1][1]))
    parts: list[list[tuple[Instance, State]]] = []
    for (observation, _), (_, before) in zip(layers[:0:-1], layers[-2::-1], strict=True):
        assert observation is not None
        found = next(
            ((s, way) for s in before if (way := _between(tracker, log, s, observation, goal)) is not None), None
        )
        if found is None:
            return None
        goal, way = found
        parts.append(way)
    steps = [pair for way in reversed(parts) for pair in way]
    return Trace((goal, *(state for _, state in steps)), tuple(instance for instance, _ in steps))


def _between(
    tracker: Tracker, log: Any, start: State, observation: Observation, goal: State
) -> list[tuple[Instance, State]] | None:
    """The steps from a state to another: hidden ones, then those of an observation."""
    hidden = [i for i in log.system.instances if i.action in log.hidden]
    queue: deque[tuple[State, tuple[tuple[Instance, State], ...]]] = deque([(start, ())])
    known = {start}
    while queue and len(known) < HIDDEN_STEPS:
        state, way = queue.popleft()
        if goal in {end for end, _ in log.steps.explained(observation, state)}:
            own = next(
                (o for moves in observation.alternatives if (o := _along(log, moves, state, goal)) is not None), None
            )
            return None if own is None else [*way, *own]
        for instance in hidden:
            after = log.steps.take(instance, state)
            if after is not None and after not in known:
                known.add(after)
                queue.append((after, (*way, (instance, after))))
    return None


def _along(log: Any, moves: Sequence[Any], state: State, goal: State) -> list[tuple[Instance, State]] | None:
    if not moves:
        return [] if state == goal else None
    for instance in log.steps.matching(moves[0]):
        after = log.steps.take(instance, state)
        if after is not None:
            rest = _along(log, moves[1:], after, goal)
            if rest is not None:
                return [(instance, after), *rest]
    return None


def pytest_text(found: Drive, ran: Ran, model: str, selection: Selection) -> str:
    """A test that runs the script of a difference, and passes when there is none."""
    calls = [
        {"event": c.action, "args": dict(c.args), **({"picks": dict(c.picks)} if c.picks else {})}
        for c in ran.script.calls
    ]
    script = "".join(f"    {_literal(call)},\n" for call in calls)
    parameters = {name: parameter_json(value) for name, value in selection.given.items()}
    message = " ".join(ran.message.split()).replace("\\", "/").replace('"', "'")
    return (
        f'"""A script of {selection.name} with a difference, {GENERATOR} drive.\n\n{_plain(message)}\n"""\n\n'
        "from streamproof.driving import assert_no_difference\n\n"
        f"MODEL = {_literal(model)}\nADAPTER = {_literal(found.adapter)}\n"
        f"SCRIPT = [\n{script}]\n\n\n"
        "def test_the_script_has_no_difference() -> None:\n"
        '    """The implementation does what the model has."""\n'
        f"    assert_no_difference(MODEL, ADAPTER, SCRIPT, seed={found.seed}, variant={_literal(selection.variant)}, "
        f"parameters={_literal(parameters)})\n"
    )


def _literal(value: Any) -> str:
    """JSON data as Python; text in ASCII."""
    return ascii(value)


def _plain(text: str) -> str:
    return visible_json(json.dumps(text))[1:-1]
