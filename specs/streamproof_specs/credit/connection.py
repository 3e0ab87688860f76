"""Properties of flow control message by message: order, no loss, a place for every buffer, and isolation of channels."""

from __future__ import annotations

from streamproof import Spec, invariant, leads_to, lemma, reachable, step, temporal
from streamproof_models.credit import connection_variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.credit.connection import CreditConnection


@invariant
def in_order(m, s):
    """The buffers of a channel are on the connection in order: the next that arrives is the one that is expected."""
    return all(
        k >= len(s.responses)
        or s.responses[k].channel != c
        or s.responses[k].sequence_number == s.expected_sequence_number[c] + earlier(s, k, c)
        for k in range(m.room())
        for c in range(m.channels)
    )


def earlier(s, k, c):
    """How many buffers of a channel come before the k-th on the connection."""
    return sum(s.responses[j].channel == c for j in range(k))


@invariant
def nothing_lost(m, s):
    """What was sent on a channel has arrived or is on the connection."""
    return all(s.sequence_number[c] == s.expected_sequence_number[c] + m.in_flight(s, c) for c in range(m.channels))


@invariant
def announcements_counted(m, s):
    """Credits that were announced and are not known are on the connection."""
    return all(s.announced_credit[c] == m.credit_in_flight(s, c) for c in range(m.channels))


@invariant
def no_overflow(m, s):
    """Every buffer on the connection has a free buffer at its receiver, if that is still there."""
    return all(s.consumer[c] == "GONE" or m.in_flight(s, c) <= s.available_buffers[c] for c in range(m.channels))


@invariant
def never_waits(m, s):
    """The connection is always read: the next buffer has a place, or its channel was released."""
    return all(
        len(s.responses) == 0 or s.responses[0].channel != c or s.consumer[c] == "GONE" or s.available_buffers[c] > 0
        for c in range(m.channels)
    )


@invariant
def cancelled_stops(m, s):
    """The sender of a cancelled channel has nothing left: no buffers, no credit, and none that is announced."""
    return all(
        not s.cancelled[c]
        or s.to_produce[c] + s.buffers_in_backlog[c] + s.num_credits_available[c] + s.announced_credit[c] == 0
        for c in range(m.channels)
    )


@invariant
def release_told(m, s):
    """Exactly the channels that were released are cancelled, or their cancellation is on the connection."""
    return all(
        (s.cancelled[c] or any(message.channel == c and message.credit == 0 for message in s.requests))
        == (s.consumer[c] == "GONE")
        for c in range(m.channels)
    )


@invariant
def backlog_exists(m, s):
    """A receiver expects no more buffers than its sender has left, and none on a released channel."""
    return all(
        s.sender_backlog[c] <= (0 if s.consumer[c] == "GONE" else m.depth - s.expected_sequence_number[c])
        for c in range(m.channels)
    )


@step
def lent_in_need(m, s, t):
    """The pool lends a buffer only to a channel with fewer free buffers than it requires."""
    return all(
        t.floating_buffers[c] <= s.floating_buffers[c] or s.available_buffers[c] < s.sender_backlog[c] + m.exclusive
        for c in range(m.channels)
    )


@reachable
def all_arrive(m, s):
    """Everything may be sent and arrive, while a consumer has stalled."""
    return s.consumer[0] == "STALLED" and all(s.expected_sequence_number[c] == m.depth for c in range(m.channels))


@reachable
def all_cancelled(m, s):
    """All channels may be released and their senders stopped."""
    return all(s.cancelled[c] for c in range(m.channels))


@reachable
def lends(m, s):
    """A channel may have a floating buffer, if there are any."""
    return m.floating == 0 or any(s.floating_buffers[c] > 0 for c in range(m.channels))


@temporal
def lent(m, s):
    """A channel that needs more buffers than it has free gets one as long as the pool has one."""
    return all(
        leads_to(
            m.needs(s, c) and s.pool > 0 and s.consumer[c] != "GONE",
            not m.needs(s, c) or s.pool == 0 or s.consumer[c] == "GONE",
        )
        for c in range(m.channels)
    )


@lemma
def pool_conserved(m, s):
    """Every floating buffer is in the pool or lent."""
    return s.pool + sum(s.floating_buffers[c] for c in range(m.channels)) == m.floating


