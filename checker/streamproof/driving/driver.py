"""The driver: runs scripts on an implementation, and follows its answers through the model.

The implementation is never told what to choose: the tracker follows whatever it does, and a difference is an answer, an event
or an observed value that no behaviour of the model has after the same history. Where the history can have several orders, all
are tried, after the adapter has been asked for everything that has happened.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from itertools import pairwise
from typing import Any, TypeAlias

from streamproof.base.errors import EvaluationError, InputError, StreamproofError, UsageError, did_you_mean
from streamproof.base.records import dataclass, replace
from streamproof.conformance.event import Event
from streamproof.conformance.event_log import OBSERVE, EventLog
from streamproof.conformance.run_verdict import Rejection
from streamproof.conformance.tracker import Reached
from streamproof.driving.adapter import PROTOCOL
from streamproof.driving.connection import AdapterSource, Connection
from streamproof.driving.following import (
    DriveRules,
    Following,
    UndecidedStep,
    differing,
    false_conditions,
    judged,
    leaves,
    plain_args,
)
from streamproof.driving.messages import AdapterFailure, Message
from streamproof.driving.script import PROCESS, Asked, CallScript
from streamproof.interrupts import requested
from streamproof.language.declare.spec import Spec
from streamproof.system.model import State, System, parameter_json

PATIENCE = 100
"""Number of observations without any value after which the state is observed at the end of scripts only."""
SHOWN = 200
"""Largest number of characters kept of a reason that an adapter gives; of a failure, ten times as many."""
LOOKED_AT = 16
"""Largest number of possible states whose successors are shown."""

Chooser: TypeAlias = "Callable[[Following, Sequence[Asked]], Asked | None]"
"""The next call, from what has happened and the calls before; None ends the script."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What an implementation is compared with: a system, and the specification that it is from, for larger bounds.

    `searched` is the same system with its constraint, which limits searches and no implementation.
    """

    system: System
    spec: Spec | None = None
    variant: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    searched: System | None = None

    def larger(self) -> Iterator[System]:
        """The model with twice its `instance_bounds`, none of which limits an implementation.

        With all of them, since larger ones only add behaviours, or with each alone if that is no instance. Twice is enough,
        because a behaviour exceeds a bound by one first.
        """
        if self.spec is None:
            return
        values = self.system.parameters
        bounds = {
            name: 2 * max(values[name], 1) for name in self.spec.model.instance_bounds if values[name] is not None
        }
        given = {name: value for name, value in self.parameters.items() if name not in bounds}
        for enlarged in (bounds, *({name: bound} for name, bound in bounds.items())) if bounds else ():
            rest = {name: values[name] for name in bounds if name not in enlarged}
            with suppress(StreamproofError):  # no such instance, or one that is too large
                yield self.spec.system(self.variant, **given, **rest, **enlarged).unconstrained
                if enlarged is bounds:
                    return


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call, what came back, and the possible states of the model after it (at most a few, with their number)."""

    asked: str
    answer: str
    events: tuple[Event, ...]
    states: tuple[State, ...]


@dataclass(frozen=True, slots=True)
class Ran:
    """A script that was run.

    `ended`: ``complete``, ``difference``, ``beyond bounds``, ``undecided``, ``error``, ``crash`` or ``hang``.
    """

    script: CallScript
    ended: str
    running: Running
    message: str = ""
    rejection: Rejection | None = None
    wrong: Event | None = None
    expected: tuple[State, ...] = ()
    """The states of the model after the wrong event, whatever was observed; none if it is not possible."""

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """The calls with their answers."""
        return self.running.exchanges

    @property
    def following(self) -> Following:
        """The behaviour of the implementation."""
        self.running.add_turns()
        return self.running.following

    @property
    def events(self) -> Sequence[Event]:
        """What happened, with the number and the vector clock of each event."""
        return self.following.events

    @property
    def is_difference(self) -> bool:
        """Whether the implementation did something that the model does not have, or failed."""
        return self.ended in ("difference", "error", "crash")


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """A call and its answer in the only possible state, after which nothing was wrong: the same again has this outcome."""

    asked: Asked | None
    """None: the state was observed."""
    answer: Message
    event: Event | None
    after: Reached
    state: State | None
    """The only possible state after it, if there is one."""
    exchange: Exchange
    then: Turns
    """What is known of that state."""
    action: str | None
    """The accepted action, if it is one."""


