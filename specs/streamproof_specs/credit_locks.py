"""Properties of the locks of flow control: every thread finishes, and no buffer is lost with a channel."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, temporal
from streamproof_models.credit_locks import (  # noqa: F401  (declaring a variant registers it)
    CreditLocks,
    GivenBackInside,
    GivenToReleased,
    NotRefused,
    PoolHeld,
)


@invariant
def floating_conserved(m, s):
    """Every floating buffer is in the pool, at a channel, or in the hands of a thread."""
    return s.pool + sum(s.spare) + m.in_hand(s) == m.buffers


@invariant
def released_empty(m, s):
    """A channel that was released has no floating buffer, and gets none."""
    return all(s.at[t] != "DONE" or s.spare[m.work[t][1]] == 0 for t in m.releasing)


@temporal
def finished(m, s):
    """Every thread finishes."""
    return eventually(all(at == "DONE" for at in s.at))


SPEC = Spec(
    CreditLocks,
    properties=(floating_conserved, released_empty, finished),
    expected={
        "before-22946": {"deadlock": "violated", "finished": "violated"},
        "before-18595": {"deadlock": "violated", "finished": "violated"},
        "before-9676": {"deadlock": "violated", "finished": "violated"},
        "given-to-released": {"released_empty": "violated"},
    },
    variant_parameters={  # the two threads of each report
        "before-22946": {"jobs": "recycle0 recycle1"},
        "before-18595": {"jobs": "release0 recycle1"},
        "before-9676": {"jobs": "release0 recycle1"},
        "given-to-released": {"jobs": "release0 recycle1"},
    },
)