@lemma
def free_or_queued(m, s):
    """A channel's buffers are free or queued; one that was released is as in the beginning."""
    return all(
        s.available_buffers[c] + s.received_buffers[c] == m.exclusive + s.floating_buffers[c]
        and (
            s.consumer[c] != "GONE"
            or (
                s.floating_buffers[c] == 0
                and s.received_buffers[c] == 0
                and s.unannounced_credit[c] == 0
                and s.sender_backlog[c] == 0
            )
        )
        for c in range(m.channels)
    )


@lemma
def credits_have_buffers(m, s):
    """A channel's buffers are credits, announced or not, on the connection, or queued; some of these may have been lost."""
    return all(
        s.num_credits_available[c]
        + s.announced_credit[c]
        + m.in_flight(s, c)
        + s.received_buffers[c]
        + s.unannounced_credit[c]
        <= (m.exclusive + s.floating_buffers[c] if s.consumer[c] != "GONE" else m.exclusive + m.floating)
        for c in range(m.channels)
    )


@lemma
def credits_conserved(m, s):
    """Of a channel that was not released none is lost."""
    return all(
        s.consumer[c] == "GONE"
        or s.num_credits_available[c]
        + s.announced_credit[c]
        + m.in_flight(s, c)
        + s.received_buffers[c]
        + s.unannounced_credit[c]
        == m.exclusive + s.floating_buffers[c]
        for c in range(m.channels)
    )


@lemma
def credits_within_limit(m, s):
    """A channel has no more credits, known or not, than it can have buffers."""
    return all(
        s.num_credits_available[c] + s.announced_credit[c] + s.unannounced_credit[c] <= m.exclusive + m.floating
        for c in range(m.channels)
    )


@lemma
def announcements_noted(m, s):
    """No credit is on the connection that was not announced."""
    return all(m.credit_in_flight(s, c) <= s.announced_credit[c] for c in range(m.channels))


@lemma
def produced_within_depth(m, s):
    """What is to be produced, waits and was sent is as much as there is, of a channel that was cancelled at most."""
    return all(
        s.to_produce[c] + s.buffers_in_backlog[c] == 0 and s.sequence_number[c] <= m.depth
        if s.cancelled[c]
        else s.to_produce[c] + s.buffers_in_backlog[c] + s.sequence_number[c] == m.depth
        for c in range(m.channels)
    )


@lemma
def heard_one_by_one(m, s):
    """Credits of one announcement are counted before the next is."""
    return all(s.credit_to_add[c] == 0 or s.credit_to_add[d] == 0 for c in range(m.channels) for d in range(c))


@lemma
def cancelled_once(m, s):
    """A channel that was released has one cancellation on its way, or has been cancelled; others have none."""
    return all(
        sum(message.channel == c and message.credit == 0 for message in s.requests) + int(s.cancelled[c])
        == int(s.consumer[c] == "GONE")
        for c in range(m.channels)
    )


@temporal
def isolation(m, s):
    """A consumer that reads gets everything eventually, whatever the others do."""
    return all(
        leads_to(
            s.buffers_in_backlog[c] + m.in_flight(s, c) + s.received_buffers[c] > 0,
            s.consumer[c] != "LIVE" or s.buffers_in_backlog[c] + m.in_flight(s, c) + s.received_buffers[c] == 0,
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
    properties=(
        in_order,
        nothing_lost,
        announcements_counted,
        no_overflow,
        never_waits,
        cancelled_stops,
        release_told,
        backlog_exists,
        lent_in_need,
        all_arrive,
        all_cancelled,
        lends,
        lent,
        isolation,
        *LEMMAS,
    ),
    expected={
        "reordering": {"in_order": "violated", "backlog_exists": "violated"},
        "lossy": {"nothing_lost": "violated", "isolation": "violated", "counted": "violated"},
        "lost-announcement": {
            "announcements_counted": "violated",
            "cancelled_stops": "violated",
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
        "floating-granted": {"counted_start": "violated"},
    },
    variant_parameters={  # the smallest that show what breaks
        "reordering": {"channels": 1, "exclusive": 2, "depth": 2},
        "lossy": {"channels": 1, "depth": 2},
        "lost-announcement": {"channels": 1, "depth": 2},
        "no-credit": {"depth": 2},
        "floating-granted": {"channels": 1},
    },
)
