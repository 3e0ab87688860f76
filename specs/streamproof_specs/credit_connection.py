"""Properties of flow control message by message: order, no loss, a place for every buffer, and isolation of channels."""

from __future__ import annotations

from streamproof import Spec, invariant, leads_to, lemma, temporal
from streamproof_models.credit_connection import (  # noqa: F401  (declaring a variant registers it)
    CreditConnection,
    Lossy,
    LostAnnouncements,
    NoCredits,
    Reordering,
)


@invariant
def in_order(m, s):
    """The buffers of a channel are on the connection in order: the next that arrives is the one that is expected."""
    return all(
        k >= len(s.down) or s.down[k].channel != c or s.down[k].number == s.expected[c] + earlier(s, k, c)
        for k in range(m.room())
        for c in range(m.channels)
    )


def earlier(s, k, c):
    """How many buffers of a channel come before the k-th on the connection."""
    return sum(s.down[j].channel == c for j in range(k))


@invariant
def nothing_lost(m, s):
    """What was sent on a channel has arrived or is on the connection."""
    return all(s.sent[c] == s.expected[c] + m.on_wire(s, c) for c in range(m.channels))


@invariant
def announcements_counted(m, s):
    """Credits that were announced and are not known are on the connection."""
    return all(s.announced[c] == m.on_way(s, c) for c in range(m.channels))


@invariant
def no_overflow(m, s):
    """Every buffer on the connection has a free buffer at its receiver, if that is still there."""
    return all(s.consumer[c] == "GONE" or m.on_wire(s, c) <= s.free[c] for c in range(m.channels))


@invariant
def never_waits(m, s):
    """The connection is always read: the next buffer has a place, or its channel was released."""
    return all(
        len(s.down) == 0 or s.down[0].channel != c or s.consumer[c] == "GONE" or s.free[c] > 0
        for c in range(m.channels)
    )


@lemma
def pool_conserved(m, s):
    """Every floating buffer is in the pool or lent."""
    return s.pool + sum(s.lent[c] for c in range(m.channels)) == m.floating


@lemma
def free_or_queued(m, s):
    """A channel's buffers are free or queued; one that was released is as in the beginning."""
    return all(
        s.free[c] + s.queued[c] == m.exclusive + s.lent[c]
        and (
            s.consumer[c] != "GONE"
            or (s.lent[c] == 0 and s.queued[c] == 0 and s.unannounced[c] == 0 and s.known[c] == 0)
        )
        for c in range(m.channels)
    )


@lemma
def credits_have_buffers(m, s):
    """A channel's buffers are credits, announced or not, on the connection, or queued; some of these may have been lost."""
    return all(
        s.credit[c] + s.announced[c] + m.on_wire(s, c) + s.queued[c] + s.unannounced[c]
        <= (m.exclusive + s.lent[c] if s.consumer[c] != "GONE" else m.exclusive + m.floating)
        for c in range(m.channels)
    )


@lemma
def credits_conserved(m, s):
    """Of a channel that was not released none is lost."""
    return all(
        s.consumer[c] == "GONE"
        or s.credit[c] + s.announced[c] + m.on_wire(s, c) + s.queued[c] + s.unannounced[c] == m.exclusive + s.lent[c]
        for c in range(m.channels)
    )


@lemma
def credits_within_limit(m, s):
    """A channel has no more credits, known or not, than it can have buffers."""
    return all(s.credit[c] + s.announced[c] + s.unannounced[c] <= m.exclusive + m.floating for c in range(m.channels))


@lemma
def announcements_noted(m, s):
    """No credit is on the connection that was not announced."""
    return all(m.on_way(s, c) <= s.announced[c] for c in range(m.channels))


@lemma
def produced_within_depth(m, s):
    """What is to be produced, waits and was sent is as much as there is, of a channel that was cancelled at most."""
    return all(
        s.left[c] + s.backlog[c] == 0 and s.sent[c] <= m.depth
        if s.cancelled[c]
        else s.left[c] + s.backlog[c] + s.sent[c] == m.depth
        for c in range(m.channels)
    )


@lemma
def heard_one_by_one(m, s):
    """Credits of one announcement are counted before the next is."""
    return all(s.heard[c] == 0 or s.heard[d] == 0 for c in range(m.channels) for d in range(c))


@lemma
def cancelled_once(m, s):
    """A channel that was released has one cancellation on its way, or has been cancelled; others have none."""
    return all(
        sum(message.channel == c and message.credits == 0 for message in s.up) + int(s.cancelled[c])
        == int(s.consumer[c] == "GONE")
        for c in range(m.channels)
    )


@temporal
def isolation(m, s):
    """A consumer that reads gets everything eventually, whatever the others do."""
    return all(
        leads_to(
            s.backlog[c] + m.on_wire(s, c) + s.queued[c] > 0,
            s.consumer[c] != "LIVE" or s.backlog[c] + m.on_wire(s, c) + s.queued[c] == 0,
        )
        for c in range(m.channels)
    )


LEMMAS = (
    pool_conserved,
    free_or_queued,
    credits_have_buffers,
    credits_conserved,
    credits_within_limit,
    announcements_noted,
    produced_within_depth,
    heard_one_by_one,
    cancelled_once,
)
"""Lemmas: auxiliary invariants for the induction."""


SPEC = Spec(
    CreditConnection,
    properties=(in_order, nothing_lost, announcements_counted, no_overflow, never_waits, isolation, *LEMMAS),
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
