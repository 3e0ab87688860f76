"""Properties of credit-based flow control: every buffer has a place, none is lost, and channels do not block each other."""

from __future__ import annotations

from streamproof import Spec, Sweep, invariant, leads_to, reachable, step, temporal
from streamproof_models.credit import receiver, variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.credit.machine import Credit


@invariant
def conservation(m, s):
    """Every buffer assigned to a channel is a credit, an announcement, on the wire, queued, or yet to be announced."""
    return all(
        s.num_credits_available[c]
        + s.announced_credit[c]
        + s.in_flight[c]
        + s.received_buffers[c]
        + s.unannounced_credit[c]
        == m.exclusive + s.floating_buffers[c]
        for c in range(m.channels)
    )


@invariant
def no_overflow(m, s):
    """Every buffer on the wire has a free buffer at its receiver."""
    return all(s.in_flight[c] <= s.available_buffers[c] for c in range(m.channels))


@invariant
def pool_conserved(m, s):
    """Every floating buffer is in the pool or lent."""
    return s.pool + sum(s.floating_buffers[c] for c in range(m.channels)) == m.floating


@invariant
def within_limit(m, s):
    """A gate has no more buffers than its channels' exclusive ones and the floating ones."""
    return (
        sum(s.available_buffers[c] + s.received_buffers[c] for c in range(m.channels))
        <= m.channels * m.exclusive + m.floating
    )


@invariant
def nothing_remains(m, s):
    """Nothing of a released channel remains but its exclusive buffers, which are free."""
    return all(
        s.consumer[c] != "GONE"
        or (
            s.to_produce[c] + s.buffers_in_backlog[c] + s.in_flight[c] + s.received_buffers[c] + s.sender_backlog[c]
            == 0
            and s.available_buffers[c] == m.exclusive
        )
        for c in range(m.channels)
    )


@step
def none_lost(m, s, t):
    """A sender produces one buffer at a time, and none is lost: only a live consumer reads one that was received."""
    return all(
        t.consumer[c] == "GONE"
        or (m.unread(t, c) == m.unread(s, c) and s.to_produce[c] - t.to_produce[c] in (0, 1))
        or (
            s.consumer[c] == "LIVE"
            and m.unread(t, c) == m.unread(s, c) - 1
            and t.received_buffers[c] == s.received_buffers[c] - 1
        )
        for c in range(m.channels)
    )


@step
def announced_in_need(m, s, t):
    """What a receiver learns of a backlog is true, and without a buffer only a sender without credit tells it."""
    return all(
        t.sender_backlog[c] == s.sender_backlog[c]
        or t.consumer[c] == "GONE"
        or (
            t.sender_backlog[c] == t.buffers_in_backlog[c]
            and (
                t.received_buffers[c] > s.received_buffers[c]
                or (s.buffers_in_backlog[c] > 0 and s.num_credits_available[c] == 0)
            )
        )
        for c in range(m.channels)
    )


@step
def consumers_end(m, s, t):
    """A consumer that has stalled does not read again, and a released channel stays so: its credits go to the sender."""
    return all(
        (
            t.consumer[c] == s.consumer[c]
            and (s.consumer[c] != "GONE" or t.num_credits_available[c] >= s.num_credits_available[c])
        )
        or s.consumer[c] == "LIVE"
        or (t.consumer[c] == "GONE" and s.consumer[c] != "GONE")
        for c in range(m.channels)
    )


@reachable
def stalls_at_the_end(m, s):
    """A consumer may stall when everything is produced."""
    return any(s.consumer[c] == "STALLED" and s.to_produce[c] == 0 for c in range(m.channels))


@reachable
def released(m, s):
    """A channel may be released."""
    return any(s.consumer[c] == "GONE" for c in range(m.channels))


@temporal
def told(m, s):
    """The receiver learns of the backlog of a sender without credit."""
    return all(
        leads_to(
            s.num_credits_available[c] == 0 and s.sender_backlog[c] != s.buffers_in_backlog[c],
            s.num_credits_available[c] > 0 or s.sender_backlog[c] == s.buffers_in_backlog[c],
        )
        for c in range(m.channels)
    )


@temporal
def lent(m, s):
    """A channel that needs more buffers than it has free gets one as long as the pool has one."""
    return all(leads_to(m.needs(s, c) and s.pool > 0, not m.needs(s, c) or s.pool == 0) for c in range(m.channels))


@temporal
def consumed(m, s):
    """While all consumers read, everything produced is read eventually."""
    return all(leads_to(not m.idle(s, c), not m.all_read(s) or m.idle(s, c)) for c in range(m.channels))


@temporal
def isolation(m, s):
    """A consumer that reads gets everything eventually, whatever the others do."""
    return all(leads_to(not m.idle(s, c), s.consumer[c] != "LIVE" or m.idle(s, c)) for c in range(m.channels))


@temporal
def returned(m, s):
    """A channel whose consumer does not stall eventually returns its floating buffers."""
    return all(
        leads_to(s.floating_buffers[c] > 0, s.consumer[c] == "STALLED" or s.floating_buffers[c] == 0)
        for c in range(m.channels)
    )


SPEC = Spec(
    Credit,
    properties=(
        conservation,
        no_overflow,
        pool_conserved,
        within_limit,
        nothing_remains,
        none_lost,
        announced_in_need,
        consumers_end,
        stalls_at_the_end,
        released,
        told,
        lent,
        consumed,
        isolation,
        returned,
    ),
    expected={
        "credit-before-free": {"conservation": "violated", "no_overflow": "violated"},
        "floating-leak": {"pool_conserved": "violated"},
        "uncounted-lending": {"pool_conserved": "violated", "within_limit": "violated"},
        "lost-announcement": {
            "conservation": "violated",
            "consumed": "violated",
            "isolation": "violated",
            "returned": "violated",
        },
        "lost-buffer": {
            "conservation": "violated",
            "none_lost": "violated",
            "returned": "violated",
            "told": "violated",
        },
        "zero-exclusive": {"isolation": "violated"},
        "zero-exclusive-reading": {"stalls_at_the_end": "violated", "released": "violated"},
        "zero-exclusive-silent": {
            "deadlock": "violated",
            "consumed": "violated",
            "isolation": "violated",
            "told": "violated",
            "stalls_at_the_end": "violated",
            "released": "violated",
        },
        "any-backlog": {"returned": "violated", "told": "violated", "lent": "violated"},
        "runtime": {
            "conservation": "violated",
            "within_limit": "violated",
            "nothing_remains": "violated",
            "announced_in_need": "violated",
            "consumers_end": "violated",
            "told": "violated",
            "lent": "violated",
            "returned": "violated",
        },
        "no-credit": {"conservation": "violated", "no_overflow": "violated", "isolation": "violated"},
    },
    variant_parameters={  # the smallest that show what breaks
        "credit-before-free": {"channels": 1},
        "floating-leak": {"depth": 1},
        "uncounted-lending": {"depth": 1},
        "lost-announcement": {"channels": 1},
        "lost-buffer": {"channels": 1},
        "zero-exclusive": {"depth": 1},
        "zero-exclusive-silent": {"depth": 1},
        "no-credit": {"floating": 0},
    },
    sweeps=Sweep(
        axes={"exclusive": range(3), "floating": range(4), "channels": range(1, 4), "depth": range(1, 3)},
        instead={"zero-exclusive": {"exclusive": 0}},
    ),
)
