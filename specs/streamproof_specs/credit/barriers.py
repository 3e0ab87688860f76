"""Properties of flow control with barriers: those without, and barriers keep their place and stop their sender."""

from __future__ import annotations

from streamproof import Spec, invariant, leads_to, lemma, step, temporal
from streamproof_models.credit import barriers_variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.credit.barriers import CreditBarriers
from streamproof_specs.credit.properties import SPEC as FLOW


@invariant
def in_order(m, s):
    """A barrier is read when everything that was produced before it has been read."""
    return all(s.barrier[c].place != "READ" or s.barrier[c].older == 0 for c in range(m.channels))


@invariant
def nothing_after(m, s):
    """While a checkpoint is taken behind a barrier, nothing of what came after it has reached the receiver."""
    return all(
        s.barrier[c].place != "READ" or s.flow.in_flight[c] + s.flow.received_buffers[c] == 0 for c in range(m.channels)
    )


@invariant
def accounted(m, s):
    """A channel's buffers are credits, announced or not, but for void ones, and what is on the wire and queued."""
    return all(
        s.flow.num_credits_available[c]
        + s.flow.announced_credit[c]
        + s.flow.in_flight[c]
        + s.flow.received_buffers[c]
        + s.flow.unannounced_credit[c]
        - m.void(s, c)
        == m.exclusive + s.flow.floating_buffers[c]
        for c in range(m.channels)
    )


@step
def free_of_charge(m, s, t):
    """Sending a barrier costs no credit."""
    return all(
        s.barrier[c].place != "BACKLOG"
        or t.barrier[c].place != "IN_FLIGHT"
        or t.flow.num_credits_available[c] == s.flow.num_credits_available[c]
        for c in range(m.channels)
    )


@lemma
def free_or_queued(m, s):
    """A channel's buffers are free or queued."""
    return all(
        s.flow.available_buffers[c] + s.flow.received_buffers[c] == m.exclusive + s.flow.floating_buffers[c]
        for c in range(m.channels)
    )


@lemma
def produced_within_depth(m, s):
    """Buffers to be produced, queued and unread are at most `depth`."""
    return all(
        s.flow.to_produce[c] + s.flow.buffers_in_backlog[c] + s.flow.in_flight[c] + s.flow.received_buffers[c]
        <= m.depth
        for c in range(m.channels)
    )


@lemma
def none_too_many(m, s):
    """A channel has no more credits, but for void ones, than buffers for them."""
    return all(
        s.flow.num_credits_available[c]
        + s.flow.announced_credit[c]
        + s.flow.in_flight[c]
        + s.flow.received_buffers[c]
        + s.flow.unannounced_credit[c]
        - m.void(s, c)
        <= m.exclusive + s.flow.floating_buffers[c]
        for c in range(m.channels)
    )


@lemma
def given_back(m, s):
    """If channels have no exclusive buffers, one that is blocked has no free buffers and requests none."""
    return all(
        m.exclusive > 0
        or not (s.barrier[c].place in ("RECEIVED", "READ") or s.barrier[c].resuming)
        or (s.flow.available_buffers[c] == 0 and s.flow.sender_backlog[c] == 0)
        for c in range(m.channels)
    )


@lemma
def few_outlive_a_barrier(m, s):
    """For each barrier that has arrived there are at most `floating` surplus credits."""
    return all(
        s.flow.num_credits_available[c]
        + s.flow.announced_credit[c]
        + s.flow.in_flight[c]
        + s.flow.received_buffers[c]
        + s.flow.unannounced_credit[c]
        <= m.exclusive
        + s.flow.floating_buffers[c]
        + m.floating
        * (m.checkpoints - s.barrier[c].checkpoints_left - int(s.barrier[c].place in ("BACKLOG", "IN_FLIGHT")))
        for c in range(m.channels)
    )


@lemma
def older_is_ahead(m, s):
    """The buffers ahead of and behind a barrier are consistent with its position."""
    return all(
        s.barrier[c].ahead
        <= (
            s.flow.buffers_in_backlog[c]
            if s.barrier[c].place == "BACKLOG"
            else (
                s.flow.in_flight[c]
                if s.barrier[c].place == "IN_FLIGHT"
                else (s.flow.received_buffers[c] if s.barrier[c].place == "RECEIVED" else 0)
            )
        )
        and s.barrier[c].older
        <= s.barrier[c].ahead
        + (s.flow.in_flight[c] if s.barrier[c].place == "BACKLOG" else 0)
        + (s.flow.received_buffers[c] if s.barrier[c].place in ("BACKLOG", "IN_FLIGHT") else 0)
        for c in range(m.channels)
    )


