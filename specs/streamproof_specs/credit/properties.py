"""Properties of credit-based flow control: every buffer has a place, none is lost, and channels do not block each other."""

from __future__ import annotations

from streamproof import Spec, Sweep, invariant, leads_to, temporal
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
    properties=(conservation, no_overflow, pool_conserved, within_limit, consumed, isolation, returned),
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
        "zero-exclusive": {"isolation": "violated"},
        "zero-exclusive-silent": {"deadlock": "violated", "consumed": "violated", "isolation": "violated"},
        "any-backlog": {"returned": "violated"},
        "runtime": {"conservation": "violated", "within_limit": "violated", "returned": "violated"},
        "no-credit": {"conservation": "violated", "no_overflow": "violated", "isolation": "violated"},
    },
    variant_parameters={  # the smallest that show what breaks
        "credit-before-free": {"channels": 1},
        "floating-leak": {"depth": 1},
        "uncounted-lending": {"depth": 1},
        "lost-announcement": {"channels": 1},
        "zero-exclusive": {"depth": 1},
        "zero-exclusive-silent": {"depth": 1},
        "no-credit": {"floating": 0},
    },
    sweeps=Sweep(
        axes={"exclusive": range(3), "floating": range(4), "channels": range(1, 4), "depth": range(1, 3)},
        instead={"zero-exclusive": {"exclusive": 0}},
    ),
)
