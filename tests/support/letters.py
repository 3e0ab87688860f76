"""A model with unions everywhere: as a variable, in an array, a queue, a set and an option, nested, with any first value."""

from __future__ import annotations

from streamproof import (
    ANY,
    Array,
    Case,
    Enum,
    Model,
    Option,
    Queue,
    Range,
    Set,
    State,
    Union,
    action,
    any_of,
    choose,
    invariant,
    reachable,
    require,
)


class Ask(Case):
    """A case with one field."""

    number: int


class Stop(Case):
    """A case without fields."""


class Vote(Case):
    """A field of the name and another sort than in `Ask`, and an option."""

    number: str
    value: int


class Inner(Case):
    """A union in a union."""

    of: object


class Letters(Model):
    """Messages that change their case, are sent, received and remembered."""

    check_deadlock = False

    def state(self):
        """The variables."""
        letter = (Ask(number=Range(0, 2)), Stop(), Vote(number=Option(Enum("a", "b")), value=Range(1, 3)))
        return State(
            now=Union(*letter, init=ANY),
            line=Queue(Union(*letter), capacity=2),
            last=Option(Union(*letter)),
            held=Array(2, Union(Stop(), Ask(number=Range(0, 1)), init=any_of(Stop(), Ask(number=1)))),
            seen=Set(Union(Ask(number=Range(0, 1)), Stop())),
            nest=Union(Inner(of=Union(Stop(), Ask(number=Range(0, 1))))),
        )

    @action
    def turn(self, s):
        """Every case, guards, values, options."""
        match s.now:
            case Ask(number=n) if n > 1:
                s.now = Stop()
            case Ask(n):
                s.now = Vote(number="a" if n == 0 else None, value=n + 1)
            case Stop():
                s.now = Ask(number=0)
            case Vote(number=None) | Vote(value=3):
                s.last = s.now
                s.now = Ask(number=2)
            case Vote(value=v):
                s.now = Ask(number=v - 1)

    @action
    def send(self, s):
        """Only what is no vote is sent."""
        require(len(s.line) == 0 and not isinstance(s.now, Vote))
        s.line.push(s.now)

    @action
    def receive(self, s):
        """The message is remembered."""
        require(len(s.line) > 0)
        letter = s.line.pop()
        if isinstance(letter, Ask):
            s.seen.add(Ask(number=min(letter.number, 1)))
            s.held[letter.number % 2] = Ask(number=letter.number % 2)
        elif letter == Stop():
            s.seen.add(Stop())

    @action
    def forget(self, s):
        """A choice among messages."""
        letter = choose(s.seen)
        s.seen.discard(letter)
        s.nest = Inner(of=letter)

    @action(letter=lambda m: [Ask(number=0), Stop()])
    def put(self, s, letter):
        """A message as a parameter."""
        require(s.nest.of == letter and letter not in s.held)
        s.held[0] = letter

    @invariant
    def numbers(self, s):
        """Two fields of one name are distinguished by the case."""
        return all(not isinstance(x, Ask) or x.number <= 2 for x in s.line) and (
            not isinstance(s.now, Vote) or s.now.number in ("a", "b", None)
        )

    @invariant
    def never_both(self, s):
        """A set of messages."""
        return not {Stop(), Ask(number=1)} <= s.seen or len(s.seen) > 1

    @reachable
    def stopped(self, s):
        """A union in a union."""
        return isinstance(s.nest.of, Stop) and s.last is not None
