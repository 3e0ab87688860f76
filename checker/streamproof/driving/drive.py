"""A whole drive: scripts of a suite or of a file, then random walks, until a difference or a limit; and what it shows."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from streamproof.base.errors import Exit, UsageError, did_you_mean
from streamproof.base.options import flag
from streamproof.base.records import dataclass
from streamproof.driving.choosing import Walking
from streamproof.driving.connection import ANSWER_SECONDS, AdapterSource
from streamproof.driving.drive_coverage import DriveCoverage
from streamproof.driving.drive_subject import Subject
from streamproof.driving.driver import Driver
from streamproof.driving.script import CallScript
from streamproof.driving.script_run import Chooser, Ran
from streamproof.driving.shrinking import shortened
from streamproof.interrupts import requested
from streamproof.system.verdict import number_of

SEEDS = 1 << 32
USUAL_CALLS = 5_000
"""Number of calls of walks after which no further one begins, if their number is not given."""
MOST_WALKS = 1_000
"""Largest number of walks, if it is not given: each of them resets the implementation."""


@dataclass(frozen=True, slots=True)
class DriveOptions:
    """The extent of a drive."""

    walks: int | None = flag(
        "Number of random walks after the scripts.  [default: as many as make 5,000 calls]", "--walks", least=0
    )
    """Number of random walks after the scripts. None: as many as make `USUAL_CALLS` calls, at most `MOST_WALKS`."""
    steps: int = flag("Largest number of calls of a walk.", default=50)
    """Largest number of calls of a walk."""
    seed: int | None = flag("Seed of the walks; equal seeds give equal walks.  [default: random]", least=0)
    """Seed of the walks, also given to the adapter. None: a random one, which the result names."""
    time_limit: float | None = flag("Stop after SECONDS.", "--seconds")
    """Seconds after which no further call is made."""
    answer_seconds: float = flag("Time limit of one answer of an adapter process.", default=ANSWER_SECONDS)
    """Seconds that an adapter process has for one answer."""
    without: tuple[str, ...] = flag("An action that need not occur; may be repeated.", "--without", unit="ACTION")
    """Actions that need not occur for an answer other than inconclusive."""


USUAL = DriveOptions()


@dataclass(frozen=True, slots=True)
class Drive:
    """The result. `difference` is the script as it was found, `shortest` the shortest one that leads to it."""

    subject: Subject
    adapter: str
    seed: int
    coverage: DriveCoverage
    ends: Counter[str]
    """The number of scripts by how they ended."""
    difference: Ran | None = None
    shortest: Ran | None = None
    again: bool = False
    """Whether the difference occurred again when the same script was run again."""
    shrinking: int = 0
    """Number of scripts that were run to shorten it."""
    first_undecided: Ran | None = None
    last: Ran | None = None
    left: tuple[str, ...] = ()
    """Actions that never happened, and need to."""
    stopped: str | None = None
    seconds: float = 0.0
    calls: int = 0
    states: int = 0
    """Number of states of the model that the implementation was led through."""
    reachable: int | None = None
    """Number of reachable states of the model, if it is known."""

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why no difference was found, but nothing can be concluded; empty if it can."""
        found = []
        accepted = self.coverage.accepted.total()
        if self.stopped is not None:
            found.append(self.stopped)
        if not accepted:
            found.append("the implementation did nothing")
        elif not (self.coverage.values or self.coverage.refusals):
            found.append("nothing was observed: no value of the state, and no refusal")
        if self.first_undecided is not None:
            count = sum(n for end, n in self.ends.items() if end in ("undecided", "hang"))
            message = self.first_undecided.message
            found.append(f"{number_of(count, 'script')} undecided: {'; '.join(map(str.strip, message.splitlines()))}")
        if accepted and self.left:
            names = ", ".join(self.left)
            found.append(f"never happened: {names}; --without {self.left[0]} leaves it out")
        return tuple(found)

    @property
    def answer(self) -> str:
        """``difference``, ``inconclusive`` or ``no difference``."""
        if self.difference is not None:
            return "difference"
        return "inconclusive" if self.doubts else "no difference"

    @property
    def exit_code(self) -> Exit:
        """The exit code of the answer."""
        codes = {"difference": Exit.REJECTED, "inconclusive": Exit.INCONCLUSIVE, "no difference": Exit.HOLDS}
        if self.difference is None and requested():
            return Exit.INTERRUPTED
        return codes[self.answer]


