"""Linearisability checking of overlapping calls: each takes effect at some moment between its beginning and its end.

Threads of one process act concurrently, and a record gives the beginning and the return of a call, not the moment of
its effect. A log is accepted if every call can be assigned a moment inside its span so that the machine allows the
calls in the order of these moments (linearisability). Spans that do not overlap keep their order; overlapping ones are
tried in both orders. Accounts of different processes are merged as the machine allows, each as far as possible: exact
if, as with messages, no action of one process makes a recorded action of another impossible. Otherwise `Task.any_order`
has every order tried, that of `rank` first.

The search is depth first with a visited set, so a log with little overlap costs one pass. A node that no open node can
reach again is forgotten, so that where one order is possible the limit and the memory are not those of the whole log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from streamproof.conformance.belief import START, Path
from streamproof.conformance.binding import Observation, Span, StateReader, Task, first_unmet
from streamproof.conformance.event import Event
from streamproof.conformance.explaining import Refusal, explained_refusal
from streamproof.conformance.moves import SystemMoves
from streamproof.conformance.run_verdict import Rejection, Tracked
from streamproof.system import Instance, State

LIMIT = 500_000
"""Maximum number of visited search nodes that are not forgotten."""
FORGET = 1_000
"""Number of nodes from which on those are looked for that can be forgotten."""


@dataclass(frozen=True, slots=True)
class _Point:
    """A search node: the position in each account, the later spans that have already taken effect, and the state."""

    at: tuple[int, ...]
    early: frozenset[tuple[int, int]]
    state: State

    @property
    def progress(self) -> int:
        """The number of spans that have taken effect."""
        return sum(self.at) + len(self.early)


@dataclass(slots=True)
class OverlapTracker:
    """Follows one `Task` with `spans`. `rank` orders events of different processes, to select the event to blame."""

    task: Task
    limit: int = LIMIT
    rank: Callable[[Event], Any] | None = None
    steps: SystemMoves | None = None
    _steps: SystemMoves = field(init=False)
    _beside: tuple[list[tuple[int, ...]], ...] = field(init=False)
    _hidden: tuple[Instance, ...] = field(init=False)
    _stack: list[tuple[_Point, Path]] = field(init=False)
    """The open nodes."""
    _seen: set[_Point] = field(init=False)
    _furthest: tuple[_Point, Path] = field(init=False)
    _stuck: list[_Point] = field(init=False, default_factory=list)
    _in_line: bool = field(init=False)
    """Whether there is one account, without overlapping calls: then only the furthest nodes explain a rejection."""
    _full: int = field(init=False, default_factory=lambda: FORGET)
    """Number of nodes at which those are looked for that can be forgotten."""
    _before: Counter[str] = field(init=False, default_factory=Counter)
    """The actions of the path to the only open node, up to its kept part."""
    _forgotten: int = field(init=False, default=0)
    """Number of accepted spans that were let go of."""

    def __post_init__(self) -> None:
        self._steps = self.steps or SystemMoves(self.task.system, self.task.grounding)
        self._beside = tuple(_overlaps(account) for account in self.task.spans)
        self._in_line = len(self._beside) == 1 and not any(self._beside[0])
        actions = self.task.system.actions if self.task.any_order else ()
        self._hidden = tuple(i for a in actions if a.name in self.task.hidden for i in a.instances)
        start = tuple(0 for _ in self.task.spans)
        first = [_Point(start, frozenset(), s) for s in self._steps.interpreter.initial_states()]
        self._stack = [(point, START) for point in reversed(first)]
        self._seen = set(first)
        self._furthest = self._stack[-1]

    def run(self) -> Tracked:
        """Follows the whole log. Raises `EvaluationError` for an error of the machine."""
        open_because = self._search()
        if open_because is None:
            return self._outcome(*self._furthest, rejection=self._refuse(self._stuck))
        if open_because:
            return self._outcome(*self._furthest, exhausted=open_because)
        return self._outcome(*self._stack[-1])

    def _search(self) -> str | None:
        """Looks for an order of all that is known of the log; from what it finds it goes on the next time. Empty: there is
        one; None: there is none; else why that is open."""
        ends = tuple(map(len, self.task.spans))
        while self._stack:
            point, path = self._stack.pop()
            if point.progress > self._furthest[0].progress:
                self._furthest = point, path
            if point.at == ends:
                self._stack.append((point, path))
                return ""
            if len(self._seen) > self._full:
                self._forget(point.progress)
            if len(self._seen) > self.limit:
                self._stack.append((point, path))
                of = "events" if self.task.any_order else "overlapping calls"
                return f"more than {self.limit:,} orders of {of} are possible"
            after = list(self._next(point))
            if not after or self.task.any_order:
                self._note_stuck(point)
            for next_point, taken in reversed(after):
                if next_point not in self._seen:
                    self._seen.add(next_point)
                    self._stack.append((next_point, Path(path, taken) if taken else path))
        if self._unfinished(self._stuck):
            return "the record of a process ends before the other's does, which waits for it"
        return None

    def follow(self, span: Span) -> Tracked | None:
        """Follows one more span, which no other overlaps, of the only account, a list; None while it is accepted. Spans
        before it are let go of: `Tracked.events` lacks them."""
        account = self.task.spans[0]
        assert isinstance(account, list)
        account.append(span)
        self._beside[0].append(())
        if self._search() != "":
            return self.run()
        if len(self._stack) == 1 and len(account) - self._forgotten > FORGET:
            point, path = self._stack.pop()
            self._before = path.counts() + self._before
            self._stack.append((point, START))
            self._furthest = self._stack[-1]
            self._seen = {point}
            self._stuck.clear()
            account[self._forgotten :] = [_ACCEPTED] * (len(account) - self._forgotten)
            self._forgotten = len(account)
        return None

    def _forget(self, progress: int) -> None:
        """Forgets the nodes that come before all open ones, of which one has this progress: no step leads back."""
        least = min((point.progress for point, _ in self._stack), default=progress)
        self._seen = {point for point in self._seen if point.progress >= min(least, progress)}
        self._full = max(FORGET, 2 * len(self._seen))

    def _note_stuck(self, point: _Point) -> None:
        if self._in_line and self._stuck and point.progress != self._stuck[-1].progress:
            if point.progress < self._stuck[-1].progress:
                return
            self._stuck.clear()
        self._stuck.append(point)

    def _outcome(
        self, point: _Point, path: Path, rejection: Rejection | None = None, exhausted: str | None = None
    ) -> Tracked:
        return Tracked(self._events(point), path.counts() + self._before, 1, rejection, exhausted, (point.state,))

    def _events(self, point: _Point) -> tuple[Event, ...]:
        """The events whose effects and constraints are all satisfied."""
        left = {
            id(span.observation.event)
            for number, account in enumerate(self.task.spans)
            for at, span in enumerate(account[point.at[number] :], point.at[number])
            if (number, at) not in point.early
        }
        passed = [
            s.observation.event
            for n, account in enumerate(self.task.spans)
            for s in account[self._forgotten : point.at[n]]
        ]
        return tuple({id(e): e for e in passed if id(e) not in left}.values())

    def _next(self, point: _Point) -> Iterator[tuple[_Point, tuple[str, ...]]]:
        """The possible next spans: the first one to end in the first account that can continue; before it, those that
        overlap it."""
        settled_point = self._settled(point)
        if settled_point is not point:
            yield settled_point, ()
            return
        for number in self._accounts(point):
            account, at = self.task.spans[number], point.at[number]
            settled = False
            head = self._steps.explained(account[at].observation, point.state) if self._due(point.at, number) else ()
            for end, taken in head:
                settled = True
                yield _Point(_raised(point.at, number), point.early, end), taken
            for other in self._beside[number][at]:
                if account[other].observation.alternatives == ((),):
                    continue  # a later state may satisfy what it reads
                if (number, other) in point.early or not self._may_come(point.at, point.early, number, other):
                    continue
                possible = False
                for end, taken in self._steps.explained(account[other].observation, point.state):
                    possible = True
                    yield _Point(point.at, point.early | {(number, other)}, end), taken
                settled = settled and possible
            if settled and not self.task.any_order:
                # No other process can change this, so no alternative needs to be tried.
                return
        for instance in self._hidden:
            after = self._steps.take(instance, point.state)
            if after is not None:
                yield _Point(point.at, point.early, after), (instance.action,)

    def _accounts(self, point: _Point) -> list[int]:
        """The accounts that are not at their end. Where the next span waits for another process, later ones may not."""
        found = [n for n, at in enumerate(point.at) if at < len(self.task.spans[n])]
        rank = self.rank
        if rank is None or not self.task.any_order:
            return found
        return sorted(found, key=lambda n: rank(self.task.spans[n][point.at[n]].observation.event))

    def _due(self, at: Sequence[int], number: int, span: int | None = None) -> bool:
        """Whether everything of other accounts that precedes a span, or the next one of its account, has taken effect."""
        waits = self.task.waits
        place = at[number] if span is None else span
        return not waits or all(done >= own for done, own in zip(at, waits[number][place], strict=True))

    def _settled(self, point: _Point) -> _Point:
        """The node after all spans without effect: a recorded state can be read as soon as it holds."""
        at, early = list(point.at), set(point.early)
        look = StateReader(self.task.system, point.state)
        for number, account in enumerate(self.task.spans):
            while at[number] < len(account):
                head = (number, at[number])
                if head not in early and not (self._due(at, number) and self._reads(head, look)):
                    break
                early.discard(head)
                at[number] += 1
            for other in self._beside[number][at[number]] if at[number] < len(account) else ():
                free = (number, other) not in early and self._may_come(at, early, number, other)
                if free and self._reads((number, other), look):
                    early.add((number, other))
        if tuple(at) == point.at and len(early) == len(point.early):
            return point
        return _Point(tuple(at), frozenset(early), point.state)

    def _reads(self, place: tuple[int, int], look: StateReader) -> bool:
        """Whether a span only reads the state, and its constraints hold now."""
        observation = self.task.spans[place[0]][place[1]].observation
        if observation.alternatives != ((),) or observation.impossible is not None:
            return False
        return observation.unmet_before(look) is None and first_unmet(observation.constraints, look) is None

    def _may_come(self, at: Sequence[int], early: Set[tuple[int, int]], number: int, span: int) -> bool:
        """Whether everything that precedes a span has taken effect."""
        before = self.task.spans[number][span].after
        free = before is None or before < at[number] or (number, before) in early
        return free and self._due(at, number, span)

    def _unfinished(self, stuck: list[_Point]) -> bool:
        """Whether, at one of the furthest nodes, every remaining span waits, and some account may be incomplete."""
        most = max(point.progress for point in stuck)
        for point in (p for p in stuck if p.progress == most):
            heads = {n: account[at] for n, at in enumerate(point.at) if at < len(account := self.task.spans[n])}
            lacks = {
                n
                for n, since in self.task.ends.items()
                if n not in heads or (heads[n].closes > since and not heads[n].rests_on_returned)
            }
            if lacks and all(n in lacks or self._waits(head, (point.state,)) for n, head in heads.items()):
                return True
        return False

    def _refuse(self, stuck: list[_Point]) -> Rejection:
        """Blames the first event that is impossible in itself; if each one only waits for another, the earliest of them.

        An unfinished call that the machine does not allow takes precedence over those that may wait for it.
        """
        most = max(point.progress for point in stuck)
        best = next(point for point in stuck if point.progress == most)
        states = tuple(dict.fromkeys(p.state for p in stuck if p.at == best.at and p.early == best.early))
        heads, beside = [], []
        for number, (at, account) in enumerate(zip(best.at, self.task.spans, strict=True)):
            if at < len(account):
                heads.append(account[at])
                beside += [
                    account[other]
                    for other in self._beside[number][at]
                    if account[other].observation.alternatives != ((),)
                    and (number, other) not in best.early
                    and self._may_come(best.at, best.early, number, other)
                ]
        wrong = [h for h in heads if h.observation.alternatives != ((),) and not self._waits(h, states)]
        under_way = [b for b in beside if not self._waits(b, states)]
        read = [h for h in heads if not self._waits(h, states)]
        rank = self.rank
        among = wrong or under_way or read or heads
        blamed = among[0] if rank is None else min(among, key=lambda h: rank(h.observation.event))
        if self.task.any_order and rank is not None:
            # What the log has later happened after it, as far as is known.
            best = next((p for p in stuck if self._comes_first(p, blamed, rank)), best)
            states = tuple(dict.fromkeys(p.state for p in stuck if p.at == best.at and p.early == best.early))
        accepted = self._forgotten + len(self._events(best))
        return explained_refusal(Refusal(self._steps, self.task, blamed.observation, states, accepted))

    def _comes_first(self, point: _Point, span: Span, rank: Callable[[Event], Any]) -> bool:
        """Whether a node has come to a span, and to all that the log has before it."""
        heads = [account[at] for at, account in zip(point.at, self.task.spans, strict=True) if at < len(account)]
        own = rank(span.observation.event)
        return span in heads and all(h is span or rank(h.observation.event) > own for h in heads)

    def _waits(self, span: Span, states: Sequence[State]) -> bool:
        requires_before = span.observation.requires_before
        return requires_before is not None and not any(
            requires_before.test(StateReader(self.task.system, s)) for s in states
        )


_ACCEPTED = Span(Observation(Event("", "", 0, "")), 0, 0)
"""In place of a span that was let go of."""


def _overlaps(account: Sequence[Span]) -> list[tuple[int, ...]]:
    """For each span, those that end later and may have taken effect before it."""
    beside: list[list[int]] = [[] for _ in account]
    for later, span in enumerate(account):
        at = later - 1
        while at >= 0 and account[at].closes > span.opens:
            beside[at].append(later)
            at -= 1
    return [tuple(found) for found in beside]


def _raised(at: tuple[int, ...], number: int) -> tuple[int, ...]:
    return (*at[:number], at[number] + 1, *at[number + 1 :])
