"""Shares of local pools: the same up to one buffer, everything is distributed, and a waiting task gets a buffer."""

from __future__ import annotations

from streamproof import Spec, invariant, leads_to, reachable, step, temporal
from streamproof_models.credit.shares import BufferShares


@invariant
def same_shares(m, s):
    """The sizes of two pools differ by one buffer at most."""
    return all(s.size[p] <= s.size[q] + 1 or not s.created[p] or not s.created[q] for p in m.every for q in m.every)


@invariant
def requirements_met(m, s):
    """Together the sizes are no more than there are buffers, and each pool has what it requires."""
    return sum(s.size[p] for p in m.every) <= m.buffers and all(
        s.size[p] >= m.required or not s.created[p] for p in m.every
    )


@invariant
def all_distributed(m, s):
    """No buffer is left while a pool can use it."""
    return sum(s.size[p] for p in m.every) == m.buffers or all(s.size[p] >= m.most or not s.created[p] for p in m.every)


@step
def within_share(m, s, t):
    """No pool requests a buffer beyond its size."""
    return all(t.held[p] <= max(s.held[p], s.size[p]) for p in m.every)


@temporal
def gets_buffer(m, s):
    """A task whose pool has no buffer gets one, unless its pool is destroyed."""
    return all(leads_to(s.size[p] > 0, s.held[p] > 0 or not s.created[p]) for p in m.every)


@invariant
def held_once(m, s):
    """No buffer is held by two pools, and a pool that is destroyed has none and is due none."""
    return sum(s.held[p] for p in m.every) <= m.buffers and all(
        s.created[p] or (s.held[p] == 0 and s.size[p] == 0) for p in m.every
    )


@step
def one_at_a_time(m, s, t):
    """A buffer is requested or recycled alone, while no pool comes or goes."""
    return sum(int(t.held[p] != s.held[p]) + int(t.created[p] != s.created[p]) for p in m.every) <= 1 and all(
        t.held[p] in (s.held[p] - 1, s.held[p], s.held[p] + 1) for p in m.every
    )


@reachable
def all_in_use(m, s):
    """As many pools as there are buffers for what they require hold all buffers that they can use."""
    full = m.fits_another(s) and not all(s.created)
    used = m.free(s) == 0 or all(s.held[p] == s.size[p] for p in m.every)
    return not full and any(s.created) and used


SPEC = Spec(
    BufferShares,
    properties=(
        same_shares,
        requirements_met,
        all_distributed,
        within_share,
        gets_buffer,
        held_once,
        one_at_a_time,
        all_in_use,
    ),
    expected={
        "weak-requests": {"gets_buffer": "violated"},
        "overcommitted": {"requirements_met": "violated", "all_distributed": "violated"},
        "first-takes-all": {"same_shares": "violated"},
        "not-redistributed": {"same_shares": "violated", "requirements_met": "violated", "all_distributed": "violated"},
        "shares-rounded-down": {"all_distributed": "violated"},
        "excess-kept": {"within_share": "violated"},
    },
)
