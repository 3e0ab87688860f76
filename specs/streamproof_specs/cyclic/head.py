"""Safety of the head of a loop: an accepted log has these properties."""

from __future__ import annotations

from streamproof import Spec, invariant, step
from streamproof_models.cyclic import head_barriers, head_variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.cyclic.head import ANY, RECORD, LoopHead


@invariant
def in_order(m, s):
    """What waits on a feedback channel, in memory and behind it on disk, is what arrived and was not taken, in that order:
    nothing is lost."""
    return all(m.edge.in_order(s.back[c]) for c in m.back)


@invariant
def within_capacity(m, s):
    """No feedback channel has more in memory than it has buffers."""
    return all(len(s.back[c].memory) <= m.edge.buffers for c in m.back)


@invariant
def held_within(m, s):
    """The entry holds no more records than it has places for."""
    return s.held <= m.places


def records(s, c):
    """Number of records that wait on a feedback channel."""
    return sum(item.kind == RECORD for queue in (s.back[c].memory, s.back[c].disk) for item in queue)


@step
def arrives_once(m, s, t):
    """A record that arrives on a feedback channel was under way, and is so no longer."""
    return all(
        records(t, c) <= records(s, c) or (s.written[c] > 0 and t.written[c] == s.written[c] - 1) for c in m.back
    )


def first(m, s, c):
    """The kind of the first item of a channel, which is not empty."""
    return s.input[c].head if c < m.forward else s.back[c].memory.head.kind


def is_read(m, s, t, c):
    """Whether the step takes the first item of a channel."""
    if c < m.forward:
        return len(t.input[c]) < len(s.input[c])
    return m.edge.waiting(t.back[c]) < m.edge.waiting(s.back[c])


@step
def policy_obeyed(m, s, t):
    """The entry reads an input that the policy does not prefer only if nothing can be taken from the other one."""
    if m.policy == ANY:
        return True
    forward = all(
        not is_read(m, s, t, c) or not m.prefers_feedback(s) or not m.feedback_waits(s, first(m, s, c))
        for c in range(m.forward)
    )
    back = all(
        not is_read(m, s, t, c) or m.prefers_feedback(s) or not m.forward_waits(s, first(m, s, c)) for c in m.back
    )
    return forward and back


@step
def baton_waits(m, s, t):
    """A channel on which a baton waits is not read when the same baton is first on it, unless the loop has ended."""
    return all(
        s.over or not is_read(m, s, t, c) or all(first(m, s, c) != word or word not in s.arrived[c] for word in m.words)
        for c in m.all
    )


def has_come(m, s, t, c, word):
    """Whether a baton waits on a channel, or the step takes it."""
    return word in s.arrived[c] or (is_read(m, s, t, c) and first(m, s, c) == word)


@step
def batons_join(m, s, t):
    """A baton waits until it has come on every channel that carries it."""
    return all(
        not has_come(m, s, t, c, word)
        or word in t.arrived[c]
        or all(has_come(m, s, t, d, word) for d in m.together[c, word])
        for c in m.all
        for word in m.words
    )


@step
def nothing_late(m, s, t):
    """When the loop has ended, no record is held that was not held before."""
    return not s.over or t.held <= s.held


SPEC = Spec(
    LoopHead,
    properties=(
        *(in_order, within_capacity, held_within),
        *(arrives_once, policy_obeyed, baton_waits, batons_join, nothing_late),
    ),
    expected={
        "one-too-many": {"within_capacity": "violated"},
        "spill-dropped": {"in_order": "violated"},
        "spill-overtaken": {"in_order": "violated"},
        "barrier-overtakes": {"in_order": "violated"},
        "spill-newest-first": {"in_order": "violated"},
        "unwritten": {"arrives_once": "violated"},
        "policy-ignored": {"policy_obeyed": "violated"},
        "baton-repeated": {"baton_waits": "violated"},
        "baton-alone": {"batons_join": "violated"},
        "no-place": {"held_within": "violated"},
        "held-late": {"nothing_late": "violated"},
    },
)
