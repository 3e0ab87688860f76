"""Shorter scripts with the same difference: by shortest paths of the model, then by leaving out calls (delta debugging)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress

from streamproof.base.errors import EvaluationError
from streamproof.driving.drive_coverage import DriveCoverage
from streamproof.driving.driver import Driver
from streamproof.driving.following import false_conditions, plain_args
from streamproof.driving.script import Asked, CallScript
from streamproof.driving.script_run import Ran
from streamproof.system.model import State

SHRINKING = 200
"""Largest number of scripts that are run to shorten one."""
SHORT_STATES = 2_000
"""Largest number of states of the model to which shortest paths are tried."""


def shortened(driver: Driver, found: Ran, most: int = SHRINKING) -> tuple[Ran, int, bool]:
    """The shortest script with a difference of the same kind that leaving out calls leads to, the number of scripts run, and
    whether the difference occurred again at all."""
    best, runs = found, 0
    again = False

    def fails(calls: Sequence[Asked]) -> bool:
        nonlocal best, runs, again
        runs += 1
        tried = driver.run(CallScript(found.script.name, tuple(calls)))
        if tried.is_difference and tried.ended == found.ended:
            best, again = tried, True
            return True
        return False

    coverage, driver.coverage = driver.coverage, DriveCoverage()
    try:
        if not fails(found.script.calls):
            return found, runs, False
        for calls in _shorter(driver, found):
            if len(calls) >= len(best.script.calls) or runs >= most // 2 or driver.is_over():
                break
            if fails(calls):
                return best, runs, True
        size = max(1, len(best.script.calls) // 2)
        while runs < most and not driver.is_over():
            at, shorter = 0, False
            while at < len(best.script.calls) and runs < most and not driver.is_over():
                calls = best.script.calls
                if fails((*calls[:at], *calls[at + size :])):
                    shorter = True
                else:
                    at += size
            if size == 1 and not shorter:
                break
            size = size if shorter and size == 1 else max(1, size // 2)
    finally:
        driver.coverage = coverage
    return best, runs, again


def _shorter(driver: Driver, found: Ran) -> Iterator[tuple[Asked, ...]]:
    """Scripts that end with a call like the last one: shortest paths of the model to the states in which the same conditions
    of such a call are false, nearest first."""
    system, calls = driver.subject.system, found.script.calls
    if not calls or not found.exchanges:
        return
    wanted = [i for i in system.instances if i.action == calls[-1].action]
    steps = found.following.log.steps
    own = [i for i in wanted if plain_args(i) == dict(calls[-1].args)]
    before = next((e.states for e in reversed(found.exchanges[:-1]) if e.states), ())
    shapes = {false_conditions(system, i, s) for i in own for s in before}
    queue: deque[tuple[State, tuple[Asked, ...]]] = deque()
    known: set[State] = set()
    for state in steps.interpreter.initial_states():
        known.add(state)
        queue.append((state, ()))
        if len(known) > SHORT_STATES:
            return
    while queue:
        state, path = queue.popleft()
        for instance in wanted:
            if false_conditions(system, instance, state) in shapes:
                yield (*path, Asked.of(instance, refused=True))
        for instance in system.instances if len(known) < SHORT_STATES else ():
            with suppress(EvaluationError):
                after = steps.take(instance, state)
                if after is not None and after not in known and instance.action not in driver.absent:
                    known.add(after)
                    queue.append((after, (*path, Asked.of(instance))))