Turns: TypeAlias = dict[tuple[int, int], Turn]
"""The turns in a state, by the identity of the call and of the answer, which they keep."""
NO_TURNS: Turns = {}
"""Where several states are possible, or events of several processes; nothing is kept in it."""
TURNS = 100_000
"""Largest number of turns that are remembered."""


@dataclass(slots=True)
class DriveCoverage:
    """What was driven: counts of calls by outcome, of accepted actions, of pairs of them, and of compared values."""

    calls: int = 0
    values: int = 0
    refusals: int = 0
    """Refusals that the model was compared with."""
    scripts: int = 0
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    unsupported: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    states: set[State] = field(default_factory=set)
    """Possible states of the model, at most a few of those after a call."""
    instances: Counter[str] = field(default_factory=Counter)
    """Accepted actions with their arguments."""
    observed: set[str] = field(default_factory=set)
    """Variables with observed values."""
    absent: set[str] = field(default_factory=set)
    """Actions that the adapter declares to be unsupported or hidden."""


class Driver:
    """Runs scripts on one adapter, which is started when it is needed, and again after a failure.

    Raises `UsageError` for a model with an action that has the name of observations.
    """

    def __init__(self, subject: Subject, source: AdapterSource, seed: int = 0, deadline: float | None = None) -> None:
        self.subject, self.source, self.seed, self.deadline = subject, source, seed, deadline
        self.counts = DriveCoverage()
        """The coverage without `repeated`."""
        self.repeated: Counter[Turn] = Counter()
        """How often turns were repeated that are not in the coverage yet."""
        self.own: frozenset[str] = frozenset()
        self.absent: frozenset[str] = frozenset()
        self.declared: tuple[frozenset[str], ...] = ()
        """The names that the adapter gave with its last answer to a reset."""
        self.actions = frozenset(a.name for a in subject.system.actions)
        if OBSERVE in self.actions:
            raise UsageError(
                f"{subject.system.name} has an action {OBSERVE!r}, which in a drive is the event of observed values",
                remedy="give the action another name",
            )
        self._connection: Connection | None = None
        self._rules: dict[frozenset[str], DriveRules] = {}
        self._empty = 0
        """Number of observations before the first one with a value."""
        self.is_observing = True
        """Whether the state is observed after each call, not only at the end of scripts: unless there never is any."""
        self.has_observed = False
        """Whether an observation has had a value."""
        self._larger: list[System] | None = None
        self._answered = False
        """Whether the adapter has answered any call."""
        self.turns: dict[State, Turns] = {}
        """The remembered turns, by the state before."""
        self._remembered = 0
        self.bounded: set[tuple[str, frozenset[str]]] = set()
        """Calls that the implementation accepts and a larger instance of the model permits: each an action with the
        conditions of its guard that were false."""

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the adapter."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def run(self, script: CallScript | str, choose: Chooser | None = None) -> Ran:
        """Runs a script, or the one that `choose` makes, which then has this name.

        Raises `AdapterFailure` for an adapter that cannot be started, or writes something else than messages with values of
        the model.
        """
        name = script if isinstance(script, str) else script.name
        made = Running(self, name)
        fixed = iter(() if isinstance(script, str) else script.calls)
        try:
            made.reset()
            while made.ended is None and not self.is_over():
                asked = next(fixed, None) if choose is None else choose(made.following, made.calls)
                if asked is None:
                    break
                made.do(asked)
            made.finish()
        except AdapterFailure as failure:
            self.close()
            if failure.kind == "crash" and not self._answered:
                raise AdapterFailure("start", failure.message, failure.remedy) from None
            if failure.kind not in ("crash", "hang"):
                raise
            made.ended, made.message = failure.kind, str(failure)
        except BaseException:
            self.close()
            raise
        self.counts.scripts += 1
        self.counts.calls += len(made.calls)
        return made.ran()

    @property
    def coverage(self) -> DriveCoverage:
        """What was driven so far."""
        repeated, self.repeated = self.repeated, Counter()
        for turn, times in repeated.items():
            if turn.answer.kind == "refused" and turn.asked is not None:
                self.counts.refused[turn.asked.action] += times
            if turn.event is not None:
                self.count(turn.event, times)
        return self.counts

    @coverage.setter
    def coverage(self, coverage: DriveCoverage) -> None:
        self.counts = coverage
        self.repeated.clear()

    def count(self, event: Event, times: int = 1) -> None:
        """Adds an event to the coverage."""
        coverage = self.counts
        if event.state:
            coverage.values += times * leaves(event.state)
            coverage.observed |= compared(event)
        if event.refused:
            coverage.refusals += times
        elif event.event in self.actions:
            coverage.accepted[event.event] += times
            coverage.instances[called(event)] += times

    def observed(self, something: bool) -> None:
        """Counts observations until there is one with a value."""
        self.has_observed = self.has_observed or something
        self._empty += not self.has_observed
        self.is_observing = self.has_observed or self._empty < PATIENCE

    def forget(self) -> None:
        """Forgets all turns."""
        self.turns, self._remembered = {}, 0

    def remember(self, known: Turns, turn: Turn) -> None:
        """Keeps a turn among those of its state."""
        if self._remembered >= TURNS:
            self.forget()
        self._remembered += 1
        known[0 if turn.asked is None else id(turn.asked), id(turn.answer)] = turn

    def is_over(self) -> bool:
        """Whether the time is over, or the user has interrupted the program."""
        return requested() or (self.deadline is not None and time.monotonic() >= self.deadline)

    def call(self, call: Mapping[str, Any]) -> tuple[list[Message], Message]:
        """One call of the adapter. Raises `AdapterFailure`."""
        found = self.connection.call(call)
        self._answered = True
        return found

    @property
    def connection(self) -> Connection:
        """The connection to the adapter, which is started if it does not run. Raises `AdapterFailure`."""
        if self._connection is None:
            self._connection = self.source.connect()
        return self._connection

    def following(self, name: str, hidden: frozenset[str]) -> Following:
        """A new behaviour; caches are those of earlier ones."""
        if hidden not in self._rules:
            self._rules[hidden] = DriveRules(EventLog(self.subject.system, hidden=hidden))
        return Following(self._rules[hidden], name)

    def larger(self) -> Sequence[System]:
        """Larger instances of the model, which are made once."""
        if self._larger is None:
            self._larger = list(self.subject.larger())
        return self._larger

    def known(self, names: Sequence[str], what: str) -> frozenset[str]:
        """Names of actions, as given by the adapter. Raises `InputError` for others."""
        for name in names:
            if name not in self.actions:
                raise InputError(
                    f"the adapter lists {name!r} as {what}, and {self.subject.system.name} has no such action",
                    remedy=did_you_mean(name, self.actions),
                )
        return frozenset(names)


