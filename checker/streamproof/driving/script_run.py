"""Running one script, and following the answers through the model.

The implementation is never told what to choose: the tracker follows whatever it does, and a difference is an answer, an event
or an observed value that no behaviour of the model has after the same history. Where the history can have several orders, all
are tried, after the adapter has been asked for everything that has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from streamproof.base.errors import EvaluationError, InputError, StreamproofError
from streamproof.base.records import dataclass, replace
from streamproof.conformance.belief import START
from streamproof.conformance.delaying import TooMany
from streamproof.conformance.event import Event
from streamproof.conformance.event_log import OBSERVE, EventLog
from streamproof.conformance.run_verdict import Rejection
from streamproof.driving.adapter import PROTOCOL
from streamproof.driving.adapter_session import AdapterSession
from streamproof.driving.connection import NO_EVENTS, Answered
from streamproof.driving.drive_coverage import called
from streamproof.driving.following import (
    Following,
    UndecidedStep,
    differing,
    false_conditions,
    judged,
    plain_args,
)
from streamproof.driving.messages import AdapterFailure, Message
from streamproof.driving.script import PROCESS, Asked, CallScript
from streamproof.driving.turns import NO_TURNS, Exchange, History, SoleAnswer, Turn
from streamproof.interrupts import requested
from streamproof.system.model import State, System, parameter_json

Chooser: TypeAlias = "Callable[[Following, Sequence[Asked]], Asked | None]"
"""The next call, from what has happened and the calls before; None ends the script."""
SHOWN = 200
"""Largest number of characters kept of a reason that an adapter gives; of a failure, ten times as many."""
LOOKED_AT = 16
"""Largest number of possible states whose successors are shown."""
NOTED = 8
"""Largest number of possible states that an exchange keeps."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A script that was run.

    `ended`: ``complete``, ``difference``, ``beyond bounds``, ``undecided``, ``error``, ``crash`` or ``hang``.
    """

    script: CallScript
    ended: str
    history: History
    message: str = ""
    rejection: Rejection | None = None
    wrong: Event | None = None
    expected: tuple[State, ...] = ()
    """The states of the model after the wrong event, whatever was observed; none if it is not possible."""

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """The calls with their answers."""
        return self.history.exchanges

    @property
    def following(self) -> Following:
        """The behaviour of the implementation."""
        return self.history.following

    @property
    def events(self) -> Sequence[Event]:
        """What happened, with the number and the vector clock of each event."""
        return self.following.events

    @property
    def is_difference(self) -> bool:
        """Whether the implementation did something that the model does not have, or failed."""
        return self.ended in ("difference", "error", "crash")


class Running:
    """One script while it runs: `reset`, any number of `do`, `finish`."""

    def __init__(self, session: AdapterSession, name: str) -> None:
        self.session, self.name = session, name
        self.following = session.following(name, frozenset())
        self.history = History(session.tally, self.following)
        self.calls: list[Asked] = []
        self.ended: str | None = None
        self.message = ""
        self.rejection: Rejection | None = None
        self.wrong: Event | None = None
        self.expected: tuple[State, ...] = ()
        self._known = NO_TURNS
        """The turns that are known in the only possible state."""

    def ran(self) -> Ran:
        """What has happened."""
        self.history.count_turns()
        script = CallScript(self.name, tuple(self.calls))
        ended = self.ended or "complete"
        return Ran(script, ended, self.history, self.message, self.rejection, self.wrong, self.expected)

    def reset(self) -> None:
        """Begins the script."""
        session, system = self.session, self.session.subject.system
        call = {
            "call": "reset",
            "protocol": PROTOCOL,
            "model": system.name,
            "variant": system.variant,
            "parameters": {name: parameter_json(value) for name, value in system.parameters.items()},
            "seed": session.seed,
        }
        answered = session.call(call)
        events, answer = answered
        if answer.kind == "error":
            self._difference("error", f"reset failed: {answer.get('error')}")
            self._note("reset", answer, [])
            return
        self._expect(answer, "ready")
        self._do, self._look = session.connection.do, session.connection.observe
        session.declare(answer)
        self.following = self.history.following = session.following(self.name, session.hidden)
        self._happen("reset", events, answer, self._observed(answer))
        if self.ended is None and session.is_observing:
            self._looked(self._look())

    def go(self, choose: Chooser) -> None:
        """Makes calls, until there is no choice or the script ends."""
        session, following, calls, repeated = self.session, self.following, self.calls, self.history.turns
        do, look, is_over = self._do, self._look, session.is_over if session.deadline is not None else requested
        while self.ended is None and not is_over():
            asked = choose(following, calls)
            if asked is None:
                return
            calls.append(asked)
            answered = do(asked)
            turn = self._known.get(asked.key)
            if turn is None or turn.answered is not answered:
                turn = self._known.get((asked.key, id(answered))) or self._new_turn(asked, answered)
            if turn is None:
                if self._answered(asked, answered) and session.is_observing:
                    self._looked(look())
                continue
            usual = turn.usual
            if usual is not None and (answered := look()) is usual.answered:
                self._known = usual.then  # as in `_repeat`
                following.belief, following.only_state = usual.after, usual.state
                repeated.append(usual)
                continue
            self._repeat(turn)
            if usual is not None or session.is_observing:
                self._looked(answered if usual is not None else look(), turn)

    def do(self, asked: Asked) -> None:
        """Makes one call."""
        left = [asked]
        self.go(lambda *_: left.pop() if left else None)

    def _looked(self, answered: Answered, after: Turn | None = None) -> None:
        """Follows an observation, after a turn that is repeated, if there is one."""
        turn = self._known.get(None)
        if turn is None or turn.answered is not answered:
            turn = self._known.get((None, id(answered))) or self._new_turn(None, answered)
        if turn is None:
            self._observed_anew(answered)
            return
        self._repeat(turn)
        if not self.session.has_observed:
            self.session.observed(bool(answered[1].get("state")))
        elif after is not None:
            after.usual = after.observed(turn)

    def _repeat(self, turn: Turn) -> None:
        """Takes a turn as it was taken before."""
        self._known = turn.then
        following = self.following
        following.belief, following.only_state = turn.after, turn.state
        self.history.turns.append(turn)

    def _answered(self, asked: Asked, answered: Answered) -> bool:
        """Follows an answer that is no turn; whether the state may be observed after it."""
        self.history.settle()
        session = self.session
        counts, before = session.tally.counts, self.following.written()
        events, answer = answered
        told: list[Event] = []
        match answer.kind:
            case "accepted":
                told = [self._accepted(asked, answer)]
            case "refused":
                counts.refused[asked.action] += 1
                told = self._refused(asked, answer)
            case "unsupported":
                counts.unsupported[asked.action] += 1
            case "error":
                self._happen(str(asked), events, answer, [], before)
                if self.ended is None:
                    self._difference("error", f"the implementation failed: {answer.get('error')}")
                return False
            case _:
                self._expect(answer, "accepted, refused or unsupported")
        self._happen(str(asked), events, answer, told, before)
        return self.ended is None and answer.kind != "unsupported"

    def finish(self) -> None:
        """Asks for everything that has happened."""
        if self.ended is None:
            self._looked(self._look())

    def _observed_anew(self, answered: Answered) -> None:
        """Follows an observation that is no turn."""
        self.history.settle()
        events, answer = answered
        before = self.following.written()
        if answer.kind == "error":
            self._note("observe", answer, [])
            self._difference("error", f"the implementation failed: {answer.get('error')}")
            return
        self._expect(answer, "observed")
        self.session.observed(bool(answer.get("state")))
        self._happen("observe", events, answer, self._observed(answer), before)

    def _new_turn(self, asked: Asked | None, answered: Answered) -> Turn | None:
        """The turn that an answer without other events is in the only possible state; None where it is to be followed with
        everything else: of several states, or of an answer that may be wrong."""
        session, state, key = self.session, self.following.only_state, None if asked is None else asked.key
        if self._known is NO_TURNS or state is None or answered[0] is not NO_EVENTS:
            return None
        if not session.connection.equal_answers_are_one:
            return None
        memory, rules = session.memory, self.following.rules
        try:
            sole = memory.sole_answers.get((key, id(answered))) or self._sole_answer(asked, answered)
            if sole is None:
                return None
            after = {state: START} if sole.observation is None else rules.after(sole.observation, state)
        except (InputError, EvaluationError, TooMany):
            return None
        if not after:
            return None
        states = tuple(after)
        only = states[0] if len(states) == 1 else None
        session.tally.counts.states.update(states[:NOTED])
        exchange = Exchange(sole.asked, sole.answer, sole.events, states[:NOTED])
        turn = Turn(answered, (exchange,), sole.events, after, only, memory.at(only), sole.action, sole.refused)
        memory.keep(self._known, key, turn)
        return turn

    def _sole_answer(self, asked: Asked | None, answered: Answered) -> SoleAnswer | None:
        """What an answer is in any state; None for one that is no turn. Raises `InputError`."""
        answer, session = answered[1], self.session
        action = refused = None
        if asked is None and answer.kind == "observed":
            told = self._observed(answer)
        elif asked is not None and answer.kind == "accepted":
            told = [self._accepted(asked, answer)]
            action = told[0].event if told[0].event in session.actions else None
        elif asked is not None and answer.kind == "refused":
            told, refused = self._refused(asked, answer), asked.action
        else:
            return None
        if any(event.process != PROCESS for event in told):
            return None
        observation = self.following.rules.observation(told[0]) if told else None
        text = "observe" if asked is None else str(asked)
        sole = SoleAnswer(answered, text, answer_text(answer), tuple(told), observation, action, refused)
        session.memory.sole_answers[None if asked is None else asked.key, id(answered)] = sole
        return sole

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
        self._known = self.session.memory.at(self.following.only_state)
        self._note(asked, answer, [*spontaneous, *told])
        if rejection is None or self.ended is not None:
            if self.ended is None:
                self.history.count([*spontaneous, *told])
            return
        if again and self._explained_later():
            return
        self.rejection, self.wrong = rejection, rejection.event
        self._judge(rejection)

    def _explained_later(self) -> bool:
        """Whether events that the adapter had not written yet explain what seems impossible: of another process."""
        before = self.following.written()
        events, answer = self.session.call({"call": "observe"})
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
        self._difference("difference", headline(self.session.subject.system, rejection, self.expected))

    def _is_beyond(self) -> bool:
        """Whether a larger instance of the model has what happened, which then ends the script."""
        for larger in self.session.larger():
            with suppress(StreamproofError):
                log = EventLog(larger, hidden=self.following.log.hidden)
                if judged(log, self.name, self.following.events).accepted:
                    self.ended, self.message = "beyond bounds", "larger than this instance of the model"
                    self._remember_bounds()
                    return True
        return False

    def _remember_bounds(self) -> None:
        system = self.session.subject.system
        for instance in (i for i in system.instances if self.calls and i.action == self.calls[-1].action):
            if plain_args(instance) == dict(self.calls[-1].args):
                for state in self.following.states[:NOTED]:
                    self.session.bounded.add((instance.action, false_conditions(system, instance, state)))

    def _difference(self, kind: str, message: str) -> None:
        self.ended, self.message = kind, message if len(message) <= 10 * SHOWN else f"{message[: 10 * SHOWN]} ..."

    def _note(self, asked: str, answer: Message, events: Sequence[Event]) -> None:
        states = tuple(self.following.states[:NOTED])
        self.session.tally.counts.states.update(states)
        self.history.exchanges.append(Exchange(asked, answer_text(answer), tuple(events), states))

    def _accepted(self, asked: Asked | None, message: Message) -> Event:
        action, args = message.get("event"), message.get("args")
        if asked is not None and (action is None or action == asked.action):
            action = asked.action
            args = asked.args if args is None else args
        if action == OBSERVE:
            return self._event(message, OBSERVE, {})
        return self._event(message, action, args or {}, picks=message.get("picks"))

    def _refused(self, asked: Asked, answer: Message) -> list[Event]:
        if asked.action in self.session.own:
            return self._observed(answer)
        return [self._event(answer, asked.action, asked.args, refused=True)]

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


def answer_text(answer: Message) -> str:
    """An answer with the reason that it gives."""
    because = answer.get("because") or answer.get("unsupported") or answer.get("error")
    if not because or not isinstance(because, str):
        return answer.kind
    return f"{answer.kind}: {because if len(because) <= SHOWN else because[:SHOWN] + ' ...'}"


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
