"""The inputs of a loop head: its input policy, its feedback queues, and the events of their spills."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, TypeAlias

from streamproof_runtime.jobs.input_policies import ANY, prefers_feedback
from streamproof_runtime.subtasks.spilling import SpillingQueue

Note: TypeAlias = Callable[[str, Mapping[str, Any], Mapping[str, Any]], None]
"""Records an event without a clock: its name, its arguments, and the state after it."""
Take: TypeAlias = tuple[str, str]
"""The action of taking an item from a channel."""


class LoopHead:
    """Chooses between the inputs of a head, and records what its feedback channels do.

    A feedback channel with credits instead of a spill is in `feedback`, but not in `spills`.
    """

    def __init__(
        self, policy: str, feedback: Mapping[str, Sized], limit: int, spills: Mapping[str, SpillingQueue], note: Note
    ) -> None:
        """`feedback`: the queues of the feedback channels; `limit`: the number of buffers of each."""
        self.policy, self.feedback, self.limit, self.spills, self._note = policy, feedback, limit, spills, note
        self.last_was_forward = False

    def opened(self, forward: Collection[str], held: int) -> None:
        """Records the channels and the policy; `held` is the largest number of buffers that the head holds, 0 if the log
        does not say when it is reached."""
        about = {"forward": [*forward], "feedback": [*self.feedback], "policy": self.policy, "buffers": self.limit}
        self._note("loop_opened", {**about, "spilling": bool(self.spills), "held": held}, {})

    def preferred(self, takes: list[Take]) -> list[Take]:
        """Those of the possible takes that the policy allows."""
        if self.policy == ANY:
            return takes
        feedback = [take for take in takes if take[1] in self.feedback]
        if not feedback or len(feedback) == len(takes):
            return takes
        return feedback if self.prefers_feedback() else [take for take in takes if take[1] not in self.feedback]

    def prefers_feedback(self) -> bool:
        """Whether the policy reads feedback first, now."""
        is_utilised = any(len(queue) >= self.limit for queue in self.feedback.values())
        return prefers_feedback(self.policy, is_utilised=is_utilised, last_was_forward=self.last_was_forward)

    def arrived(self, channel: str, item: str) -> None:
        """An item has arrived on a channel; one of feedback is an event."""
        queue = self.spills.get(channel)
        if queue is not None:
            about = {"channel": channel, "item": item, "number": queue.arrived - 1}
            self._note("feedback_received", about, _places(queue))

    def taken(self, channel: str) -> dict[str, object]:
        """An item is being taken: what its event says of it."""
        self.last_was_forward = channel not in self.feedback
        queue = self.spills.get(channel)
        return {"channel": channel} if queue is None else {"channel": channel, "number": queue.taken}

    def read_back(self, channel: str) -> None:
        """After an item has been taken, its place in memory is free. Raises `OSError`."""
        queue = self.spills.get(channel)
        if queue is not None and (numbers := queue.read_back()):
            self._note("spill_read", {"channel": channel, "numbers": numbers}, _places(queue))


def _places(queue: SpillingQueue) -> dict[str, int]:
    return {"memory": len(queue.memory), "spilled": queue.spilled}


@dataclass(frozen=True, slots=True)
class LoopRules:
    """The rules of flow control in loops in a TaskExecutor."""

    policy: str = ANY
    """The input policy of heads whose loop has none of its own."""
    queue: type[SpillingQueue] = SpillingQueue
    head: type[LoopHead] = LoopHead
    is_bounded: bool = False
    """Whether feedback channels have credits, as all others have, instead of a spill."""

    def policy_of(self, own: str) -> str:
        """The policy of a head whose loop has one of its own, or none."""
        return own or self.policy


def head_of(
    rules: LoopRules,
    own_policy: str,
    queues: Mapping[str, Sized],
    feedback: Sequence[str],
    limit: int,
    note: Note,
) -> LoopHead:
    """The head with these queues. `limit`: the number of buffers of a bounded feedback channel."""
    spills = {c: queue for c in feedback if isinstance(queue := queues[c], SpillingQueue)}
    limit = next((queue.limit for queue in spills.values()), limit)
    return rules.head(rules.policy_of(own_policy), {c: queues[c] for c in feedback}, limit, spills, note)