def drive(
    subject: Subject,
    source: AdapterSource,
    scripts: Iterable[CallScript] = (),
    options: DriveOptions = USUAL,
    occurring: Collection[str] | None = None,
    reachable: int | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Drive:
    """Runs the scripts, then the walks, until a difference, which is shortened, or a limit.

    `occurring` are the actions that occur in the model at all, if known: others need not happen. `reachable` is the number of
    its states, if known. Raises `AdapterFailure` for
    an adapter that cannot be started or does not write messages, and `UsageError` for an unknown action in `without`.
    """
    begun = time.monotonic()
    known = [action.name for action in subject.system.actions]
    for name in options.without or ():
        if name not in known:
            raise UsageError(f"no action {name!r}", remedy=did_you_mean(name, known) or f"it has: {', '.join(known)}")
    seed = random.SystemRandom().randrange(SEEDS) if options.seed is None else options.seed
    deadline = None if options.time_limit is None else begun + options.time_limit
    ends: Counter[str] = Counter()
    undecided: Ran | None = None
    difference = shortest = last = None
    shrinking, again, stopped = 0, False, None
    with Driver(subject, source, seed, deadline) as driver:
        every: Iterator[tuple[CallScript | str, Chooser | None]]
        every = chain(((s, None) for s in scripts), _walks(driver, options))
        for script, choose in every:
            if driver.is_over():
                break
            ran = last = driver.run(script, choose)
            ends[ran.ended] += 1
            if on_progress is not None:
                on_progress(f"{driver.tally.counts.scripts} scripts, {driver.tally.counts.calls} calls")
            if ran.ended in ("undecided", "hang"):
                undecided = undecided or ran
                if ran.ended == "hang":
                    break
            if ran.is_difference:
                difference = ran
                shortest, shrinking, again = shortened(driver, ran)
                break
        coverage = driver.coverage
        if driver.is_over():  # maybe in the middle of the last script
            stopped = "interrupted" if requested() else f"the time limit of {options.time_limit:g} s was reached"
    never = [
        action.name
        for action in subject.system.actions
        if (occurring is None or action.name in occurring)
        and not coverage.accepted[action.name]
        and action.name not in (*(options.without or ()), *coverage.absent)
    ]
    seconds = time.monotonic() - begun
    return Drive(
        subject, source.text, seed, coverage, ends, difference, shortest, again, shrinking, undecided, last, tuple(never),
        stopped, seconds, coverage.calls, len(coverage.states), reachable,
    )  # fmt: skip


def _walks(driver: Driver, options: DriveOptions) -> Iterator[tuple[str, Chooser]]:
    walking, before = Walking(driver, options.steps), driver.tally.counts.calls
    for number in range(MOST_WALKS if options.walks is None else options.walks):
        if options.walks is None and driver.tally.counts.calls - before >= USUAL_CALLS:
            return
        yield f"walk-{number + 1}", walking


def record(found: Drive) -> dict[str, Any]:
    """The result as JSON data, without its files."""
    coverage, system = found.coverage, found.subject.system
    actions = [
        {
            "name": a.name,
            "accepted": coverage.accepted[a.name],
            "refused": coverage.refused[a.name],
            "unsupported": coverage.unsupported[a.name],
            "absent": a.name in coverage.absent,
        }
        for a in system.actions
    ]
    return {
        "answer": found.answer,
        "adapter": found.adapter,
        "seed": found.seed,
        "doubts": [*found.doubts],
        "scripts": coverage.scripts,
        "calls": coverage.calls,
        "states": found.states,
        "reachable": found.reachable,
        "values": coverage.values,
        "refusals": coverage.refusals,
        "ends": dict(found.ends),
        "actions": actions,
        "pairs": len(coverage.pairs),
        "instances": len(coverage.instances),
        "never_observed": [v.name for v in system.variables if v.name not in coverage.observed],
        "difference": None if found.shortest is None else difference_record(found.shortest, found),
    }


def difference_record(ran: Ran, found: Drive) -> dict[str, Any]:
    """A difference as JSON data."""
    return {
        "kind": ran.ended,
        "message": ran.message,
        "found_in": None if found.difference is None else found.difference.script.name,
        "occurred_again": found.again,
        "shortened_by": found.shrinking,
        "script": [
            {"event": c.action, "args": dict(c.args), **({"refused": True} if c.refused else {})}
            for c in ran.script.calls
        ],
        "answers": [{"asked": e.asked, "answer": e.answer, "events": [*map(str, e.events)]} for e in ran.exchanges],
    }


def names(found: Sequence[str]) -> str:
    """Names in a line."""
    return ", ".join(found) or "none"
