"""The event loop of a simulation: integer virtual time from 0, timers, and choices from a tape.

`ready` are the things that can take a step; the tape picks one for each step, and a step takes `STEP` of virtual time. Timers
due at the same time run in the order in which they were set. Where nothing is ready, time jumps to the next timer.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Protocol

from streamproof_runtime.durations import MICROSECOND
from streamproof_runtime.simulator.tape import Draw

STEP = MICROSECOND
"""Duration of a step, in nanoseconds."""


class Stepper(Protocol):
    """Something that takes steps; `at` is its place among the ready ones, -1 if it is not ready."""

    at: int

    def step(self) -> None:
        """Takes one step."""


class EventLoop:
    """Virtual time and its queue."""

    def __init__(self, choose: Draw) -> None:
        self.now = 0
        self.steps = 0
        self.last_step = 0
        """The time of the last step."""
        self.ready: list[Stepper] = []
        self.choose = choose
        self._timers: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = 0

    def call_at(self, time: int, function: Callable[..., None], *args: Any) -> None:
        """Calls a function at a time, not before now."""
        self._order += 1
        heapq.heappush(self._timers, (max(time, self.now), self._order, function, args))

    def call_later(self, delay: int, function: Callable[..., None], *args: Any) -> None:
        """Calls a function after a delay."""
        self.call_at(self.now + delay, function, *args)

    def wake(self, stepper: Stepper) -> None:
        """Makes it ready; no effect if it is."""
        if stepper.at < 0:
            stepper.at = len(self.ready)
            self.ready.append(stepper)

    def sleep(self, stepper: Stepper) -> None:
        """Makes it not ready; no effect if it is not."""
        if stepper.at >= 0:
            last = self.ready.pop()
            if last is not stepper:
                self.ready[stepper.at] = last
                last.at = stepper.at
            stepper.at = -1

    def run(self, until: Callable[[], bool], limit: int) -> bool:
        """Runs until the condition is true after a timer; False if nothing is left, or after `limit` steps and timers."""
        timers, ready, choose, pop = self._timers, self.ready, self.choose, heapq.heappop
        while self.steps < limit:
            self.steps += 1
            if timers and (not ready or timers[0][0] <= self.now):
                time, _, function, args = pop(timers)
                if time > self.now:
                    self.now = time
                function(*args)
                if until():
                    return True
            elif ready:
                self.now = self.last_step = self.now + STEP
                ready[choose(len(ready)) if len(ready) > 1 else 0].step()
            else:
                return False
        return False
