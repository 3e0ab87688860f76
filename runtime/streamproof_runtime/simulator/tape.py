"""The tape: every choice of a simulated run, recorded by stream, so that it can be replayed, edited and shrunk.

Schedule, network, user functions, faults, memory, slots and disks draw from separate streams: a change of one leaves the
choices of the others. A choice is a number below a bound, and 0 is always the plain one: the first that is ready, the least
delay, no fault.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

SCHEDULE, NETWORK, USER, FAULTS, MEMORY, SLOTS, DISKS = STREAMS = (
    *("schedule", "network", "user", "faults", "memory", "slots", "disks"),
)

Draw: TypeAlias = Callable[[int], int]
Script: TypeAlias = Mapping[str, Sequence[int]]


class Tape:
    """The choices of one run: new ones from a seed, or those of a script, followed by 0."""

    def __init__(self, seed: int = 0, script: Script | None = None) -> None:
        self.recorded: dict[str, list[int]] = {stream: [] for stream in STREAMS}
        self._seed, self._script = seed, script

    def stream(self, name: str) -> Draw:
        """The draws of one stream: a function from a bound to a choice below it. Call it once for each stream."""
        keep = self.recorded[name].append
        if self._script is not None:
            given = iter(self._script.get(name, ()))

            def replayed(bound: int) -> int:
                choice = min(next(given, 0), bound - 1)
                keep(choice)
                return choice

            return replayed
        uniform = random.Random(f"{self._seed}/{name}").random

        def drawn(bound: int) -> int:
            choice = int(uniform() * bound)
            keep(choice)
            return choice

        return drawn