class Running:
    """One script while it runs: `reset`, any number of `do`, `finish`."""

    def __init__(self, driver: Driver, name: str) -> None:
        self.driver, self.name = driver, name
        self.following = driver.following(name, frozenset())
        self.calls: list[Asked] = []
        self._exchanges: list[Exchange] = []
        self.ended: str | None = None
        self.message = ""
        self.rejection: Rejection | None = None
        self.wrong: Event | None = None
        self.expected: tuple[State, ...] = ()
        self._before: str | None = None
        self._call = driver.call
        self._turns: list[Turn] = []
        """The last turns, as far as they were known before."""
        self._counted: list[Turn] = []
        """Those before them that are in the coverage, and not among the exchanges and events yet."""
        self._known = NO_TURNS
        """The turns that are known in the only possible state."""

    def ran(self) -> Ran:
        """What has happened."""
        self._count_turns()
        script = CallScript(self.name, tuple(self.calls))
        return Ran(script, self.ended or "complete", self, self.message, self.rejection, self.wrong, self.expected)

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """The calls with their answers."""
        self.add_turns()
        return self._exchanges

    def reset(self) -> None:
        """Begins the script."""
        driver, system = self.driver, self.driver.subject.system
        call = {
            "call": "reset",
            "protocol": PROTOCOL,
            "model": system.name,
            "variant": system.variant,
            "parameters": {name: parameter_json(value) for name, value in system.parameters.items()},
            "seed": driver.seed,
        }
        events, answer = driver.call(call)
        if answer.kind == "error":
            self._difference("error", f"reset failed: {answer.get('error')}")
            self._note("reset", answer, [])
            return
        self._expect(answer, "ready")
        self._call = driver.connection.call
        hidden = driver.known(answer.names("hidden"), "hidden")
        own = driver.known(answer.names("own"), "own")
        absent = hidden | driver.known(answer.names("unsupported"), "unsupported")
        if (own, absent, hidden) != driver.declared:
            driver.declared = own, absent, hidden
            driver.forget()
        driver.own, driver.absent = own, absent
        driver.counts.absent |= driver.absent
        self.following = driver.following(self.name, hidden)
        self._happen("reset", events, answer, self._observed(answer))
        if self.ended is None and driver.is_observing:
            self._observe()

    def do(self, asked: Asked) -> None:
        """Makes one call."""
        driver = self.driver
        self.calls.append(asked)
        events, answer = self._call(asked.call())
        turn = None if events else self._known.get((id(asked), id(answer)))
        if turn is not None:
            self._known = turn.then
            following = self.following
            following.belief, following.only_state = turn.after, turn.state
            self._turns.append(turn)
        elif not self._answered(asked, events, answer):
            return
        if driver.is_observing:
            self._observe()

    def _answered(self, asked: Asked, events: Sequence[Message], answer: Message) -> bool:
        """Follows an answer that is not known here; whether the state may be observed after it."""
        self.add_turns()
        counts, before = self.driver.counts, self.following.written()
        told: list[Event] = []
        match answer.kind:
            case "accepted":
                told = [self._accepted(asked, answer)]
            case "refused" if asked.action in self.driver.own:
                counts.refused[asked.action] += 1
                told = self._observed(answer)
            case "refused":
                counts.refused[asked.action] += 1
                told = [self._event(answer, asked.action, asked.args, refused=True)]
            case "unsupported":
                counts.unsupported[asked.action] += 1
            case "error":
                self._happen(str(asked), events, answer, [], before)
                if self.ended is None:
                    self._difference("error", f"the implementation failed: {answer.get('error')}")
                return False
            case _:
                self._expect(answer, "accepted, refused or unsupported")
        known = self._known
        self._happen(str(asked), events, answer, told, before)
        if self.ended is not None or answer.kind == "unsupported":
            return False
        if not events:
            self._remember(known, asked, answer, told)
        return True

    def finish(self) -> None:
        """Asks for everything that has happened."""
        if self.ended is None:
            self._observe()

    def _observe(self) -> None:
        """Observes the state."""
        events, answer = self._call({"call": "observe"})
        turn = None if events else self._known.get((0, id(answer)))
        if turn is not None:
            self._known = turn.then
            following = self.following
            following.belief, following.only_state = turn.after, turn.state
            self._turns.append(turn)
            if not self.driver.has_observed:
                self.driver.observed(bool(answer.get("state")))
            return
        self.add_turns()
        known, before = self._known, self.following.written()
        if answer.kind == "error":
            self._note("observe", answer, [])
            self._difference("error", f"the implementation failed: {answer.get('error')}")
            return
        self._expect(answer, "observed")
        self.driver.observed(bool(answer.get("state")))
        told = self._observed(answer)
        self._happen("observe", events, answer, told, before)
        if self.ended is None and not events:
            self._remember(known, None, answer, told)

    def _count_turns(self) -> None:
        turns, self._turns = self._turns, []
        if turns:
            self._counted += turns
            self.driver.repeated.update(turns)
            self._follow_each_other([turn.action for turn in turns if turn.action is not None])

    def add_turns(self) -> None:
        """Adds the last turns to the coverage, the exchanges and the events."""
        self._count_turns()
        turns, self._counted = self._counted, []
        if turns:
            self._exchanges += [turn.exchange for turn in turns]
            self.following.repeat([turn.event for turn in turns if turn.event is not None])

    def _remember(self, known: Turns, asked: Asked | None, answer: Message, told: Sequence[Event]) -> None:
        """Keeps a turn in which nothing was wrong, among those of the state before it."""
        following, driver = self.following, self.driver
        repeats = getattr(driver.connection, "equal_answers_are_one", False)
        after = following.belief
        if known is NO_TURNS or not repeats or not isinstance(after, dict) or any(e.process != PROCESS for e in told):
            return
        event = told[0] if told else None
        action = event.event if event is not None and not event.refused and event.event in driver.actions else None
        driver.remember(
            known, Turn(asked, answer, event, after, following.only_state, self._exchanges[-1], self._known, action)
        )

    def _happen(
        self,
        asked: str,
        events: Sequence[Message],
        answer: Message,
        told: Sequence[Event],
        before: Mapping[str, int] | None = None,
        *,
        again: bool = True,
    ) -> None:
        """Follows the events before an answer, and the answer."""
        spontaneous = [self._accepted(None, event) for event in events]
        happened: list[tuple[Event, Mapping[str, int]]] = [(event, {}) for event in spontaneous]
        happened += [(event, before or {}) for event in told]
        try:
            rejection = self.following.take(happened) if happened else None
        except UndecidedStep as undecided:
            rejection = None
            if not self._is_beyond():
                self.ended, self.message = "undecided", str(undecided)
        except InputError as error:
            raise AdapterFailure("garbage", f"the adapter, after {asked}: {error.message}", error.remedy) from None
        state = self.following.only_state
        self._known = NO_TURNS if state is None else self.driver.turns.setdefault(state, {})
        self._note(asked, answer, [*spontaneous, *told])
        if rejection is None or self.ended is not None:
            if self.ended is None:
                self._count([*spontaneous, *told])
            return
        if again and self._explained_later():
            return
        self.rejection, self.wrong = rejection, rejection.event
        self._judge(rejection)

    def _explained_later(self) -> bool:
        """Whether events that the adapter had not written yet explain what seems impossible: of another process."""
        before = self.following.written()
        events, answer = self.driver.call({"call": "observe"})
        if answer.kind != "observed" or len({*before, *(e.get("process") or PROCESS for e in events)}) < 2:
            return False
        self._happen("observe", events, answer, self._observed(answer), before, again=False)
        return True

    def _judge(self, rejection: Rejection) -> None:
        """Decides whether what no behaviour has is a difference, or only larger than the instance of the model."""
        if self._is_beyond():
            return
        try:
            other = judged(self.following.log, self.name, self.following.events)
        except EvaluationError as error:
            self.ended, self.message = "undecided", f"the model has no next state: {error.one_line}"
            return
        if other.accepted:
            self.ended, self.message = "undecided", "the two trackers disagree: a defect of streamproof"
            return
        if rejection.event is not None and not rejection.event.refused:
            plain = self.following.log.observation(replace(rejection.event, state=None))
            with suppress(EvaluationError):
                ends = (self.following.log.steps.explained(plain, state) for state in self.following.states[:LOOKED_AT])
                self.expected = tuple(dict.fromkeys(end for own in ends for end, _ in own))
        self._difference("difference", headline(self.driver.subject.system, rejection, self.expected))

    def _is_beyond(self) -> bool:
        """Whether a larger instance of the model has what happened, which then ends the script."""
        for larger in self.driver.larger():
            with suppress(StreamproofError):
                log = EventLog(larger, hidden=self.following.log.hidden)
                if judged(log, self.name, self.following.events).accepted:
                    self.ended, self.message = "beyond bounds", "larger than this instance of the model"
                    self._remember_bounds()
                    return True
        return False

    def _remember_bounds(self) -> None:
        system = self.driver.subject.system
        for instance in (i for i in system.instances if self.calls and i.action == self.calls[-1].action):
            if plain_args(instance) == dict(self.calls[-1].args):
                for state in self.following.states[:8]:
                    self.driver.bounded.add((instance.action, false_conditions(system, instance, state)))

    def _difference(self, kind: str, message: str) -> None:
        self.ended, self.message = kind, message if len(message) <= 10 * SHOWN else f"{message[: 10 * SHOWN]} ..."

    def _note(self, asked: str, answer: Message, events: Sequence[Event]) -> None:
        text = {"refused": "refused", "error": "error"}.get(answer.kind, answer.kind)
        because = answer.get("because") or answer.get("unsupported") or answer.get("error")
        if because and isinstance(because, str):
            text += f": {because if len(because) <= SHOWN else because[:SHOWN] + ' ...'}"
        states = tuple(self.following.states[:8])
        self.driver.counts.states.update(states)
        self._exchanges.append(Exchange(asked, text, tuple(events), states))

    def _count(self, events: Sequence[Event]) -> None:
        for event in events:
            self.driver.count(event)
        actions = self.driver.actions
        self._follow_each_other([e.event for e in events if not e.refused and e.event in actions])

    def _follow_each_other(self, actions: Sequence[str]) -> None:
        """Counts pairs of accepted actions."""
        if actions:
            self.driver.counts.pairs.update(pairwise(actions if self._before is None else (self._before, *actions)))
            self._before = actions[-1]

    def _accepted(self, asked: Asked | None, message: Message) -> Event:
        action, args = message.get("event"), message.get("args")
        if asked is not None and (action is None or action == asked.action):
            action = asked.action
            args = asked.args if args is None else args
        if action == OBSERVE:
            return self._event(message, OBSERVE, {})
        return self._event(message, action, args or {}, picks=message.get("picks"))

    def _observed(self, answer: Message) -> list[Event]:
        return [self._event(answer, OBSERVE, {})] if answer.get("state") else []

    def _event(self, message: Message, action: str, args: Mapping[str, Any], **more: Any) -> Event:
        process = message.get("process") or PROCESS
        return Event(self.name, process, 0, action, args, state=message.get("state"), **more)

    def _expect(self, answer: Message, kind: str) -> None:
        if answer.kind != kind:
            because = answer.get("unsupported" if answer.kind == "unsupported" else "because")
            text = f"the adapter answered {answer.kind} where {kind} was expected"
            raise AdapterFailure("garbage", f"{text}: {because}" if because else text)


def called(event: Event) -> str:
    """An event with its arguments."""
    return f"{event.event}({', '.join(f'{name}={value}' for name, value in event.args.items())})"


def compared(event: Event) -> frozenset[str]:
    """The variables of which an event has a value."""
    return frozenset(name for name, value in (event.state or {}).items() if leaves(value))


def headline(system: System, rejection: Rejection, expected: Sequence[State]) -> str:
    """A difference in one sentence: what happened, and what the model has."""
    event = rejection.event
    if event is None or rejection.kind == "property":
        return rejection.message
    what = called(event)
    if event.refused:
        return f"{what} was refused, and is possible in the model"
    if event.event == OBSERVE:
        what = "observed"
    if rejection.kind == "state":
        parts = list(differing(system, expected, event.state or {}))
        text = "; ".join(f"{name} is {given}, and {' or '.join(own)} in the model" for name, own, given in parts[:3])
        return f"{what}: {text or rejection.message}"
    return f"{what} happened, and is not possible in the model"
