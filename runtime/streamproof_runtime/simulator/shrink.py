"""Shrinking a failing run: fewer faults first, then plainer choices, as long as the run still fails.

A choice of 0 is the plain one, so that a script with few other choices is a schedule with few deviations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamproof_runtime.simulator.faults import Fault
from streamproof_runtime.simulator.tape import DISKS, FAULTS, STREAMS

Choices = dict[str, list[int]]
Fails = Callable[[Choices, Sequence[Fault]], bool]
BUDGET = 500
"""Largest number of runs."""


@dataclass
class Shrunk:
    """A script that fails, and the number of runs that it took to find it."""

    choices: Choices
    faults: list[Fault]
    runs: int = 0

    @property
    def deviations(self) -> int:
        """The number of choices that are not the plain ones."""
        return sum(map(bool, (c for choices in self.choices.values() for c in choices)))


def shrink(choices: Choices, faults: Sequence[Fault], fails: Fails, budget: int = BUDGET) -> Shrunk:
    """The smallest failing script found by removing faults one by one, and setting ranges of choices to 0."""
    found = Shrunk({s: list(choices.get(s, ())) for s in STREAMS if s not in (FAULTS, DISKS)}, list(faults))

    def tries(other: Choices, script: list[Fault]) -> bool:
        if found.runs >= budget:
            return False
        found.runs += 1
        if not fails(other, script):
            return False
        found.choices, found.faults = other, script
        return True

    at = 0
    while at < len(found.faults):
        if not tries(found.choices, found.faults[:at] + found.faults[at + 1 :]):
            at += 1
    for stream in found.choices:
        size = len(found.choices[stream])
        while size and found.runs < budget:
            for start in range(0, len(found.choices[stream]), size):
                now = found.choices[stream]
                part = now[start : start + size]
                if any(part):
                    tries({**found.choices, stream: now[:start] + [0] * len(part) + now[start + size :]}, found.faults)
            size //= 2
    for stream, own in found.choices.items():
        while own and not own[-1]:
            own.pop()  # what is missing is 0
        found.choices[stream] = own
    return found
