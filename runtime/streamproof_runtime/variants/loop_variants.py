"""Variants of flow control in loops, to be switched on for demonstration, by the names of the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamproof_runtime.jobs.input_policies import ANY, FEEDBACK_FIRST
from streamproof_runtime.subtasks.items import BATON
from streamproof_runtime.subtasks.loop_heads import LoopHead, LoopRules, Take
from streamproof_runtime.subtasks.spilling import Spill, SpillingQueue


class FullMemory(SpillingQueue):
    """A writer tests whether more than all buffers are in use, instead of whether one is free."""

    def has_place(self, item: tuple[Any, ...]) -> bool:
        """Also when all buffers are in use."""
        return not self.spilled and len(self.memory) <= self.limit


class Dropped(SpillingQueue):
    """An item without a place in memory is dropped."""

    def write(self, number: int, item: tuple[Any, ...]) -> None:
        """Nothing is written."""


class Overtaken(SpillingQueue):
    """A new item stays in memory although older ones are in the spill."""

    def has_place(self, item: tuple[Any, ...]) -> bool:
        """Whenever a buffer is free."""
        return len(self.memory) < self.limit


class BatonOvertakes(SpillingQueue):
    """A baton stays in memory although older items are in the spill."""

    def has_place(self, item: tuple[Any, ...]) -> bool:
        """A record waits for those in the spill, a baton does not."""
        return len(self.memory) < self.limit and (not self.spilled or item[0] == BATON)


class NewestFirst(SpillingQueue):
    """The spill is a stack: what was written last is read back first."""

    def fetch(self) -> list[tuple[int, tuple[Any, ...]]]:
        """The newest, the rest is written again."""
        found = self.spill.read(self.spilled)
        for item in found[: -self.limit]:
            self.spill.write(item)
        return [(item[-1], item[:-1]) for item in reversed(found[-self.limit :])]


class ReadTwice(SpillingQueue):
    """The reader of the spill fails once, after delivering an item without recording it, and repeats the same item."""

    def __init__(self, spill: Spill, limit: int) -> None:
        super().__init__(spill, limit)
        self._has_failed = False

    def fetch(self) -> list[tuple[int, tuple[Any, ...]]]:
        """The first item is there once more."""
        if self._has_failed:
            return super().fetch()
        self._has_failed = True
        self.spilled += 1
        found = [(item[-1], item[:-1]) for item in self.spill.read(self.limit - 1)]
        return [found[0], *found]


class Forgotten(SpillingQueue):
    """Items in the spill are not read back."""

    def read_back(self) -> list[int]:
        """Nothing."""
        return []

    def __len__(self) -> int:
        return len(self.memory)


class StrictTurns(LoopHead):
    """The head waits for the input whose turn it is, also when the other has an item."""

    def preferred(self, takes: list[Take]) -> list[Take]:
        """Only those of the other input than the last."""
        return [take for take in takes if (take[1] in self.feedback) == self.last_was_forward]


class PolicyIgnored(LoopHead):
    """The head reads whatever comes, whatever its policy."""

    def preferred(self, takes: list[Take]) -> list[Take]:
        """All."""
        return takes


LOOPS: dict[str, LoopRules] = {
    "bounded": LoopRules(is_bounded=True),
    "strict-turns": LoopRules(policy="fair", head=StrictTurns),
    "policy-ignored": LoopRules(policy=FEEDBACK_FIRST, head=PolicyIgnored),
    "one-too-many": LoopRules(queue=FullMemory),
    "spill-dropped": LoopRules(queue=Dropped),
    "spill-overtaken": LoopRules(queue=Overtaken),
    "barrier-overtakes": LoopRules(queue=BatonOvertakes),
    "spill-newest-first": LoopRules(queue=NewestFirst),
    "spill-read-twice": LoopRules(queue=ReadTwice),
    "spill-forgotten": LoopRules(queue=Forgotten),
}
"""All variants by name. `policy-ignored` is not one of the model, whose policy is a parameter."""
BY_RESULT = frozenset({"bounded", "strict-turns", "spill-forgotten"})
"""Variants that do nothing that is forbidden, but get stuck."""


def loop_rules(variant: str | None, policy: str = ANY) -> LoopRules:
    """The rules of a variant, if it is one of loops, with an input policy."""
    found = LOOPS.get(variant or "", LoopRules())
    return found if policy == ANY else replace(found, policy=policy)
