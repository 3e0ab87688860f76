"""Properties of flow control with writers: records become visible in time, and the sender's pool is bounded."""

from __future__ import annotations

from streamproof import Spec, invariant, leads_to, step, temporal
from streamproof_models.credit import flush_variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.credit.flush import CreditFlush
from streamproof_specs.credit.flush_steps import STEPS
from streamproof_specs.credit.properties import SPEC as FLOW


@invariant
def in_time(m, s):
    """No record waits for the timeout without becoming visible."""
    return all(s.writer[c].age < m.timeout for c in range(m.channels))


@invariant
def sender_within_limit(m, s):
    """A task sends from no more buffers than its channels' exclusive ones and the floating ones at the other end."""
    return sum(m.used(s, c) for c in range(m.channels)) <= m.channels * m.exclusive + m.floating


@step
def event_flushes(m, s, t):
    """When an event follows, everything written before it is visible."""
    return all(
        t.writer[c].events_left == s.writer[c].events_left or not m.writer[c].hidden(t.writer[c])
        for c in range(m.channels)
    )


@temporal
def visible(m, s):
    """Every record becomes visible."""
    return all(
        leads_to(m.writer[c].hidden(s.writer[c]), not m.writer[c].hidden(s.writer[c])) for c in range(m.channels)
    )


@temporal
def unblocked(m, s):
    """While all consumers read, a writer without a buffer gets one eventually."""
    return all(
        leads_to(
            m.writer[c].needs_buffer(s.writer[c]),
            not m.flow.all_read(s.flow) or not m.writer[c].needs_buffer(s.writer[c]),
        )
        for c in range(m.channels)
    )


SPEC = Spec(
    CreditFlush,
    properties=(in_time, sender_within_limit, event_flushes, visible, unblocked, *STEPS),
    carries={"flow": FLOW},
    expected={
        "only-when-full": dict.fromkeys(
            ("in_time", "visible", "flushed_by_the_clock", "flow.stalls_at_the_end"), "violated"
        ),
        "flushed-once": {"in_time": "violated", "visible": "violated", "flushed_by_the_clock": "violated"},
        "event-waits": {"event_flushes": "violated", "events_one_by_one": "violated"},
        "no-limit": {"sender_within_limit": "violated"},
        "credit-before-free": {"flow.conservation": "violated", "flow.no_overflow": "violated"},
        "uncounted-lending": {"flow.pool_conserved": "violated", "flow.within_limit": "violated"},
        "lost-announcement": {
            "flow.conservation": "violated",
            "flow.consumed": "violated",
            "flow.isolation": "violated",
            "flow.returned": "violated",
            "unblocked": "violated",
        },
    },
    variant_parameters={  # the smallest that show what breaks
        "flushed-once": {"size": 3},
        "no-limit": {"size": 1},
        "credit-before-free": {"size": 1},
        "uncounted-lending": {"channels": 2, "records": 1, "size": 1, "events": 0},
        "lost-announcement": {"records": 4, "size": 1, "events": 0},
    },
)
