"""Input policies of loop heads (FLIP-15, part II): which input a head reads if both have an item that it can take.

* ``any``: either; the schedule chooses.
* ``feedback-first``: feedback.
* ``feedback-first-when-utilised``: feedback while all buffers of a feedback channel are in use, else as ``fair``.
* ``fair``: alternately.
* ``forward-first``: the forward input.
"""

from __future__ import annotations

ANY, FEEDBACK_FIRST, WHEN_UTILISED, FAIR, FORWARD_FIRST = POLICIES = (
    "any",
    "feedback-first",
    "feedback-first-when-utilised",
    "fair",
    "forward-first",
)


def prefers_feedback(policy: str, *, is_utilised: bool, last_was_forward: bool) -> bool:
    """Whether a policy other than ``any`` reads feedback, where both inputs have something."""
    if policy == FAIR:
        return last_was_forward
    return policy == FEEDBACK_FIRST or (policy == WHEN_UTILISED and (is_utilised or last_was_forward))