@lemma
def nothing_behind(m, s):
    """Nothing was sent after a barrier, until its sender is resumed."""
    return all(
        (s.barrier[c].place != "IN_FLIGHT" or s.flow.in_flight[c] == s.barrier[c].ahead)
        and (s.barrier[c].place != "RECEIVED" or s.flow.in_flight[c] + s.flow.received_buffers[c] == s.barrier[c].ahead)
        and (not s.barrier[c].resuming or s.flow.in_flight[c] + s.flow.received_buffers[c] == 0)
        for c in range(m.channels)
    )


@lemma
def one_at_a_time(m, s):
    """A channel has no barrier beyond its sender while that is being resumed, and none when it was released."""
    return all(
        (not s.barrier[c].resuming or s.barrier[c].place in ("NONE", "BACKLOG"))
        and (s.flow.consumer[c] != "GONE" or (s.barrier[c].place == "NONE" and not s.barrier[c].resuming))
        for c in range(m.channels)
    )


@lemma
def stale_were_announced(m, s):
    """Credits ahead of the message that resumes a sender are announced; without such a message there are none."""
    return all(
        s.barrier[c].void_credit <= (s.flow.announced_credit[c] if s.barrier[c].resuming else 0)
        for c in range(m.channels)
    )


@lemma
def void_within_limit(m, s):
    """At most as many credits are void as floating buffers were granted."""
    return all(m.void(s, c) <= m.floating for c in range(m.channels))


@temporal
def checkpointed(m, s):
    """While all consumers read, every barrier is read eventually and its sender resumed."""
    return all(
        leads_to(pending(m, s, c), not m.flow.all_read(s.flow) or not pending(m, s, c)) for c in range(m.channels)
    )


@temporal
def barrier_isolation(m, s):
    """A consumer that reads eventually gets every barrier and resumes its sender, whatever the other consumers do."""
    return all(
        leads_to(pending(m, s, c), s.flow.consumer[c] != "LIVE" or not pending(m, s, c)) for c in range(m.channels)
    )


def pending(m, s, c):
    """Whether a barrier of a channel is on its way."""
    return s.barrier[c].place != "NONE" or s.barrier[c].resuming


LEMMAS = (
    free_or_queued,
    produced_within_depth,
    none_too_many,
    given_back,
    few_outlive_a_barrier,
    older_is_ahead,
    nothing_behind,
    one_at_a_time,
    stale_were_announced,
    void_within_limit,
)
"""Lemmas: auxiliary invariants for the induction."""


SPEC = Spec(
    CreditBarriers,
    properties=(in_order, nothing_after, accounted, free_of_charge, checkpointed, barrier_isolation, *LEMMAS),
    carries={"flow": FLOW},
    expected={
        "barrier-overtakes": {"in_order": "violated"},
        "barrier-costs-credit": {
            "free_of_charge": "violated",
            "accounted": "violated",
            "flow.conservation": "violated",
            "flow.isolation": "violated",
            "flow.told": "violated",
        },
        "not-stopped": {"nothing_after": "violated"},
        "uncounted-lending": {"flow.pool_conserved": "violated", "flow.within_limit": "violated"},
        "aligned": {"barrier_isolation": "violated", "flow.isolation": "violated"},
        "zero-exclusive": {
            "barrier_isolation": "violated",
            "flow.isolation": "violated",
            "flow.conservation": "violated",
            "flow.announced_in_need": "violated",
            "flow.told": "violated",
        },
        "zero-exclusive-keeping": {
            "checkpointed": "violated",
            "barrier_isolation": "violated",
            "flow.consumed": "violated",
            "flow.isolation": "violated",
            "flow.returned": "violated",
            "flow.told": "violated",
        },
        "zero-exclusive-no-reset": {
            "flow.announced_in_need": "violated",
            "flow.told": "violated",
            "accounted": "violated",
            "barrier_isolation": "violated",
            "flow.no_overflow": "violated",
            "flow.conservation": "violated",
            "flow.consumed": "violated",
            "flow.isolation": "violated",
        },
    },
)
