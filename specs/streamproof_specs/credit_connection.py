"""What must hold of flow control message by message: order, nothing lost, a place for every buffer, and isolation."""

from __future__ import annotations

from typing import Any

from streamproof import Spec, invariant, leads_to, temporal
from streamproof_models.credit_connection import (  # noqa: F401  (declaring a variant registers it)
    CreditConnection,
    Lossy,
    LostAnnouncements,
    NoCredits,
    Reordering,
)


@invariant
def in_order(m: CreditConnection, s: Any) -> Any:
    """The buffers of a channel are on the connection in order: the next that arrives is the one that is expected."""
    return all(
        k >= len(s.down) or s.down[k].channel != c or s.down[k].number == s.expected[c] + earlier(s, k, c)
        for k in range(m.room())
        for c in range(m.channels)
    )


def earlier(s: Any, k: int, c: int) -> Any:
    """How many buffers of a channel come before the k-th on the connection."""
    return sum(s.down[j].channel == c for j in range(k))


@invariant
def nothing_lost(m: CreditConnection, s: Any) -> Any:
    """What was sent on a channel has arrived or is on the connection."""
    return all(s.sent[c] == s.expected[c] + m.on_wire(s, c) for c in range(m.channels))


@invariant
def announcements_counted(m: CreditConnection, s: Any) -> Any:
    """Credits that were announced and are not known are on the connection."""
    return all(s.announced[c] == m.on_way(s, c) for c in range(m.channels))


@invariant
def no_overflow(m: CreditConnection, s: Any) -> Any:
    """Every buffer on the connection has a free buffer at its receiver, if that is still there."""
    return all(s.consumer[c] == "GONE" or m.on_wire(s, c) <= s.free[c] for c in range(m.channels))


@invariant
def never_waits(m: CreditConnection, s: Any) -> Any:
    """The connection is always read: the next buffer has a place, or nobody wants it."""
    return all(
        len(s.down) == 0 or s.down[0].channel != c or s.consumer[c] == "GONE" or s.free[c] > 0
        for c in range(m.channels)
    )


@temporal
def isolation(m: CreditConnection, s: Any) -> Any:
    """A consumer that reads gets everything in the end, whatever the others do."""
    return all(
        leads_to(
            s.backlog[c] + m.on_wire(s, c) + s.queued[c] > 0,
            s.consumer[c] != "LIVE" or s.backlog[c] + m.on_wire(s, c) + s.queued[c] == 0,
        )
        for c in range(m.channels)
    )


SPEC = Spec(
    CreditConnection,
    properties=(in_order, nothing_lost, announcements_counted, no_overflow, never_waits, isolation),
    expected={
        "reordering": {"in_order": "violated"},
        "lossy": {"nothing_lost": "violated", "isolation": "violated", "counted": "violated"},
        "lost-announcement": {
            "announcements_counted": "violated",
            "isolation": "violated",
            "counted_fairness": "violated",
        },
        "no-credit": {
            "no_overflow": "violated",
            "never_waits": "violated",
            "isolation": "violated",
            "counted": "violated",
            "counted_fairness": "violated",
        },
    },
    variant_parameters={  # the smallest that show what breaks
        "reordering": {"channels": 1, "exclusive": 2, "depth": 2},
        "lossy": {"channels": 1, "depth": 2},
        "lost-announcement": {"channels": 1, "depth": 2},
        "no-credit": {"depth": 2},
    },
)
